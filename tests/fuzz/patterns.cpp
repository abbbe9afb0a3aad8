#include "tests/fuzz/patterns.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/fuzz/fuzz.hpp"

namespace redblue::fuzz {

void demand_well_formed(const BlockPattern& pattern, Index n, Index m) {
  demand(pattern.rows == n && pattern.cols == m, "a pattern of other extents");
  const Index r = pattern.block_rows;
  const Index c = pattern.block_cols;
  demand(r > 0 && c > 0 && n % r == 0 && m % c == 0, "blocks that do not cut the pattern");
  demand(std::ssize(pattern.offsets) == n / r + 1 && pattern.offsets.front() == 0 &&
             pattern.offsets.back() == std::ssize(pattern.columns),
         "offsets that are not those of the columns");
  for (std::size_t row = 0; row + 1 < pattern.offsets.size(); ++row) {
    demand(pattern.offsets[row] <= pattern.offsets[row + 1], "offsets that fall");
    Index before = -1;
    for (Index k = pattern.offsets[row]; k < pattern.offsets[row + 1]; ++k) {
      const Index column = pattern.columns[static_cast<std::size_t>(k)];
      demand(column > before && column < m / c, "columns out of order, or of range");
      before = column;
    }
  }
}

std::string smtx_of(const BlockPattern& pattern) {
  return fmt::format("{}, {}, {}\n{}\n{}\n", pattern.rows, pattern.cols, pattern.columns.size(),
                     fmt::join(pattern.offsets, " "), fmt::join(pattern.columns, " "));
}

}  // namespace redblue::fuzz
