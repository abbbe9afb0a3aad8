#pragma once
// .npy files made by hand, good and bad, independent of runtime/npy.

#include <bit>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "memsim/words.hpp"

namespace redblue {

// Format 1.0 around any header dictionary and any data.
inline std::string npy_file(std::string dictionary, const std::string& data) {
  dictionary.append(63 - (10 + dictionary.size()) % 64, ' ');
  dictionary += '\n';
  std::string file = "\x93NUMPY";
  file += {'\1', '\0', static_cast<char>(dictionary.size() & 0xff),
           static_cast<char>(dictionary.size() >> 8U)};
  return file + dictionary + data;
}

inline std::string npy_header(const std::string& dtype, bool fortran, const std::string& shape) {
  return "{'descr': '" + dtype + "', 'fortran_order': " + (fortran ? "True" : "False") +
         ", 'shape': " + shape + ", }";
}

struct NpyForm {
  bool float64 = false;
  bool fortran = false;
};

// rows x cols numbers in row-major order as a 2-D array; cols 0 for a 1-D one.
inline std::string npy_bytes(Index rows, Index cols, const std::vector<float>& values,
                             NpyForm form = {}) {
  std::string data;
  const auto add = [&](auto number) {
    using Bits = std::conditional_t<sizeof(number) == 4, std::uint32_t, std::uint64_t>;
    const Bits bits = std::bit_cast<Bits>(number);
    for (std::size_t byte = 0; byte < sizeof bits; ++byte) {
      data += static_cast<char>(bits >> (8 * byte) & 0xff);
    }
  };
  const Index width = cols == 0 ? 1 : cols;
  for (Index k = 0; k < rows * width; ++k) {
    const Index at = form.fortran ? k % rows * width + k / rows : k;
    const float value = values.at(static_cast<std::size_t>(at));
    if (form.float64) {
      add(static_cast<double>(value));
    } else {
      add(value);
    }
  }
  const std::string shape = cols == 0
                                ? "(" + std::to_string(rows) + ",)"
                                : "(" + std::to_string(rows) + ", " + std::to_string(cols) + ")";
  return npy_file(npy_header(form.float64 ? "<f8" : "<f4", form.fortran, shape), data);
}

}  // namespace redblue
