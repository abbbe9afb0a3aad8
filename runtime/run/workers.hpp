#pragma once
// Worker threads, each with a Machine of M words of its own. A kernel that splits by rows is
// given out by row blocks; independent heads are given out whole. Neither the blocks nor the
// order of any sum depends on how many workers there are, and so no bit of a result does.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kernels/kernel.hpp"
#include "memsim/machine.hpp"
#include "memsim/phase.hpp"
#include "memsim/range.hpp"
#include "memsim/workspace.hpp"
#include "runtime/observe/parallel.hpp"
#include "runtime/observe/topology.hpp"

namespace redblue {

// The formulas of a run: what worker w moves in each phase, and all of them together (sums of
// words and flops, the largest peak). One worker runs the kernel as it is; several need a
// kernel that splits, or heads. Requires: 1 <= workers <= kMostWorkers.
struct Team {
  Index workers = 1;
  Index heads = 1;
};
std::vector<PhaseCost> cost_of_worker(const Kernel& kernel, const Plan& plan, const Team& team,
                                      Index worker);
std::vector<PhaseCost> cost_of_team(const Kernel& kernel, const Plan& plan, const Team& team);
// The most words that one worker moves.
Words largest_io(const Kernel& kernel, const Plan& plan, const Team& team);
// Words of the store for partial results.
Words partials_of(const Kernel& kernel, const Plan& plan, const Team& team);

// A run of a team: what its workers counted together, with phases in the order of the formulas and
// the mean of the workers' seconds in each.
struct TeamRun {
  RunCounts counts;
  std::string unpinned;  // why the workers' threads were not pinned; empty where they were
};

// Code of a caller that traces or measures a kernel on one machine. It calls `work` exactly once.
using RunHook =
    std::function<void(Machine& machine, const Plan& plan, const std::function<void()>& work)>;

// Runs the kernel on the operands of each head, with intermediates in main memory. Each worker's
// work on each part runs within the hook. Throws: what the kernel throws; std::logic_error when
// counts and formulas name different phases.
TeamRun run_on_team(const Kernel& kernel, const Plan& plan, const Team& team,
                    const std::vector<Operands>& heads, const Topology& topology,
                    const RunHook& hook = nullptr);

// A run on one machine, row block by row block.
struct Steps {
  Index first = 0;                                 // row blocks before it are done
  std::optional<RunCounts> before = std::nullopt;  // what was counted for these
  // Called after each row block: so many are done, with these counts, `before` included.
  std::function<void(Index done, const RunCounts& counts)> after = nullptr;
};

// Runs the kernel on one machine within the hook, with intermediates in the caller's workspace: in
// steps where `steps` has any of its members, else as a whole. Both are the same moves in the same
// order. Requires: a kernel that splits, for steps. Throws: as run_on_team().
RunCounts run_alone(const Kernel& kernel, const Plan& plan, const Operands& io,
                    Workspace& workspace, const RunHook& hook = nullptr, const Steps& steps = {});

}  // namespace redblue
