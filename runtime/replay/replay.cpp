#include "runtime/replay/replay.hpp"

#include <algorithm>

#include "runtime/replay/stacks.hpp"

namespace redblue {
namespace {

using Kind = Access::Kind;

// What happens in caches of fewer words than some depth.
class Tally {
 public:
  explicit Tally(Index words) : below_(static_cast<std::size_t>(words) + 1) {}
  void add(Index depth) { ++below_[std::min(static_cast<std::size_t>(depth), below_.size()) - 1]; }
  // For each M from 1 on.
  [[nodiscard]] std::vector<Index> counts() const {
    std::vector<Index> all(below_.begin() + 1, below_.end());
    for (std::size_t M = all.size() - 1; M-- > 0;) {
      all[M] += all[M + 1];
    }
    return all;
  }

 private:
  std::vector<Index> below_;  // [depth - 1]; the last: in all caches
};

// Reads and write-backs by the depths at which words are found.
class Moves {
 public:
  explicit Moves(Index words)
      : reads_(words), writes_(words), since_(static_cast<std::size_t>(words), kClean) {}

  void found(const Access& access, Index depth) {
    Index& deepest = since_[access.word];
    if (access.kind == Kind::need) {
      reads_.add(depth);
    }
    if (deepest != kClean) {
      deepest = std::max(deepest, depth);
    }
    if (access.kind != Kind::need) {
      if (deepest != kClean) {
        writes_.add(deepest);
      }
      deepest = access.kind == Kind::overwrite ? kFresh : kClean;
    }
  }
  void end() {
    for (const Index deepest : since_) {
      if (deepest != kClean) {
        writes_.add(kNotThere);
      }
    }
  }
  [[nodiscard]] std::vector<Index> reads() const { return reads_.counts(); }
  [[nodiscard]] std::vector<Index> writes() const { return writes_.counts(); }

 private:
  static constexpr Index kClean = -1, kFresh = 1;
  Tally reads_, writes_;
  std::vector<Index> since_;  // the deepest since a word was written
};

// When the value that a word has after each access is needed next. What is not needed comes after
// all that is, and what is dead after that; which of these is first is decided by the last access.
std::vector<OptStack::Time> next_uses(const Accesses& accesses) {
  const std::size_t n = accesses.in_order.size();
  std::vector<OptStack::Time> next(n);
  std::vector<OptStack::Time> needed(static_cast<std::size_t>(accesses.words), 0);  // 0: is not
  for (std::size_t t = n; t-- > 0;) {
    const auto& [kind, word] = accesses.in_order[t];
    next[t] = kind == Kind::dead ? 3 * n - t : needed[word] > 0 ? needed[word] : 2 * n - t;
    needed[word] = kind == Kind::need ? t + 1 : 0;
  }
  return next;
}

}  // namespace

std::size_t Replayed::at(Index M) const {
  return static_cast<std::size_t>(std::min(M, words)) - 1;
}

Replayed replay(const Accesses& accesses) {
  const std::vector<OptStack::Time> next = next_uses(accesses);
  LruStack lru(accesses.words);
  OptStack opt(accesses.words);
  Moves by_lru(accesses.words), by_opt(accesses.words);
  for (std::size_t t = 0; t < next.size(); ++t) {
    const Access& access = accesses.in_order[t];
    if (access.kind == Kind::dead) {
      by_lru.found(access, lru.die(access.word));
      by_opt.found(access, opt.die(access.word, next[t]));
    } else {
      by_lru.found(access, lru.touch(access.word));
      by_opt.found(access, opt.touch(access.word, next[t]));
    }
  }
  by_lru.end();
  by_opt.end();
  return {.accesses = std::ssize(accesses.in_order),
          .words = accesses.words,
          .lru_reads = by_lru.reads(),
          .lru_writes = by_lru.writes(),
          .opt_reads = by_opt.reads(),
          .belady_writes = by_opt.writes()};
}

}  // namespace redblue
