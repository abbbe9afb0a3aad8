#pragma once
// A file that an operand comes from: rows of a dense matrix, .npy, or the stored entries of a
// sparse one (runtime/patterns/pattern_files.hpp), of which each is a row of one word.

#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "memsim/range.hpp"
#include "runtime/patterns/entries.hpp"
#include "runtime/system/npy.hpp"

namespace redblue {

class InputFile {
 public:
  // Throws: as NpyReader(), or as read_entries() for a name that is_sparse_file().
  explicit InputFile(const std::filesystem::path& path);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  // Of the matrix, heads first where a dense file has them.
  [[nodiscard]] const std::vector<Index>& shape() const { return shape_; }
  // Null where the file is dense.
  [[nodiscard]] const BlockPattern* pattern() const {
    return entries_ ? &entries_->pattern : nullptr;
  }
  void accept_minus_infinity();

  // In what read_rows() reads.
  [[nodiscard]] Index rows() const;
  [[nodiscard]] Index cols() const;
  // As of NpyReader.
  void read_rows(Range range, std::span<float> out) const;

 private:
  std::filesystem::path path_;
  std::vector<Index> shape_;
  std::optional<NpyReader> dense_;
  std::optional<SparseMatrix> entries_;
};

}  // namespace redblue
