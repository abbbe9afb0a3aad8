#pragma once
// The counts that tile schedules need: entries of sparse matrices in blocks of rows, and live
// pairs. Each count takes one pass over the entries, for any number of pairs.

#include <algorithm>
#include <vector>

#include "kernels/plan.hpp"
#include "kernels/sparse/csr.hpp"
#include "kernels/sparsity.hpp"

namespace redblue {

// The entries of a matrix in blocks of rows, by columns. The last block may be shorter.
struct GroupCounts {
  GroupCounts(const BlockPattern& of, Index rows);

  const BlockPattern* pattern;
  Index size, number, last_size;
  std::vector<std::vector<Index>> columns;  // the columns of each block
  // For each column: its entries, the number of blocks with it, the most entries in a block before
  // the last, and its entries in the last block.
  std::vector<Index> entries, blocks_with, most, most_in_last;
  Words groups;

  // Returns the peak of regrouping all blocks. A block without entries takes one word less.
  [[nodiscard]] Words prepare_peak() const;
};
// Returns the cost of regrouping all given matrices, in a phase `prepare`.
PhaseCost prepare_cost(const std::vector<const GroupCounts*>& all);

// For each column the blocks that have it, one bit each.
class BlockBits {
 public:
  explicit BlockBits(const GroupCounts& of);

  [[nodiscard]] std::size_t words() const { return words_; }
  // Returns the blocks of a column. Empty if no block has it.
  [[nodiscard]] const KeyBits& operator[](Index column) const {
    return of_columns_[static_cast<std::size_t>(column)];
  }
  // Calls visit(row, bits of the blocks that share a column with it).
  template <class Visit>
  void each_row(const BlockPattern& rows, const Visit& visit) const {
    KeyBits met(words_);
    for (Index row = 0; row < rows.rows; ++row) {
      // Consecutive equal rows, such as full rows, reuse the bits.
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

// The sizes of live blocks. All blocks have one size, except that the last may be shorter.
struct LiveBlocks {
  bool others = false, last = false;  // whether a block before the last is live, and whether the
                                      // last is

  // Marks blocks as live: `bits`, out of `number` blocks.
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

// The scores of live pairs in slow memory: one block of queries after the other, and key by key
// within a block. The pattern is stored with them. Each block has one word for its end. There are
// two formats for the keys that a block meets, and the one with fewer words in total is used:
//
// - a header (key, number of queries) for each key, and the query of each pair;
// - the key, and one bit for each query of the block, in words of 32 bits.
struct StoredScores {
  StoredScores(const Sparsity& of, const GroupCounts& queries);

  Index size, number, last_size;     // of the blocks of queries
  std::vector<Index> blocks_of_key;  // number of blocks that meet each key
  Words met;                         // sum over all keys
  Words pairs;
  bool as_bits;
  LiveBlocks live;

  // Words of the pattern for one key that a block meets: without its queries, and with them.
  [[nodiscard]] Index header() const;
  [[nodiscard]] Index pattern(Index queries) const { return header() + (as_bits ? 0 : queries); }
  // Words of the pattern for some keys and the pairs of a block.
  [[nodiscard]] Index pattern(const ByColumns& of_block, Range keys) const;
  // Words of the pattern that are in fast memory together.
  [[nodiscard]] Index live_pattern() const { return as_bits ? 2 : 3; }
  // Words of the whole pattern, with one word for the end of each block.
  [[nodiscard]] Words pattern() const {
    return met * header() + number + (as_bits ? Words(0) : pairs);
  }
};

}  // namespace redblue
