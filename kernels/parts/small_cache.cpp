#include "kernels/parts/small_cache.hpp"

#include <algorithm>
#include <utility>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/parts/live_pairs.hpp"
#include "kernels/parts/online_softmax.hpp"
#include "memsim/machine.hpp"
#include "memsim/workspace.hpp"

namespace redblue {

namespace {

// Returns s_IJ of a block of queries and a block of keys. Words of dead pairs may be anything.
Tile score_block(Machine& machine, Index B, const SlowMatrix& S, const SlowMatrix& A2, Range I,
                 Range J) {
  Tile s_ij = machine.initialize("s", I.size(), J.size(), Holds::scores);  // s_IJ (b, c)
  for (const Range K : blocks(S.cols(), B)) {
    const Tile s_ik = machine.read(S.block(I, K));               // S_IK (b, e)
    const Tile a_jk = machine.read(transposed(A2.block(J, K)));  // A2_JK^T (e, c)
    multiply_add(s_ik, a_jk, s_ij);
  }
  return s_ij;
}

// Replaces lines 15 to 35 for other activations, which have no sum to wait for.
void activated(Machine& machine, const Problem& problem, Index B, std::string_view score_phase,
               const SlowMatrix& S, const SlowMatrix& A2, SlowMatrix& f, bool for_p) {
  const Units queries = Units::of_queries(problem, B);
  const Phase phase(machine, score_phase);
  for (const Range I : queries) {
    const Tile index = queries.read_index(machine, I);
    for (const Range J : queries.met_blocks(I, B)) {
      Tile f_ij = score_block(machine, B, S, A2, I, J);
      if (!for_p) {
        activate(problem.activation, f_ij, f_ij);
      }
      LivePairs(problem, I, J).set_dead(f_ij, 0);
      machine.write(f_ij, f.block(I, J));
    }
  }
}

}  // namespace

// Algorithm 2, lines 15 to 35. The paper exponentiates raw scores, which overflows beyond 88. Here
// a strip of rows carries its maximum along with its sum, and the n m words of A = exp(s) in the
// paper hold s.
void softmax(Machine& machine, const Problem& problem, Index B, std::string_view score_phase,
             const SlowMatrix& S, const SlowMatrix& A2, SlowMatrix& f, SlowMatrix* L,
             Workspace& workspace, bool for_p) {
  if (!problem.normalised()) {
    return activated(machine, problem, B, score_phase, S, A2, f, for_p);
  }
  SlowMatrix s = workspace.matrix("s", f.rows(), f.cols()).holding(Holds::scores);
  const Units queries = Units::of_queries(problem, B);

  for (const Range I : queries) {
    const Pieces keys = queries.met_blocks(I, B);
    OnlineSoftmax softmax(machine, I.size());  // max_I, sum_I (b)
    const Range all{0, I.size()};
    {
      const Phase phase(machine, score_phase);
      const Tile index = queries.read_index(machine, I);
      for (const Range J : keys) {
        Tile s_ij = score_block(machine, B, S, A2, I, J);  // s_IJ (b, c)
        LivePairs(problem, I, J).set_dead(s_ij, kDeadScore);
        Tile rescale = machine.initialize("rescale", I.size());  // rescale_I (b)
        softmax.raise(s_ij, all, rescale);
        machine.write(s_ij, s.block(I, J));
        softmax.add(s_ij, all);  // changes s_ij, so the raw scores are written before
      }
    }
    {
      const Phase phase(machine, "f");
      const Tile log_sum_exp = softmax.log_sum_exp();
      if (L != nullptr) {
        machine.write(log_sum_exp, L->row_block(I));
      }
      const Tile index = queries.read_index(machine, I);
      Index j = 0;
      for (const Tile& s_ij : machine.stream(s.column_blocks(I, keys))) {
        Tile f_ij =
            machine.initialize("f", s_ij.rows(), s_ij.cols(), Holds::scores);  // f_IJ (b, c)
        exponentiate(s_ij, log_sum_exp, f_ij);
        machine.write(f_ij, f.block(I, keys[j++]));
      }
    }
  }
}

PhaseCost score_product_cost(std::string path, const Problem& problem, Index B) {
  const auto [n, m, d] = problem.shape;
  const Units::Tiles tiles = live_tiles(problem, B);
  PhaseCost cost = product_cost(std::move(path), {n, m, d}, square(B));
  cost.reads = d * (tiles.rows + tiles.met);
  cost.writes = tiles.words;
  cost.flops = 2 * d * tiles.words;
  const Units::Sum queries = Units::of_queries(problem, B).sum();
  cost.peak += queries.index_live;
  return with_index(std::move(cost), queries);
}

namespace {

// The maximum and the sum of a row stay. The column of rescaling factors lives after the two blocks
// of operands.
PhaseCost softmax_score_cost(std::string path, const Problem& problem, Index B) {
  PhaseCost cost = score_product_cost(std::move(path), problem, B);
  const auto [n, m, d] = problem.shape;
  const Words b = std::min(n, B);
  const Words c = std::min(m, B);
  const Words of_rows = b * problem.row_words();
  const Words index = Units::of_queries(problem, B).sum().index_live;
  cost.peak = 2 * of_rows + std::max(cost.peak, b * c + of_rows + index);
  return cost;
}

PhaseCost softmax_normalise_cost(std::string path, const Problem& problem, Index B, bool writes_L) {
  const auto [n, m, d] = problem.shape;
  const Words b = std::min(n, B);
  const Words c = std::min(m, B);
  const Words words = live_tiles(problem, B).words;
  const Words of_row = problem.row_words();
  const Units::Sum queries = Units::of_queries(problem, B).sum();
  return with_index({.path = std::move(path),
                     .reads = words,
                     .writes = words + (writes_L ? n * of_row : Words(0)),
                     .peak = b * of_row + std::max(b * of_row, 2 * b * c + queries.index_live),
                     .flops = 0},
                    queries);
}

}  // namespace

std::vector<PhaseCost> softmax_cost(const std::string& into, std::string_view score_phase,
                                    const Problem& problem, Index B, bool writes_L) {
  std::vector<PhaseCost> phases = {softmax_score_cost(into + std::string(score_phase), problem, B)};
  if (problem.normalised()) {
    phases.push_back(softmax_normalise_cost(into + "f", problem, B, writes_L));
  }
  return phases;
}

}  // namespace redblue
