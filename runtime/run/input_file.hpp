#pragma once
// A file that an operand comes from: rows of a dense matrix, .npy or a tensor of a .safetensors, or
// the stored entries of a sparse one (runtime/patterns/pattern_files.hpp), of which each is a row
// of one word. Or a dense array in a caller's memory.

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
  // Throws: as NpyReader(), TensorReader() for a tensor_path(), or read_entries() for a name that
  // is_sparse_file().
  explicit InputFile(const std::filesystem::path& path);
  // Throws: InputError for a shape that no file has. The words must outlive it.
  explicit InputFile(const LentArray<const float>& array);

  // As messages call it.
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  // Of the matrix, heads first where a dense file has them.
  [[nodiscard]] const std::vector<Index>& shape() const { return shape_; }
  // Null where the file is dense.
  [[nodiscard]] const BlockPattern* pattern() const {
    return entries_ ? &entries_->pattern : nullptr;
  }
  // The words of an array, where they are; nothing of a file.
  [[nodiscard]] std::optional<std::span<const float>> lent() const { return lent_; }
  // Throws: as read_rows(), of all of them. Requires: an array.
  void check_lent() const;
  // Of a dense file; float32 of others.
  [[nodiscard]] ElementType type() const { return dense_ ? dense_->type() : ElementType::float32; }
  void accept_minus_infinity();

  // Calls read(), of this file for an operand, which its errors name, too.
  template <class Read>
  static void reading(std::string_view operand, const Read& read) {
    try {
      read();
    } catch (const InputError& error) {
      throw InputError(std::string(operand) + " of " + error.what());
    }
  }

  // In what read_rows() reads.
  [[nodiscard]] Index rows() const;
  [[nodiscard]] Index cols() const;
  // As of ArrayReader.
  void read_rows(Range range, std::span<float> out) const;

 private:
  std::filesystem::path path_;
  std::vector<Index> shape_;
  std::optional<ArrayReader> dense_;
  std::optional<SparseMatrix> entries_;
  std::optional<std::span<const float>> lent_;
  bool minus_infinity_ = false;  // of an array
};

}  // namespace redblue
