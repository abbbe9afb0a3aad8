#include "runtime/report/kernel_replay.hpp"

#include <functional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "kernels/registry.hpp"
#include "runtime/replay/row_cuts.hpp"
#include "runtime/replay/run_accesses.hpp"
#include "runtime/report/context.hpp"
#include "runtime/report/followed_plan.hpp"
#include "runtime/run/resolve.hpp"
#include "runtime/text/table.hpp"
#include "runtime/theory/planner.hpp"
#include "runtime/trace/referee.hpp"

namespace redblue {
namespace {

// Returns the names of operands and results. All other matrices are the kernel's own.
std::set<std::string, std::less<>> kept_by(const Plan& plan) {
  const Kernel& kernel = find_kernel(plan.kernel);
  std::set<std::string, std::less<>> names;
  for (const std::vector<Signature>& matrices :
       {kernel.given(plan.problem), kernel.results(plan.problem)}) {
    for (const Signature& matrix : matrices) {
      names.emplace(matrix.name);
    }
  }
  return names;
}

Index longest_unit(const Plan& plan, ReplayUnit unit) {
  return unit == ReplayUnit::word ? 1 : plan.problem.shape.d;
}

// Estimates the accesses from the flops. A product touches three words for two operations. With
// rows of d words, two of its three matrices have rows along the same index. These are touched for
// each pair of the other indices. Or all three are touched for each d products.
void refuse_too_many(const Plan& plan, ReplayUnit unit) {
  const Index longest = longest_unit(plan, unit), most = most_accesses(longest);
  const Index touches = unit == ReplayUnit::word ? 3 : 2;
  if (total(plan.phases).flops * Words(touches) > Words(2 * most) * longest) {
    throw UsageError(fmt::format("{}: a run of more than {} accesses: take smaller extents{}",
                                 plan.kernel, grouped(most),
                                 unit == ReplayUnit::word ? ", or --unit row" : ""));
  }
}

// Finds how the kernel's blocks cut rows, in a run made for this alone.
RowCuts cuts_of(const Request& request) {
  RowCuts cuts;
  const RunHook cut = [&](Machine& machine, const Plan& plan, const auto& work) {
    refuse_too_many(plan, ReplayUnit::row);
    RowCutter cutter(machine, longest_unit(plan, ReplayUnit::row));
    work();
    cuts = cutter.take();
  };
  run(request, Topology(), {.kernel = cut, .peak_gflops = false});
  return cuts;
}

// Returns the description of the run for documents.
FollowedRun said_of(const Plan& plan) {
  FollowedRun run = followed_of(plan);
  run.more = {{"kernel", plan.kernel}, {"blocks", blocks_json(plan.blocks)}};
  if (plan.pass != Pass::product) {
    run.more["mask"] = mask_json(plan.problem);
  }
  return run;
}

// Returns the largest lower bound for this kernel as a function of M.
std::function<Index(Index M)> bound_of(const Plan& plan) {
  return [plan](Index M) {
    const Task task = task_of(find_kernel(plan.kernel), plan.problem, M);
    return largest(lower_bounds(task), schedule_of(plan)).words;
  };
}

}  // namespace

KernelAccesses accesses_of(const Request& request, ReplayUnit unit) {
  if (request.threads > 1) {
    throw UsageError(request.said("threads") + ": one fast memory is replayed");
  }
  if (request.heads.value_or(1) > 1) {
    throw UsageError(request.said("heads") + ": one head is replayed");
  }
  KernelAccesses found;
  RowCuts cuts;
  if (unit == ReplayUnit::row) {
    cuts = cuts_of(request);
  }
  const RunHook followed = [&](Machine& machine, const Plan& plan, const auto& work) {
    refuse_too_many(plan, unit);
    RunAccesses accesses(machine, kept_by(plan), cuts);
    const Referee referee(machine);
    work();
    referee.check();
    found.phases = leaves(machine.phases());
    found.moved = total(machine.phases());
    const Index untold = found.moved.operations.flops - referee.flops();
    if (untold > 0 || referee.by_hand() > 0) {
      throw UsageError(
          fmt::format("{}: does not tell all of its arithmetic: {} of {} operations are missing",
                      plan.kernel, grouped(untold), grouped(found.moved.operations.flops)));
    }
    found.accesses = accesses.take();
  };
  found.report = run(request, Topology(), {.kernel = followed, .peak_gflops = false});
  const Part& kernel = found.report.kernel;
  found.run = said_of(kernel.plan);
  for (std::size_t level = 0; level < kernel.levels.size(); ++level) {
    found.inner.push_back({kernel.levels[level].M, kernel.counted->inner[level]});
  }
  if (found.report.bound) {
    found.bound = bound_of(kernel.plan);
  }
  return found;
}

}  // namespace redblue
