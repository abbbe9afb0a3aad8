#pragma once
// NumPy arrays in memory: integers, floating-point numbers, bools and text.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "memsim/words.hpp"

namespace redblue {

// An array of any dtype without fields. Its data has as many bytes as its header says.
class NpyArray {
 public:
  // Requires: `content` is the whole content of the file `name`. Throws: InputError with the name
  // and the fault.
  NpyArray(std::string content, std::filesystem::path name);

  [[nodiscard]] const std::vector<Index>& shape() const { return shape_; }
  [[nodiscard]] const std::filesystem::path& name() const { return name_; }
  // Returns the elements of a one-dimensional array of integers.
  [[nodiscard]] std::vector<Index> integers() const;
  // Returns the elements of a float32 or float64 array, in C order.
  [[nodiscard]] std::vector<double> numbers() const;
  // Returns which elements of a bool or uint8 matrix are not 0, row by row.
  [[nodiscard]] std::vector<bool> marks() const;
  // Returns the only element, a text.
  [[nodiscard]] std::string text() const;

  [[noreturn]] void refuse(const std::string& why) const;

 private:
  // Calls visit(bits) for each element. `bits` does not depend on the byte order of the array.
  template <class Visit>
  void each_element(const Visit& visit) const;
  [[nodiscard]] std::string_view data() const {
    return std::string_view(content_).substr(data_offset_);
  }

  std::string content_;
  std::filesystem::path name_;
  std::size_t data_offset_ = 0;
  std::vector<Index> shape_;
  std::string descr_;
  bool fortran_ = false;
  std::size_t item_bytes_ = 0;
};

// Returns the content of a regular file. Throws: std::system_error; InputError for other files.
std::string read_whole(const std::filesystem::path& file);

// Returns the shape as text: "3 x 4".
std::string in_words(const std::vector<Index>& shape);

}  // namespace redblue
