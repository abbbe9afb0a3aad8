#include "runtime/patterns/text_patterns.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "runtime/patterns/entries.hpp"
#include "runtime/system/input_error.hpp"
#include "runtime/text/printable.hpp"

namespace redblue {
namespace {

// A text line by line, and these word by word. Words have spaces between them, or commas.
class Lines {
 public:
  Lines(std::string_view text, const std::filesystem::path& file) : text_(text), file_(file) {}

  // Goes to the next line, past those that `skipped` begins, and those without a word where it is
  // not 0; false at the end.
  bool next(char skipped = '\0') {
    while (!text_.empty()) {
      const std::size_t end = std::min(text_.find('\n'), text_.size());
      line_ = text_.substr(0, end);
      text_.remove_prefix(std::min(end + 1, text_.size()));
      ++number_;
      skip_spaces();
      if (skipped == '\0' || (!line_.empty() && line_.front() != skipped)) {
        return true;
      }
    }
    line_ = {};
    return false;
  }
  // Empty at the end of the line.
  std::string_view word() {
    const std::string_view found = line_.substr(0, line_.find_first_of(kBetween));
    line_.remove_prefix(found.size());
    skip_spaces();
    return found;
  }
  template <class Number>
  Number number(const char* what) {
    const std::string_view text = word();
    Number value = 0;
    const char* const last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), last, value);
    if (text.empty() || end != last || error != std::errc()) {
      refuse(fmt::format("{} is {}", what,
                         text.empty() ? "missing" : "'" + shortened(std::string(text)) + "'"));
    }
    return value;
  }
  Index whole_number(const char* what) { return number<Index>(what); }
  void end() {
    if (!line_.empty()) {
      refuse(fmt::format("'{}' is too much", shortened(std::string(word()))));
    }
  }
  [[nodiscard]] bool at_end() const { return line_.empty(); }
  [[noreturn]] void refuse(const std::string& why) const {
    throw InputError(fmt::format("{}: line {}: {}", file_.string(), number_, why));
  }

 private:
  static constexpr std::string_view kBetween = " \t\r,";
  void skip_spaces() {
    line_.remove_prefix(std::min(line_.find_first_not_of(kBetween), line_.size()));
  }

  std::string_view text_, line_;
  const std::filesystem::path& file_;
  Index number_ = 0;
};

std::string lower(std::string_view word) {
  std::string result(word);
  std::ranges::transform(result, result.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

// Refuses a word that is none of these.
std::string one_of(Lines& lines, const std::vector<std::string>& words, const char* list) {
  std::string word = lower(lines.word());
  if (std::ranges::find(words, word) == words.end()) {
    lines.refuse(fmt::format("'{}'; expected {}", shortened(word), list));
  }
  return word;
}

// The line with what a matrix has.
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

// The shape that is asked for; where it has none, any.
using Extents = std::optional<std::pair<Index, Index>>;

PatternFrame frame_of(const std::filesystem::path& file, const Sizes& sizes,
                      const Extents& expected) {
  const std::vector<Index> shape = {sizes.height, sizes.width};
  return expected ? PatternFrame(file, shape, expected->first, expected->second)
                  : PatternFrame(file, shape);
}

// `read`, where it is not null, becomes the matrix with its values.
BlockPattern read_mtx(std::string_view text, const std::filesystem::path& file,
                      const Extents& expected, SparseMatrix* read) {
  Lines lines(text, file);
  lines.next();
  one_of(lines, {"%%matrixmarket"}, "%%MatrixMarket");
  one_of(lines, {"matrix"}, "matrix");
  one_of(lines, {"coordinate"}, "coordinate");
  const bool values =
      one_of(lines, {"real", "integer", "pattern"}, "real, integer or pattern") != "pattern";
  const bool symmetric =
      one_of(lines, {"general", "symmetric"}, "general or symmetric") == "symmetric";
  lines.end();
  lines.next('%');
  const Sizes all = sizes(lines);
  const auto [height, width, stored] = all;
  const PatternFrame frame = frame_of(file, all, expected);
  if (symmetric && height != width) {
    frame.refuse("a symmetric matrix that is not square");
  }
  std::vector<Index> rows, columns;
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
  }
  if (lines.next('%')) {
    lines.refuse(fmt::format("more than {} entries", stored));
  }
  std::vector<Index> order;
  BlockPattern found = frame.of_entries(rows, columns, &order);
  if (read != nullptr) {
    *read = frame.with_values(found, of_entries, order);
  }
  return found;
}

BlockPattern read_smtx(std::string_view text, const std::filesystem::path& file,
                       const Extents& expected) {
  Lines lines(text, file);
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

SparseMatrix parse_mtx_entries(std::string_view text, const std::filesystem::path& file) {
  SparseMatrix matrix;
  static_cast<void>(read_mtx(text, file, std::nullopt, &matrix));
  return matrix;
}

SparseMatrix parse_smtx_entries(std::string_view text, const std::filesystem::path& file) {
  SparseMatrix matrix{read_smtx(text, file, std::nullopt), {}};
  matrix.values.assign(matrix.pattern.columns.size(), 1);
  return matrix;
}

}  // namespace redblue
