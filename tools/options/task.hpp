#pragma once
// The options that describe a task, for any kernel, shared by the subcommands that bound and plan.

#include <optional>
#include <string>
#include <vector>

#include "runtime/theory/bounds.hpp"
#include "tools/cli/command.hpp"
#include "tools/options/problem.hpp"

namespace redblue {

class TaskOptions {
 public:
  explicit TaskOptions(CLI::App& app);
  // The task. The request receives the origin of M. Throws: UsageError.
  [[nodiscard]] Task task(Request& request) const { return task_at({}, request); }
  // With sizes in place of those that options give, which must then not be there: `why` says so,
  // and `said` is what gives them. Throws: UsageError.
  struct Sizes {
    std::optional<Index> n = {}, d = {}, M = {};
    std::string said = {}, why = {};
  };
  [[nodiscard]] Task task_at(const Sizes& sizes, Request& request) const;
  [[nodiscard]] const TextOption& mask() const { return mask_.option(); }
  [[nodiscard]] const WordOption& word() const { return word_; }
  // The problem of the kernel that `said` names: an option, or the kernel's own name. `shows` says
  // what is shown of one head. The request receives M and its origin. Throws: UsageError.
  [[nodiscard]] Problem problem_of(const std::string& said, const char* shows,
                                   const KernelName& kernel, Request& request) const;
  // A backward task for each width that --d lists. Without --n, n is this one. M is left to fill
  // in: the option `caches` replaces --M. Throws: UsageError.
  [[nodiscard]] std::vector<Task> tasks_of_widths(Index n, const TextOption& caches) const;

 private:
  // M, its levels and what a word costs in them. Throws: UsageError.
  void fill_memory(Request& request) const { fill_memory(request, {}); }
  void fill_memory(Request& request, const Sizes& sizes) const;
  // The task without shape and M.
  [[nodiscard]] Task kind() const;
  // The activation of the request that this fills, for such a kernel. Throws: RequestError.
  [[nodiscard]] Activation activation(const Kernel& kernel, Request& request) const;
  // The mask of the request that this fills. Throws: RequestError.
  [[nodiscard]] Mask mask(const Shape& shape, Request& request) const;

  // The width of values of the request that this fills, which has a width. Throws: RequestError.
  [[nodiscard]] Index dv(Pass pass, Sharing sharing, Request& request,
                         const std::string& who) const;
  // The heads of the request that this fills. Requires: a task of one head.
  void fill_heads(Task& task, Request& request) const;

  // Of another activation than softmax there are no O and L to be given. Throws: UsageError.
  void forget_sums(Task& task) const;
  // A task of sparse operands, whose problem is `pass`. Throws: RequestError.
  [[nodiscard]] Problem sparse_problem(Pass pass, const std::string& kernel, Request& request,
                                       Index* heads) const;

  ShapeOptions shape_;
  HeadsOption heads_;
  WordOption word_;
  FastMemoryOption M_;
  WordCostsOption word_costs_;
  TextOption problem_, sharing_, given_;
  ActivationOption activation_;
  ValueWidthOption dv_;
  MaskOption mask_;
  WantedOption wanted_;
  PatternOptions inputs_;
};

}  // namespace redblue
