#pragma once
// Checks the stored entries of a matrix and brings them into row order.

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "kernels/mask.hpp"

namespace redblue {

// Stored single entries, and their values row by row.
struct SparseMatrix {
  BlockPattern pattern;
  std::vector<float> values;
};

// Builds checked patterns from the matrix in a file. Throws (all): InputError with the file and the
// fault.
class PatternFrame {
 public:
  // Refuses a shape other than queries x keys. The file's name must outlive the frame.
  PatternFrame(const std::filesystem::path& file, const std::vector<Index>& shape, Index queries,
               Index keys);
  // Takes any shape.
  PatternFrame(const std::filesystem::path& file, const std::vector<Index>& shape);

  using Twice = std::function<void(Index before, Index again)>;

  // Returns the pattern. Refuses it unless its rows are sorted and have each column once.
  [[nodiscard]] BlockPattern checked(BlockPattern found) const;
  // Returns the pattern of single entries in any order. Refuses an entry that is there twice, after
  // calling `twice` (if set) with the numbers of both. Sets `order` (if not null) to the numbers of
  // the entries row by row. Requires: `rows` and `columns` have the same length.
  [[nodiscard]] BlockPattern of_entries(const std::vector<Index>& rows,
                                        const std::vector<Index>& columns,
                                        std::vector<Index>* order = nullptr,
                                        const Twice& twice = {}) const;
  // Returns the pattern of a matrix that is stored by columns. `rows` has the rows of each column,
  // in any order within a column.
  [[nodiscard]] BlockPattern of_columns(const std::vector<Index>& offsets,
                                        const std::vector<Index>& rows,
                                        std::vector<Index>* order = nullptr) const;
  // Returns the single entries of `found` with their values. `values` has the stored blocks in the
  // order of `found`. If `order` is not empty, stored block k is at place order[k].
  [[nodiscard]] SparseMatrix with_values(const BlockPattern& found,
                                         const std::vector<double>& values,
                                         const std::vector<Index>& order) const;
  [[nodiscard]] Index rows() const { return queries_; }
  [[nodiscard]] Index cols() const { return keys_; }

  [[noreturn]] void refuse(const std::string& why) const;

 private:
  // Refuses more rows than memory can hold `numbers` numbers for. A small file can state many rows,
  // because it does not store empty ones.
  void check_rows(Index numbers) const;
  void check_offsets(const std::vector<Index>& offsets, Index lines, Index stored) const;
  void check_index(const char* what, Index index, Index extent) const;

  const std::filesystem::path& file_;
  Index queries_ = 0, keys_ = 0;
};

}  // namespace redblue
