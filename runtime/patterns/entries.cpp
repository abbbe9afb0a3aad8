#include "runtime/patterns/entries.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "runtime/patterns/npy_array.hpp"
#include "runtime/system/input_error.hpp"

namespace redblue {

PatternFrame::PatternFrame(const std::filesystem::path& file, const std::vector<Index>& shape,
                           Index queries, Index keys)
    : file_(file), queries_(queries), keys_(keys) {
  constexpr Index kMost = Index{1} << 32;
  if (shape != std::vector<Index>{queries, keys}) {
    refuse(fmt::format("a matrix of {}; expected {} x {}, n queries and m keys", in_words(shape),
                       queries, keys));
  }
  if (queries >= kMost || keys >= kMost) {
    refuse("2^32 rows or columns; expected fewer");
  }
}

BlockPattern PatternFrame::checked(BlockPattern found) const {
  constexpr Index kMost = Index{1} << 32;
  const Index r = found.block_rows;
  const Index c = found.block_cols;
  if (r < 1 || c < 1 || queries_ % r != 0 || keys_ % c != 0) {
    refuse(fmt::format("blocks of {} x {}; expected some that cut {} x {} evenly", r, c, queries_,
                       keys_));
  }
  const Words stored = Words(std::ssize(found.columns)) * r * c;
  if (stored >= Words(kMost)) {
    refuse("2^32 stored entries or more; expected fewer");
  }
  check_offsets(found.offsets, queries_ / r, std::ssize(found.columns));
  for (std::size_t row = 0; row + 1 < found.offsets.size(); ++row) {
    Index before = -1;
    for (Index k = found.offsets[row]; k < found.offsets[row + 1]; ++k) {
      const Index column = found.columns[static_cast<std::size_t>(k)];
      check_index("column", column, keys_ / c);
      if (column <= before) {
        refuse(
            fmt::format("row {} has column {} {}; expected sorted columns, each once (SciPy: "
                        "sort_indices(), sum_duplicates())",
                        row, column, column == before ? "twice" : fmt::format("after {}", before)));
      }
      before = column;
    }
  }
  return found;
}

BlockPattern PatternFrame::of_entries(const std::vector<Index>& rows,
                                      const std::vector<Index>& columns) const {
  BlockPattern found{queries_, keys_, 1, 1, {}, {}};
  found.offsets.resize(static_cast<std::size_t>(queries_) + 1);
  for (const Index row : rows) {
    check_index("row", row, queries_);
    ++found.offsets[static_cast<std::size_t>(row) + 1];
  }
  for (std::size_t row = 1; row < found.offsets.size(); ++row) {
    found.offsets[row] += found.offsets[row - 1];
  }
  std::vector<Index> next = found.offsets;
  found.columns.resize(columns.size());
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const Index to = next[static_cast<std::size_t>(rows[k])]++;
    found.columns[static_cast<std::size_t>(to)] = columns[k];
  }
  for (std::size_t row = 0; row + 1 < found.offsets.size(); ++row) {
    std::sort(found.columns.begin() + found.offsets[row],
              found.columns.begin() + found.offsets[row + 1]);
  }
  return checked(std::move(found));
}

BlockPattern PatternFrame::of_columns(const std::vector<Index>& offsets,
                                      const std::vector<Index>& rows) const {
  check_offsets(offsets, keys_, std::ssize(rows));
  std::vector<Index> columns;
  columns.reserve(rows.size());
  for (std::size_t column = 0; column + 1 < offsets.size(); ++column) {
    columns.resize(static_cast<std::size_t>(offsets[column + 1]), static_cast<Index>(column));
  }
  return of_entries(rows, columns);
}

void PatternFrame::check_offsets(const std::vector<Index>& offsets, Index lines,
                                 Index stored) const {
  if (std::ssize(offsets) != lines + 1) {
    refuse(fmt::format("{} offsets; expected {}", offsets.size(), lines + 1));
  }
  if (offsets.front() != 0 || offsets.back() != stored || !std::ranges::is_sorted(offsets)) {
    refuse(fmt::format("offsets that do not rise from 0 to {}, the number of indices", stored));
  }
}

void PatternFrame::check_index(const char* what, Index index, Index extent) const {
  if (index < 0 || index >= extent) {
    refuse(fmt::format("{} {}; expected 0 to {}", what, index, extent - 1));
  }
}

void PatternFrame::refuse(const std::string& why) const {
  throw InputError(fmt::format("{}: {}", file_.string(), why));
}

}  // namespace redblue
