#pragma once
// The report of `redblue plan --cache`: section 4 of the paper with counts. Each fast memory and
// width has three kernels. The first is the paper's algorithm by its dividing line M = d^2. The
// second is the better of the paper's two algorithms. The third moves the fewest words.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "memsim/words.hpp"
#include "runtime/text/description.hpp"
#include "runtime/theory/planner.hpp"

namespace redblue {

// A fast memory: a level of a device, or a size from the command line.
struct PlannedMemory {
  std::string name;
  Index bytes = 0;
  std::string source = {};  // the document or option that gives the size
};

struct DeviceChoice {
  PlannedMemory device;
  Task task;
  // The paper's algorithms, if they fit.
  std::optional<Choice> small, large;
  std::optional<Choice> best;  // not set if no kernel fits
  Bound bound;                 // for every algorithm

  // Returns the name of the algorithm that the dividing line selects: backward/small for M < d^2.
  [[nodiscard]] std::string_view by_rule() const;
  // Returns the algorithm that moves fewer words, or null if neither fits.
  [[nodiscard]] const Choice* by_words() const;
  // Returns the words of by_words() divided by the words of the best kernel.
  [[nodiscard]] std::optional<double> ratio() const;
};

struct DeviceReport {
  std::vector<DeviceChoice> choices;
};

// Reports all pairs of a memory and a task. The tasks differ in width; M is the number of words in
// the memory. Requires: memories of whole words, backward tasks. Throws: FastMemoryTooSmall if no
// kernel fits in any of them; as choices() and lower_bounds().
DeviceReport report_devices(const std::vector<PlannedMemory>& memories,
                            const std::vector<Task>& tasks);

Description describe(const DeviceReport& report);

}  // namespace redblue
