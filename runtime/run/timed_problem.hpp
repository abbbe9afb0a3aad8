#pragma once
// A problem in memory on which a kernel runs again and again, to see how fast it is with which M.
// On the calling thread.

#include "kernels/kernel.hpp"
#include "runtime/run/buffers.hpp"
#include "runtime/run/workers.hpp"

namespace redblue {

class TimedProblem {
 public:
  // Inputs are those of seed 1; O and L, where the kernel is given them, are made here.
  TimedProblem(const KernelName& kernel, const Shape& shape);

  // Runs it once. Requires: a plan of this kernel and this problem.
  double seconds(const Plan& plan);
  // The same with M words and the blocks that are planned for least time: GF/s over what
  // multiply-adds reach just after. Throws: FastMemoryTooSmall.
  double of_peak(Index M);

 private:
  RunCounts run(const Kernel& kernel, const Plan& plan, Buffers& results);

  const Kernel& kernel_;
  Problem problem_;
  Buffers given_, returned_;
};

}  // namespace redblue
