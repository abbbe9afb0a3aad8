#pragma once
// Describes how a mask is stored if it is data and not a formula, and how many words say which keys
// a group of queries meets. A kernel reads these words once in each pass over the keys of a group:
//
//    - A layout of blocks: for each block row that the group touches, two pointers and the blocks.
//      Documents: for each document that the group touches, its first key and its end. One word is
//      live while keys pass.
//    - A pattern, regrouped for groups of r queries: the number C of keys, and for each key its
//      number and the queries that meet it. The queries are a list of numbers (Z in all) or r bits,
//      and the cheaper form is used: 1 + min(Z + 2 C, C (1 + ceil(r/32))). Two words are live.
//
// Queries that stay resident through all groups are one group, which reads each word when its key
// passes.
//
// The live queries and keys are known in advance, and so are their numbers. If every live query
// meets every live key, the kernel reads no indices. If words have fewer than 32 bits, each index
// takes several words, and all counts grow by that factor (Mask::with_index_words).
//
// In joined masks, formulas cost no words. If one of the masks is a pattern, the result is a
// pattern. Otherwise the kernel reads each layout and each list of documents, without duplicates.

#include <algorithm>
#include <memory>
#include <vector>

#include "memsim/range.hpp"
#include "memsim/words.hpp"

namespace redblue {

using Ranges = std::vector<Range>;
struct BlockPattern;

// 128-bit integers, for sums of products of two sizes.
__extension__ typedef __int128 Wide;  // NOLINT(modernize-use-using): not in ISO C++

class MaskIndex {
 public:
  // The index of a mask that is a formula.
  MaskIndex() = default;
  static MaskIndex pattern();
  static MaskIndex layout(const BlockPattern& blocks);
  static MaskIndex documents(const std::vector<Index>& queries, const std::vector<Index>& keys);
  // Returns the index of two joined masks.
  [[nodiscard]] MaskIndex with(const MaskIndex& other) const;

  // Returns whether groups read the same words.
  friend bool operator==(const MaskIndex& a, const MaskIndex& b) {
    const auto same = [](const auto& x, const auto& y) { return x == y || *x == *y; };
    return a.pattern_ == b.pattern_ && a.of_keys_ == b.of_keys_ &&
           a.index_words_ == b.index_words_ && std::ranges::equal(a.lists_, b.lists_, same);
  }

  [[nodiscard]] bool is_pattern() const { return pattern_; }
  // Returns whether rows are keys, as in a transposed mask.
  [[nodiscard]] bool of_keys() const { return of_keys_; }
  // Return the same index with indices of `words` words each, and that number of words.
  [[nodiscard]] MaskIndex with_words(Index words) const;
  [[nodiscard]] Index index_words() const { return index_words_; }
  // Returns the words that are live in a pass over the keys of a group; 0 for a formula.
  [[nodiscard]] Index live() const { return index_words_ * (pattern_ ? 2 : std::ssize(lists_)); }
  // Return the number of indices that groups of `size` queries read in total, and the number that
  // one group of a pattern reads. words() requires an index that is not a pattern.
  [[nodiscard]] Wide words(Range queries, Index size) const;
  [[nodiscard]] static Wide pattern_words(Wide pairs, Wide keys, Index rows) {
    return 1 + std::min(by_pairs(pairs, keys), by_bits(keys, rows));
  }
  // The two forms of a pattern: with the numbers of queries, and with bits. Both are linear in
  // pairs and keys.
  [[nodiscard]] static Wide by_pairs(Wide pairs, Wide keys) { return pairs + 2 * keys; }
  [[nodiscard]] static Wide by_bits(Wide keys, Index rows) {
    constexpr Index kBits = 32;  // of an index
    return keys * (1 + ceil_div(rows, kBits));
  }

  // The indices of masks derived from another mask.
  [[nodiscard]] MaskIndex transposed() const;
  [[nodiscard]] MaskIndex compact(const Ranges& live_queries, const Ranges& live_keys) const;
  // With queries in another order. A group reads again what an earlier group has read.
  [[nodiscard]] MaskIndex reordered(const std::vector<Range>& queries) const;
  // With `heads` stacked query heads that share the stored index.
  [[nodiscard]] MaskIndex stacked(Index heads) const;

 private:
  // A piece of rows (queries or keys), such as a block row, and the words that a group reads if it
  // touches the piece in any of the heads.
  struct Piece {
    Range rows;
    Index words;
    Index number;      // number in the original order; reordering may split a piece into parts
    Index before = 0;  // end of the rows of the previous part of the same piece
    friend bool operator==(const Piece&, const Piece&) = default;
  };
  struct Side {
    Index extent = 0;  // of one head
    std::vector<Piece> pieces = {};
    Index heads = 1;

    // Sets Piece::before.
    void link();
    [[nodiscard]] Wide words(Range rows, Index size) const;
    [[nodiscard]] Side compact(const Ranges& live) const;
    [[nodiscard]] Side reordered(const std::vector<Range>& rows) const;
    friend bool operator==(const Side&, const Side&) = default;
  };
  struct List {
    // The contents. Lists with equal contents are merged.
    std::shared_ptr<const std::vector<Index>> file;
    Side queries, keys;
    friend bool operator==(const List& a, const List& b) {
      return *a.file == *b.file && a.queries == b.queries && a.keys == b.keys;
    }
  };
  using Lists = std::vector<std::shared_ptr<const List>>;
  explicit MaskIndex(List list) : lists_{std::make_shared<const List>(std::move(list))} {}
  template <class Make>
  [[nodiscard]] MaskIndex each(const Make& make) const;

  bool pattern_ = false, of_keys_ = false;
  Index index_words_ = 1;
  Lists lists_;
};

// Renumbers the elements of some ranges from 0.
class NumbersWithin {
 public:
  explicit NumbersWithin(const Ranges& ranges);
  [[nodiscard]] Index size() const { return before_.back(); }
  // Returns how many elements are below `at`.
  [[nodiscard]] Index below(Index at) const;

 private:
  const Ranges& ranges_;
  std::vector<Index> before_ = {0};  // elements before each range, and in all
};

}  // namespace redblue
