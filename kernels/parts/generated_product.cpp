#include "kernels/parts/generated_product.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

namespace redblue {

PhaseCost generated_product_cost(std::string path, const ProductShape& of,
                                 const StationaryBlocks& by, const FactorCost& factor) {
  const auto [rows, cols, depth] = of;
  const Words r = std::min(rows, by.rows);
  const Words c = std::min(cols, by.cols);
  const Words s = std::min(depth, by.depth);
  const Words p = std::min(r, Words(by.piece));
  const Words all = Words(rows) * depth;
  return {.path = std::move(path),
          .reads = (all * factor.reads + Words(rows) * factor.row_reads) * ceil_div(cols, by.cols) +
                   Words(depth) * cols * ceil_div(rows, by.rows),
          .writes = Words(rows) * cols,
          .peak = r * c + r * factor.columns + s * c + p * s * (Index{1} + factor.tiles),
          .flops = 2 * all * cols};
}

void generated_product_nest(NestWriter& nest, const ProductNames& names, const ProductShape& of,
                            const StationaryBlocks& by, const FactorCost& factor) {
  const NestLoop I("I", "rows", of.rows, by.rows);
  const NestLoop J("J", "columns", of.cols, by.cols);
  const NestLoop K("K", "depth", of.depth, by.depth);
  const NestLoop P = I.pieces("P", by.piece);
  const NestTile f(names.left, P, K);
  const NestTile b(names.right, K, J);
  const NestTile c(names.result, I, J);
  const NestWriter::Tiles columns = columns_of(factor.column_names, I);
  NestWriter::Tiles staying = columns;
  staying.push_back(c);
  const NestWriter::Tiles reads(static_cast<std::size_t>(factor.reads), f);
  nest.loop(I, [&] {
    nest.loop(J, [&] {
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
