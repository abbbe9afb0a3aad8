#pragma once
// Caches of every size at once. The cache of M words holds the first M of a stack, for all M: a
// word that is touched at depth D is a hit where M >= D.
//
// A stack has holes where words have died: room that a cache has, so that it evicts nothing for the
// next word that it lacks.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <queue>
#include <vector>

#include "memsim/words.hpp"

namespace redblue {

inline constexpr Index kNotThere = std::numeric_limits<Index>::max();

// Of caches that evict the word that was touched longest ago. log V steps a touch, of V words.
class LruStack {
 public:
  explicit LruStack(Index words);

  // The depth of the word, which is on top afterwards; kNotThere before its first touch, and after
  // its death.
  Index touch(std::uint32_t word);
  Index die(std::uint32_t word);

 private:
  [[nodiscard]] Index depth(std::uint32_t slot) const;
  void count(std::uint32_t slot, std::int32_t change);
  void put_on_top(std::uint32_t word);
  void renumber();

  // Slots in the order of touches, from 1 on; how many are taken, as a tree of sums.
  std::vector<std::int32_t> taken_;
  std::vector<std::uint32_t> slot_of_;  // of a word; 0: it is not there
  std::vector<std::uint32_t> word_in_;  // of a slot
  std::priority_queue<std::uint32_t> holes_;
  std::uint32_t last_ = 0;
  Index size_ = 0;
};

// Of caches that evict the word whose next use is farthest (Belady). Words stand for the times of
// these uses. A touch moves the farthest time so far down: a block of the stack in which no time is
// farther stays as it is, so that a touch takes a step for most blocks above the word.
class OptStack {
 public:
  using Time = std::uint32_t;

  explicit OptStack(Index words);

  // As of LruStack; `next` is when the value that the word has from now on is needed next. No two
  // words have the same; more than 0, and less than kHole.
  Index touch(std::uint32_t word, Time next);
  Index die(std::uint32_t word);

 private:
  static constexpr Time kHole = std::numeric_limits<Time>::max();
  static constexpr std::size_t kBlock = 32;
  struct Block {
    Time least, most;
    [[nodiscard]] bool may_have(Time time) const { return least <= time && time <= most; }
  };
  void sum_up(std::size_t block);
  [[nodiscard]] std::size_t end_of(std::size_t block) const;
  // Puts `carried` into the block, and what is farthest then takes its place; up to the time `old`,
  // in whose place goes what is left. Whether that was met; `at` is then where.
  bool pass(std::size_t block, Time& carried, Time old, std::size_t& at);

  std::vector<Time> stack_;
  std::vector<Block> blocks_;
  std::vector<Time> next_;  // of a word; 0: it is not there
};

}  // namespace redblue
