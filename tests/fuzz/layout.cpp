// A layout of blocks, .npy of bool. The input is "n m", and then a file.

#include "runtime/patterns/pattern_files.hpp"
#include "runtime/system/input_error.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/fuzz/patterns.hpp"
#include "tests/support/npy_bytes.hpp"

namespace redblue::fuzz {
namespace {

std::string npy_of(const BlockPattern& layout) {
  const Index rows = layout.rows / layout.block_rows;
  const Index cols = layout.cols / layout.block_cols;
  std::string data(static_cast<std::size_t>(rows * cols), '\0');
  for (Index row = 0; row < rows; ++row) {
    for (Index k = layout.offsets[static_cast<std::size_t>(row)];
         k < layout.offsets[static_cast<std::size_t>(row) + 1]; ++k) {
      data[static_cast<std::size_t>(row * cols + layout.columns[static_cast<std::size_t>(k)])] = 1;
    }
  }
  return npy_file(
      npy_header("|b1", false, "(" + std::to_string(rows) + ", " + std::to_string(cols) + ")"),
      data);
}

}  // namespace

void layout(std::string_view input) {
  const auto asked = sized(input, kMostOfPatterns);
  if (!asked) {
    return;
  }
  const std::filesystem::path file = scratch("layout.npy", asked->rest);
  const auto read = read_or_refused<InputError>(
      file.string(), [&] { return read_layout(file, asked->n, asked->m); });
  if (read) {
    demand_well_formed(*read, asked->n, asked->m);
    const std::filesystem::path again = scratch("again.npy", npy_of(*read));
    demand(read_layout(again, asked->n, asked->m) == *read,
           "what is written is read as another layout");
  }
  demand_nothing_left();
}

}  // namespace redblue::fuzz
