#pragma once
// The state of a run between two units, and its file: small, written whole or not at all, with
// a checksum over its content.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "memsim/phase.hpp"

namespace redblue {

struct Checkpoint {
  // A run that continues must have the same plans, and operands with the same fingerprints of their
  // files.
  std::string plan, forward_plan;
  std::map<std::string, std::uint64_t> operands;
  // The sources of the operands that the run brought itself.
  std::map<std::string, std::string> origins;
  bool forward_done = false;         // also where the run has no forward part
  std::optional<RunCounts> forward;  // the counts of the forward part, once it is done
  // The part that runs: the number of units that are done, the counts so far and, where the part
  // sums over row blocks, the sum so far; where it has several stages, what they leave for each
  // other.
  Index units = 0;
  RunCounts counted{
      .phases = {}, .total = {}, .largest = 0, .span = 0, .seconds = RunCounts::Seconds()};
  std::vector<float> sum;
};

// Returns the size of the file in bytes. Throws: std::system_error.
Index write(const Checkpoint& checkpoint, const std::filesystem::path& path);
// Returns nothing where there is no file. Throws: InputError where the file is not a checkpoint, or
// is damaged; std::system_error.
std::optional<Checkpoint> read_checkpoint(const std::filesystem::path& path);

}  // namespace redblue
