#pragma once
// A sparse matrix in slow memory, row by row (CSR). The values of its entries are a matrix of one
// column. Each entry also has a column index, and each row has a pointer to its end. Kernels know
// the positions of entries in advance, as they know a shape. Index words still count: they are
// read, written and live in fast memory like any other words. A sequence of rows takes
//
//   2 entries + rows + 1   words, or 2 entries + rows if the row before them was read just before.

#include <algorithm>
#include <span>
#include <vector>

#include "kernels/sparsity.hpp"
#include "memsim/machine.hpp"
#include "memsim/range.hpp"
#include "memsim/slow_matrix.hpp"
#include "memsim/tile.hpp"

namespace redblue {

// ---- positions of entries ----------------------------------------------------------------------

inline Range entries_of(const BlockPattern& of, Range rows) {
  return {of.offsets[static_cast<std::size_t>(rows.begin)],
          of.offsets[static_cast<std::size_t>(rows.end)]};
}
inline Range entries_of(const BlockPattern& of, Index row) {
  return entries_of(of, {row, row + 1});
}
inline Index stored_in(const BlockPattern& of, Index row) {
  return entries_of(of, row).size();
}
inline Index stored_in(const BlockPattern& of, Range rows) {
  return entries_of(of, rows).size();
}
inline Words csr_words(const BlockPattern& of) {
  return 2 * Words(of.stored()) + of.rows + 1;
}
inline Index longest_row(const BlockPattern& of) {
  Index most = 0;
  for (Index row = 0; row < of.rows; ++row) {
    most = std::max(most, stored_in(of, row));
  }
  return most;
}

// The entries of some rows, column by column: each entry's row and its number in the matrix.
class ByColumns {
 public:
  struct Entry {
    Index row, entry;
  };
  ByColumns(const BlockPattern& of, Range rows);
  [[nodiscard]] std::span<const Entry> operator[](Index column) const {
    const auto at = static_cast<std::size_t>(column);
    return std::span(entries_).subspan(offsets_[at], offsets_[at + 1] - offsets_[at]);
  }
  // True if the rows have an entry in the column.
  [[nodiscard]] bool has(Index column) const { return !(*this)[column].empty(); }

 private:
  std::vector<std::size_t> offsets_;
  std::vector<Entry> entries_;
};

// ---- in slow memory ----------------------------------------------------------------------------

struct SlowCsr {
  const BlockPattern& pattern;
  const SlowMatrix& values;
};

// Entries in fast memory, in the order of their matrix. Without entries the tiles are 0 x 0.
struct CsrEntries {
  Range entries;
  Tile index, values;

  // Returns an address that is valid until the next tile is made (memsim/tile.hpp). Requires:
  // `entry` is one of `entries`.
  [[nodiscard]] const float* word(Index entry) const {
    return ConstView(values).at(0, 0) + (entry - entries.begin);
  }
};
// Reads columns and values, without pointers.
CsrEntries read_entries(Machine& machine, const SlowCsr& of, Range entries);
// Reads the whole matrix with all pointers.
CsrEntries read_csr(Machine& machine, const SlowCsr& of);

// Reads the rows of a matrix one after the other. It keeps one pointer, to the start of the next
// row.
class CsrPass {
 public:
  CsrPass(Machine& machine, const SlowCsr& of)
      : machine_(&machine), of_(of), pointer_(machine.read_indices(1)) {}

  // Reads the next rows, each with its pointer.
  [[nodiscard]] CsrEntries rows(Range rows);
  // Reads the pointer of the next row. The caller reads the row's entries.
  void row();

 private:
  Machine* machine_;
  SlowCsr of_;
  Tile pointer_;
};

// Writes the rows of a matrix one after the other.
class CsrWriter {
 public:
  // Writes at most `piece` entries per step, which take two words each.
  CsrWriter(Machine& machine, const BlockPattern& pattern, SlowMatrix& values, Index piece);
  // Writes the next row. `words` holds a word for each column or, if packed, for each entry.
  void row(const Tile& words, Index first_word, bool packed);

 private:
  void pointer();

  Machine* machine_;
  const BlockPattern* pattern_;
  SlowMatrix* values_;
  Index piece_;
  Index next_ = 0;
};

}  // namespace redblue
