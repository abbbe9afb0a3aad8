#pragma once
// How a run in a store goes on from one that was ended before it. With Request::OnDisk::resume a
// run leaves a checkpoint after each row block, and begins with the checkpoint that it finds: with
// the same operands and plans, and to the same bits and counts as an uninterrupted run.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "memsim/store/store.hpp"
#include "runtime/run/checkpoint.hpp"
#include "runtime/run/outcome.hpp"
#include "runtime/run/resolve.hpp"
#include "runtime/run/workers.hpp"

namespace redblue {

// Both arguments must outlive it.
class Resumption {
 public:
  Resumption(const Request& request, const Store& store);

  // Whether the run leaves checkpoints.
  [[nodiscard]] bool asked() const { return request_.store->resume; }
  // Whether the run goes on from a checkpoint. False before read().
  [[nodiscard]] bool goes_on() const { return goes_on_; }

  // Reads the checkpoint of an earlier run. Throws: RequestError where there is one, and the
  // request is not to resume; as read_checkpoint().
  void read();

  // Notes the source of an operand that the run brings itself. Throws: RequestError where the
  // earlier run brought the operand from another source.
  void note_source(const std::string& operand, const Readers& readers);
  // Whether the earlier run brought this operand in a file with this fingerprint.
  [[nodiscard]] bool brought(const std::string& operand, std::uint64_t fingerprint) const;
  // Throws: RequestError where the checkpoint is of other plans, or of operands with other
  // fingerprints.
  void check_same(const Report& report, const std::map<std::string, std::uint64_t>& operands);

  // The counts of the forward part, where the earlier run finished it.
  [[nodiscard]] std::optional<RunCounts> forward_counts() const;
  void finish_forward(const RunCounts& counts);

  // Where the part that runs now goes on, with the counts before that.
  [[nodiscard]] Steps steps();
  // The sum over the row blocks that are done, as in the last checkpoint.
  [[nodiscard]] const std::vector<float>& sum() const { return checkpoint_.sum; }
  // Writes a checkpoint: so many row blocks are done, with these counts and, where the part sums
  // over row blocks, this sum.
  void keep(Index row_blocks, const RunCounts& counts, std::vector<float> sum);

  // From here on a run that is ended begins anew.
  void remove_checkpoint() const { std::filesystem::remove(path_); }

  void tell(StoreReport& report) const;

 private:
  [[nodiscard]] std::string source_of(const std::string& operand, const Readers& readers) const;
  void write();

  const Request& request_;
  std::filesystem::path path_;
  Checkpoint checkpoint_;
  bool goes_on_ = false;
  std::map<std::string, std::string> sources_;  // by the names of operands
  std::optional<Index> resumed_at_;             // row block
  Index written_ = 0, bytes_ = 0;
};

}  // namespace redblue
