#pragma once
// Stored entries of a matrix, checked and brought into the order of rows.

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "kernels/mask.hpp"

namespace redblue {

// Single entries that are stored, and their values row by row.
struct SparseMatrix {
  BlockPattern pattern;
  std::vector<float> values;
};

// A matrix that a file has. Throws (all): InputError with the file and the fault.
class PatternFrame {
 public:
  // Refuses a shape that is not queries x keys. The file's name must outlive it.
  PatternFrame(const std::filesystem::path& file, const std::vector<Index>& shape, Index queries,
               Index keys);
  // Of whatever shape the file says.
  PatternFrame(const std::filesystem::path& file, const std::vector<Index>& shape);

  using Twice = std::function<void(Index before, Index again)>;

  // Of rows, sorted and each column once.
  [[nodiscard]] BlockPattern checked(BlockPattern found) const;
  // Of entries in any order, each once; calls `twice`, where there is one, with the numbers of two
  // that are one. `order`, where it is not null, becomes the numbers of the entries row by row.
  // Requires: as many rows as columns.
  [[nodiscard]] BlockPattern of_entries(const std::vector<Index>& rows,
                                        const std::vector<Index>& columns,
                                        std::vector<Index>* order = nullptr,
                                        const Twice& twice = {}) const;
  // Of columns: the rows of each, in any order.
  [[nodiscard]] BlockPattern of_columns(const std::vector<Index>& offsets,
                                        const std::vector<Index>& rows,
                                        std::vector<Index>* order = nullptr) const;
  // With values of stored blocks in the order of `found`, or in this order of these.
  [[nodiscard]] SparseMatrix with_values(const BlockPattern& found,
                                         const std::vector<double>& values,
                                         const std::vector<Index>& order) const;
  [[nodiscard]] Index rows() const { return queries_; }
  [[nodiscard]] Index cols() const { return keys_; }

  [[noreturn]] void refuse(const std::string& why) const;

 private:
  // Refuses more rows than memory holds so many numbers for: a file need not hold its empty rows.
  void check_rows(Index numbers) const;
  void check_offsets(const std::vector<Index>& offsets, Index lines, Index stored) const;
  void check_index(const char* what, Index index, Index extent) const;

  const std::filesystem::path& file_;
  Index queries_ = 0, keys_ = 0;
};

}  // namespace redblue
