#pragma once
// The steps of a rank: the exchanges over links before each stage of the kernel, and the units of
// each stage. A run may resume at any step before the running sum of g, from the home that an
// earlier run left at that step.

#include <functional>
#include <optional>

#include "memsim/phase.hpp"

namespace redblue {

struct RankSteps {
  // On every rank the exchanges before this many stages are done. All ranks repeat the exchanges
  // of later stages, even if some ranks have done them.
  Index exchanges = 0;
  // The number of units that this rank has done, in all stages, and their counts.
  Index units = 0;
  std::optional<RunCounts> before = std::nullopt;
  // Called after the exchanges of a stage, with the number of stages that have theirs; and after
  // each unit, with the number of units done and the counts, including `before`.
  std::function<void(Index stages)> exchanged = nullptr;
  std::function<void(Index units, const RunCounts& counts)> worked = nullptr;
};

}  // namespace redblue
