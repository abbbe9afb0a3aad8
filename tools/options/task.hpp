#pragma once
// The options that describe a task, for any kernel, shared by the subcommands that bound and plan.

#include <optional>
#include <string>
#include <vector>

#include "runtime/theory/bounds.hpp"
#include "tools/options/problem.hpp"

namespace redblue {

class TaskOptions {
 public:
  explicit TaskOptions(CLI::App& app);
  // The task. The request receives the origin of M. Throws: UsageError.
  [[nodiscard]] Task task(Request& request) const { return task_at({}, request); }
  // With these sizes. Throws: UsageError, with `why` if an option gives a size, too.
  struct Sizes {
    std::optional<Index> n = {}, d = {}, M = {};
    std::string why = {};
  };
  [[nodiscard]] Task task_at(const Sizes& sizes, Request& request) const;
  // The problem of the kernel that `said` names: an option, or the kernel's own name. `shows`
  // names the report, which is for one head. The request receives M and its origin.
  // Throws: UsageError.
  [[nodiscard]] Problem problem_of(const std::string& said, const char* shows,
                                   const KernelName& kernel, Request& request) const;
  // A backward task for each width that --d lists. Without --n, n is this one. M is left to fill
  // in: the option `caches` replaces --M. Throws: UsageError.
  [[nodiscard]] std::vector<Task> tasks_of_widths(Index n, const TextOption& caches) const;
  [[nodiscard]] Settings settings() const { return table_.settings(); }

 private:
  TableOptions table_;
};

}  // namespace redblue
