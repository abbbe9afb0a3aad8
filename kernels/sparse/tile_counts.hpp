#pragma once
// What schedules of tiles count of the entries of sparse matrices, in blocks of rows, and of the
// live pairs: a pass over entries each, however many pairs there are.

#include <algorithm>
#include <vector>

#include "kernels/plan.hpp"
#include "kernels/sparse/csr.hpp"
#include "kernels/sparsity.hpp"

namespace redblue {

// Entries of a matrix in blocks of rows, of which the last may be shorter, by columns.
struct GroupCounts {
  GroupCounts(const BlockPattern& of, Index rows);

  const BlockPattern* pattern;
  Index size, number, last_size;
  std::vector<std::vector<Index>> columns;  // that each block has
  // Of each column: its entries, the blocks that have it, the most entries in one of them.
  std::vector<Index> entries, blocks_with, most, most_in_last;
  Words groups;

  // Regrouping: of all blocks; that of one without entries takes one word less.
  [[nodiscard]] Words prepare_peak() const;
};
// Of regrouping all of them, in a phase `prepare`.
PhaseCost prepare_cost(const std::vector<const GroupCounts*>& all);

// For each column the blocks that have it, a bit for each.
class BlockBits {
 public:
  explicit BlockBits(const GroupCounts& of);

  [[nodiscard]] std::size_t words() const { return words_; }
  // None where no block has the column: no words.
  [[nodiscard]] const KeyBits& operator[](Index column) const {
    return of_columns_[static_cast<std::size_t>(column)];
  }
  // Calls visit(row, the blocks that have one of its columns).
  template <class Visit>
  void each_row(const BlockPattern& rows, const Visit& visit) const {
    KeyBits met(words_);
    for (Index row = 0; row < rows.rows; ++row) {
      // Rows that are full, say, are many and alike.
      if (row == 0 || !std::ranges::equal(rows.row(row), rows.row(row - 1))) {
        std::ranges::fill(met, 0);
        for (const Index column : rows.row(row)) {
          const KeyBits& bits = (*this)[column];
          for (std::size_t word = 0; word < bits.size(); ++word) {
            met[word] |= bits[word];
          }
        }
      }
      visit(row, met);
    }
  }

 private:
  std::size_t words_;
  std::vector<KeyBits> of_columns_;
};

// Which sizes live blocks have: all blocks have one size, but for the last, which may be shorter.
struct LiveBlocks {
  bool others = false, last = false;  // whether one before the last is live; and the last

  // The blocks that these bits say, of so many, are live.
  void add(const KeyBits& bits, Index number);
  // Calls visit() with each size that a live block has.
  template <class Visit>
  void each_size(Index size, Index last_size, const Visit& visit) const {
    if (others) {
      visit(size);
    }
    if (last) {
      visit(last_size);
    }
  }
};

// Scores of live pairs in the slow store: a block of queries after the other, in it key by key what
// its queries have, and beside them the pattern: of a block a word, where it ends; of a key that
// it meets a header (key, how many) and of each pair its query; or the key and a bit for each
// query, in words of 32, whichever is fewer words in all.
struct StoredScores {
  StoredScores(const Sparsity& of, const GroupCounts& queries);

  Index size, number, last_size;     // of the blocks of queries
  std::vector<Index> blocks_of_key;  // that meet it
  Words met;                         // their sum
  Words pairs;
  bool as_bits;
  LiveBlocks live;

  // Of a key that a block meets, without and with its queries.
  [[nodiscard]] Index header() const;
  [[nodiscard]] Index pattern(Index queries) const { return header() + (as_bits ? 0 : queries); }
  // Of some keys, of the pairs that a block has.
  [[nodiscard]] Index pattern(const ByColumns& of_block, Range keys) const;
  // The words of the pattern that are live at a time.
  [[nodiscard]] Index live_pattern() const { return as_bits ? 2 : 3; }
  // In all, one for each block included.
  [[nodiscard]] Words pattern() const {
    return met * header() + number + (as_bits ? Words(0) : pairs);
  }
};

}  // namespace redblue
