#pragma once
// The checkpoints of a run in a store. With Request::OnDisk::resume a run leaves a checkpoint after
// each step (workers.hpp), and resumes from the checkpoint of an earlier run. That run must have
// had the same operands and plans. The bits and counts are those of an uninterrupted run.

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
  // Whether the run resumes from a checkpoint. False before read().
  [[nodiscard]] bool resumes() const { return resumes_; }

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

  // The first unit of the part that runs now, the counts before it, and what is left for it.
  [[nodiscard]] Steps steps();
  // The sum over the units before steps().first.
  [[nodiscard]] const std::vector<float>& sum() const { return checkpoint_.sum; }
  // Writes a checkpoint: the number of units that are done, the counts so far, and the sum of a
  // part that sums over units, or what stages leave for each other.
  void keep(Index units, const RunCounts& counts, std::vector<float> sum);

  // Without its checkpoint, a run that is ended begins anew.
  void remove_checkpoint() const { std::filesystem::remove(path_); }

  void tell(StoreReport& report) const;

 private:
  [[nodiscard]] std::string source_of(const std::string& operand, const Readers& readers) const;
  void write();

  const Request& request_;
  std::filesystem::path path_;
  Checkpoint checkpoint_;
  bool resumes_ = false;
  std::map<std::string, std::string> sources_;  // by the names of operands
  std::optional<Index> resumed_at_;             // unit
  Index written_ = 0, bytes_ = 0;
};

}  // namespace redblue
