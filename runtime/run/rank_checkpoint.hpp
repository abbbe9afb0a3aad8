#pragma once
// The checkpoints of one rank, two files of its folder: words, to which each step appends the rows
// of its home that it changed; and a small one, written whole or not at all, that says how far the
// rank is and how many of these words count. A process that is killed leaves what the last step
// left; what it began to append after that is overwritten.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "memsim/phase.hpp"
#include "memsim/ranks/transport.hpp"
#include "memsim/store/file.hpp"
#include "runtime/ranks/rank_run.hpp"

namespace redblue {

// How far a rank is.
struct RankProgress {
  Index exchanges = 0;         // for so many times what the others send is here
  std::vector<Links> links;    // what went over links until then, after each of them
  Index stage = 0, units = 0;  // stages that are done, and units of the next
  Index done = 0;              // units of all stages
  RunCounts counted = {
      .phases = {}, .total = {}, .largest = 0, .span = 0, .seconds = RunCounts::Seconds()};
};

class RankCheckpoints {
 public:
  // What must be the same when a run resumes: what it runs, and its operands.
  struct Facts {
    std::string run;
    std::map<std::string, std::uint64_t> operands;  // checksums of the rank's own rows
  };
  // Where files are: NAME.words and NAME.checkpoint in a folder, which is made if it is missing.
  // Waits for a process that ends. Throws: std::runtime_error where another process has them.
  RankCheckpoints(const std::filesystem::path& folder, const std::string& name);

  // A checkpoint that a run left in a folder, of either part; or nothing.
  static std::optional<std::filesystem::path> left_in(const std::filesystem::path& folder);
  static std::string name_of(bool forward) { return forward ? "forward" : "redblue"; }

  // Whether an earlier run left a checkpoint.
  [[nodiscard]] bool found() const { return std::filesystem::exists(path_); }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  // Brings the home to where the earlier run left it, if there was one, and returns how far that
  // was. Throws: RequestError for a checkpoint of something else; InputError for a damaged one;
  // std::system_error.
  [[nodiscard]] RankProgress resume(RankHome& home, const Facts& facts);

  // Writes a checkpoint, with the rows that changed. Throws: std::system_error.
  void keep(const RankProgress& progress, RankHome& home);
  void remove();

  [[nodiscard]] Index written() const { return written_; }  // checkpoints
  [[nodiscard]] Index bytes() const { return bytes_; }

 private:
  struct Record;
  void read_words(RankHome& home, Index bytes, std::uint64_t sum);
  [[noreturn]] void refuse(const std::filesystem::path& path) const;

  std::filesystem::path path_, words_path_;
  Descriptor words_;
  Facts facts_;
  Index length_ = 0;       // bytes of words_ that count
  std::uint64_t sum_ = 0;  // over all of these
  Index written_ = 0, bytes_ = 0;
};

}  // namespace redblue
