#pragma once
// Matrix products C = A B with one resident block: a block of C, of A or of B stays while the other
// two matrices stream. A slice of one of them is held, and the other passes in pieces. With blocks
// of r rows and c columns of C, slices of s of the depth, and pieces of p:
//
//   C stays   reads   rows depth ceil(cols / c) + depth cols ceil(rows / r);  writes  rows cols
//             peak    r c + s min(r, c) + s p
//   A stays   reads   rows depth + depth cols ceil(rows / r) + rows cols (ceil(depth / s) - 1)
//             writes  rows cols ceil(depth / s)
//             peak    r s + c min(r, s) + c p
//   B stays   is A stays for C^T = B^T A^T.
//
// These formulas are for sums of one word. Wider sums take more words of C in fast memory. So do
// unfinished sums that go to slow memory and come back, rows cols (ceil(depth / s) - 1) each way.
// Finished sums are written as words of C.
//
// Slices and pieces of 1 leave most of M to the resident block. Wider ones keep the registers busy.
//
// A may be a matrix of scores, or its transpose, that stores only `live` words: pairs of a row of A
// and an index of the depth. Then the formulas change:
// - `rows depth` becomes the number of live pairs.
// - `depth ceil(rows / r)` becomes the sum, over blocks of rows, of the part of the depth that each
//   block meets. B streams no more than that.
// - `rows ceil(depth / s)` becomes the sum, over blocks of the depth, of the rows that each block
//   meets. C streams no more than that.
//
// A mask that is full() has only live pairs. A mask that is data is read once in each pass: for the
// rows of a block of C or A, or for a block of the depth if B stays.
//
// Inner levels of fast memory: kernels/parts/product_levels.hpp. Let a level of M words be inside a
// level of M' words, and let s of the third extent pass the square that stays in the second level
// together. A multiply-add then costs words at both levels.
// - At the first, 2 / sqrt(M) + 2 / s if C stays, and 3 / sqrt(M) + 1 / s if A or B stays.
// - At the second, about 1 + s / 2 sqrt(M') times the words without the first level.

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>

#include "kernels/kernel.hpp"
#include "kernels/nest.hpp"
#include "kernels/parts/product.hpp"

namespace redblue {

struct StationaryBlocks {
  Index rows = 1, cols = 1, depth = 1, piece = 1;
  ProductLevels inner = {};

  // Writes and reads the blocks as "S.rows" and so on, or as "rows" if the name is empty. Blocks of
  // inner levels have names as "L1.S.rows".
  void put(std::string_view name, Blocks& blocks) const;
  static StationaryBlocks get(std::string_view name, const Blocks& blocks);
};

void stationary_product(Machine& machine, const StationaryBlocks& by, Stays what, const Factor& A,
                        const Factor& B, SlowMatrix& C, const Mask& live = {});
PhaseCost stationary_cost(std::string path, const ProductShape& of, const StationaryBlocks& by,
                          Stays what, const Mask& live = {});
// The cost of an inner level. The pieces of the machine count as blocks, too. Under a mask a piece
// with a live pair is borrowed whole.
PhaseCost stationary_level_cost(std::string path, const ProductShape& of,
                                const StationaryBlocks& by, Stays what, std::size_t level,
                                const Mask& live = {});
void stationary_nest(NestWriter& nest, const ProductNames& names, const ProductShape& of,
                     const StationaryBlocks& by, Stays what, const Mask& live = {});

// Whether a block of C is wider than high: a slice is held along its shorter side.
bool is_wide(const ProductShape& of, const StationaryBlocks& by);

// The matrix that stays, if a kernel leaves the choice to the blocks. If the whole depth is one
// block, it is A or B, whichever moves fewer words with all pairs live; else it is C.
Stays stays(const ProductShape& of, const StationaryBlocks& by);

// The width of slices and pieces that keep the registers busy: a square of that width takes at most
// 1/64 of M. Slices and pieces are never wider than kWidestSlice.
Index narrow_slice(Index M);
inline constexpr Index kWidestSlice = 64;

// Returns the blocks with the fewest words among blocks with a peak of at most M; if no blocks fit,
// the smallest. `cost` is a function of the blocks. For `time`, slices and pieces are wide enough
// to keep the registers busy, if M has room. Words under a mask take longer to count, so fewer
// sizes are tried. `all_live` is then the cost of all pairs, with the same peak.
using StationaryCost = std::function<PhaseCost(const StationaryBlocks&)>;
// Returns the cost of all pairs with the peak under the mask; null if the mask is full(). `of_all`
// is the cost without a mask.
StationaryCost all_live_cost(StationaryCost of_all, const Mask& live);
StationaryBlocks fit_stationary(const ProductShape& of, Index M, Objective objective,
                                const StationaryCost& cost,
                                const StationaryCost& all_live = nullptr);

// Returns the blocks of all levels with the least sum of words, each weighed by `word_costs`
// (kernels/parts/level_costs.hpp). `cost` returns the cost of one level, and the level of the
// machine comes after the inner ones. The search tries each matrix of `what` as the resident one.
using StationaryLevelCost = std::function<PhaseCost(const StationaryBlocks&, std::size_t level)>;
StationaryBlocks fit_stationary_levels(const ProductShape& of, const Memory& memory,
                                       Objective objective, std::initializer_list<Stays> what,
                                       const StationaryLevelCost& cost);

// A product as a phase of a kernel with blocks of this name in its plan. These functions choose the
// blocks, return the cost, write the loops (all without a mask), and run the phase.
void plan_product(std::string_view name, const ProductShape& of, Index M, Objective objective,
                  Blocks& blocks);
PhaseCost product_phase_cost(std::string_view name, const ProductShape& of, const Blocks& blocks);
// Requires: the phase has the name of the result.
void product_phase_nest(NestWriter& nest, const ProductNames& names, const ProductShape& of,
                        const Blocks& blocks);
void product_phase(Machine& machine, std::string_view name, const Blocks& blocks, const Factor& A,
                   const Factor& B, SlowMatrix& C, const Mask& live = {});

// A part of that phase, without a mask: some units of the rows of C. A unit is a block of rows, or
// a panel if all rows are one block. The whole product decides which matrix stays; each part reads
// that matrix once.
Index product_units(std::string_view name, const ProductShape& of, const Blocks& blocks);
PhaseCost product_part_cost(std::string_view name, const ProductShape& of, const Blocks& blocks,
                            Range units);
void product_part(Machine& machine, std::string_view name, const Blocks& blocks, const Factor& A,
                  const Factor& B, SlowMatrix& C, Range units);

}  // namespace redblue
