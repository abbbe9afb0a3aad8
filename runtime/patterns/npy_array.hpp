#pragma once
// NumPy arrays of small and whole numbers, in memory.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "memsim/words.hpp"

namespace redblue {

// An array of any dtype of one kind, whose bytes are as many as its header says.
class NpyArray {
 public:
  // The whole content of a file of this name. Throws: InputError with the name and the fault.
  NpyArray(std::string content, std::filesystem::path name);

  [[nodiscard]] const std::vector<Index>& shape() const { return shape_; }
  [[nodiscard]] const std::filesystem::path& name() const { return name_; }
  // The elements of an array of whole numbers in one dimension.
  [[nodiscard]] std::vector<Index> integers() const;
  // The elements of an array of float32 or float64, in C order.
  [[nodiscard]] std::vector<double> numbers() const;
  // Which elements of a matrix of bool or uint8 are not 0, row by row.
  [[nodiscard]] std::vector<bool> marks() const;
  // The only element, of text.
  [[nodiscard]] std::string text() const;

  [[noreturn]] void refuse(const std::string& why) const;

 private:
  // Calls visit(bits) for each element, whatever its byte order.
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

// The content of a regular file. Throws: std::system_error; InputError for any other.
std::string read_whole(const std::filesystem::path& file);

// "3 x 4"
std::string in_words(const std::vector<Index>& shape);

}  // namespace redblue
