#pragma once
// Reads matrices from NumPy .npy files, and writes float32 matrices to them.
//
// NpyReader checks header and file size on opening. It then reads ranges of rows
// (runtime/system/array_reader.hpp). NpyWriter takes the rows in order. Its file appears whole or
// not at all.

#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "memsim/words.hpp"
#include "runtime/system/array_reader.hpp"
#include "runtime/system/whole_file.hpp"

namespace redblue {

// Reads format versions 1.0, 2.0 and 3.0, in C or Fortran order, with 1, 2 or 3 dimensions. The
// elements are float16, float32 or float64 of either byte order, or little-endian bfloat16. A
// bfloat16 is `<V2`, as ml_dtypes writes it, or `bfloat16`. NumPy's untyped bytes are `|V2` and are
// refused.
class NpyReader : public ArrayReader {
 public:
  // Throws: std::system_error; InputError if the file is not a .npy file of the above kinds, is
  // empty, or has fewer or more bytes than its header says.
  explicit NpyReader(const std::filesystem::path& path);
};

// Writes float32 in C order, format 1.0, whole or not at all (runtime/system/whole_file.hpp). Not
// shared between threads.
class NpyWriter {
 public:
  // Throws: as WholeFile; also if the disk reports at once that it has no room for the array.
  // Requires: at least one extent, and each >= 1.
  NpyWriter(std::filesystem::path path, const std::vector<Index>& shape);
  NpyWriter(NpyWriter&&) noexcept;
  NpyWriter& operator=(NpyWriter&&) noexcept;
  ~NpyWriter();

  // Appends the next words. The last append also finishes the file, as WholeFile::finish() does.
  // After a failure the writer can only be destroyed. Requires: no more words than are missing.
  void append(std::span<const float> values);

  // Moves the file to its path by a single rename, over an older file. So several outputs appear
  // all or not at all, as nearly as POSIX permits.
  // Throws: std::logic_error unless all words were appended; also if called again.
  void commit();

 private:
  struct Pending;
  std::unique_ptr<Pending> pending_;
};

}  // namespace redblue
