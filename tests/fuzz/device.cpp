// A device description that a person writes.

#include "runtime/observe/devices.hpp"
#include "runtime/report/device_figures.hpp"
#include "runtime/system/input_error.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace redblue::fuzz {

void device(std::string_view input) {
  const auto device =
      read_or_refused<InputError>("a.json", [&] { return parse_device(input, "a.json"); });
  if (!device) {
    return;
  }
  demand(!device->name.empty() && !device->source.empty() && !device->levels.empty(), "no device");
  Index inside = 0;
  for (const DeviceLevel& level : device->levels) {
    demand(!level.name.empty() && level.bytes > inside && level.bytes % 4 == 0, "no level");
    demand(level.line_bytes.value_or(1) > 0 && level.shared_by.value_or(1) > 0, "a size of 0");
    demand(level.bytes_per_second.value_or(1) > 0 && level.joules_per_word.value_or(1) > 0,
           "a figure that is not above 0");
    inside = level.bytes;
  }
  const auto written_of = [](const Device& of) {
    return json_of(describe(std::vector{of})).at("devices").at(0).dump(Json::BadText::replaced);
  };
  const std::string written = written_of(*device);
  const Device again = parse_device(written, "again.json");
  demand(written_of(again) == written, "what is written is read as another device");
}

}  // namespace redblue::fuzz
