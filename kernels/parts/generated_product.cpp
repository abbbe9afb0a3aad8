#include "kernels/parts/generated_product.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "kernels/units.hpp"

namespace redblue {

PhaseCost generated_product_cost(std::string path, const ProductShape& of,
                                 const StationaryBlocks& by, const FactorCost& factor,
                                 const Mask& live) {
  const auto [rows, cols, depth, of_sum, of_result] = of;
  const Words r = std::min(rows, by.rows);
  const Words c = std::min(cols, by.cols);
  const Words s = std::min(depth, by.depth);
  const Words p = std::min(r, Words(by.piece));
  const Words all = all_pairs(live, rows, depth);
  const Units::Sum groups = Units::of_rows(live, rows, depth, by.rows).sum();
  return with_index({.path = std::move(path),
                     .reads = (all * factor.reads + Words(rows) * factor.row_reads * of_sum) *
                                  ceil_div(cols, by.cols) +
                              met_by_blocks(live, rows, by.rows, depth) * cols,
                     .writes = Words(rows) * cols * of_result,
                     .peak = (r * c + r * factor.columns) * of_sum + s * c +
                             p * s * (Index{1} + factor.tiles) + groups.index_live,
                     .flops = 2 * all * cols},
                    groups, ceil_div(cols, by.cols));
}

PhaseCost generated_product_level_cost(std::string path, const ProductShape& of,
                                       const StationaryBlocks& by, const FactorCost& factor,
                                       std::size_t level, const Mask& live) {
  const bool masked = !live.full();
  Problem pairs(of.rows, of.depth, 1);
  pairs.mask = live;
  LevelTally tally(by.inner, level);
  for (const auto& [I, rows] : alike(of.rows, by.rows, masked)) {
    for (const auto& [piece, pieces] : alike(I.size(), by.piece, masked)) {
      const Range P = part_of(I, piece);
      bool begins = true;
      for (const auto& [K, slices] : alike(of.depth, by.depth, masked)) {
        if (LivePairs(pairs, P, K).none()) {
          continue;
        }
        const Words times = Words(rows) * pieces * slices;
        for (const auto& [J, columns] : alike(of.cols, by.cols, false)) {
          if (factor.near.reads > 0) {
            tally.pass(P.size(), K.size(), &ProductBlocks::depth, factor.near, times * columns);
          }
          const ProductShape step{P.size(), J.size(), K.size()};
          tally.product(step, Stays::C, begins, times * columns);
          tally.product(step, Stays::C, false, times * columns * (factor.products - 1));
        }
        begins = false;
      }
    }
  }
  return tally.cost(std::move(path));
}

void generated_product_nest(NestWriter& nest, const ProductNames& names, const ProductShape& of,
                            const StationaryBlocks& by, const FactorCost& factor,
                            const Mask& live) {
  const auto of_live = [&](const NestTile& tile, Words all) {
    return live.full() ? tile : tile.of_words(all);
  };
  const NestLoop I("I", "rows", of.rows, by.rows);
  const NestLoop J("J", "columns", of.cols, by.cols);
  const NestLoop K("K", "depth", of.depth, by.depth);
  const NestLoop P = I.pieces("P", by.piece);
  const NestTile f(names.left, P, K);
  const NestTile b =
      of_live({names.right, K, J}, met_by_blocks(live, of.rows, by.rows, of.depth) * of.cols);
  const NestTile c(names.result, I, J);
  const NestWriter::Tiles columns = columns_of(factor.column_names, I);
  NestWriter::Tiles staying = columns;
  staying.push_back(c);
  const Words passes = ceil_div(of.cols, by.cols);
  const NestWriter::Tiles reads(static_cast<std::size_t>(factor.reads),
                                of_live(f, all_pairs(live, of.rows, of.depth) * passes));
  const Units::Sum groups = Units::of_rows(live, of.rows, of.depth, by.rows).sum();
  nest.loop(I, [&] {
    nest.loop(J, [&] {
      index_nest(nest, groups, ceil_div(of.cols, by.cols));
      nest.read(columns);
      nest.loop(K, staying, [&] {
        nest.read({b});
        nest.loop(P, {b}, [&] {
          nest.step(std::string(factor.text), reads);
          nest.step(sum_text({names.result, P, J}, f, b));
        });
      });
      nest.write({c});
    });
  });
}

}  // namespace redblue
