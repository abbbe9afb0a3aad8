#include "tools/options/machine.hpp"

#include <optional>
#include <sstream>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include "runtime/report/calibration.hpp"
#include "runtime/system/environment.hpp"
#include "tools/cli/caller.hpp"

namespace redblue {

Topology machine_topology() {
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
