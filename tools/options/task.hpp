#pragma once
// The options that say what is to be computed, by whatever kernel: shared by the subcommands that
// bound and plan.

#include <vector>

#include "runtime/theory/bounds.hpp"
#include "tools/cli/command.hpp"
#include "tools/options/problem.hpp"

namespace redblue {

class TaskOptions {
 public:
  explicit TaskOptions(CLI::App& app);
  // The request gets where M came from. Throws: UsageError.
  [[nodiscard]] Task task(Request& request) const;
  // A backward task for each width that --d lists, n as here where it is left out, M to be filled
  // in: `caches`, an option, says it, and not --M. Throws: UsageError.
  [[nodiscard]] std::vector<Task> tasks_of_widths(Index n, const TextOption& caches) const;

 private:
  // All but shape and M.
  [[nodiscard]] Task kind() const;

  ShapeOptions shape_;
  FastMemoryOption M_;
  TextOption problem_, sharing_, given_;
};

}  // namespace redblue
