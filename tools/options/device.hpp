#pragma once
// Devices as people ask for them: by a name, by the path of a file, or this machine.

#include <optional>
#include <string>

#include "runtime/observe/devices.hpp"
#include "tools/cli/command.hpp"

namespace redblue {

// "a100, h100, ..., this, or a file as ./mine.json"
std::string expected_devices();

// The device that the text names: one that is known; `this`, by hwloc; or that of a file, whose
// path has a / or ends in .json. Nothing for another text. Throws: UsageError for a file that holds
// no device, and where the caches of this machine are not known; std::system_error for the file
// itself.
std::optional<Device> find_device(const Given& given);

// --device.
class DeviceOption {
 public:
  explicit DeviceOption(CLI::App& app);
  // Throws: UsageError, also for a name of no device; as find_device().
  [[nodiscard]] std::optional<Device> get() const;
  [[nodiscard]] const TextOption& option() const { return device_; }

 private:
  TextOption device_;
};

}  // namespace redblue
