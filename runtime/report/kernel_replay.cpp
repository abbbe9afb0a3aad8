#include "runtime/report/kernel_replay.hpp"

#include <set>
#include <utility>

#include <fmt/format.h>

#include "kernels/registry.hpp"
#include "runtime/observe/referee.hpp"
#include "runtime/replay/run_accesses.hpp"
#include "runtime/run/resolve.hpp"
#include "runtime/text/table.hpp"
#include "runtime/theory/planner.hpp"

namespace redblue {
namespace {

// The names of operands and results: all else is a kernel's own.
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

}  // namespace

std::string_view to_string(ReplayUnit unit) {
  return unit == ReplayUnit::word ? "word" : "row";
}

Index KernelAccesses::bound(Index M) const {
  if (!report.bound) {
    return 0;
  }
  const Plan& plan = report.kernel.plan;
  const Kernel& kernel = find_kernel(plan.kernel);
  const Task task = task_of(kernel, plan.problem, M);
  return largest(lower_bounds(task), schedule_of(kernel, task.problem.sharing)).words;
}

KernelAccesses accesses_of(const Request& request, ReplayUnit unit) {
  if (request.threads > 1) {
    throw RequestError(request.said("--threads") + ": one fast memory is replayed");
  }
  if (request.heads.value_or(1) > 1) {
    throw RequestError(request.said("--heads") + ": one head is replayed");
  }
  KernelAccesses found;
  const RunHook followed = [&](Machine& machine, const Plan& plan, const auto& work) {
    const Index longest = unit == ReplayUnit::word ? 1 : plan.problem.shape.d;
    const Index most = most_accesses(longest);
    // A product touches three words for its two operations; or three rows for those of the words of
    // one, as of two of its three indices both rows that begin there are one word wide.
    if (total(plan.phases).flops * Words(3) > Words(2 * most) * longest) {
      throw RequestError(fmt::format("{}: a run of more than {} accesses: take smaller extents{}",
                                     plan.kernel, grouped(most),
                                     unit == ReplayUnit::word ? ", or rows as units" : ""));
    }
    RunAccesses accesses(machine, kept_by(plan), longest);
    const Referee referee(machine);
    work();
    referee.check();
    found.phases = leaves(machine.phases());
    found.moved = total(machine.phases());
    const Index untold = found.moved.operations.flops - referee.flops();
    if (untold > 0 || referee.by_hand() > 0) {
      throw RequestError(
          fmt::format("{}: does not tell all of its arithmetic: {} of {} operations are missing",
                      plan.kernel, grouped(untold), grouped(found.moved.operations.flops)));
    }
    found.accesses = accesses.take();
  };
  found.report = run(request, Topology(), {.kernel = followed, .peak_gflops = false});
  return found;
}

}  // namespace redblue
