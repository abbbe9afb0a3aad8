#pragma once
// C = F B of a factor F that is in no matrix but made as it passes: a block of C stays, with its
// rows' own words, a slice of B is held, and rows of F are made in pieces. Under a mask of pairs of
// rows and the depth only live words of F are read; a block of rows brings what it meets of B.

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

// What making F costs. What rows have are sums.
struct FactorCost {
  Index columns = 0;    // words that stay for each row of a block of C
  Index tiles = 0;      // words beside each word of a piece
  Index reads = 0;      // for each word
  Index row_reads = 0;  // for each row of a block of C
  // For a nest.
  std::string_view text = {};  // "f = exp(s - L)"
  ColumnNames column_names = {};
  // In inner levels; and how many products of this shape are added to C, F in the first.
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

// A phase of a kernel whose plan has blocks of that name. rows_of(I) is what stays for the rows I;
// make(that, pairs, part, levels) the words of F of these pairs, whose rows' own words are `part`
// of it: 0 where they are dead.
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
