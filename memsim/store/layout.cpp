#include "memsim/store/layout.hpp"

namespace redblue {

StoreLayout StoreLayout::for_blocks(Index rows, Index cols, Window block, Index granule_bytes,
                                    Index least) {
  require(rows > 0 && cols > 0, "a matrix has at least one row and one column");
  // Throws if the matrix is too large.
  static_cast<void>((Words(rows) * cols * Index{sizeof(float)}).value());
  const Index words = granule_bytes / Index{sizeof(float)};
  Index r = std::clamp<Index>(block.rows, 1, rows);
  Index c = std::clamp<Index>(block.cols, 1, cols);
  if (r * c < least) {  // joins rows first
    r = std::min(rows, r * (least / (r * c)));
    c = std::min(cols, c * std::max<Index>(least / (r * c), 1));
  }
  const Index piece_cols = even(c, std::min(c, words));
  const Index piece_rows = even(r, std::clamp<Index>(words / piece_cols, 1, r));
  return {.rows = {.extent = rows, .block = r, .piece = piece_rows},
          .columns = {.extent = cols, .block = c, .piece = piece_cols}};
}

StoreLayout StoreLayout::row_major(Index rows, Index cols, Index granule_bytes) {
  const Index words = granule_bytes / Index{sizeof(float)};
  return for_blocks(rows, cols, {words / std::max<Index>(cols, 1), cols}, granule_bytes);
}

}  // namespace redblue
