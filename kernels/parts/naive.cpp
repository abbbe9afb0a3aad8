#include "kernels/parts/naive.hpp"

#include <algorithm>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/parts/live_pairs.hpp"
#include "memsim/machine.hpp"

namespace redblue {

void set_dead_scores(Machine& machine, const Problem& problem, Tile& scores, float value) {
  const Tile index = all_queries(problem).read_index(machine, {0, problem.shape.n});
  all_pairs(problem).set_dead(scores, value);
}

// Erratum: line 4 says "delete A, d" and means "delete A, l".
Tile f_at_once(Machine& machine, const Problem& problem, const Tile& A1, const Tile& A2_t,
               const SlowMatrix& X, SlowMatrix* L, bool for_p) {
  Tile A;
  {
    const Tile x = machine.read(X.whole());                                  // X (d, d)
    A = machine.initialize("A", A1.rows(), A2_t.cols(), Holds::scores);      // A (n, m)
    Tile S = machine.initialize("S", A1.rows(), x.cols(), Holds::operands);  // S (n, d)
    multiply_add(A1, x, S);
    multiply_add(S, A2_t, A);
  }
  if (!problem.normalised()) {
    if (!for_p) {
      activate(problem.activation, A, A);
    }
    set_dead_scores(machine, problem, A, 0);
    return A;
  }
  set_dead_scores(machine, problem, A, kDeadScore);
  Tile maximum = machine.initialize("max", A.rows(), 1, kNoMaximum);  // max (n)
  raise_maximum(A, maximum);
  exponentiate(A, maximum, A);
  Tile l = machine.initialize("l", A.rows());  // l (n)
  add_row_sums(A, l);
  if (L != nullptr) {
    add_logarithm(maximum, l);
    machine.write(maximum, L->whole());
  }
  maximum.reset();
  Tile f = machine.initialize("f", A.rows(), A.cols(), Holds::scores);  // f (n, m)
  divide_rows(A, l, f);
  return f;
}

// The peak is A1, A2 and A with the largest of three: X and S, max and l, or l and f.
PhaseCost f_at_once_cost(const Problem& problem, bool writes_L) {
  const auto [n, m, d] = problem.shape;
  const Words nd = Words(n) * d;
  const Words md = Words(m) * d;
  const Words dd = Words(d) * d;
  const Words nm = Words(n) * m;
  const Units::Sum all = all_queries(problem).sum();
  const Words of_rows = Words(n) * problem.row_words();
  const Words sums = problem.normalised() ? of_rows + std::max(of_rows, nm) : Words(0);
  return with_index({.path = "f",
                     .reads = nd + md + dd,
                     .writes = writes_L ? of_rows : Words(0),
                     .peak = nd + md + nm + std::max({dd + nd, sums, Words(all.index_live)}),
                     .flops = 2 * nd * d + 2 * nd * m},
                    all);
}

}  // namespace redblue
