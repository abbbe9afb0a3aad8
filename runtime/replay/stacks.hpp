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

// Of caches that evict the word whose next use is farthest (Belady). A step for each word above
// the one that is touched.
class OptStack {
 public:
  using Time = std::uint64_t;

  explicit OptStack(Index words);

  // As of LruStack; `next` is when the value that the word has from now on is needed next. No two
  // words have the same.
  Index touch(std::uint32_t word, Time next);
  Index die(std::uint32_t word, Time never);

 private:
  std::vector<std::uint32_t> stack_;
  std::vector<Time> next_;
  std::vector<bool> there_, alive_;
};

}  // namespace redblue
