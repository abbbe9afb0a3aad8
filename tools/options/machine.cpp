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

#include "runtime/report/calibration.hpp"
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

// Returns the calibration file; nothing if neither XDG_CACHE_HOME nor HOME helps.
std::optional<std::filesystem::path> calibration_place() {
  const auto path_in = [](const char* name) -> std::filesystem::path {
    const char* text = variable(name);
    return text == nullptr ? "" : text;
  };
  std::filesystem::path caches = path_in("XDG_CACHE_HOME");
  if (!caches.is_absolute()) {
    const std::filesystem::path home = path_in("HOME");
    if (home.empty()) {
      return std::nullopt;
    }
    caches = home / ".cache";
  }
  return caches / "redblue" / "calibration.json";
}

}  // namespace

std::filesystem::path calibration_file() {
  if (const auto place = calibration_place()) {
    return *place;
  }
  throw UsageError(
      "where the calibration lies is not known: set XDG_CACHE_HOME (an absolute path) or HOME");
}

Rates machine_rates() {
  const auto file = calibration_place();
  return file && std::filesystem::exists(*file)
             ? calibrated_rates(read_calibration(*file), file->string(), machine_topology())
             : default_rates();
}

namespace {

class ThisMachine : public KnownMachine {
 public:
  [[nodiscard]] Topology topology(const Given&) const override { return machine_topology(); }

  [[nodiscard]] Part calibrated(const Given& given, const Topology& topology) const override {
    if (!topology.unavailable.empty()) {
      throw UsageError(
          fmt::format("{} {}: the caches are not known ({}): give words, for example {} 8192",
                      given.from, given.text, topology.unavailable, given.from));
    }
    const std::filesystem::path path = calibration_file();
    try {
      return {calibrated_part(read_calibration(path), path.string(), topology), path.string()};
    } catch (const std::system_error& error) {
      if (error.code() == std::errc::no_such_file_or_directory) {
        throw UsageError(fmt::format("{} {}: there is no {}: run `redblue calibrate` first",
                                     given.from, given.text, path.string()));
      }
      throw;
    }
  }

  [[nodiscard]] Rates rates() const override { return machine_rates(); }
};

}  // namespace

const KnownMachine& machine_at_hand() {
  static const ThisMachine machine;
  return machine;
}

}  // namespace redblue
