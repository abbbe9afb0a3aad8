#pragma once
// Builds valid and invalid .npy files, independently of runtime/system/npy.

#include <bit>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "memsim/words.hpp"

namespace redblue {

// Returns a file of format 1.0 with any header dictionary and any data.
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

// Returns an array of this shape. `values` are in C order.
inline std::string npy_bytes(const std::vector<Index>& shape, const std::vector<float>& values,
                             NpyForm form = {}) {
  std::string data;
  const auto add = [&](auto number) {
    using Bits = std::conditional_t<sizeof(number) == 4, std::uint32_t, std::uint64_t>;
    const Bits bits = std::bit_cast<Bits>(number);
    for (std::size_t byte = 0; byte < sizeof bits; ++byte) {
      data += static_cast<char>(bits >> (8 * byte) & 0xff);
    }
  };
  Index words = 1;
  std::string text;
  for (const Index extent : shape) {
    words *= extent;
    text += std::to_string(extent) + (shape.size() == 1 ? "," : ", ");
  }
  text.resize(shape.size() == 1 ? text.size() : text.size() - 2);
  for (Index k = 0; k < words; ++k) {
    Index at = k;
    if (form.fortran) {  // the first coordinate runs fastest
      at = 0;
      Index rest = k;
      Index weight = words;
      for (const Index extent : shape) {
        weight /= extent;
        at += rest % extent * weight;
        rest /= extent;
      }
    }
    const float value = values.at(static_cast<std::size_t>(at));
    if (form.float64) {
      add(static_cast<double>(value));
    } else {
      add(value);
    }
  }
  return npy_file(npy_header(form.float64 ? "<f8" : "<f4", form.fortran, "(" + text + ")"), data);
}

// Returns an array of rows x cols, or a 1-D array if cols is 0.
inline std::string npy_bytes(Index rows, Index cols, const std::vector<float>& values,
                             NpyForm form = {}) {
  return npy_bytes(cols == 0 ? std::vector{rows} : std::vector{rows, cols}, values, form);
}

}  // namespace redblue
