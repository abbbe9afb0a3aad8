#include "kernels/parts/small_cache.hpp"

#include <algorithm>
#include <utility>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/parts/online_softmax.hpp"
#include "memsim/machine.hpp"
#include "memsim/workspace.hpp"

namespace redblue {

void softmax_nest(NestWriter& nest, std::string_view score_phase, const Problem& problem, Index B,
                  bool writes_L) {
  const NestLoop I("I", "queries", problem.shape.n, B);
  const NestLoop J("J", "keys", problem.shape.m, B);
  const NestLoop K("K", "depth", problem.shape.d, B);
  const NestTile s("s", I, J), maximum("max", I), sum("sum", I), L("L", I);
  nest.loop(I, [&] {
    nest.phase(score_phase, [&] {
      nest.loop(J, {maximum, sum}, [&] {
        nest.loop(K, {s}, [&] { nest.step("s_IJ += S_IK A2_JK^T", {{"S", I, K}, {"A2", J, K}}); });
        nest.write({s});
        nest.step("max_I of s_IJ; sum_I += rowsum(exp(s_IJ - max_I))");
      });
    });
    nest.phase("f", [&] {
      nest.step("L_I = max_I + log sum_I");
      if (writes_L) {
        nest.write({L});
      }
      nest.loop(J, {L}, [&] { nest.step("f_IJ = exp(s_IJ - L_I)", {s}, {{"f", I, J}}); });
    });
  });
}

// Algorithm 2, lines 15 to 35. The paper exponentiates the scores as they are, which
// overflows beyond 88; here a strip of rows carries its maximum along with its sum, and the
// nm words that A = exp(s) would have been hold s.
void softmax(Machine& machine, Index B, std::string_view score_phase, const SlowMatrix& S,
             const SlowMatrix& A2, SlowMatrix& f, SlowMatrix* L, Workspace& workspace) {
  SlowMatrix s = workspace.matrix("s", f.rows(), f.cols()).holding(Holds::scores);

  for (const Range I : blocks(S.rows(), B)) {
    OnlineSoftmax softmax(machine, I.size());  // max_I, sum_I (b)
    const Range all{0, I.size()};
    {
      const Phase phase(machine, score_phase);
      for (const Range J : blocks(A2.rows(), B)) {
        Tile s_ij = machine.initialize("s", I.size(), J.size(), Holds::scores);  // s_IJ (b, c)
        for (const Range K : blocks(S.cols(), B)) {
          const Tile s_ik = machine.read(S.block(I, K));               // S_IK (b, e)
          const Tile a_jk = machine.read(transposed(A2.block(J, K)));  // A2_JK^T (e, c)
          multiply_add(s_ik, a_jk, s_ij);
        }
        Tile rescale = machine.initialize("rescale", I.size());  // rescale_I (b)
        softmax.raise(s_ij, all, rescale);
        machine.write(s_ij, s.block(I, J));
        softmax.add(s_ij, all);  // only now that the raw scores are written
      }
    }
    {
      const Phase phase(machine, "f");
      const Tile log_sum_exp = softmax.log_sum_exp();
      if (L != nullptr) {
        machine.write(log_sum_exp, L->row_block(I));
      }
      Index j = 0;
      for (const Tile& s_ij : machine.stream(s.column_blocks(I, B))) {
        Tile f_ij =
            machine.initialize("f", s_ij.rows(), s_ij.cols(), Holds::scores);  // f_IJ (b, c)
        exponentiate(s_ij, log_sum_exp, f_ij);
        machine.write(f_ij, f.block(I, {j, j + f_ij.cols()}));
        j += f_ij.cols();
      }
    }
  }
}

// The column of rescaling factors lives when the two operand blocks are gone and is smaller.
PhaseCost softmax_score_cost(std::string path, const Problem& problem, Index B) {
  const auto [n, m, d] = problem.shape;
  const Words b = std::min(n, B);
  const Words c = std::min(m, B);
  const Words e = std::min(d, B);
  return {.path = std::move(path),
          .reads = Words(n) * d * ceil_div(m, B) + Words(m) * d * ceil_div(n, B),
          .writes = Words(n) * m,
          .peak = 2 * b + b * c + b * e + e * c,
          .flops = Words(2) * n * m * d};
}

PhaseCost softmax_normalise_cost(std::string path, const Problem& problem, Index B, bool writes_L) {
  const auto [n, m, d] = problem.shape;
  const Words b = std::min(n, B);
  const Words c = std::min(m, B);
  return {.path = std::move(path),
          .reads = Words(n) * m,
          .writes = Words(n) * m + Words(writes_L ? n : 0),
          .peak = b + 2 * b * c,
          .flops = 0};
}

}  // namespace redblue
