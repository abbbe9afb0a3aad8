#pragma once
// The checkpoints of one part of a run, on one machine or on one rank. With Request::OnDisk::resume
// a part leaves a checkpoint after each of its steps and begins with the one that an earlier run
// left. The run ends with the same bits and counts as an uninterrupted one.

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

// The state of a part between two steps. Its file is small, written whole or not at all, and has a
// checksum over its content.
struct Checkpoint {
  // A run that resumes must note the same facts (Resumption::note()).
  std::vector<std::string> facts;
  // On one machine: the counts of the part that made O and L, once it is done.
  std::optional<RunCounts> forward = std::nullopt;
  // The units that are done, of all stages, and the counts so far.
  Index units = 0;
  RunCounts counted{
      .phases = {}, .total = {}, .largest = 0, .span = 0, .seconds = RunCounts::Seconds()};
  // The sum so far of a part that sums over units, or what stages leave for each other.
  std::vector<float> left = {};
  // On a rank: the counts of links up to the end of each exchange, and the length and the checksum
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
// Returns nothing if the file is missing. Throws: InputError where the file is not a checkpoint, is
// one of another version, or is damaged; std::system_error.
std::optional<Checkpoint> read_checkpoint(const std::filesystem::path& path);

// Throws: InputError for a file that belongs to a checkpoint and is damaged.
[[noreturn]] void refuse_damaged(const std::filesystem::path& file,
                                 const std::filesystem::path& checkpoint);

// Facts: the plan of a part with its build and instruction set; and the source of an operand.
std::string text_of_part(const Request& request, const Part& part);
std::string text_of_source(const Request& request, const std::string& operand,
                           const Readers& readers);

class Resumption {
 public:
  // Reads the checkpoint that an earlier run left in this file, where the request is to resume. The
  // request must outlive it. Throws: UsageError where there is one and the request is not to
  // resume; as read_checkpoint().
  Resumption(const Request& request, std::filesystem::path path);

  // Whether the run leaves checkpoints; and whether it resumes from one.
  [[nodiscard]] bool asked() const { return request_.store->resume; }
  [[nodiscard]] bool resumes() const { return found_; }

  // Notes something that must be the same when a run resumes. Every run notes the same things in
  // the same order. Throws: UsageError where the earlier run noted another fact in this place.
  void note(const std::string& fact);

  // The state to resume from, and then the one to write.
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
