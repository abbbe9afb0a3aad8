#pragma once
// A dense array in a file, of which ranges of rows are read as float32, so that a matrix larger
// than memory can pass through.
//
// A row is all words that share the first coordinate: one word of a 1-D array, a whole matrix of a
// 3-D array, whose first coordinate is the head. Heads, rows and columns in messages count from 0,
// as in NumPy. Failing system calls throw std::system_error with the path.

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
  // Throws: std::system_error; InputError with what was expected where the file is none.
  InputBytes(std::filesystem::path path, std::string_view expected);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::int64_t size() const { return size_; }  // on opening
  // Fills `out` from an offset on, and stops short only at the end of the file. Returns the number
  // of bytes. Several threads may read at once.
  std::size_t read(std::span<std::byte> out, std::int64_t offset) const;

 private:
  std::filesystem::path path_;
  Descriptor file_;
  std::int64_t size_ = 0;
};

enum class ElementType { float16, bfloat16, float32, float64 };
std::string_view to_string(ElementType type);
Index element_bytes(ElementType type);

// Where an array is in its file, and how.
struct ArrayLayout {
  ElementType type = ElementType::float32;
  bool big_endian = false;
  bool fortran = false;
  std::vector<Index> shape;
  std::int64_t offset = 0;  // of its first byte
};

// Several threads may read one reader at once.
class ArrayReader {
 public:
  // `name` is what messages call the array. That the file has all its bytes, the caller knows.
  // Throws: InputError for a shape that is empty, not 1-D, 2-D or 3-D, or passes 63 bits of bytes.
  ArrayReader(InputBytes file, std::string name, ArrayLayout layout);

  [[nodiscard]] const std::filesystem::path& path() const { return file_.path(); }
  [[nodiscard]] const std::vector<Index>& shape() const { return layout_.shape; }
  [[nodiscard]] Index rows() const { return layout_.shape.front(); }
  [[nodiscard]] Index cols() const { return cols_; }  // words of a row
  [[nodiscard]] ElementType type() const { return layout_.type; }

  // -inf is a number of this file, too: L of a query without a key.
  void accept_minus_infinity() { minus_infinity_ = true; }
  // The rows of the range in C order; float64 rounded to nearest, all other types exactly.
  // Requires: the range lies in [0, rows()) and out.size() == range.size() * cols().
  // Throws: InputError at a NaN, another infinity or a number too large for float32.
  void read_rows(Range range, std::span<float> out) const;

 protected:
  [[nodiscard]] const InputBytes& file() const { return file_; }
  [[nodiscard]] const ArrayLayout& layout() const { return layout_; }
  [[nodiscard]] Index data_bytes() const { return rows() * cols_ * element_bytes(layout_.type); }

 private:
  // value_of(bits): the float or double that an element is.
  template <typename Bits, class Value>
  void read_rows_as(Index begin, std::span<float> out, const Value& value_of) const;

  InputBytes file_;
  std::string name_;
  ArrayLayout layout_;
  Index cols_ = 0;
  bool minus_infinity_ = false;
};

// Throws: InputError as read_rows() does, for rows of an array of that shape from `first` on, and
// as ArrayReader() does for the shape. Messages call the array `name`.
void check_numbers(std::span<const float> words, Index first, const std::vector<Index>& shape,
                   const std::string& name, bool accept_minus_infinity);
void check_shape(const std::vector<Index>& shape, const std::string& name);

// (3, 2)
std::string shape_text(const std::vector<Index>& shape);

}  // namespace redblue
