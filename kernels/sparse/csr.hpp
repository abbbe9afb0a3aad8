#pragma once
// A sparse matrix in the slow store, row by row: the values of its entries in a matrix of one
// column; and beside each its column, and for each row a pointer to its end, which are words, too.
// Where the entries are a kernel knows, as it knows a shape; these words are read and written, and
// live in fast memory, like any others. Some rows in sequence are
//
//   2 entries + rows + 1   words, and 2 entries + rows where the row before them has just passed.

#include <algorithm>
#include <span>
#include <vector>

#include "kernels/sparsity.hpp"
#include "memsim/machine.hpp"
#include "memsim/range.hpp"
#include "memsim/slow_matrix.hpp"
#include "memsim/tile.hpp"

namespace redblue {

// ---- where entries are -------------------------------------------------------------------------

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

// The entries of some rows, column by column: the row of each, and which entry of the matrix it is.
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
  // Whether the rows have an entry there.
  [[nodiscard]] bool has(Index column) const { return !(*this)[column].empty(); }

 private:
  std::vector<std::size_t> offsets_;
  std::vector<Entry> entries_;
};

// ---- in the slow store -------------------------------------------------------------------------

struct SlowCsr {
  const BlockPattern& pattern;
  const SlowMatrix& values;
};

// Entries in fast memory, in the order of their matrix. Tiles of none are 0 x 0.
struct CsrEntries {
  Range entries;
  Tile index, values;

  // Valid as addresses in the arena are (memsim/tile.hpp). Requires: one of `entries`.
  [[nodiscard]] const float* word(Index entry) const {
    return ConstView(values).at(0, 0) + (entry - entries.begin);
  }
};
// The columns and values alone.
CsrEntries read_entries(Machine& machine, const SlowCsr& of, Range entries);
// The whole matrix with all pointers.
CsrEntries read_csr(Machine& machine, const SlowCsr& of);

// The rows of a matrix one after the other. One pointer lives as long: to where they go on.
class CsrPass {
 public:
  CsrPass(Machine& machine, const SlowCsr& of)
      : machine_(&machine), of_(of), pointer_(machine.read_indices(1)) {}

  // The next rows, each with its pointer.
  [[nodiscard]] CsrEntries rows(Range rows);
  // The pointer of the next row alone, whose entries follow; or those of rows of which none do.
  void row(Index rows = 1);

 private:
  Machine* machine_;
  SlowCsr of_;
  Tile pointer_;
};

// Writes the rows of a matrix one after the other.
class CsrWriter {
 public:
  // At most so many entries at a time, which take two words each.
  CsrWriter(Machine& machine, const BlockPattern& pattern, SlowMatrix& values, Index piece);
  // The next row, out of words of all its columns.
  void row(const Tile& words, Index first_word);

 private:
  void pointer();

  Machine* machine_;
  const BlockPattern* pattern_;
  SlowMatrix* values_;
  Index piece_;
  Index next_ = 0;
};

}  // namespace redblue
