#include "runtime/patterns/entries.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "runtime/patterns/npy_array.hpp"
#include "runtime/system/input_error.hpp"
#include "runtime/system/memory.hpp"

namespace redblue {

PatternFrame::PatternFrame(const std::filesystem::path& file, const std::vector<Index>& shape,
                           Index queries, Index keys)
    : PatternFrame(file, shape) {
  if (shape != std::vector<Index>{queries, keys}) {
    refuse(fmt::format("a matrix of {}; expected {} x {}, n queries and m keys", in_words(shape),
                       queries, keys));
  }
}

PatternFrame::PatternFrame(const std::filesystem::path& file, const std::vector<Index>& shape)
    : file_(file) {
  constexpr Index kMost = Index{1} << 32;
  if (shape.size() != 2 || shape[0] < 1 || shape[1] < 1) {
    refuse(fmt::format("a matrix of {}; expected rows and columns, at least one of each",
                       in_words(shape)));
  }
  queries_ = shape[0];
  keys_ = shape[1];
  if (queries_ >= kMost || keys_ >= kMost) {
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
        refuse(fmt::format("row {} has column {} {}; expected sorted columns, each once{}", row,
                           column, column == before ? "twice" : fmt::format("after {}", before),
                           file_.extension() == ".npz"
                               ? " (SciPy: sort_indices(), sum_duplicates())"
                               : ", and rows and columns count from 0"));
      }
      before = column;
    }
  }
  return found;
}

BlockPattern PatternFrame::of_entries(const std::vector<Index>& rows,
                                      const std::vector<Index>& columns, std::vector<Index>* order,
                                      const Twice& twice) const {
  constexpr Index kOffsetsAndNext = 2;
  check_rows(kOffsetsAndNext);
  BlockPattern found{queries_, keys_, 1, 1, {}, {}};
  found.offsets.resize(static_cast<std::size_t>(queries_) + 1);
  for (const Index row : rows) {
    check_index("row", row, queries_);
    ++found.offsets[static_cast<std::size_t>(row) + 1];
  }
  for (std::size_t row = 1; row < found.offsets.size(); ++row) {
    found.offsets[row] += found.offsets[row - 1];
  }
  const auto column_of = [&](Index entry) { return columns[static_cast<std::size_t>(entry)]; };
  std::vector<Index> next = found.offsets;
  std::vector<Index> entries(columns.size());
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const Index to = next[static_cast<std::size_t>(rows[k])]++;
    entries[static_cast<std::size_t>(to)] = static_cast<Index>(k);
  }
  for (std::size_t row = 0; row + 1 < found.offsets.size(); ++row) {
    const auto first = entries.begin() + found.offsets[row];
    const auto last = entries.begin() + found.offsets[row + 1];
    std::sort(first, last, [&](Index a, Index b) {
      return column_of(a) != column_of(b) ? column_of(a) < column_of(b) : a < b;
    });
    const auto same = std::adjacent_find(
        first, last, [&](Index a, Index b) { return column_of(a) == column_of(b); });
    if (twice && same != last) {
      twice(*same, *std::next(same));
    }
  }
  found.columns.reserve(entries.size());
  std::ranges::transform(entries, std::back_inserter(found.columns), column_of);
  if (order != nullptr) {
    *order = std::move(entries);
  }
  return checked(std::move(found));
}

BlockPattern PatternFrame::of_columns(const std::vector<Index>& offsets,
                                      const std::vector<Index>& rows,
                                      std::vector<Index>* order) const {
  check_offsets(offsets, keys_, std::ssize(rows));
  std::vector<Index> columns;
  columns.reserve(rows.size());
  for (std::size_t column = 0; column + 1 < offsets.size(); ++column) {
    columns.resize(static_cast<std::size_t>(offsets[column + 1]), static_cast<Index>(column));
  }
  return of_entries(rows, columns, order);
}

SparseMatrix PatternFrame::with_values(const BlockPattern& found, const std::vector<double>& values,
                                       const std::vector<Index>& order) const {
  const Index r = found.block_rows;
  const Index c = found.block_cols;
  check_rows(1);
  SparseMatrix matrix{{queries_, keys_, 1, 1, {0}, {}}, {}};
  matrix.pattern.offsets.reserve(static_cast<std::size_t>(queries_) + 1);
  matrix.pattern.columns.reserve(values.size());
  matrix.values.reserve(values.size());
  for (Index row = 0; row < queries_; ++row) {
    const auto first = found.offsets[static_cast<std::size_t>(row / r)];
    const std::span<const Index> columns = found.row(row / r);
    for (Index k = 0; k < std::ssize(columns); ++k) {
      const Index stored = order.empty() ? first + k : order[static_cast<std::size_t>(first + k)];
      for (Index of_block = 0; of_block < c; ++of_block) {
        const Index column = columns[static_cast<std::size_t>(k)] * c + of_block;
        const double value =
            values[static_cast<std::size_t>((stored * r + row % r) * c + of_block)];
        if (!(std::abs(value) <= std::numeric_limits<float>::max())) {  // NaN, too
          refuse(fmt::format("{} at row {}, column {}; expected finite float32 numbers", value, row,
                             column));
        }
        matrix.pattern.columns.push_back(column);
        matrix.values.push_back(static_cast<float>(value));
      }
    }
    matrix.pattern.offsets.push_back(matrix.pattern.stored());
  }
  return matrix;
}

void PatternFrame::check_rows(Index numbers) const {
  constexpr Index kFew = Index{1} << 20;
  if (queries_ <= kFew) {
    return;
  }
  try {
    const MemoryClaim claim(nullptr, Words(queries_) * numbers * Index{sizeof(Index)},
                            fmt::format("a matrix of {} rows", queries_), "take one of fewer rows");
  } catch (const std::runtime_error& error) {
    refuse(error.what());
  }
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
