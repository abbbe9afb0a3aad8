#include "runtime/replay/replay.hpp"

#include <algorithm>
#include <functional>

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
  Moves(Index words, std::size_t phases)
      : reads_(std::max<std::size_t>(phases, 1), Tally(words)),
        writes_(words),
        since_(static_cast<std::size_t>(words), kClean) {}

  void found(const Access& access, Index depth, std::size_t phase) {
    Index& deepest = since_[access.word];
    if (redblue::reads(access.kind)) {
      reads_[phase].add(depth);
    }
    if (deepest != kClean) {
      deepest = std::max(deepest, depth);
    }
    if (access.kind != Kind::need) {
      if (deepest != kClean) {
        writes_.add(deepest);
      }
      deepest = redblue::writes(access.kind) ? kFresh : kClean;
    }
  }
  void end() {
    for (const Index deepest : since_) {
      if (deepest != kClean) {
        writes_.add(kNotThere);
      }
    }
  }
  [[nodiscard]] std::vector<Index> reads(std::size_t phase) const { return reads_[phase].counts(); }
  [[nodiscard]] std::vector<Index> reads() const {
    std::vector<Index> all = reads(0);
    for (std::size_t phase = 1; phase < reads_.size(); ++phase) {
      std::ranges::transform(all, reads(phase), all.begin(), std::plus());
    }
    return all;
  }
  [[nodiscard]] std::vector<Index> writes() const { return writes_.counts(); }

 private:
  static constexpr Index kClean = -1, kFresh = 1;
  std::vector<Tally> reads_;  // by phase
  Tally writes_;
  std::vector<Index> since_;  // the deepest since a word was written
};

// Which phase an access is in. Asked in the order of accesses.
class Phases {
 public:
  explicit Phases(const Accesses& accesses) : stretches_(accesses.stretches) {
    for (const auto& [begin, phase] : stretches_) {
      const auto known = std::ranges::find(names_, phase);
      number_.push_back(static_cast<std::size_t>(known - names_.begin()));
      if (known == names_.end()) {
        names_.push_back(phase);
      }
    }
  }
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  std::size_t of(std::size_t access) {
    while (next_ < stretches_.size() && stretches_[next_].begin <= access) {
      now_ = number_[next_++];
    }
    return now_;
  }

 private:
  const std::vector<Accesses::Stretch>& stretches_;
  std::vector<std::string> names_ = {""};
  std::vector<std::size_t> number_;
  std::size_t now_ = 0, next_ = 0;
};

// When the value that a word has after each access is needed next. What is not needed comes after
// all that is; of these, what was touched last is evicted first, which makes no difference to
// reads, and is near the top of the stack.
std::vector<OptStack::Time> next_uses(const Accesses& accesses) {
  const std::size_t n = accesses.in_order.size();
  std::vector<OptStack::Time> next(n);
  std::vector<OptStack::Time> needed(static_cast<std::size_t>(accesses.words), 0);  // 0: is not
  for (std::size_t t = n; t-- > 0;) {
    const auto& [kind, word] = accesses.in_order[t];
    next[t] = static_cast<OptStack::Time>(needed[word] > 0 ? needed[word] : n + t + 1);
    needed[word] = reads(kind) ? static_cast<OptStack::Time>(t + 1) : 0;
  }
  return next;
}

// Of caches with this stack; depth_of(stack, access, t) is the depth of the access at t.
template <class Stack, class Depth>
Moves by(const Accesses& accesses, const Depth& depth_of) {
  Phases phases(accesses);
  Moves moves(accesses.words, phases.names().size());
  Stack stack(accesses.words);
  for (std::size_t t = 0; t < accesses.in_order.size(); ++t) {
    const Access& access = accesses.in_order[t];
    moves.found(access, depth_of(stack, access, t), phases.of(t));
  }
  moves.end();
  return moves;
}

Moves by_lru(const Accesses& accesses) {
  return by<LruStack>(accesses, [](LruStack& stack, const Access& access, std::size_t) {
    return access.kind == Kind::dead ? stack.die(access.word) : stack.touch(access.word);
  });
}

Moves by_opt(const Accesses& accesses) {
  const std::vector<OptStack::Time> next = next_uses(accesses);
  return by<OptStack>(accesses, [&](OptStack& stack, const Access& access, std::size_t t) {
    return access.kind == Kind::dead ? stack.die(access.word) : stack.touch(access.word, next[t]);
  });
}

}  // namespace

std::size_t Replayed::at(Index M) const {
  return static_cast<std::size_t>(std::min(M, words)) - 1;
}

Replayed replay(const Accesses& accesses) {
  const Moves lru = by_lru(accesses), opt = by_opt(accesses);
  Replayed all = {.accesses = std::ssize(accesses.in_order),
                  .words = accesses.words,
                  .lru_reads = lru.reads(),
                  .lru_writes = lru.writes(),
                  .opt_reads = opt.reads(),
                  .belady_writes = opt.writes()};
  const std::vector<std::string> names = Phases(accesses).names();
  for (std::size_t phase = 0; phase < names.size(); ++phase) {
    all.phases.push_back({names[phase], lru.reads(phase), opt.reads(phase)});
  }
  // A cache of one word reads what a phase needs; without that it touches nothing that was there.
  std::erase_if(all.phases, [](const PhaseReads& of) { return of.lru.front() == 0; });
  return all;
}

}  // namespace redblue
