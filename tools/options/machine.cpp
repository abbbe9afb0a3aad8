#include "tools/options/machine.hpp"

#include <map>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <sched.h>

#include "runtime/observe/machine_file.hpp"
#include "runtime/report/calibration.hpp"
#include "runtime/run/tuned.hpp"
#include "runtime/system/environment.hpp"
#include "tools/cli/caller.hpp"

namespace redblue {

namespace {

Topology read_machine() {
  Topology topology;
  {
    const UnchangedEnvironment unchanged;  // hwloc reads HWLOC_ variables itself
    topology = read_topology();
  }
  // HWLOC_THISSYSTEM declares that a description is of this system.
  if (topology.this_system && variable("HWLOC_THISSYSTEM") == nullptr) {
    for (const char* name : {"HWLOC_SYNTHETIC", "HWLOC_XMLFILE"}) {
      const char* text = variable(name);
      if (text != nullptr && *text != '\0') {
        throw UsageError(fmt::format("{} '{}': hwloc makes nothing of it", name, text));
      }
    }
  }
  return topology;
}

// What hwloc's answer depends on: its variables, and the processors that this process may use.
std::string dependences() {
  std::string all;
  for (const char* name : {"HWLOC_SYNTHETIC", "HWLOC_XMLFILE", "HWLOC_THISSYSTEM", "HWLOC_FSROOT",
                           "HWLOC_COMPONENTS"}) {
    const char* text = variable(name);
    all += text == nullptr ? "-" : std::string("=") + text;
    all += '\n';
  }
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
    for (std::size_t unit = 0; unit < CPU_SETSIZE; ++unit) {
      all += CPU_ISSET(unit, &allowed) ? '1' : '0';
    }
  }
  return all;
}

}  // namespace

Topology machine_topology() {
  static std::mutex mutex;
  static std::map<std::string, Topology> known;  // of a process; reading takes milliseconds
  const std::string of = dependences();
  {
    const std::lock_guard lock(mutex);
    if (const auto found = known.find(of); found != known.end()) {
      return found->second;
    }
  }
  Topology topology = read_machine();
  const std::lock_guard lock(mutex);
  return known.insert_or_assign(of, std::move(topology)).first->second;
}

Topology measured_topology() {
  Topology topology = machine_topology();
  if (!topology.unavailable.empty()) {
    throw std::runtime_error("the caches of this machine are not known: " + topology.unavailable);
  }
  if (!topology.this_system) {
    throw UsageError(
        fmt::format("the caches are those of another machine ({}), and this one is measured: unset "
                    "HWLOC_SYNTHETIC and HWLOC_XMLFILE",
                    topology.source));
  }
  return topology;
}

Counters machine_counters(const Topology& topology, const std::vector<std::string>& names) {
  const UnchangedEnvironment unchanged;  // PAPI reads PAPI_ variables itself
  return Counters(topology, names);
}

std::vector<std::string> counter_names() {
  std::vector<std::string> names;
  const char* text = variable("PAPI_EVENTS");
  std::istringstream list(text == nullptr ? "" : text);
  for (std::string name; std::getline(list, name, ',');) {
    if (!name.empty()) {
      names.push_back(name);
    }
  }
  return names;
}

namespace {

std::filesystem::path known_place(std::string_view name) {
  if (const auto place = machine_file_path(name)) {
    return *place;
  }
  throw UsageError(fmt::format(
      "where {} lies is not known: set XDG_CACHE_HOME (an absolute path) or HOME", name));
}

}  // namespace

std::filesystem::path calibration_file() {
  return known_place(kCalibrationFile);
}

std::filesystem::path tuned_file() {
  return known_place(kTunedFile);
}

Rates machine_rates() {
  const auto file = machine_file_path(kCalibrationFile);
  return file && std::filesystem::exists(*file)
             ? calibrated_rates(read_machine_file(*file, kCalibrate), file->string(),
                                machine_topology())
             : default_rates();
}

std::optional<Rates> calibration_if_any() {
  try {
    const auto file = machine_file_path(kCalibrationFile);
    return file && std::filesystem::exists(*file) ? std::optional(machine_rates()) : std::nullopt;
  } catch (const std::exception&) {  // commands that need it say why
    return std::nullopt;
  }
}

namespace {

class ThisMachine : public KnownMachine {
 public:
  [[nodiscard]] Topology topology(const Given&) const override { return machine_topology(); }

  [[nodiscard]] Automatic automatic(const Given& given, const AutoRequest& request,
                                    const Topology& topology) const override {
    const auto file = machine_file_path(kTunedFile);
    const std::vector<TunedProblem> tuned =
        file && std::filesystem::exists(*file)
            ? read_tuned(read_machine_file(*file, kTune), file->string(), topology)
            : std::vector<TunedProblem>();
    const auto memory = auto_memory(request, tuned, topology);
    if (!memory) {
      throw UsageError(fmt::format(
          "{0} {1}: the caches are not known ({2}): give words, for example {0} 8192", given.from,
          given.text, topology.unavailable.empty() ? topology.source : topology.unavailable));
    }
    return {*memory, memory->tuned ? file->string() : std::string()};
  }

  [[nodiscard]] Rates rates() const override { return machine_rates(); }
};

}  // namespace

const KnownMachine& machine_at_hand() {
  static const ThisMachine machine;
  return machine;
}

}  // namespace redblue
