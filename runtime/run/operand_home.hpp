#pragma once
// The place where a run keeps its matrices: main memory, a store on disk, or ranks. run() takes
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
  // The bytes of main memory that a run takes, and advice if there is too little.
  struct MemoryNeed {
    Words bytes;
    std::string_view remedy;
  };

  OperandHome(const OperandHome&) = delete;
  OperandHome& operator=(const OperandHome&) = delete;
  virtual ~OperandHome() = default;

  // Returns the operands that this home already has and that the request takes from no other
  // source. Throws: UsageError if they do not belong together.
  virtual std::vector<FoundOperand> find(const Readers&) { return {}; }
  // Throws: UsageError for a problem that this home cannot hold.
  virtual void accept(const RequestedProblem&) const {}
  [[nodiscard]] virtual MemoryNeed memory_needed(const Report& report) const = 0;
  // Removes the files of a killed run. Outputs must be opened later: their unfinished files may be
  // in the same directory, and would be removed as well.
  virtual void clear() {}
  // Loads or makes all operands that the forward part does not compute. If an earlier run has
  // already computed O and L, also loads O and L, and takes the forward part's counts from the
  // earlier run.
  virtual void bring(Report& report, const Readers& readers) = 0;
  // Binds the operands and new results to the part's kernel, runs it within the hook, and sets
  // `counted` and `unpinned` of the part. Throws: as the kernel.
  virtual void run(Part& part, const RunHook& hook) = 0;
  // Throws: std::runtime_error if a result of the part is not finite.
  virtual void check(const Part& part) = 0;
  // Turns the results of the forward part into operands.
  virtual void take(const Part& forward) = 0;
  // Calls `step` as verify() of verification.hpp does.
  [[nodiscard]] virtual Verdict verify(const Report& report,
                                       const std::function<void(double done)>& step) const = 0;
  // Writes the kernel's results to the outputs. Commits the outputs only after all of them are
  // written.
  virtual void hand_over(Writers& writers) = 0;
  // Adds the home's facts to the report, and removes files that only the run needed.
  virtual void finish(Report&) {}

 protected:
  explicit OperandHome(const Request& request) : request_(request) {}

  // fill_rows() fills rows of one head of an operand, from its file, or by the request's rule, or
  // from the seed. filled() returns all rows of several heads. `problem` describes one head.
  void fill_rows(const Readers& readers, const Signature& operand, const Problem& problem,
                 Index head, Range rows, std::span<float> words) const;
  [[nodiscard]] std::vector<float> filled(const Readers& readers, const Signature& operand,
                                          const Problem& problem, Index heads) const;
  // Returns the bytes of the operands and results of all heads, except the caller's arrays in
  // `without`.
  [[nodiscard]] static Words matrix_bytes(const Report& report, const Arrays& without = {});
  // Returns the settings of a store of this run, and the bytes that it moved.
  [[nodiscard]] StoreReport report_of(Store& store) const;

  const Request& request_;
};

// Runs a part on operands and results in memory, and sets `counted` and `unpinned`. Requires: as
// KernelMatrices. Throws: as the kernel.
void run_in_memory(Part& part, const Views& given, const ViewedResults& returned,
                   const Topology& topology, const RunHook& hook = nullptr);
// Returns the bytes that a run in memory needs for intermediates and for each worker's arena.
Words working_bytes(const Report& report);

// Makes a home in main memory, where several workers can share operands and results. The request
// and the topology must outlive it.
std::unique_ptr<OperandHome> memory_home(const Request& request, const Topology& topology);
// Makes a home in a store on disk, for one worker and one head. The store has the operands already,
// or copies them row by row from files or a seed. It also holds intermediates. Results stay in the
// store under their names, and are copied to the outputs. Main memory holds M words and a few
// buffers, but no matrix (except during verification).
// Every step may throw StoreError for damaged files of the store. Throws: UsageError for several
// threads, or if an earlier run left a checkpoint; as Store() and read_checkpoint().
std::unique_ptr<OperandHome> store_home(const Request& request, const KernelName& asked);
// Makes a home on ranks: each rank has its rows in main memory or in a store. Requires:
// Request::on_ranks.
std::unique_ptr<OperandHome> ranks_home(const Request& request);

}  // namespace redblue
