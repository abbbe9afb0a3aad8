#include "runtime/replay/replay.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <span>

#include "runtime/replay/stacks.hpp"

namespace redblue {
namespace {

using Kind = Access::Kind;

// Counts the words that caches miss. A cache of M words misses the words at depths above M.
class Tally {
 public:
  explicit Tally(Index words)
      : below_(static_cast<std::size_t>(words) + 1), one_each_(below_.size() + 1) {}
  void add(const Depths& found) {
    if (found.first == found.last) {
      below_[at(found.last)] += found.words;
    } else {
      ++one_each_[at(found.first)];
      --one_each_[at(found.last) + 1];
    }
  }
  // Returns the number of missed words for each M from 1 on.
  [[nodiscard]] std::vector<Index> counts() const {
    std::vector<Index> all = below_;
    Index each = 0;
    for (std::size_t depth = 0; depth < all.size(); ++depth) {
      each += one_each_[depth];
      all[depth] += each;
    }
    all.erase(all.begin());
    for (std::size_t M = all.size() - 1; M-- > 0;) {
      all[M] += all[M + 1];
    }
    return all;
  }

 private:
  [[nodiscard]] std::size_t at(Index depth) const {
    return std::min(static_cast<std::size_t>(depth), below_.size()) - 1;
  }
  std::vector<Index> below_;  // words at [depth - 1]; the last: missed by all caches
  // Differences of counts, for words at consecutive depths: +1 at the first depth, -1 after the
  // last.
  std::vector<Index> one_each_;
};

// Counts reads and write-backs by the depths at which words are found.
class Moves {
 public:
  Moves(const Accesses& accesses, std::size_t phases)
      : reads_(std::max<std::size_t>(phases, 1), Tally(accesses.words())),
        writes_(accesses.words()),
        first_word_(accesses.widths.size()),
        since_(static_cast<std::size_t>(accesses.words()), kClean) {
    std::exclusive_scan(accesses.widths.begin(), accesses.widths.end(), first_word_.begin(),
                        std::size_t{0});
  }

  void found(const Access& access, std::span<const Depths> depths, std::size_t phase) {
    if (redblue::reads(access.kind)) {
      for (const Depths& of : depths) {
        reads_[phase].add(of);
      }
    }
    std::size_t word = first_word_[access.unit];
    if (access.kind == Kind::need && since_[word] == kClean) {
      return;  // all words of the unit are clean
    }
    for (const auto& [first, last, words] : depths) {
      const Index step = first == last ? 0 : 1;
      for (Index i = 0; i < words; ++i) {
        found(access.kind, since_[word++], first + i * step);
      }
    }
  }
  void end() {
    for (const Index deepest : since_) {
      if (deepest != kClean) {
        write_back(kNotThere);
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

  void found(Kind kind, Index& deepest, Index depth) {
    if (deepest != kClean) {
      deepest = std::max(deepest, depth);
    }
    if (kind != Kind::need) {
      if (deepest != kClean) {
        write_back(deepest);
      }
      deepest = redblue::writes(kind) ? kFresh : kClean;
    }
  }
  void write_back(Index deepest) { writes_.add({deepest, deepest, 1}); }

  std::vector<Tally> reads_;  // by phase
  Tally writes_;
  std::vector<std::size_t> first_word_;  // the number of a unit's first word
  std::vector<Index> since_;  // of a word: the maximum depth since its last write, or kClean
};

// Finds the phase of each access. Requires: calls in the order of accesses.
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

// Returns, for each access, when the unit's value after it is needed next. Values that are not
// needed come after all others. Among these the one touched last comes last and is evicted first.
// This choice does not change reads, and its place is near the top of the stack.
std::vector<OptStack::Time> next_uses(const Accesses& accesses) {
  const std::size_t n = accesses.in_order.size();
  std::vector<OptStack::Time> next(n);
  std::vector<OptStack::Time> needed(accesses.widths.size(), 0);  // 0: not needed
  for (std::size_t t = n; t-- > 0;) {
    const auto& [kind, unit] = accesses.in_order[t];
    next[t] = static_cast<OptStack::Time>(needed[unit] > 0 ? needed[unit] : n + t + 1);
    needed[unit] = reads(kind) ? static_cast<OptStack::Time>(t + 1) : 0;
  }
  return next;
}

// Returns the moves of caches in which found(access, t) returns the depths for access t.
template <class Found>
Moves by(const Accesses& accesses, const Found& found) {
  Phases phases(accesses);
  Moves moves(accesses, phases.names().size());
  for (std::size_t t = 0; t < accesses.in_order.size(); ++t) {
    const Access& access = accesses.in_order[t];
    moves.found(access, found(access, t), phases.of(t));
  }
  moves.end();
  return moves;
}

Moves by_lru(const Accesses& accesses) {
  LruStack stack(accesses.widths);
  return by(accesses, [&](const Access& access, std::size_t) {
    return access.kind == Kind::dead ? stack.die(access.unit) : stack.touch(access.unit);
  });
}

Moves by_opt(const Accesses& accesses) {
  const std::vector<OptStack::Time> next = next_uses(accesses);
  if (std::ranges::any_of(accesses.widths, [](std::uint32_t width) { return width > 1; })) {
    OptRowStack stack(accesses.widths);
    return by(accesses, [&](const Access& access, std::size_t t) {
      return access.kind == Kind::dead ? stack.die(access.unit) : stack.touch(access.unit, next[t]);
    });
  }
  OptStack stack(accesses.units());
  Depths found{.first = 0, .last = 0, .words = 1};
  return by(accesses, [&](const Access& access, std::size_t t) {
    found.first = found.last =
        access.kind == Kind::dead ? stack.die(access.unit) : stack.touch(access.unit, next[t]);
    return std::span<const Depths>(&found, 1);
  });
}

}  // namespace

std::size_t Replayed::at(Index M) const {
  return static_cast<std::size_t>(std::min(M, words)) - 1;
}

Replayed replay(const Accesses& accesses) {
  const Moves lru = by_lru(accesses), opt = by_opt(accesses);
  Replayed all = {.accesses = std::ssize(accesses.in_order),
                  .units = accesses.units(),
                  .widest = static_cast<Index>(*std::ranges::max_element(accesses.widths)),
                  .words = accesses.words(),
                  .lru_reads = lru.reads(),
                  .lru_writes = lru.writes(),
                  .opt_reads = opt.reads(),
                  .belady_writes = opt.writes()};
  const std::vector<std::string> names = Phases(accesses).names();
  for (std::size_t phase = 0; phase < names.size(); ++phase) {
    all.phases.push_back({names[phase], lru.reads(phase), opt.reads(phase)});
  }
  // Leave out phases in which even a cache of one word reads no words.
  std::erase_if(all.phases, [](const PhaseReads& of) { return of.lru.front() == 0; });
  return all;
}

}  // namespace redblue
