#pragma once
// Products C = F B with a factor F that is made during the product and never stored. A block of C
// stays, with the words of its rows. A slice of B is held, and rows of F are made in pieces. Under
// a mask of pairs (a row and an index of the depth), only live words of F are read. A block of rows
// then reads only the rows of B that it meets.

#include <string>
#include <string_view>
#include <vector>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/parts/live_pairs.hpp"
#include "kernels/parts/product_levels.hpp"
#include "kernels/parts/stationary.hpp"
#include "kernels/parts/tile_levels.hpp"
#include "kernels/units.hpp"
#include "memsim/machine.hpp"
#include "memsim/tile.hpp"

namespace redblue {

// The cost of making F. Words of rows are sums.
struct FactorCost {
  Index columns = 0;    // resident words for each row of a block of C
  Index tiles = 0;      // more words for each word of a piece
  Index reads = 0;      // words read for each word of F
  Index row_reads = 0;  // words read for each row of a block of C
  // For a nest.
  std::string_view text = {};  // "f = exp(s - L)"
  ColumnNames column_names = {};
  // In inner levels: the pass that makes F, and the number of products of this shape that are added
  // to C. Only the first has the factor F.
  PassCost near = {};
  Index products = 1;
};

// C is `of.rows` by `of.cols`.
PhaseCost generated_product_cost(std::string path, const ProductShape& of,
                                 const StationaryBlocks& by, const FactorCost& factor,
                                 const Mask& live = {});
PhaseCost generated_product_level_cost(std::string path, const ProductShape& of,
                                       const StationaryBlocks& by, const FactorCost& factor,
                                       std::size_t level, const Mask& live = {});
void generated_product_nest(NestWriter& nest, const ProductNames& names, const ProductShape& of,
                            const StationaryBlocks& by, const FactorCost& factor,
                            const Mask& live = {});

// Runs the product as a phase of a kernel with blocks of this name in its plan. rows_of(I) returns
// the resident words of the rows I. make(own, pairs, part, levels) returns the words of F for these
// pairs, 0 for dead pairs. `own` is the result of rows_of(), and the rows of the pairs have its
// rows `part`.
template <class RowsOf, class Make>
void generated_product(Machine& machine, std::string_view name, const Plan& plan,
                       const SlowMatrix& B, SlowMatrix& C, const RowsOf& rows_of,
                       const Make& make) {
  const Phase phase(machine, name);
  const Problem& problem = plan.problem;
  const auto by = StationaryBlocks::get(name, plan.blocks);
  const CutEvery cut_cols = cut_of(by.inner, &ProductBlocks::cols);
  const Units queries = Units::of_queries(problem, by.rows);
  for (const Range I : queries) {
    const LiveRows met(B, problem.mask, problem.keys(I));
    for (const Range J : blocks(C.cols(), by.cols)) {
      const Tile index = queries.read_index(machine, I);
      const auto own = rows_of(I);
      Tile c =
          machine.initialize(C.name(), I.size(), J.size(), Holds::sums, cut_cols);  // C_IJ (r, c)
      std::vector<bool> begun(static_cast<std::size_t>(ceil_div(I.size(), by.piece)));
      for (const Range K : blocks(B.rows(), by.depth)) {
        if (LivePairs(problem, I, K).none()) {
          continue;
        }
        const Tile b = machine.read(met->block(K, J), cut_cols);  // B_KJ (s, c)
        for (const Range P : blocks(I.size(), by.piece)) {
          if (const LivePairs pairs(problem, part_of(I, P), K); !pairs.none()) {
            const Tile f = make(own, pairs, P, by.inner);  // F_PK (p, s)
            if (by.inner.empty()) {
              multiply_add(f, b, c.part(P));
              continue;
            }
            auto has_begun = begun[static_cast<std::size_t>(P.begin / by.piece)];
            add_product(machine, by.inner, Stays::C, {f, pairs.queries().begin, K.begin},
                        {b, K.begin, J.begin}, {c, I.begin, J.begin}, pairs.queries(), J, K,
                        !has_begun);
            has_begun = true;
          }
        }
      }
      machine.write(c, C.block(I, J));
    }
  }
}

}  // namespace redblue
