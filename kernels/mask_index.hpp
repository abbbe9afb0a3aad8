#pragma once
// How a mask is kept that is data and no formula, and the words that say which keys a group of
// queries meets. These are read once in each pass over the keys of a group:
//
//   - of a layout of blocks, two pointers for each block row that the group touches, and the blocks
//     there; of documents, the first key and the end of each that it touches. One of these words
//     lives beside the keys that pass.
//   - of a pattern, which is regrouped for groups of that size: the number of keys C, and for each
//     key its number with the numbers of the queries that meet it, of which there are Z in all, or
//     with a bit for each of the r queries, whichever is less: 1 + min(Z + 2 C, C (1 +
//     ceil(r/32))). Two words live.
//
// Queries that stay through all groups are one group, which reads each word when its key passes.
//
// Which queries and keys live is known, as their number is: where all that live meet, nothing is
// read. Where words have fewer than 32 bits an index is several of them, and all of these are so
// many times as many (Mask::with_index_words). Of joined masks formulas cost nothing. With a
// pattern among them the result is one; else each layout and each list of documents is read, but
// one that is there twice once.

#include <algorithm>
#include <memory>
#include <vector>

#include "memsim/range.hpp"
#include "memsim/words.hpp"

namespace redblue {

using Ranges = std::vector<Range>;
struct BlockPattern;

// Sums of products of two sizes.
__extension__ typedef __int128 Wide;  // NOLINT(modernize-use-using): not in ISO C++

class MaskIndex {
 public:
  // Of a mask that is a formula.
  MaskIndex() = default;
  static MaskIndex pattern();
  static MaskIndex layout(const BlockPattern& blocks);
  static MaskIndex documents(const std::vector<Index>& queries, const std::vector<Index>& keys);
  // Of masks that are joined.
  [[nodiscard]] MaskIndex with(const MaskIndex& other) const;

  [[nodiscard]] bool is_pattern() const { return pattern_; }
  // Whether the rows are keys: of a mask that is transposed.
  [[nodiscard]] bool of_keys() const { return of_keys_; }
  // The same where an index is so many words, and what it is.
  [[nodiscard]] MaskIndex with_words(Index words) const;
  [[nodiscard]] Index index_words() const { return index_words_; }
  // The words that live in a pass over the keys of a group; 0 for a formula.
  [[nodiscard]] Index live() const { return index_words_ * (pattern_ ? 2 : std::ssize(lists_)); }
  // The indices that groups of `size` of these queries read, and that one group of a pattern reads.
  // Requires, of the first: no pattern.
  [[nodiscard]] Wide words(Range queries, Index size) const;
  [[nodiscard]] static Wide pattern_words(Wide pairs, Wide keys, Index rows) {
    return 1 + std::min(by_pairs(pairs, keys), by_bits(keys, rows));
  }
  // With the numbers of queries, and with bits: both grow as pairs and keys do.
  [[nodiscard]] static Wide by_pairs(Wide pairs, Wide keys) { return pairs + 2 * keys; }
  [[nodiscard]] static Wide by_bits(Wide keys, Index rows) {
    constexpr Index kBits = 32;  // of an index
    return keys * (1 + ceil_div(rows, kBits));
  }

  // For the masks that are made of another one.
  [[nodiscard]] MaskIndex transposed() const;
  [[nodiscard]] MaskIndex compact(const Ranges& live_queries, const Ranges& live_keys) const;
  // Of queries in another order: what another group touches again is read again.
  [[nodiscard]] MaskIndex reordered(const std::vector<Range>& queries) const;
  // Of so many heads of queries, one below the other, which share what is kept.
  [[nodiscard]] MaskIndex stacked(Index heads) const;

 private:
  // What is read of some rows, queries or keys: as many words for each piece of them that is
  // touched, in any of the heads.
  struct Piece {
    Range rows;
    Index words;
    Index number;      // as first kept: in another order a piece may come in parts
    Index before = 0;  // the end of the rows of its part before this
  };
  struct Side {
    Index extent = 0;  // of one head
    std::vector<Piece> pieces = {};
    Index heads = 1;

    // Sets where the part of each piece before is.
    void link();
    [[nodiscard]] Wide words(Range rows, Index size) const;
    [[nodiscard]] Side compact(const Ranges& live) const;
    [[nodiscard]] Side reordered(const std::vector<Range>& rows) const;
  };
  struct List {
    std::shared_ptr<const std::vector<Index>> file;  // what it says: lists of the same are one
    Side queries, keys;
  };
  using Lists = std::vector<std::shared_ptr<const List>>;
  explicit MaskIndex(List list) : lists_{std::make_shared<const List>(std::move(list))} {}
  template <class Make>
  [[nodiscard]] MaskIndex each(const Make& make) const;

  bool pattern_ = false, of_keys_ = false;
  Index index_words_ = 1;
  Lists lists_;
};

// Numbers of some ranges, one after the other.
class NumbersWithin {
 public:
  explicit NumbersWithin(const Ranges& ranges);
  [[nodiscard]] Index size() const { return before_.back(); }
  // How many of these are below `at`.
  [[nodiscard]] Index below(Index at) const;

 private:
  const Ranges& ranges_;
  std::vector<Index> before_ = {0};  // each range, and in all
};

}  // namespace redblue
