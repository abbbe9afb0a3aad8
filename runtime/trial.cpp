#include "runtime/trial.hpp"

#include <algorithm>

#include "runtime/fma_peak.hpp"
#include "runtime/inputs.hpp"
#include "runtime/workers.hpp"

namespace redblue {

Trial::Trial(const Kernel& kernel, const Shape& shape) : kernel_(kernel), shape_(shape) {
  bool forward = false;
  for (const Signature& operand : kernel.given) {
    if (operand.name == "O" || operand.name == "L") {
      forward = true;
      continue;
    }
    std::vector<float>& words = given_[std::string(operand.name)];
    words = buffer_for(operand, shape, 1);
    fill_input(operand.name, shape, 1, 1, 0, operand.rows_of(shape), words);
  }
  if (forward) {
    const Kernel& rows = find_kernel("forward/rows");
    constexpr Index kAmple = 65536;
    const Index M = std::max(kAmple, rows.least_M(shape));
    Buffers made;
    static_cast<void>(gflops(rows, rows.plan(shape, M, Objective::time), made));
    given_.merge(made);
  }
}

double Trial::of_peak(Index M) {
  const double speed = gflops(kernel_, kernel_.plan(shape_, M, Objective::time), returned_);
  return speed / fma_peak(1, Topology());
}

double Trial::gflops(const Kernel& kernel, const Plan& plan, Buffers& results) {
  const KernelMatrices bound(kernel, shape_, 1, given_, results);
  const Counted counted = run_on_team(kernel, plan, {}, bound.heads(), Topology());
  return 1e-9 * static_cast<double>(counted.total.operations.flops) / counted.total_seconds;
}

}  // namespace redblue
