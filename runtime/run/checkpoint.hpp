#pragma once
// What a run that goes on row block by row block needs to go on: a small file that appears whole,
// and tells when it is not what was written.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "memsim/phase.hpp"

namespace redblue {

struct Checkpoint {
  // Who goes on must have the same: the plans, and the operands, by the fingerprints of their
  // files.
  std::string plan, forward_plan;
  std::map<std::string, std::uint64_t> operands;
  // Where those came from that the run brought itself.
  std::map<std::string, std::string> origins;
  // O and L are there, or nobody needs them; and what was counted for them.
  bool forward_done = false;
  std::optional<RunCounts> forward;
  // Of the kernel that is at work: row blocks that are done, what was counted, and the sum so far
  // where there is one.
  Index row_blocks = 0;
  RunCounts counted{
      .phases = {}, .total = {}, .largest = 0, .span = 0, .seconds = RunCounts::Seconds()};
  std::vector<float> sum;
};

// Returns the bytes of the file. Throws: std::system_error.
Index write(const Checkpoint& checkpoint, const std::filesystem::path& path);
// Nothing where there is no file. Throws: InputError where it is none, or is damaged;
// std::system_error.
std::optional<Checkpoint> read_checkpoint(const std::filesystem::path& path);

}  // namespace redblue
