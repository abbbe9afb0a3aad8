#include "runtime/theory/work.hpp"

#include "kernels/attention.hpp"
#include "memsim/errors.hpp"
#include "runtime/theory/sources.hpp"

namespace redblue {
namespace {

// Returns the exponentials that phi(s) of one score takes.
Index exps_of(Activation activation) {
  switch (activation) {
    case Activation::softmax:
    case Activation::sigmoid:
    case Activation::silu:
      return 1;
    case Activation::relu:
      return 0;
  }
  return 0;
}

}  // namespace

LeastWork work_of(const Task& task) {
  const bool gradients = task.pass == Pass::gradients;
  require(gradients || task.pass == Pass::attention, "work is of attention or gradients");
  const Problem& problem = task.problem;
  const Words d = problem.shape.d, dv = problem.shape.dv;
  Words widths = d;  // of the products s = c Q K^T; q = dO V^T; O, dQ, dK, dV
  if (needs_values(task)) {
    widths += dv;
  }
  if (gradients) {
    widths += (problem.wants(kdQ.name) ? d : Words(0)) + (problem.wants(kdK.name) ? d : Words(0)) +
              (problem.wants(kdV.name) ? dv : Words(0));
  }
  const Words pairs = problem.pairs() * task.heads;
  return {.flops = 2 * pairs * widths, .exps = pairs * exps_of(problem.activation)};
}

}  // namespace redblue
