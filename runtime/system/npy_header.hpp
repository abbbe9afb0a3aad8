#pragma once
// The header of NumPy's .npy files, of format 1.0, 2.0 and 3.0.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "memsim/words.hpp"

namespace redblue {

// As it stands there: whether shape and bytes agree, nobody has looked.
struct NpyHeader {
  std::int64_t bytes = 0;  // from the start of the file to its data
  std::string descr;
  bool fortran = false;
  std::vector<Index> shape;
};

// Fills `out` from an offset on, and stops short only at the end of the file. Returns the number of
// bytes.
using ReadAt = std::function<std::size_t(std::span<std::byte> out, std::int64_t offset)>;

// Throws: InputError with the file and the fault.
NpyHeader read_npy_header(const ReadAt& read, const std::filesystem::path& file);

}  // namespace redblue
