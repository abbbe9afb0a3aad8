#include "runtime/run/timed_problem.hpp"

#include <algorithm>

#include "kernels/attention.hpp"
#include "runtime/observe/fma_peak.hpp"
#include "runtime/run/inputs.hpp"

namespace redblue {

TimedProblem::TimedProblem(const KernelName& kernel, const Shape& shape)
    : kernel_(*kernel.kernel),
      problem_(kernel.kernel->with_inputs(Problem(shape, kernel.sharing))) {
  bool forward = false;
  for (const Signature& operand : kernel.given()) {
    if (made_by_forward(operand.name)) {
      forward = true;
      continue;
    }
    std::vector<float>& words = given_[std::string(operand.name)];
    words = buffer_for(operand, shape, 1);
    fill_input(operand.name, problem_, 1, 1, 0, operand.rows_of(shape), words);
  }
  if (forward) {
    const Kernel& rows = find_kernel(std::string(to_string(forward_of(kernel_.pass))) + "/rows");
    constexpr Index kAmple = 65536;
    Problem apart = problem_;
    if (apart.sharing == Sharing::self) {  // the forward kernel reads queries and keys apart
      apart.sharing = Sharing::kv;
      given_[std::string(kK.name)] = given_.at(std::string(kQ.name));
    }
    const Index M = std::max(kAmple, rows.least_M(apart));
    Buffers made;
    static_cast<void>(run(rows, rows.plan(apart, M, Objective::time), made));
    given_.merge(made);
  }
}

double TimedProblem::seconds(const Plan& plan) {
  return run(kernel_, plan, returned_).seconds->total;
}

double TimedProblem::of_peak(Index M) {
  const RunCounts counts = run(kernel_, kernel_.plan(problem_, M, Objective::time), returned_);
  const auto flops = static_cast<double>(counts.total.operations.flops);
  return 1e-9 * flops / counts.seconds->total / fma_peak(1, Topology());
}

RunCounts TimedProblem::run(const Kernel& kernel, const Plan& plan, Buffers& results) {
  results = result_buffers(kernel, plan.problem, 1);
  const KernelMatrices bound(kernel, plan.problem, 1, views_of(given_), viewed_results(results));
  return run_on_team(kernel, plan, {}, bound.heads(), Topology()).counts;
}

}  // namespace redblue
