#pragma once
// What the row-stationary kernels share. A block of Br rows of S = A1 X (and of what else
// belongs to queries) stays in fast memory, transposed, so that vectors run along queries;
// keys pass in blocks of Bc rows of A2 and A3. Scores live in strips of at most Bc keys and
// kStrip queries, one strip at a time. The weights X and Y, and the columns of A1 that meet
// W = p A2 at last, come Bw columns at a time.
//
// Row blocks know nothing of each other: several machines may work on different ones. Where
// they sum into g, each then writes a partial g of its own, and the partials are added in the
// order of the blocks, which is also the order of a single machine, which adds as it goes.

#include <string>
#include <string_view>
#include <vector>

#include "kernels/kernel.hpp"
#include "memsim/slow_matrix.hpp"
#include "memsim/tile.hpp"

namespace redblue {

// Queries of a strip: a whole number of panels, and of the rows that registers hold.
inline constexpr Index kStrip = 48;

// Br, Bc and Bw with the problem around them.
struct RowPlan {
  RowPlan(const Shape& of, const Blocks& blocks)
      : RowPlan(of, blocks["Br"], blocks["Bc"], blocks["Bw"]) {}
  RowPlan(const Shape& of, Index Br, Index Bc, Index Bw)
      : shape(of), rows(Br), keys(Bc), weights(Bw) {}

  Shape shape;
  Index rows, keys, weights;

  [[nodiscard]] Blocks blocks() const { return {{"Br", rows}, {"Bc", keys}, {"Bw", weights}}; }
  [[nodiscard]] BlockRanges units() const { return {shape.n, rows}; }
  // The queries of the row blocks `units`, and of the largest of them.
  [[nodiscard]] Index rows_of(Range units) const;
  [[nodiscard]] Index largest_of(Range units) const;
};

// (A W)^T for the rows I of A; and (A W^T)^T.
Tile rows_times(Machine& machine, Index Bw, std::string_view name, const SlowMatrix& A, Range I,
                const SlowMatrix& W);
Tile rows_times_transposed(Machine& machine, Index Bw, std::string_view name, const SlowMatrix& A,
                           Range I, const SlowMatrix& W);
// The same from A_I^T.
Tile times_transposed(Machine& machine, Index Bw, std::string_view name, const Tile& a_t,
                      const SlowMatrix& W);
PhaseCost rows_times_cost(std::string path, const RowPlan& by, Range units);

// A1_I^T W, for the row block `unit`: its own d rows of `partials`; or added to g, where there
// are none.
void add_gradient(Machine& machine, Index Bw, const SlowMatrix& A1, Range I, const Tile& W,
                  Index unit, SlowMatrix& g, SlowMatrix* partials);
PhaseCost add_gradient_cost(std::string path, const RowPlan& by, Range units, bool partials);

// Some rows of g: the sum of all partials, in the order of the row blocks.
void reduce_gradient(Machine& machine, const Plan& plan, Range rows, const SlowMatrix& partials,
                     SlowMatrix& g);
std::vector<PhaseCost> reduce_gradient_cost(const Shape& shape, const Blocks& blocks, Range rows);

// The whole kernel on one machine, from what it is on some of its row blocks.
template <auto part>
void whole(Machine& machine, const Plan& plan, const Operands& io, Workspace&) {
  part(machine, plan, io, {0, RowPlan(plan.shape, plan.blocks).units().size()}, nullptr);
}
template <auto part_cost>
std::vector<PhaseCost> whole_cost(const Shape& shape, const Blocks& blocks) {
  return part_cost(shape, blocks, {0, RowPlan(shape, blocks).units().size()}, false);
}

// The blocks for which the peak stays within M. Words depend on the number of row blocks
// alone: `fewest_words` has the largest Br that fits beside one key; `fastest` gives up some
// of it for strips that keep the registers busy.
using CostOfBlocks = std::vector<PhaseCost> (*)(const Shape& shape, const Blocks& blocks);
Blocks fewest_words(const Shape& shape, Index M, CostOfBlocks cost);
Blocks fastest(const Shape& shape, Index M, CostOfBlocks cost);

}  // namespace redblue
