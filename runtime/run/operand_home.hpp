#pragma once
// The place of a run's matrices: main memory (memory_home.hpp) or a store on disk (store_home.hpp).
// run() takes every run through the steps below, in this order. A home belongs to one run and one
// thread.

#include <functional>
#include <string_view>
#include <vector>

#include "runtime/run/outcome.hpp"
#include "runtime/run/resolve.hpp"
#include "runtime/run/workers.hpp"

namespace redblue {

class OperandHome {
 public:
  // Main memory that a run takes, and what a person can do where it is too much.
  struct MemoryNeed {
    Words bytes;
    std::string_view remedy;
  };

  OperandHome() = default;
  OperandHome(const OperandHome&) = delete;
  OperandHome& operator=(const OperandHome&) = delete;
  virtual ~OperandHome() = default;

  // Returns the operands that are here already and that the request brings from nowhere else.
  // Throws: RequestError where they do not belong together.
  virtual std::vector<FoundOperand> find(const Readers& readers) = 0;
  // Throws: RequestError for a problem that has no place here.
  virtual void accept(const RequestedProblem& problem) const = 0;
  [[nodiscard]] virtual MemoryNeed memory_needed(const Report& report) const = 0;
  // Removes what a run that was killed left. Outputs are opened later: their unfinished files may
  // be in the same directory, and would be removed, too.
  virtual void clear() = 0;
  // Brings all operands that the forward part does not make. Where an earlier run has made O and L
  // already, these are operands, too, and the forward part is counted as it was then.
  virtual void bring(Report& report, const Readers& readers) = 0;
  // Binds the operands and fresh results to the part's kernel, runs it within the hook, and sets
  // `counted` and `unpinned` of the part. Throws: what the kernel throws.
  virtual void run(Part& part, const RunHook& hook) = 0;
  // Throws: std::runtime_error for a result of the part that is not finite.
  virtual void check(const Part& part) = 0;
  // Makes the results of the forward part operands.
  virtual void take(const Part& forward) = 0;
  // `step` is called as verify() of verification.hpp says.
  [[nodiscard]] virtual Verdict verify(const Report& report,
                                       const std::function<void(double done)>& step) const = 0;
  // Hands the kernel's results over to the outputs, all or none.
  virtual void hand_over(Writers& writers) = 0;
  // Adds to the report what the home knows of the run, and removes what only the run needed.
  virtual void finish(Report& report) = 0;
};

}  // namespace redblue
