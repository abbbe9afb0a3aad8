#pragma once
// Runs a kernel on worker threads, each with a Machine of M words. Workers divide independent
// heads. With one head, they divide its blocks of rows or keys, if the kernel splits. A worker that
// has done its share helps the others (runtime/run/dealing.hpp). The words of a block still count
// for the worker that owns it.
//
// Neither the blocks nor the order of a sum depends on the number of workers, or on who does which
// block. So results have the same bits for any number.

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
  Index workers = 1;                     // Requires: 1 to kMostWorkers
  Index heads = 1;                       // problems like the plan's; one for each head of keys
  Unwritten unwritten = Unwritten::any;  // initial content of intermediates
};

// Returns the team for a kernel: one worker if no other could have a part of the work.
Team team_for(const Kernel& kernel, Index workers, Index heads);

// The formulas of one worker, and of all workers together: sums of words and flops, and the largest
// peak.
std::vector<PhaseCost> cost_of_worker(const Kernel& kernel, const Plan& plan, const Team& team,
                                      Index worker);
std::vector<PhaseCost> cost_of_team(const Kernel& kernel, const Plan& plan, const Team& team);
// The same for the inner levels, innermost first.
std::vector<LevelPlan> levels_of_team(const Kernel& kernel, const Plan& plan, const Team& team);
// Returns the words moved by the busiest worker, by the formulas.
Words largest_io(const Kernel& kernel, const Plan& plan, const Team& team);
// Returns the words of slow memory that partial results take.
Words partials_of(const Kernel& kernel, const Plan& plan, const Team& team);

// The counts of all workers of a team. Phases are in the order of the formulas. The seconds of a
// phase are the mean over the workers.
struct TeamRun {
  RunCounts counts;
  std::string unpinned;  // reason why worker threads were not pinned; empty: they were
};

// A caller's code that traces or measures a kernel on one machine. It must call `work` exactly
// once.
using RunHook =
    std::function<void(Machine& machine, const Plan& plan, const std::function<void()>& work)>;
// Returns the hook with a call of `stop` before each move of its machine. Both may be empty.
RunHook asking(RunHook hook, std::function<void()> stop);

// Runs the kernel on the operands of each head, with intermediates in main memory. Each worker runs
// its part of the work within the hook. Throws: as the kernel; std::logic_error if counts and
// formulas name different phases.
TeamRun run_on_team(const Kernel& kernel, const Plan& plan, const Team& team,
                    const std::vector<Operands>& heads, const Topology& topology,
                    const RunHook& hook = nullptr);

// Settings of a run in steps on one machine. A step is one unit of a stage, or all units of a stage
// that must run together.
struct Steps {
  Index first = 0;                                 // the units before this one are done
  std::optional<RunCounts> before = std::nullopt;  // the counts of these units
  std::vector<float> left = {};                    // the words that they left for the next stage
  // The workspace of matrices that stages leave for each other and that are kept like results.
  // Null: the run's workspace.
  Workspace* as_results = nullptr;
  // Called after each step with the number of finished units, the counts so far (including
  // `before`), and the words left for the next stage so far.
  std::function<void(Index done, const RunCounts& counts, std::vector<float> left)> after = nullptr;
};

// Runs the kernel on one machine within the hook, with intermediates in the caller's workspace.
// Runs in steps if `steps` has `before` or `after`, otherwise as a whole. Both make the same moves
// in the same order. Steps require a kernel that splits. Throws: as run_on_team().
RunCounts run_alone(const Kernel& kernel, const Plan& plan, const Operands& io,
                    Workspace& workspace, const RunHook& hook = nullptr, const Steps& steps = {});

}  // namespace redblue
