// Stored entries with their values. The input is ".npz", ".mtx" or ".smtx" on a line, and then such
// a file. The result has a finite value for each entry, in the order of rows, and survives being
// written.

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "runtime/patterns/pattern_files.hpp"
#include "runtime/patterns/text_patterns.hpp"
#include "runtime/system/input_error.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/fuzz/patterns.hpp"

namespace redblue::fuzz {
namespace {

std::string mtx_of(const SparseMatrix& matrix) {
  const BlockPattern& pattern = matrix.pattern;
  std::string text = fmt::format("%%MatrixMarket matrix coordinate real general\n{} {} {}\n",
                                 pattern.rows, pattern.cols, pattern.columns.size());
  for (Index row = 0; row < pattern.rows; ++row) {
    const auto at = static_cast<std::size_t>(row);
    for (Index k = pattern.offsets[at]; k < pattern.offsets[at + 1]; ++k) {
      const auto entry = static_cast<std::size_t>(k);
      text += fmt::format("{} {} {}\n", row + 1, pattern.columns[entry] + 1, matrix.values[entry]);
    }
  }
  return text;
}

}  // namespace

void entries(std::string_view input) {
  const std::size_t end = std::min(input.find('\n'), input.size());
  const std::string_view kind = input.substr(0, end);
  if (kind != ".npz" && kind != ".mtx" && kind != ".smtx") {
    return;
  }
  const std::filesystem::path file =
      scratch("a" + std::string(kind), input.substr(std::min(end + 1, input.size())));
  const auto read = read_or_refused<InputError>(file.string(), [&] { return read_entries(file); });
  if (read) {
    const BlockPattern& pattern = read->pattern;
    demand(pattern.block_rows == 1 && pattern.block_cols == 1,
           "blocks where entries are asked for");
    demand_well_formed(pattern, pattern.rows, pattern.cols);
    demand(read->values.size() == pattern.columns.size(), "not a value for each entry");
    demand(std::ranges::all_of(read->values, [](float value) { return std::isfinite(value); }),
           "a value that is not finite");
    const SparseMatrix again = parse_mtx_entries(mtx_of(*read), "b.mtx");
    demand(again.pattern == pattern && again.values == read->values,
           "what is written is read as another matrix");
  }
  demand_nothing_left();
}

}  // namespace redblue::fuzz
