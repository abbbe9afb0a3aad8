#include "tools/options/device.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/system/input_error.hpp"
#include "tools/cli/sizes.hpp"
#include "tools/options/machine.hpp"

namespace redblue {
namespace {

constexpr std::string_view kThis = "this";

Device this_machine(const Given& given) {
  const Topology topology = machine_topology();
  Device device = device_of(topology);
  if (device.levels.empty()) {
    throw UsageError(fmt::format(
        "{} {}: the caches are not known ({}): give a file, or words as --M 8192", given.from,
        kThis, topology.unavailable.empty() ? topology.source : topology.unavailable));
  }
  return device;
}

}  // namespace

std::string expected_devices() {
  std::string names;
  for (const Device& device : devices()) {
    names += device.name + ", ";
  }
  return fmt::format("{}{}, or a file as ./mine.json", names, kThis);
}

std::optional<Device> find_device(const Given& given) {
  const std::string& text = given.text;
  try {
    if (text == kThis) {
      return this_machine(given);
    }
    if (const auto known = std::ranges::find(devices(), text, &Device::name);
        known != devices().end()) {
      return *known;
    }
    if (text.find('/') != std::string::npos || text.ends_with(".json")) {
      return read_device(text);
    }
  } catch (const InputError& error) {
    throw UsageError(fmt::format("{}: {}", given.from, error.what()));
  }
  return std::nullopt;
}

DeviceOption::DeviceOption(CLI::App& app)
    : device_(app, "--device",
              fmt::format("in place of --M, the levels of fast memory of a device: {}; with what "
                          "words come to by its figures",
                          expected_devices()),
              "DEVICE") {}

std::optional<Device> DeviceOption::get() const {
  const auto given = device_.get();
  if (!given) {
    return std::nullopt;
  }
  if (auto device = find_device(*given)) {
    return device;
  }
  throw UsageError(fmt::format("{}: no device is called '{}': expected {}", given->from,
                               given->text, expected_devices()));
}

}  // namespace redblue
