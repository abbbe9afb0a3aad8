#pragma once
// Simulates caches of all sizes at once. A stack holds words, and the cache of M words holds the
// first M of them. A word that is touched at depth D is a hit for M >= D. A unit has one or several
// words that are touched together. A cache may hold some of them.
//
// A dead unit leaves holes in the stack. A hole is free space in a cache, which then evicts no word
// at its next miss.

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <queue>
#include <span>
#include <vector>

#include "memsim/words.hpp"

namespace redblue {

inline constexpr Index kNotThere = std::numeric_limits<Index>::max();

// The depths of `words` words of a unit: all at depth `last`, or one at each depth from `first` to
// `last`.
struct Depths {
  Index first, last, words;
};

// The stack of caches that evict the least recently used word. The words of a unit are used in
// their order. With V units a touch takes O(log V) steps.
class LruStack {
 public:
  explicit LruStack(const std::vector<std::uint32_t>& widths);

  // Return the depths of the unit's words in rising order, valid until the next call. Depths are
  // kNotThere before the first touch of the unit and after its death. touch() moves the unit to the
  // top; die() leaves a hole.
  std::span<const Depths> touch(std::uint32_t unit);
  std::span<const Depths> die(std::uint32_t unit);

 private:
  [[nodiscard]] Index depth(std::uint32_t slot) const;
  void count(std::uint32_t slot, std::int32_t change);
  void put(std::uint32_t slot, std::uint32_t unit, std::int32_t words);
  std::int32_t take_holes_above(std::uint32_t slot, std::int32_t most);
  void renumber();

  const std::vector<std::uint32_t>& widths_;
  // The words in each slot, and a tree of their sums. Slots are in the order of touches, from 1 on.
  std::vector<std::int32_t> words_in_, sums_;
  std::vector<std::uint32_t> slot_of_;  // of a unit; 0 if the stack does not have it
  std::vector<std::uint32_t> unit_in_;  // of a slot
  std::priority_queue<std::uint32_t> holes_;
  std::uint32_t last_ = 0;
  Index size_ = 0;  // in words
  std::array<Depths, 2> found_ = {};
};

// The stack of caches that evict the word with the farthest next use (Belady), for units of one
// word.
//
// A touch carries the farthest use so far down to the place of the word. Blocks of the stack
// without a farther use do not change, and neither do blocks of such blocks. In other blocks most
// words move, because uses stay in rising order for a long time.
class OptStack {
 public:
  using Time = std::uint32_t;

  explicit OptStack(Index words);

  // Return the depth, as LruStack does. `next` is the time when the new value of the word is needed
  // next. Requires: different times for all words, and 0 < next < 2^32 - 1.
  Index touch(std::uint32_t word, Time next);
  Index die(std::uint32_t word);

 private:
  // A time in the upper 32 bits, and the word that is needed then in the lower ones. A hole is
  // farther than all words. Space beyond the stack is 0, which is nearer than all words.
  using Use = std::uint64_t;
  static constexpr Use kHole = std::numeric_limits<Use>::max();
  static constexpr std::uint32_t kNowhere = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::size_t kBlock = 32;

  [[nodiscard]] std::size_t place_of(std::uint32_t word) const;
  void put(Use use, std::size_t place);
  void append(Use use);
  // Carries a use through the places from `begin` to before `end` of one block. It puts `carried`
  // into the place of the first farther use, that use into the place of the next farther one, and
  // so on. `carried` becomes the last use. Returns the farthest use that stays.
  Use pass(Use& carried, std::size_t begin, std::size_t end);
  // Like pass(), for a whole block in rising order with uses that are all farther than `carried`.
  Use shift(Use& carried, std::size_t begin);
  // Carries a use through all blocks from the second to before `end`.
  void pass_blocks(Use& carried, std::size_t end);
  void is_in(std::size_t block, Use use);
  void sum_up(std::size_t block);
  void sum_up_blocks(std::size_t blocks);

  std::vector<Use> uses_;  // by place; the size is a multiple of kBlock^2
  // The farthest use of each block, and of each block of blocks. Not kept for the first block, in
  // which most touches end.
  std::vector<Use> farthest_, farthest_of_blocks_;
  // Whether a block is known to be in rising order. Carrying a use through it keeps the order.
  std::vector<char> rising_;
  std::vector<std::uint32_t> block_;  // of a word
  std::size_t size_ = 0;
};

// The same for units of any width. A touch of a unit of w words carries the w farthest words so far
// down, past all nearer words. Its time is linear in the pieces of units above.
class OptRowStack {
 public:
  using Time = OptStack::Time;

  explicit OptRowStack(const std::vector<std::uint32_t>& widths);

  // As in LruStack and OptStack.
  std::span<const Depths> touch(std::uint32_t unit, Time next);
  std::span<const Depths> die(std::uint32_t unit);

 private:
  // Adjacent words of a unit or of a hole.
  struct Piece {
    Time next;
    std::uint32_t unit;
    Index words;
  };
  static constexpr Time kHole = std::numeric_limits<Time>::max();

  void carry(Piece piece);
  void leave(const Piece& piece) {
    if (!left_.empty() && left_.back().next == piece.next) {
      left_.back().words += piece.words;
    } else {
      left_.push_back(piece);
    }
  }
  void leave_nearest(Index words);
  void put_back();

  const std::vector<std::uint32_t>& widths_;
  std::vector<bool> there_;
  std::vector<Piece> pieces_;   // from the bottom to the top
  std::vector<Piece> carried_;  // from the farthest to the nearest
  std::vector<Piece> left_;     // new pieces, from the top on
  std::vector<Depths> found_;
};

}  // namespace redblue
