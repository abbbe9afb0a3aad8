#pragma once
// Options that describe a problem for any kernel. Used by the bounds, plan, curve and plot
// commands.

#include <optional>
#include <string>
#include <vector>

#include "runtime/theory/bounds.hpp"
#include "tools/options/problem.hpp"

namespace redblue {

class TaskOptions {
 public:
  // `more`: further keys of the table.
  explicit TaskOptions(CLI::App& app, const Keys& more = {});
  // Returns the task. Stores the origin of M in `request`. Throws: UsageError.
  [[nodiscard]] Task task(Request& request) const { return task_at({}, request); }
  // Fixed sizes, which the options must not give again; `why` is the reason in the message.
  struct Sizes {
    std::optional<Index> n = {}, d = {}, M = {};
    std::string why = {};
  };
  [[nodiscard]] Task task_at(const Sizes& sizes, Request& request) const;
  // Returns the problem for `kernel`, which `said` named: an option or the kernel's own name.
  // `shows` names the report, which covers one head. Stores M and its origin in `request`. Throws:
  // UsageError.
  [[nodiscard]] Problem problem_of(const std::string& said, const char* shows,
                                   const KernelName& kernel, Request& request) const;
  // Returns a backward task for each width in --d. `n` is the default for --n. The tasks have no M:
  // the option `caches` replaces --M. Throws: UsageError.
  [[nodiscard]] std::vector<Task> tasks_of_widths(Index n, const TextOption& caches) const;
  [[nodiscard]] Settings settings() const { return table_.settings(); }

 private:
  TableOptions table_;
  TextOption nests_;
};

}  // namespace redblue
