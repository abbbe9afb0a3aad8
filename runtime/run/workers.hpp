#pragma once
// Worker threads, each with a Machine of M words. A kernel that splits is distributed by blocks of
// rows, or of keys, independent heads are distributed whole. Neither the blocks nor the order of
// any sum depends on the number of workers, and so no bit of a result does.

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

// One worker runs any kernel. Several workers need a kernel that splits, or several heads.
struct Team {
  Index workers = 1;  // Requires: 1 to kMostWorkers
  Index heads = 1;    // problems of the plan: of heads that share keys, one for each head of keys
  Unwritten unwritten = Unwritten::any;  // words of intermediates
};

// The formulas of one worker, and of all workers together: sums of words and flops, and the largest
// peak.
std::vector<PhaseCost> cost_of_worker(const Kernel& kernel, const Plan& plan, const Team& team,
                                      Index worker);
std::vector<PhaseCost> cost_of_team(const Kernel& kernel, const Plan& plan, const Team& team);
// The same of the inner levels, from the innermost out.
std::vector<LevelPlan> levels_of_team(const Kernel& kernel, const Plan& plan, const Team& team);
// The most words that one worker moves, by the formulas.
Words largest_io(const Kernel& kernel, const Plan& plan, const Team& team);
// The words of the slow store that partial results take.
Words partials_of(const Kernel& kernel, const Plan& plan, const Team& team);

// The counts of all workers of a team. Phases are in the order of the formulas, and the seconds of
// a phase are the mean of the workers.
struct TeamRun {
  RunCounts counts;
  std::string unpinned;  // the reason why the workers' threads were not pinned, if any
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

// A run on one machine, unit by unit of all stages, or all units of a stage at once.
struct Steps {
  Index first = 0;                                 // units before it are done
  std::optional<RunCounts> before = std::nullopt;  // what was counted for these
  std::vector<float> left = {};                    // and what they left for the next stage
  // Where what stages leave is kept as results are; null: in the run's workspace.
  Workspace* as_results = nullptr;
  // Called after each step with the number of units that are done, the counts so far, `before`
  // included, and what is left for the next stage so far.
  std::function<void(Index done, const RunCounts& counts, std::vector<float> left)> after = nullptr;
};

// Runs the kernel on one machine within the hook, with intermediates in the caller's workspace: in
// steps where `steps` has any of its members, else as a whole. Both are the same moves in the same
// order. Requires: a kernel that splits, for steps. Throws: as run_on_team().
RunCounts run_alone(const Kernel& kernel, const Plan& plan, const Operands& io,
                    Workspace& workspace, const RunHook& hook = nullptr, const Steps& steps = {});

}  // namespace redblue
