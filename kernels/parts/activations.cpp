#include "kernels/parts/activations.hpp"

#include "kernels/arithmetic/arithmetic.hpp"
#include "memsim/machine.hpp"

namespace redblue {

Tile read_row_values(Machine& machine, const Problem& problem, const Operands& io,
                     std::string_view name, Range I) {
  return problem.normalised() ? machine.read(io.in(name).row_block(I)) : Tile();
}

Tile row_values(Machine& machine, const Problem& problem, std::string_view name, Index rows) {
  return problem.normalised() ? machine.initialize(name, rows) : Tile();
}

void make_factor(const Problem& problem, const View& s, const Tile& L, Range of) {
  if (problem.normalised()) {
    exponentiate(s, L.part(of), s);
  }
}

void make_p(const Problem& problem, const ConstView& factor, const ConstView& q, const Tile& v,
            Range of, const View& p) {
  if (problem.normalised()) {
    softmax_gradient(factor, q, v.part(of), p);
  } else {
    activation_gradient(problem.activation, factor, q, p);
  }
}

}  // namespace redblue
