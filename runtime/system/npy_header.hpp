#pragma once
// Reads the header of NumPy .npy files, formats 1.0, 2.0 and 3.0.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "memsim/words.hpp"

namespace redblue {

// The header as read. The reader does not check that shape and file size agree.
struct NpyHeader {
  std::int64_t bytes = 0;  // offset of the data in the file
  std::string descr;
  bool fortran = false;
  std::vector<Index> shape;
};

// Fills `out` with the bytes from `offset` on. Returns the number of bytes, which is less than
// asked only at the end of the file.
using ReadAt = std::function<std::size_t(std::span<std::byte> out, std::int64_t offset)>;

// Throws: InputError that names the file and the fault.
NpyHeader read_npy_header(const ReadAt& read, const std::filesystem::path& file);

}  // namespace redblue
