#pragma once
// Runs one rank of a grid: brings rows of other ranks to its home, and runs the kernel on them.

#include <functional>

#include "memsim/phase.hpp"
#include "memsim/ranks/transport.hpp"
#include "runtime/ranks/grid.hpp"
#include "runtime/ranks/rank_home.hpp"
#include "runtime/ranks/rank_steps.hpp"

namespace redblue {

struct RankRun {
  RunCounts arena;
  double seconds_in_links = 0;  // for messages, including their disk accesses
  Index buffered = 0;           // the peak of words in message buffers
};

// Runs the rank's part. Every rank of the grid calls it. Requires: the home has its own rows of
// operands. Afterwards the home has its own rows of results, and the rank of the last segment has
// g. Without `steps` it runs all steps. Throws: exceptions of the kernel and of `before_each_move`;
// TransportError.
RankRun run_rank(const RankPart& part, RankHome& home, Transport& transport,
                 const RankSteps* steps = nullptr,
                 const std::function<void()>& before_each_move = nullptr);

}  // namespace redblue
