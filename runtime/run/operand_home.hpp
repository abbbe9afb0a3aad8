#pragma once
// The place of a run's matrices: main memory, a store on disk, or the homes of ranks. run() takes
// every run through the steps below, in this order. A home belongs to one run and one thread.

#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "memsim/range.hpp"
#include "memsim/store/store.hpp"
#include "runtime/observe/topology.hpp"
#include "runtime/run/buffers.hpp"
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

  OperandHome(const OperandHome&) = delete;
  OperandHome& operator=(const OperandHome&) = delete;
  virtual ~OperandHome() = default;

  // Returns the operands that are here already and that the request brings from nowhere else.
  // Throws: UsageError where they do not belong together.
  virtual std::vector<FoundOperand> find(const Readers&) { return {}; }
  // Throws: UsageError for a problem that has no place here.
  virtual void accept(const RequestedProblem&) const {}
  [[nodiscard]] virtual MemoryNeed memory_needed(const Report& report) const = 0;
  // Removes what a run that was killed left. Outputs are opened later: their unfinished files may
  // be in the same directory, and would be removed, too.
  virtual void clear() {}
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
  virtual void finish(Report&) {}

 protected:
  explicit OperandHome(const Request& request) : request_(request) {}

  // Rows of one head of an operand: from its file, else by the request's rule for it or from its
  // seed; and all rows of several heads. The problem is of one head.
  void fill_rows(const Readers& readers, const Signature& operand, const Problem& problem,
                 Index head, Range rows, std::span<float> words) const;
  [[nodiscard]] std::vector<float> filled(const Readers& readers, const Signature& operand,
                                          const Problem& problem, Index heads) const;
  // The bytes of the operands and results of all heads, without a caller's arrays.
  [[nodiscard]] static Words matrix_bytes(const Report& report, const Arrays& without = {});
  // The settings of a store of this run, and the bytes that it moved.
  [[nodiscard]] StoreReport report_of(Store& store) const;

  const Request& request_;
};

// Runs a part on operands and results that are in memory, and sets `counted` and `unpinned`.
// Requires: as KernelMatrices. Throws: as the kernel.
void run_in_memory(Part& part, const Views& given, const ViewedResults& returned,
                   const Topology& topology, const RunHook& hook = nullptr);
// The bytes that a run in memory needs for intermediates and for the arena of each worker.
Words working_bytes(const Report& report);

// Homes in main memory, where several workers may share each operand and result. The request must
// outlive a home, and so must the topology.
std::unique_ptr<OperandHome> memory_home(const Request& request, const Topology& topology);
// Homes in a store on disk, for one worker and one head. The store has the operands already, or
// they are brought by rows from files or from a seed. Intermediates live there. Results stay there
// under their names, and are copied to the outputs. Main memory holds M words, a few buffers, and
// no matrix. Every step may throw StoreError for damaged files of the store. Throws: UsageError
// for several threads, or where an earlier run left a checkpoint; as Store() and read_checkpoint().
std::unique_ptr<OperandHome> store_home(const Request& request, const KernelName& asked);
// Homes of ranks: each rank has its rows in main memory or in a store. Requires: Request::on_ranks.
std::unique_ptr<OperandHome> ranks_home(const Request& request);

}  // namespace redblue
