#include "kernels/parts/made_product.hpp"

#include <algorithm>
#include <utility>

namespace redblue {

PhaseCost made_product_cost(std::string path, const Extents& of, const StationaryBlocks& by,
                            const FactorCost& factor) {
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

}  // namespace redblue
