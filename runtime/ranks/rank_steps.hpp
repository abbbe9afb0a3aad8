#pragma once
// The part of a rank in steps: what comes over links before a stage of the kernel, and each unit of
// a stage. Before the running sum of g a run may begin at any step, where its home is what an
// earlier run had then.

#include <functional>
#include <optional>

#include "memsim/phase.hpp"

namespace redblue {

struct RankSteps {
  // What comes before so many stages is at the home of every rank. What comes before the others
  // comes on all ranks, though it is at the home of some.
  Index exchanges = 0;
  // So many units are done here, of all stages, and what was counted for these.
  Index units = 0;
  std::optional<RunCounts> before = std::nullopt;
  // Called when what comes before so many stages is there, and after each unit: with the units that
  // are done and the counts so far, `before` included.
  std::function<void(Index stages)> exchanged = nullptr;
  std::function<void(Index units, const RunCounts& counts)> worked = nullptr;
};

}  // namespace redblue
