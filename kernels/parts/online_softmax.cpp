#include "kernels/parts/running_sums.hpp"

#include <algorithm>

#include "kernels/arithmetic/arithmetic.hpp"
#include "memsim/machine.hpp"

namespace redblue {

ValueSums::ValueSums(Machine& machine, const RowPlan& by, Index rows)
    : queries_(by.strip()),
      sums_{machine.initialize("Z", rows, by.problem.shape.d),
            machine.initialize("max", rows, 1, kNoMaximum), machine.initialize("sum", rows)},
      strip_(machine.initialize("e", std::min(by.keys, by.problem.shape.m),
                                std::min(by.strip(), rows))),
      factors_(machine.initialize("rescale", std::min(by.strip(), rows))) {}

void ValueSums::add(const Tile& a2, const Tile& a3, Range keys, const Tile& s_t) {
  auto& [Z, maximum, sum] = sums_;
  for (const Range K : blocks(s_t.cols(), queries_)) {
    const View e_t = strip_.part({0, keys.size()}, {0, K.size()});
    const View rescale = factors_.part({0, K.size()});
    multiply(a2.part(keys), s_t.part({0, s_t.rows()}, K), e_t);
    raise_maximum(transposed(e_t), maximum.part(K), rescale);
    scale_rows(sum.part(K), rescale);
    scale_rows(Z.part(K), rescale);
    exponentiate(transposed(e_t), maximum.part(K), sum.part(K));
    multiply_add(transposed(e_t), a3.part(keys), Z.part(K));
  }
}

// Z, maximum and sum; a strip and its factors.
Words ValueSums::words(const RowPlan& by, Words r) {
  const Words c = std::min(by.keys, by.problem.shape.m);
  const Words strip = std::min(r, Words(by.strip()));
  return r * by.problem.shape.d + 2 * r + c * strip + strip;
}

GradientSums::GradientSums(Machine& machine, const RowPlan& by, Index rows)
    : machine_(machine),
      queries_(by.strip()),
      U_(machine.initialize("U", rows, by.problem.shape.d)),
      Z_(machine.initialize("Z", rows, by.problem.shape.d)),
      maximum_(machine.initialize("max", rows, 1, kNoMaximum)),
      sum_(machine.initialize("sum", rows)),
      mean_(machine.initialize("mean", rows)),
      e_strip_(machine.initialize("e", std::min(by.keys, by.problem.shape.m),
                                  std::min(by.strip(), rows))),
      q_strip_(machine.initialize("q", std::min(by.keys, by.problem.shape.m),
                                  std::min(by.strip(), rows))),
      factors_(machine.initialize("rescale", std::min(by.strip(), rows))) {}

void GradientSums::add(const Tile& a2, const Tile& a3, Range keys, const Tile& s_t,
                       const Tile& g_t) {
  for (const Range K : blocks(s_t.cols(), queries_)) {
    Tile delta = machine_.initialize("delta", K.size());
    const View e_t = e_strip_.part({0, keys.size()}, {0, K.size()});
    const View q_t = q_strip_.part({0, keys.size()}, {0, K.size()});
    const View rescale = factors_.part({0, K.size()});
    multiply(a2.part(keys), s_t.part({0, s_t.rows()}, K), e_t);
    shifted_product(a3.part(keys), g_t.part({0, g_t.rows()}, K), mean_.part(K), q_t);
    raise_maximum(transposed(e_t), maximum_.part(K), rescale);
    scale_rows(sum_.part(K), rescale);
    scale_rows(U_.part(K), rescale);
    scale_rows(Z_.part(K), rescale);
    exponentiate(transposed(e_t), maximum_.part(K), sum_.part(K), transposed(q_t), delta);
    divide_rows(delta, sum_.part(K), delta);
    redblue::add(mean_.part(K), delta);
    subtract_scaled_rows(U_.part(K), delta, Z_.part(K));
    softmax_gradient(transposed(e_t), delta, transposed(q_t));

    multiply_add(transposed(e_t), a2.part(keys), Z_.part(K));
    multiply_add(transposed(q_t), a2.part(keys), U_.part(K));
  }
}

Tile GradientSums::take() {
  divide_rows(U_, sum_, U_);
  return std::move(U_);
}

// U and Z, maximum, sum and mean; two strips, factors and delta.
Words GradientSums::words(const RowPlan& by, Words r) {
  const Words c = std::min(by.keys, by.problem.shape.m);
  const Words strip = std::min(r, Words(by.strip()));
  return 2 * r * by.problem.shape.d + 3 * r + 2 * c * strip + 2 * strip;
}

}  // namespace redblue
