#pragma once
// Which algorithm for which device: section 4 of the paper, with counts. For each fast memory and
// width: what the paper says by its dividing line, M = d^2, which of its two algorithms moves
// fewer words, and the kernel of fewest.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/observe/devices.hpp"
#include "runtime/theory/planner.hpp"

namespace redblue {

struct DeviceChoice {
  Device device;
  Task task;
  // The paper's algorithms, where they fit.
  std::optional<Choice> small, large;
  std::optional<Choice> best;  // nothing where no kernel fits
  Bound bound;                 // of every algorithm

  // The name of the one that the paper says: backward/small where M < d^2.
  [[nodiscard]] std::string_view by_rule() const;
  // The one of fewer words; null where neither fits.
  [[nodiscard]] const Choice* by_words() const;
  // The words of that over those of the best.
  [[nodiscard]] std::optional<double> ratio() const;
};

struct DeviceReport {
  std::vector<DeviceChoice> choices;
};

// For each device all tasks, which differ in width; M is the device's words.
// Requires: devices of whole words, tasks of backward. Throws: FastMemoryTooSmall where no kernel
// fits in any of them; what choices() and lower_bounds() do.
DeviceReport report_devices(const std::vector<Device>& devices, const std::vector<Task>& tasks);

std::string to_table(const DeviceReport& report);
std::string to_json(const DeviceReport& report);
std::string to_csv(const DeviceReport& report);

}  // namespace redblue
