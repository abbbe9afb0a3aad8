// Tensors of a .safetensors file: the only tensor, and the tensors called a and b.

#include "runtime/run/safetensors.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "tests/fuzz/fuzz.hpp"
#include "tests/support/safetensors_bytes.hpp"

namespace redblue::fuzz {
namespace {

struct Tensor {
  std::vector<Index> shape;
  std::vector<std::uint32_t> words;  // bits of float32
};

// Reads all rows at once, and again row by row.
Tensor read_tensor(const std::filesystem::path& file) {
  const TensorReader reader(file);
  std::vector<float> words(static_cast<std::size_t>(reader.rows() * reader.cols()));
  reader.read_rows({0, reader.rows()}, words);
  std::vector<float> row(static_cast<std::size_t>(reader.cols()));
  for (Index i = 0; i < std::min<Index>(reader.rows(), 8); ++i) {
    reader.read_rows({i, i + 1}, row);
    demand(std::equal(row.begin(), row.end(), words.begin() + i * reader.cols()),
           "a row is another one alone");
  }
  Tensor tensor{reader.shape(), {}};
  for (const float word : words) {
    demand(std::isfinite(word), "a word that is no number");
    tensor.words.push_back(std::bit_cast<std::uint32_t>(word));
  }
  return tensor;
}

// Returns a file with only this tensor, in float32.
std::string written(const Tensor& tensor) {
  std::string shape;
  for (const Index extent : tensor.shape) {
    shape += (shape.empty() ? "" : ",") + std::to_string(extent);
  }
  std::string data;
  for (const std::uint32_t word : tensor.words) {
    for (unsigned byte = 0; byte < 4; ++byte) {
      data += static_cast<char>(word >> (8 * byte) & 0xff);
    }
  }
  return safetensors_file('{' + tensor_entry("a", "F32", '[' + shape + ']', 0, data.size()) + "}  ",
                          data);
}

}  // namespace

void safetensors(std::string_view input) {
  const std::filesystem::path file = scratch("a.safetensors", input);
  for (const char* name : {"", ":a", ":b"}) {
    const auto tensor = read_or_refused<InputError>(
        file.string(), [&] { return read_tensor(file.string() + name); });
    if (tensor) {
      const Tensor back = read_tensor(scratch("again.safetensors", written(*tensor)));
      demand(back.shape == tensor->shape && back.words == tensor->words,
             "what is written is read as another tensor");
    }
  }
  demand_nothing_left();
}

}  // namespace redblue::fuzz
