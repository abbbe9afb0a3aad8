#pragma once
// A problem in memory on which a kernel runs several times, to compare the speed of plans. All runs
// use the calling thread.

#include "kernels/kernel.hpp"
#include "runtime/run/buffers.hpp"
#include "runtime/run/workers.hpp"

namespace redblue {

class TimedProblem {
 public:
  // Makes the inputs from seed 1. If the kernel takes O and L, a forward kernel computes them.
  TimedProblem(const KernelName& kernel, const Shape& shape);

  // Runs the plan once and returns its seconds. Requires: a plan of this kernel and this problem.
  double seconds(const Plan& plan);
  // Runs once with M words and the fastest blocks. Returns the run's GF/s divided by the GF/s of
  // multiply-adds right after it. Throws: FastMemoryTooSmall.
  double of_peak(Index M);

 private:
  RunCounts run(const Kernel& kernel, const Plan& plan, Buffers& results);

  const Kernel& kernel_;
  Problem problem_;
  Buffers given_, returned_;
};

}  // namespace redblue
