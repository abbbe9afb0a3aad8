#pragma once
// NumPy .npy files, in which matrices come in and those of float32 go out.
//
// NpyReader checks header and file size on opening. It then hands out ranges of rows
// (runtime/system/array_reader.hpp). NpyWriter takes the rows in order; its file appears whole or
// not at all.

#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "memsim/words.hpp"
#include "runtime/system/array_reader.hpp"
#include "runtime/system/whole_file.hpp"

namespace redblue {

// Reads formats 1.0, 2.0 and 3.0; float16, float32 and float64 of either byte order, and bfloat16:
// <V2, as ml_dtypes writes it (NumPy's own bytes without a type are |V2), or bfloat16,
// little-endian; C and Fortran order; 1-D, 2-D and 3-D.
class NpyReader : public ArrayReader {
 public:
  // Throws: std::system_error; InputError when the file is no .npy of the above kinds, is empty, or
  // holds fewer or more bytes than its header says.
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

  // Appends the next words. The append of the last also finishes the file, as WholeFile::finish().
  // After a failure the writer can only be destroyed. Requires: not more than are missing.
  void append(std::span<const float> values);

  // Puts the file in its place, over an older one. A single rename does it, so that several outputs
  // appear all or none, as nearly as POSIX permits.
  // Throws: std::logic_error unless all words were appended; also when called again.
  void commit();

 private:
  struct Pending;
  std::unique_ptr<Pending> pending_;
};

}  // namespace redblue
