#pragma once
// The source of an operand: a file or an array in the caller's memory. A dense file (.npy, or a
// tensor of a .safetensors) has rows of a matrix. A sparse file
// (runtime/patterns/pattern_files.hpp) has stored entries, each read as a row of one word.

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "memsim/range.hpp"
#include "runtime/patterns/entries.hpp"
#include "runtime/run/arrays.hpp"
#include "runtime/system/array_reader.hpp"
#include "runtime/system/input_error.hpp"

namespace redblue {

class InputFile {
 public:
  // Throws: as NpyReader(), as TensorReader() for a tensor_path(), and as read_entries() for an
  // is_sparse_file().
  explicit InputFile(const std::filesystem::path& path);
  // Throws: InputError for a shape that no file could have. The words must outlive this object.
  explicit InputFile(const LentArray<const float>& array);

  // The file or array as messages name it.
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  // The shape of the matrix. Dense files may have a first dimension of heads.
  [[nodiscard]] const std::vector<Index>& shape() const { return shape_; }
  // The places of a sparse file's entries. Null for a dense file.
  [[nodiscard]] const BlockPattern* pattern() const {
    return entries_ ? &entries_->pattern : nullptr;
  }
  // The caller's words if the source is an array. No value for a file.
  [[nodiscard]] std::optional<std::span<const float>> lent() const { return lent_; }
  // Checks all words. Throws: as read_rows() for all rows. Requires: an array.
  void check_lent() const;
  // The element type of a dense file. For sparse files and arrays float32.
  [[nodiscard]] ElementType type() const { return dense_ ? dense_->type() : ElementType::float32; }
  void accept_minus_infinity();

  // Calls read() and adds the operand's name to the message of an InputError.
  template <class Read>
  static void reading(std::string_view operand, const Read& read) {
    try {
      read();
    } catch (const InputError& error) {
      throw InputError(std::string(operand) + " of " + error.what());
    }
  }

  // The extents of the matrix that read_rows() reads.
  [[nodiscard]] Index rows() const;
  [[nodiscard]] Index cols() const;
  // Reads as ArrayReader does.
  void read_rows(Range range, std::span<float> out) const;

 private:
  std::filesystem::path path_;
  std::vector<Index> shape_;
  std::optional<ArrayReader> dense_;
  std::optional<SparseMatrix> entries_;
  std::optional<std::span<const float>> lent_;
  bool minus_infinity_ = false;  // accept_minus_infinity() was called; for arrays
};

}  // namespace redblue
