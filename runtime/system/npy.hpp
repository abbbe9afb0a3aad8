#pragma once
// NumPy .npy files, in which matrices of float32 come in and go out.
//
// NpyReader checks header and file size on opening. It then hands out ranges of rows, so that a
// matrix larger than memory can pass through. NpyWriter takes the rows in order; its file appears
// whole or not at all.
//
// A row is all words that share the first coordinate: one word of a 1-D array, a whole matrix of a
// 3-D array, whose first coordinate is the head. Heads, rows and columns in messages count from 0,
// as in NumPy. Failing system calls throw std::system_error with the path.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "memsim/range.hpp"
#include "memsim/words.hpp"
#include "runtime/system/input_error.hpp"
#include "runtime/system/whole_file.hpp"

namespace redblue {

// Reads formats 1.0, 2.0 and 3.0; float32 and float64 of either byte order; C and Fortran
// order; 1-D, 2-D and 3-D. Several threads may read one reader at once.
class NpyReader {
 public:
  // Throws: InputError when the file is no .npy of the above kinds, is empty, or holds fewer
  // or more bytes than its header says.
  explicit NpyReader(std::filesystem::path path);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] const std::vector<Index>& shape() const { return shape_; }
  [[nodiscard]] Index rows() const { return shape_.front(); }
  [[nodiscard]] Index cols() const { return cols_; }  // words of a row
  [[nodiscard]] bool is_float32() const { return item_bytes_ == sizeof(float); }

  // The rows of the range in C order, float64 rounded to nearest.
  // -inf is a number of this file, too: L of a query without a key.
  void accept_minus_infinity() { minus_infinity_ = true; }
  // Requires: the range lies in [0, rows()) and out.size() == range.size() * cols().
  // Throws: InputError at a NaN, another infinity or a number too large for float32.
  void read_rows(Range range, std::span<float> out) const;

 private:
  template <typename Bits>  // uint32_t for float32, uint64_t for float64
  void read_rows_as(Index begin, std::span<float> out) const;

  std::filesystem::path path_;
  Descriptor file_;
  std::int64_t data_offset_ = 0;
  std::vector<Index> shape_;
  Index cols_ = 0;
  Index item_bytes_ = 0;
  bool minus_infinity_ = false;
  bool swapped_ = false;  // the file's byte order is not this machine's
  bool fortran_ = false;
};

// Throws: InputError as read_rows() does, for words of an array of that shape.
void check_numbers(std::span<const float> words, const std::vector<Index>& shape,
                   const std::filesystem::path& name, bool accept_minus_infinity);

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
