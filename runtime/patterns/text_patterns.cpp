#include "runtime/patterns/text_patterns.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "runtime/patterns/entries.hpp"
#include "runtime/text/lines.hpp"
#include "runtime/text/printable.hpp"

namespace redblue {
namespace {

constexpr std::string_view kBetween = " \t\r,";

std::string lower(std::string_view word) {
  std::string result(word);
  std::ranges::transform(result, result.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

// Returns the next word in lower case. Refuses a word that is not in the list.
std::string one_of(Lines& lines, const std::vector<std::string>& words, const char* list) {
  std::string word = lower(lines.word());
  if (std::ranges::find(words, word) == words.end()) {
    lines.refuse(fmt::format("'{}'; expected {}", shortened(word), list));
  }
  return word;
}

// The line with the extents of a matrix and the number of its entries.
struct Sizes {
  Index height, width, stored;
};
Sizes sizes(Lines& lines) {
  const Index height = lines.whole_number("the number of rows");
  const Index width = lines.whole_number("the number of columns");
  const Index stored = lines.whole_number("the number of entries");
  lines.end();
  if (stored < 0 || stored >= Index{1} << 32) {
    lines.refuse(fmt::format("{} stored entries; expected fewer than 2^32", stored));
  }
  return {height, width, stored};
}

// The shape that is asked for. Nullopt: any shape.
using Extents = std::optional<std::pair<Index, Index>>;

PatternFrame frame_of(const std::filesystem::path& file, const Sizes& sizes,
                      const Extents& expected) {
  const std::vector<Index> shape = {sizes.height, sizes.width};
  return expected ? PatternFrame(file, shape, expected->first, expected->second)
                  : PatternFrame(file, shape);
}

// Sets `read` (if not null) to the matrix with its values, and `is_symmetric` (if not null) to
// whether the file stores only the lower half.
BlockPattern read_mtx(std::string_view text, const std::filesystem::path& file,
                      const Extents& expected, SparseMatrix* read, bool* is_symmetric = nullptr) {
  Lines lines(text, file, kBetween);
  lines.next();
  one_of(lines, {"%%matrixmarket"}, "%%MatrixMarket");
  one_of(lines, {"matrix"}, "matrix");
  one_of(lines, {"coordinate"}, "coordinate");
  const bool values =
      one_of(lines, {"real", "integer", "pattern"}, "real, integer or pattern") != "pattern";
  const bool symmetric =
      one_of(lines, {"general", "symmetric"}, "general or symmetric") == "symmetric";
  lines.end();
  if (is_symmetric != nullptr) {
    *is_symmetric = symmetric;
  }
  lines.next('%');
  const Sizes all = sizes(lines);
  const auto [height, width, stored] = all;
  const PatternFrame frame = frame_of(file, all, expected);
  if (symmetric && height != width) {
    frame.refuse("a symmetric matrix that is not square");
  }
  std::vector<Index> rows, columns, lines_of_entries;
  std::vector<double> of_entries;
  for (Index k = 0; k < stored; ++k) {
    if (!lines.next('%')) {
      frame.refuse(fmt::format("{} entries; expected {}", k, stored));
    }
    const Index row = lines.whole_number("the row") - 1;
    const Index column = lines.whole_number("the column") - 1;
    double value = 1;
    if (values && read != nullptr) {
      value = lines.number<double>("the value");
    } else if (values && lines.word().empty()) {
      lines.refuse("the value is missing");
    }
    lines.end();
    if (row < 0 || row >= height || column < 0 || column >= width) {
      lines.refuse(fmt::format("entry {}, {}; expected 1 to {}, 1 to {}", row + 1, column + 1,
                               height, width));
    }
    if (symmetric && column > row) {
      lines.refuse(fmt::format("entry {}, {} of a symmetric matrix; expected its lower half alone",
                               row + 1, column + 1));
    }
    rows.push_back(row);
    columns.push_back(column);
    of_entries.push_back(value);
    if (symmetric && column < row) {
      rows.push_back(column);
      columns.push_back(row);
      of_entries.push_back(value);
    }
    lines_of_entries.resize(rows.size(), lines.at());
  }
  if (lines.next('%')) {
    lines.refuse(fmt::format("more than {} entries", stored));
  }
  std::vector<Index> order;
  const auto refuse_twice = [&](Index before, Index again) {
    const auto entry = static_cast<std::size_t>(again);
    const auto [low, high] = std::minmax(rows[entry], columns[entry]);
    frame.refuse(fmt::format("line {}: entry {}, {} is in line {}, too; expected each entry once",
                             lines_of_entries[entry], (symmetric ? high : rows[entry]) + 1,
                             (symmetric ? low : columns[entry]) + 1,
                             lines_of_entries[static_cast<std::size_t>(before)]));
  };
  BlockPattern found = frame.of_entries(rows, columns, &order, refuse_twice);
  if (read != nullptr) {
    *read = frame.with_values(found, of_entries, order);
  }
  return found;
}

BlockPattern read_smtx(std::string_view text, const std::filesystem::path& file,
                       const Extents& expected) {
  Lines lines(text, file, kBetween);
  lines.next();
  const Sizes all = sizes(lines);
  const PatternFrame frame = frame_of(file, all, expected);
  BlockPattern found{all.height, all.width, 1, 1, {}, {}};
  lines.next();
  while (!lines.at_end()) {
    found.offsets.push_back(lines.whole_number("an offset"));
  }
  lines.next();
  while (!lines.at_end()) {
    found.columns.push_back(lines.whole_number("a column"));
  }
  while (lines.next()) {
    lines.end();
  }
  if (std::ssize(found.columns) != all.stored) {
    frame.refuse(fmt::format("{} columns; expected {}", found.columns.size(), all.stored));
  }
  return frame.checked(std::move(found));
}

}  // namespace

BlockPattern parse_mtx(std::string_view text, const std::filesystem::path& file, Index queries,
                       Index keys) {
  return read_mtx(text, file, std::pair(queries, keys), nullptr);
}

BlockPattern parse_smtx(std::string_view text, const std::filesystem::path& file, Index queries,
                        Index keys) {
  return read_smtx(text, file, std::pair(queries, keys));
}

SparseMatrix parse_mtx_entries(std::string_view text, const std::filesystem::path& file,
                               bool* symmetric) {
  SparseMatrix matrix;
  static_cast<void>(read_mtx(text, file, std::nullopt, &matrix, symmetric));
  return matrix;
}

SparseMatrix parse_smtx_entries(std::string_view text, const std::filesystem::path& file) {
  SparseMatrix matrix{read_smtx(text, file, std::nullopt), {}};
  matrix.values.assign(matrix.pattern.columns.size(), 1);
  return matrix;
}

}  // namespace redblue
