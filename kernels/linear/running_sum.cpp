#include "kernels/linear/running_sum.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/fit.hpp"
#include "kernels/parts/stationary.hpp"
#include "memsim/machine.hpp"

namespace redblue {

void RunningSum::add_first(Range rows, Range cols, Index step, Tile& sum) const {
  for (const Range J : blocks(before, step)) {
    const Tile k_t = machine.read(transposed(K.block(J, rows)));  // K_J^T (s, b)
    const Tile v = machine.read(V.block(J, cols));                // V_J (b, c)
    multiply_add(k_t, v, sum);
  }
}

void RunningSum::add(Tile p, Range I, Range rows, Range cols, Tile& sum, Tile& r) const {
  const Range J{before + I.begin, before + I.end};
  multiply_add(p, sum, r);
  const Tile k_t = machine.read(transposed(K.block(J, rows)));  // K_J^T (s, b)
  Tile scores = machine.initialize("scores", I.size(), I.size(), kUnset, Holds::scores);
  multiply(p, k_t, scores);
  p.reset();
  for (Index i = 0; i < I.size(); ++i) {
    fill_in_row(scores, i, {i + 1, I.size()}, 0);
  }
  const Tile v = machine.read(V.block(J, cols));  // V_J (b, c)
  multiply_add(scores, v, r);
  multiply_add(k_t, v, sum);
}

Words pairs_of_blocks(Index n, Index step) {
  const Index block = std::min(n, step);
  const Index last = n % block;
  return Words(n - last) * block + Words(last) * last;
}

void running_product(Machine& machine, const RunningBlocks& by, const SlowMatrix& P,
                     const SlowMatrix& K, const SlowMatrix& V, SlowMatrix& R, Range columns) {
  const Index d = P.cols();
  const RunningSum running{machine, K, V, K.rows() - P.rows()};
  for (const Range part : blocks(columns.size(), by.cols)) {
    const Range J = part_of(columns, part);
    for (const Range D : blocks(d, by.rows)) {
      Tile sum = machine.initialize("S", D.size(), J.size());  // S_DJ (s, c)
      running.add_first(D, J, by.piece, sum);
      for (const Range I : blocks(P.rows(), by.piece)) {
        Tile p = machine.read(P.block(I, D));                                     // P_ID (b, s)
        Tile r = D.begin == 0 ? machine.initialize(R.name(), I.size(), J.size())  // R_IJ (b, c)
                              : machine.read(std::as_const(R).block(I, J).holding(Holds::sums));
        running.add(std::move(p), I, D, J, sum, r);
        machine.write(r, D.end == d ? R.block(I, J) : R.block(I, J).holding(Holds::sums));
      }
    }
  }
}

PhaseCost running_cost(std::string_view name, const Problem& problem, const RunningBlocks& by,
                       Range columns) {
  const auto [n, m, d] = problem.shape;
  const Index of_sum = problem.sum_words;
  const Words nd = Words(n) * d;
  const Words md = Words(m) * d;
  const Words n_made = Words(n) * columns.size();
  const Words m_met = Words(m) * columns.size();
  const Index D = ceil_div(d, by.rows);
  const Index J = ceil_div(columns.size(), by.cols);
  const Words r = std::min(d, by.rows);
  const Words c = std::min(columns.size(), by.cols);
  const Words b = std::min(n, by.piece);
  const Words first = std::min(m - n, by.piece);
  const Words scores = pairs_of_blocks(n, by.piece);
  return {
      .path = std::string(name),
      .reads = (nd + md) * J + m_met * D + n_made * (D - 1) * of_sum,
      .writes = n_made * (1 + (D - 1) * of_sum),
      .peak = r * c * of_sum + std::max(b * (b + r + c * of_sum + std::max(r, c)), first * (r + c)),
      .flops = 2 * (n_made + m_met) * d + 2 * scores * (Words(d) * J + Words(columns.size()) * D)};
}

void running_nest(NestWriter& nest, const RunningNames& names, const Shape& shape,
                  const RunningBlocks& by) {
  const Index n = shape.n;
  const Index m = shape.m;
  const Index d = shape.d;
  const NestLoop J("J", "columns", d, by.cols), D("D", "rows", d, by.rows);
  const NestLoop I("I", "queries", n, by.piece);
  const NestTile S("S", D, J), P(names.rows, I, D), R(names.result, I, J);
  const auto step = [&](const NestTile& K, const NestTile& V) {
    return S.text() + " += " + K.text() + "^T " + V.text();
  };
  nest.loop(J, [&] {
    nest.loop(D, [&] {
      if (m > n) {
        const NestLoop before("K", "keys before the first query", m - n, by.piece);
        const NestTile K(names.keys, before, D), V(names.values, before, J);
        nest.loop(before, {S}, [&] { nest.step(step(K, V), {K, V}); });
      }
      const NestTile K(names.keys, I, D), V(names.values, I, J);
      nest.loop(I, {S}, [&] {
        nest.step(R.text() + " += " + P.text() + " " + S.text() + " + (live " + P.text() + " " +
                      K.text() + "^T) " + V.text() + "; " + step(K, V),
                  {P, R.but_once(D), K, V}, {R});
      });
    });
  });
}

RunningBlocks fit_running(const Problem& problem, Index M, Objective objective) {
  constexpr Index kBusyScores = 32;
  const Shape& shape = problem.shape;
  const Index d = shape.d;
  const auto cost = [&](Index r, Index c, Index b) {
    return running_cost("", problem, {.rows = r, .cols = c, .piece = b}, {0, d});
  };
  const auto fits = [&](Index r, Index c, Index b) { return cost(r, c, b).peak <= Words(M); };
  const Index piece = objective == Objective::time ? std::min(narrow_slice(M), shape.n) : 1;
  RunningBlocks best;
  std::optional<Words> least;
  for (Index size = std::min(d, M); size > 0; --size) {
    size = even(d, size);
    if (!fits(size, 1, piece)) {
      continue;
    }
    const Index c =
        even(d, largest(std::min(d, M), [&](Index tried) { return fits(size, tried, piece); }));
    const PhaseCost all = cost(size, c, piece);
    if (const Words words = all.reads + all.writes; !least || words < *least) {
      least = words;
      best = {.rows = size, .cols = c, .piece = piece};
    }
  }
  best.piece = std::max(best.piece, largest(std::min(kBusyScores, shape.n), [&](Index tried) {
                          return fits(best.rows, best.cols, tried);
                        }));
  return best;
}

}  // namespace redblue
