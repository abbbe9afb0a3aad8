#pragma once
// The arithmetic that a task asks for, whatever the schedule: each matrix product once, and one
// exponential for each live pair. A kernel may do more. It may compute a product twice, and an
// online softmax also takes an exponential whenever it rescales the sums of a row.

#include "memsim/words.hpp"
#include "runtime/theory/bounds.hpp"

namespace redblue {

struct LeastWork {
  Words flops;  // of matrix products: 2 for each multiply-add
  Words exps;
};

// Returns the work of all heads. Requires: attention or gradients, on dense operands.
LeastWork work_of(const Task& task);

}  // namespace redblue
