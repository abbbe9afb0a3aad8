#pragma once
// Reads ranges of rows of a dense array in a file as float32, so that a matrix may be larger than
// memory.
//
// A row is all words that share the first coordinate. A row of a 1-D array is one word. A row of a
// 3-D array is a whole matrix, and its number is the head. Heads, rows and columns in messages
// count from 0, as in NumPy. Failing system calls throw std::system_error with the path.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "memsim/range.hpp"
#include "memsim/words.hpp"
#include "runtime/system/input_error.hpp"
#include "runtime/system/whole_file.hpp"

namespace redblue {

// A regular file, open for reading.
class InputBytes {
 public:
  // `expected` describes the file in a message, such as "a .npy file". Throws: std::system_error;
  // InputError if it is not a regular file.
  InputBytes(std::filesystem::path path, std::string_view expected);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::int64_t size() const { return size_; }  // bytes, when it was opened
  // Fills `out` with the bytes from `offset` on. Returns the number of bytes, which is less than
  // asked only at the end of the file. Several threads may read at once.
  std::size_t read(std::span<std::byte> out, std::int64_t offset) const;

 private:
  std::filesystem::path path_;
  Descriptor file_;
  std::int64_t size_ = 0;
};

enum class ElementType { float16, bfloat16, float32, float64 };
std::string_view to_string(ElementType type);
Index element_bytes(ElementType type);

// The place of an array in its file, and its element format.
struct ArrayLayout {
  ElementType type = ElementType::float32;
  bool big_endian = false;
  bool fortran = false;
  std::vector<Index> shape;
  std::int64_t offset = 0;  // of the first element, in bytes
};

// Reads the rows of one array. Several threads may read one reader at once.
class ArrayReader {
 public:
  // `name` is the name of the array in messages. Requires: the file has all bytes of the array.
  // Throws: InputError for a shape that is empty, not 1-D, 2-D or 3-D, or has a byte size beyond 63
  // bits.
  ArrayReader(InputBytes file, std::string name, ArrayLayout layout);

  [[nodiscard]] const std::filesystem::path& path() const { return file_.path(); }
  [[nodiscard]] const std::vector<Index>& shape() const { return layout_.shape; }
  [[nodiscard]] Index rows() const { return layout_.shape.front(); }
  [[nodiscard]] Index cols() const { return cols_; }  // words of a row
  [[nodiscard]] ElementType type() const { return layout_.type; }

  // Lets read_rows() accept -inf, which is the L of a query without a key.
  void accept_minus_infinity() { minus_infinity_ = true; }
  // Reads the rows of the range into `out` in C order. float64 is rounded to nearest; all other
  // types are exact. Requires: the range lies in [0, rows()) and out.size() == range.size() *
  // cols().
  // Throws: InputError at a NaN, at an infinity that is not accepted, or at a number too large for
  // float32.
  void read_rows(Range range, std::span<float> out) const;

 protected:
  [[nodiscard]] const InputBytes& file() const { return file_; }
  [[nodiscard]] const ArrayLayout& layout() const { return layout_; }
  [[nodiscard]] Index data_bytes() const { return rows() * cols_ * element_bytes(layout_.type); }

 private:
  // value_of(bits) returns the float or double value of an element.
  template <typename Bits, class Value>
  void read_rows_as(Index begin, std::span<float> out, const Value& value_of) const;

  InputBytes file_;
  std::string name_;
  ArrayLayout layout_;
  Index cols_ = 0;
  bool minus_infinity_ = false;
};

// check_numbers() throws InputError as read_rows() does. `words` are rows of an array of this
// shape, from row `first` on. check_shape() throws InputError as ArrayReader() does. Messages call
// the array `name`.
void check_numbers(std::span<const float> words, Index first, const std::vector<Index>& shape,
                   const std::string& name, bool accept_minus_infinity);
void check_shape(const std::vector<Index>& shape, const std::string& name);

// Returns the shape as "(3, 2)".
std::string shape_text(const std::vector<Index>& shape);

}  // namespace redblue
