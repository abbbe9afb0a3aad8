#pragma once
// Caches of every size at once. The cache of M words holds the first M of a stack, for all M: a
// word that is touched at depth D is a hit where M >= D. A unit has one word or several, which are
// touched together; a cache may hold some of them.
//
// A stack has holes where units have died: room that a cache has, so that it evicts nothing for the
// next words that it lacks.

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

// Where words of a unit are found: all at depth `last`, or one at each depth from `first` to
// `last`.
struct Depths {
  Index first, last, words;
};

// Of caches that evict the word that was touched longest ago, and of a unit the first words first.
// log V steps a touch, of V units.
class LruStack {
 public:
  explicit LruStack(const std::vector<std::uint32_t>& widths);

  // The depths of the unit's words, rising; it is on top afterwards. kNotThere before its first
  // touch, and after its death. Valid until the next call.
  std::span<const Depths> touch(std::uint32_t unit);
  std::span<const Depths> die(std::uint32_t unit);

 private:
  [[nodiscard]] Index depth(std::uint32_t slot) const;
  void count(std::uint32_t slot, std::int32_t change);
  void put(std::uint32_t slot, std::uint32_t unit, std::int32_t words);
  std::int32_t take_holes_above(std::uint32_t slot, std::int32_t most);
  void renumber();

  const std::vector<std::uint32_t>& widths_;
  // Slots in the order of touches, from 1 on; the words in them, and these as a tree of sums.
  std::vector<std::int32_t> words_in_, sums_;
  std::vector<std::uint32_t> slot_of_;  // of a unit; 0: it is not there
  std::vector<std::uint32_t> unit_in_;  // of a slot
  std::priority_queue<std::uint32_t> holes_;
  std::uint32_t last_ = 0;
  Index size_ = 0;  // in words
  std::array<Depths, 2> found_ = {};
};

// Of units of a word each, and caches that evict the one whose next use is farthest (Belady). A
// touch moves the farthest use so far down, up to the place of the word. Blocks of the stack, and
// blocks of these, in which no use is farther stay as they are. In others most words move, as uses
// lie in rising order for long.
class OptStack {
 public:
  using Time = std::uint32_t;

  explicit OptStack(Index words);

  // The depth, as of LruStack; `next` is when the value that the word has from now on is needed
  // next. No two words have the same; more than 0, and less than 2^32 - 1.
  Index touch(std::uint32_t word, Time next);
  Index die(std::uint32_t word);

 private:
  // A time, and below it the word that is needed then. A hole is farther than all words, and room
  // beyond the stack is nearer.
  using Use = std::uint64_t;
  static constexpr Use kHole = std::numeric_limits<Use>::max();
  static constexpr std::uint32_t kNowhere = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::size_t kBlock = 32;

  [[nodiscard]] std::size_t place_of(std::uint32_t word) const;
  void put(Use use, std::size_t place);
  void append(Use use);
  // From `begin` to before `end`, in one block: puts `carried` into the place of the first farther
  // use, that into the place of the next farther one, and so on; what is left is carried. Returns
  // the farthest that stays.
  Use pass(Use& carried, std::size_t begin, std::size_t end);
  // The same of a whole block in rising order, in which all are farther than `carried`.
  Use shift(Use& carried, std::size_t begin);
  // Through all blocks from the second to before `end`.
  void pass_blocks(Use& carried, std::size_t end);
  void is_in(std::size_t block, Use use);
  void sum_up(std::size_t block);
  void sum_up_blocks(std::size_t blocks);

  std::vector<Use> uses_;  // by place; whole blocks of blocks
  // Of blocks, but not of the first, in which most touches end; and of blocks of them.
  std::vector<Use> farthest_, farthest_of_blocks_;
  // Whether a block is known to be in rising order, which it keeps when something is passed down.
  std::vector<char> rising_;
  std::vector<std::uint32_t> block_;  // of a word
  std::size_t size_ = 0;
};

// The same of units of any widths. A touch of a unit of w words moves the w farthest ones so far
// down, past all that are nearer. Time: the units above, and their pieces.
class OptRowStack {
 public:
  using Time = OptStack::Time;

  explicit OptRowStack(const std::vector<std::uint32_t>& widths);

  // As of both.
  std::span<const Depths> touch(std::uint32_t unit, Time next);
  std::span<const Depths> die(std::uint32_t unit);

 private:
  // Words of a unit in a row, or of a hole.
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
  std::vector<Piece> pieces_;   // the top is the last
  std::vector<Piece> carried_;  // the nearest is the last
  std::vector<Piece> left_;     // new pieces, from the top on
  std::vector<Depths> found_;
};

}  // namespace redblue
