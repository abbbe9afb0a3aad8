#pragma once
// The report of `redblue plan --cache`: section 4 of the paper with counts. For each fast memory
// and width: the paper's algorithm by its dividing line M = d^2, the one of its two algorithms that
// moves fewer words, and the kernel that moves the fewest.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "memsim/words.hpp"
#include "runtime/text/description.hpp"
#include "runtime/theory/planner.hpp"

namespace redblue {

// A fast memory: a level of a device, or a size that was asked for.
struct PlannedMemory {
  std::string name;
  Index bytes = 0;
  std::string source = {};  // the document that describes it, or the origin of the size
};

struct DeviceChoice {
  PlannedMemory device;
  Task task;
  // The paper's algorithms, if they fit.
  std::optional<Choice> small, large;
  std::optional<Choice> best;  // nothing if no kernel fits
  Bound bound;                 // of every algorithm

  // The name of the algorithm by the dividing line: backward/small for M < d^2.
  [[nodiscard]] std::string_view by_rule() const;
  // The algorithm of fewer words; null if neither fits.
  [[nodiscard]] const Choice* by_words() const;
  // The words of by_words() over those of the best.
  [[nodiscard]] std::optional<double> ratio() const;
};

struct DeviceReport {
  std::vector<DeviceChoice> choices;
};

// All pairs of a memory and a task. The tasks differ in width; M is the number of the memory's
// words. Requires: memories of whole words, backward tasks. Throws: FastMemoryTooSmall if no kernel
// fits in any of them; as choices() and lower_bounds().
DeviceReport report_devices(const std::vector<PlannedMemory>& memories,
                            const std::vector<Task>& tasks);

Description describe(const DeviceReport& report);

}  // namespace redblue
