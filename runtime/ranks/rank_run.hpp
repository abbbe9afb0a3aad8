#pragma once
// One rank of a run on a grid: what it brings from other ranks to its home, and the kernel on that.

#include <functional>

#include "memsim/phase.hpp"
#include "memsim/ranks/transport.hpp"
#include "runtime/ranks/grid.hpp"
#include "runtime/ranks/rank_home.hpp"
#include "runtime/ranks/rank_steps.hpp"

namespace redblue {

struct RankRun {
  RunCounts arena;
  double seconds_in_links = 0;  // for messages, with what they move on disk
  Index buffered = 0;           // the most words of messages beside the home at a time
};

// Runs the rank's part; the home's own rows of operands are there. Every rank of the grid calls.
// Afterwards own rows of results are there, and g at the rank of the last segment. Without `steps`
// all of it at once. Throws: what the kernel and `before_each_move` throw; TransportError.
RankRun run_rank(const RankPart& part, RankHome& home, Transport& transport,
                 const RankSteps* steps = nullptr,
                 const std::function<void()>& before_each_move = nullptr);

}  // namespace redblue
