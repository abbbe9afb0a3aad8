#pragma once
// Checkpoints of one part of a run, on one machine or on one rank. With Request::OnDisk::resume, a
// part writes a checkpoint after each step, and starts from the checkpoint that an earlier run
// left. The run ends with the same bits and counts as an uninterrupted run.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "memsim/phase.hpp"
#include "memsim/ranks/transport.hpp"
#include "runtime/run/outcome.hpp"
#include "runtime/run/resolve.hpp"

namespace redblue {

// The state of a part between two steps. Its file is small and has a checksum. It is written
// completely or not at all.
struct Checkpoint {
  // A run that resumes must note the same facts (Resumption::note()).
  std::vector<std::string> facts;
  // On one machine: the counts of the part that made O and L, once it is done.
  std::optional<RunCounts> forward = std::nullopt;
  // Number of finished units over all stages, and the counts so far.
  Index units = 0;
  RunCounts counted{
      .phases = {}, .total = {}, .largest = 0, .span = 0, .seconds = RunCounts::Seconds()};
  // The partial sum of a part that sums over units, or the matrices that one stage leaves for the
  // next.
  std::vector<float> left = {};
  // On a rank: the counts of its links up to the end of each exchange, and the length and checksum
  // of the log of its home's rows (rank_resumption.hpp).
  std::vector<Links> links = {};
  struct Log {
    Index bytes = 0;
    std::uint64_t sum = 0;
    friend bool operator==(const Log&, const Log&) = default;
  } log = {};
};

// Returns the size of the file in bytes. Throws: std::system_error.
Index write(const Checkpoint& checkpoint, const std::filesystem::path& path);
// Reads a checkpoint. Returns an empty value if the file is missing. Throws: InputError if the file
// is not a checkpoint, has another version, or is damaged; std::system_error.
std::optional<Checkpoint> read_checkpoint(const std::filesystem::path& path);

// Throws InputError for a damaged file of a checkpoint.
[[noreturn]] void refuse_damaged(const std::filesystem::path& file,
                                 const std::filesystem::path& checkpoint);

// Return facts as text: a part's plan, build and instruction set; and the source of an operand.
std::string text_of_part(const Request& request, const Part& part);
std::string text_of_source(const Request& request, const std::string& operand,
                           const Readers& readers);

class Resumption {
 public:
  // If the request resumes, reads the checkpoint that an earlier run left in this file. The request
  // must outlive this object. Throws: UsageError if there is a checkpoint and the request does not
  // resume; otherwise as read_checkpoint().
  Resumption(const Request& request, std::filesystem::path path);

  // asked(): the run writes checkpoints. resumes(): it starts from one.
  [[nodiscard]] bool asked() const { return request_.store->resume; }
  [[nodiscard]] bool resumes() const { return found_; }

  // Notes a fact that must be the same when a run resumes. Every run notes its facts in the same
  // order. Throws: UsageError if the earlier run noted another fact at this position.
  void note(const std::string& fact);

  // First the state to resume from, then the state to write.
  Checkpoint state;
  // Throws: std::system_error.
  void write();
  void remove() const { std::filesystem::remove(path_); }

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] Index written() const { return written_; }
  [[nodiscard]] Index bytes() const { return bytes_; }

 private:
  const Request& request_;
  std::filesystem::path path_;
  bool found_ = false;
  std::size_t noted_ = 0;
  Index written_ = 0, bytes_ = 0;
};

}  // namespace redblue
