#include "kernels/parts/columns.hpp"

#include <utility>

#include "kernels/attention.hpp"
#include "kernels/fit.hpp"
#include "kernels/parts/product.hpp"

namespace redblue {
namespace {

Blocks blocks_of(const Problem& problem, Index Br, Index Bc, Index Bw) {
  Blocks blocks{{"Br", Br}, {"Bc", Bc}};
  if (problem.inputs == Inputs::weighted) {
    blocks.add("Bw", Bw);
  }
  return blocks;
}

// Returns the largest of one size that fits with the others.
struct Largest {
  const Problem& problem;
  Index M;
  CostOfBlocks cost_of;
  Problem all_live = problem.with_mask({});

  [[nodiscard]] Index rows(Index keys) const {
    return largest(std::min(problem.shape.n, M), [&](Index tried) { return fits(tried, keys, 1); });
  }
  [[nodiscard]] Index keys(Index rows) const {
    return largest(std::min(problem.shape.m, M), [&](Index tried) { return fits(rows, tried, 1); });
  }
  [[nodiscard]] Index weights(Index rows, Index keys) const {
    return largest(std::min(problem.shape.d, M),
                   [&](Index tried) { return fits(rows, keys, tried); });
  }
  // The peak of all pairs, with the words of the index of the mask added. Counting words under the
  // mask would take longer.
  [[nodiscard]] bool fits(Index Br, Index Bc, Index Bw) const {
    return total(cost_of(all_live, blocks_of(problem, Br, Bc, Bw))).peak +
               problem.mask.index().live() <=
           Words(M);
  }
};

}  // namespace

Tile keys_of_scores(Machine& machine, const ColumnPlan& by, const Operands& io, Range J) {
  if (by.problem.inputs == Inputs::plain) {
    const Phase phase(machine, "K");
    Tile k = machine.read(transposed(io.in("K").row_block(J)));  // K_J^T (d, c)
    scale(k, by.problem.scale());
    return k;
  }
  const Range all{0, by.problem.shape.d};
  return product_in_pieces(
      machine, by, "K", all.size(), J.size(), [&](Range K) { return io.in("X").block(all, K); },
      [&](Range K) { return transposed(io.in("A2").block(J, K)); });
}

PhaseCost product_in_pieces_cost(std::string path, const ColumnPlan& by, Index width, Words kept) {
  const Index d = by.problem.shape.d;
  const Words md = Words(by.problem.shape.m) * width;
  const Words c = by.keys;
  if (by.problem.inputs == Inputs::plain) {
    return {
        .path = std::move(path), .reads = md, .writes = 0, .peak = c * (kept + width), .flops = 0};
  }
  return {.path = std::move(path),
          .reads = md + Words(d) * d * by.units().size(),
          .writes = 0,
          .peak = c * (kept + d) + by.weights * (c + d),
          .flops = 2 * md * d};
}

Window column_window(const Signature& operand, const Problem& problem, const Blocks& blocks) {
  const ColumnPlan by(problem, blocks);
  const auto of = [&](Index rows, Index cols) { return window_of(operand, problem, rows, cols); };
  if (operand.name == kX.name || operand.name == kg.name) {
    return of(problem.shape.d, by.weights);
  }
  if (operand.name == kY.name) {
    return of(by.weights, problem.shape.d);
  }
  const Index all = operand.cols_of(problem.shape);
  return operand.rows != &Shape::m            ? of(by.rows, all)
         : problem.inputs == Inputs::weighted ? of(by.keys, by.weights)
                                              : of(by.keys, all);
}

Blocks widest_columns(const Problem& problem, Index M, const CostOfBlocks& cost_of) {
  const Largest most{problem, M, cost_of};
  const Index c = even(problem.shape.m, most.keys(1));
  const Index r = even(problem.shape.n, most.rows(c));
  return blocks_of(problem, r, c, even(problem.shape.d, most.weights(r, c)));
}

// The cost of a streaming query and of a row block beyond their flops, in units of 1 / m and 1 / r
// of the time of the products. Rows are read and mapped once for each block of keys. The sums T_J
// are loaded and stored once for each row block. The weights are those in `fastest` of rows.cpp,
// with rows and keys exchanged. Measured row blocks from 24 to 384 were not better than 48 beyond
// noise.
Blocks fastest_columns(const Problem& problem, Index M, const CostOfBlocks& cost_of) {
  constexpr Index kMostRows = 48;
  constexpr Index kRowStep = 12;  // register tiles of 1, 2, 4 or 6 rows divide it
  constexpr double kPerPass = 16;
  constexpr double kPerRowBlock = 8;
  const Largest most{problem, M, cost_of};
  Index best_r = 1;
  Index best_c = 1;
  double least = 0;
  for (Index r = std::min(problem.shape.n, kMostRows); r >= 1;
       r = r > kRowStep ? (r - 1) / kRowStep * kRowStep : r / 2) {
    if (!most.fits(r, 1, 1)) {
      continue;
    }
    // Whole panels if the keys are more than a block, and as even as panels allow.
    Index c = std::min(most.keys(r), most_dealt_out(problem, problem.shape.m, Units::of_keys));
    if (c < problem.shape.m && c > kPanel) {
      c = c / kPanel * kPanel;
    }
    const Index T = ceil_div(problem.shape.m, c);
    c = std::min(c, ceil_div(ceil_div(problem.shape.m, T), kPanel) * kPanel);
    const double cost = kPerPass * static_cast<double>(T) / static_cast<double>(problem.shape.m) +
                        kPerRowBlock / static_cast<double>(r);
    if (least == 0 || cost < least) {
      least = cost;
      best_r = r;
      best_c = c;
    }
  }
  return blocks_of(problem, best_r, best_c, even(problem.shape.d, most.weights(best_r, best_c)));
}

}  // namespace redblue
