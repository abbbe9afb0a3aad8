#pragma once
// C = A B with one block of C, of A or of B that stays while the others pass: of one of them a
// slice that is held, of the third pieces. For blocks of r rows and c columns of C, s of the
// depth, and pieces of p:
//
//   C stays   reads   rows depth ceil(cols / c) + depth cols ceil(rows / r);  writes  rows cols
//             peak    r c + s min(r, c) + s p
//   A stays   reads   rows depth + depth cols ceil(rows / r) + rows cols (ceil(depth / s) - 1)
//             writes  rows cols ceil(depth / s)
//             peak    r s + c min(r, s) + c p
//   B stays   is A stays for C^T = B^T A^T.
//
// where sums weigh one word. Where they weigh more, so does C in fast memory, and when it goes to
// the slow store to come back: rows cols (ceil(depth / s) - 1) words each way. At last it goes as
// words of its matrix.
//
// Slices and pieces of 1 leave most of M to the block that stays; wider ones keep registers busy.
//
// A may be a matrix of scores, or of scores' transpose, which keeps `live` words alone: those of
// pairs of its rows and of the depth. Then rows depth is the number of these; depth ceil(rows / r)
// is the sum over blocks of rows of what they meet of the depth, and of B no more comes with them;
// rows ceil(depth / s) is the sum over blocks of the depth of the rows that meet them, and of C no
// more. A mask that is full() is none. One that is data says what the rows of a block of C or A
// meet, or a block of the depth where B stays, once in each pass.
//
// Inner levels of fast memory: kernels/parts/product_levels.hpp. Where a level of M words is inside
// one of M', and s of the third extent pass the square that stays in the second at a time, a
// multiply-add costs 2 / sqrt(M) + 2 / s words of the first where C stays, 3 / sqrt(M) + 1 / s
// where A or B does; and of the second about 1 + s / 2 sqrt(M') times what it would without the
// first.

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

  // As "S.rows" and so on; as "rows" without a name. Those of inner levels as "L1.rows".
  void put(std::string_view name, Blocks& blocks) const;
  static StationaryBlocks get(std::string_view name, const Blocks& blocks);
};

void stationary_product(Machine& machine, const StationaryBlocks& by, Stays what, const Factor& A,
                        const Factor& B, SlowMatrix& C, const Mask& live = {});
PhaseCost stationary_cost(std::string path, const ProductShape& of, const StationaryBlocks& by,
                          Stays what, const Mask& live = {});
// Of an inner level: pieces are blocks of the machine's, too. Under a mask a piece with a live pair
// is near as a whole.
PhaseCost stationary_level_cost(std::string path, const ProductShape& of,
                                const StationaryBlocks& by, Stays what, std::size_t level,
                                const Mask& live = {});
void stationary_nest(NestWriter& nest, const ProductNames& names, const ProductShape& of,
                     const StationaryBlocks& by, Stays what, const Mask& live = {});

// Whether a block of C is wider than high: a slice is held along its shorter side.
bool is_wide(const ProductShape& of, const StationaryBlocks& by);

// What stays, where a kernel leaves it to the blocks: with the whole depth in one, A or B,
// whichever moves fewer words where all are live; else C.
Stays stays(const ProductShape& of, const StationaryBlocks& by);

// Slices and pieces that keep the registers busy, and take at most 1/64 of M as a square; none is
// wider than the second.
Index narrow_slice(Index M);
inline constexpr Index kWidestSlice = 64;

// The blocks of fewest words among those whose cost, a function of them, has a peak within M;
// where nothing fits, the smallest. For `time`, slices and pieces are wide enough to keep the
// registers busy, where M has room for that. Under a mask words take longer to count, and fewer
// sizes are tried: `all_live` is the cost without it, which has the same peak.
using StationaryCost = std::function<PhaseCost(const StationaryBlocks&)>;
// The words of all pairs, from their cost, with the mask's peak; null where the mask is none.
StationaryCost all_live_cost(StationaryCost of_all, const Mask& live);
StationaryBlocks fit_stationary(const ProductShape& of, Index M, Objective objective,
                                const StationaryCost& cost,
                                const StationaryCost& all_live = nullptr);

// The blocks of all levels, of which the sum of words, each weighed by `word_costs`, is least; as
// kernels/parts/level_costs.hpp has it. The cost is that of a level, the machine's after the inner
// ones; one of these matrices stays, where the cost does not say which.
using StationaryLevelCost = std::function<PhaseCost(const StationaryBlocks&, std::size_t level)>;
StationaryBlocks fit_stationary_levels(const ProductShape& of, const Memory& memory,
                                       Objective objective, std::initializer_list<Stays> what,
                                       const StationaryLevelCost& cost);

// A product as a phase of a kernel whose plan has blocks of that name: their choice, its cost and
// its loops, without a mask; and the phase itself.
void plan_product(std::string_view name, const ProductShape& of, Index M, Objective objective,
                  Blocks& blocks);
PhaseCost product_phase_cost(std::string_view name, const ProductShape& of, const Blocks& blocks);
// The phase has the name of the result.
void product_phase_nest(NestWriter& nest, const ProductNames& names, const ProductShape& of,
                        const Blocks& blocks);
void product_phase(Machine& machine, std::string_view name, const Blocks& blocks, const Factor& A,
                   const Factor& B, SlowMatrix& C, const Mask& live = {});

// A part of that phase, without a mask: some units of the rows of C. These are blocks of rows, or
// panels of the one block. What stays is that of the whole, and comes once for each part.
Index product_units(std::string_view name, const ProductShape& of, const Blocks& blocks);
PhaseCost product_part_cost(std::string_view name, const ProductShape& of, const Blocks& blocks,
                            Range units);
void product_part(Machine& machine, std::string_view name, const Blocks& blocks, const Factor& A,
                  const Factor& B, SlowMatrix& C, Range units);

}  // namespace redblue
