// Matrices of float16, bfloat16, float32 or float64, .npy.

#include "runtime/system/npy.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "tests/fuzz/fuzz.hpp"

namespace redblue::fuzz {
namespace {

struct Array {
  std::vector<Index> shape;
  std::vector<float> words;
};

// Reads all rows at once, and again row by row. `with_minus_infinity` allows minus infinity, as in
// L.
Array read(const std::filesystem::path& file, bool with_minus_infinity) {
  NpyReader reader(file);
  if (with_minus_infinity) {
    reader.accept_minus_infinity();
  }
  Array array{reader.shape(), {}};
  array.words.resize(static_cast<std::size_t>(reader.rows() * reader.cols()));
  reader.read_rows({0, reader.rows()}, array.words);
  std::vector<float> row(static_cast<std::size_t>(reader.cols()));
  for (Index i = 0; i < std::min<Index>(reader.rows(), 8); ++i) {
    reader.read_rows({i, i + 1}, row);
    demand(std::equal(row.begin(), row.end(), array.words.begin() + i * reader.cols()),
           "a row is another one alone");
  }
  return array;
}

bool same(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

}  // namespace

void npy(std::string_view input) {
  const std::filesystem::path file = scratch("a.npy", input);
  for (const bool infinities : {false, true}) {
    const auto array =
        read_or_refused<InputError>(file.string(), [&] { return read(file, infinities); });
    if (array) {
      for (const float word : array->words) {
        demand(std::isfinite(word) || (infinities && std::isinf(word) && word < 0),
               "a word that is no number");
      }
      const std::filesystem::path again = scratch("again.npy", "");
      NpyWriter writer(again, array->shape);
      writer.append(array->words);
      writer.commit();
      const Array back = read(again, infinities);
      demand(
          back.shape == array->shape && std::equal(back.words.begin(), back.words.end(),
                                                   array->words.begin(), array->words.end(), same),
          "what is written is read as another array");
    }
  }
  demand_nothing_left();
}

}  // namespace redblue::fuzz
