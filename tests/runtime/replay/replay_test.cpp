#include "runtime/replay/replay.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <list>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "memsim/sanitized.hpp"
#include "runtime/replay/stacks.hpp"
#include "runtime/system/input_error.hpp"

namespace redblue {
namespace {

using Kind = Access::Kind;

struct Moved {
  Index reads = 0, writes = 0;
};

// Simulates one cache of M words, directly from the rules.
Moved naive_lru(const Accesses& accesses, Index M) {
  std::list<std::uint32_t> cache;  // most recently used in front
  std::set<std::uint32_t> dirty;
  Moved moved;
  for (const auto& [kind, word] : accesses.in_order) {
    const auto there = std::ranges::find(cache, word);
    const bool hit = there != cache.end();
    if (hit) {
      cache.erase(there);
    }
    if (kind == Kind::dead) {
      dirty.erase(word);
      continue;
    }
    if (!hit && std::ssize(cache) == M) {
      moved.writes += dirty.erase(cache.back()) > 0 ? 1 : 0;
      cache.pop_back();
    }
    moved.reads += !hit && reads(kind) ? 1 : 0;
    cache.push_front(word);
    if (writes(kind)) {
      dirty.insert(word);
    }
  }
  moved.writes += std::ssize(dirty);
  return moved;
}

// Returns when the value of `word` after access t is needed next. Values that are not needed again
// come after all others, and the one that was touched later is evicted first. Dead words have left
// the cache.
std::size_t next_need(const Accesses& accesses, std::uint32_t word, std::size_t t) {
  const std::size_t n = accesses.in_order.size();
  std::size_t touched = t;
  while (accesses.in_order[touched].unit != word) {
    --touched;
  }
  for (std::size_t at = t + 1; at < n; ++at) {
    if (accesses.in_order[at].unit == word) {
      return reads(accesses.in_order[at].kind) ? at : n + touched;
    }
  }
  return n + touched;
}

Moved naive_belady(const Accesses& accesses, Index M) {
  std::set<std::uint32_t> cache, dirty;
  Moved moved;
  for (std::size_t t = 0; t < accesses.in_order.size(); ++t) {
    const auto& [kind, word] = accesses.in_order[t];
    if (kind == Kind::dead) {
      cache.erase(word);
      dirty.erase(word);
      continue;
    }
    if (!cache.contains(word)) {
      moved.reads += reads(kind) ? 1 : 0;
      if (std::ssize(cache) == M) {
        const std::uint32_t farthest = *std::ranges::max_element(
            cache, {}, [&](std::uint32_t other) { return next_need(accesses, other, t - 1); });
        moved.writes += dirty.erase(farthest) > 0 ? 1 : 0;
        cache.erase(farthest);
      }
      cache.insert(word);
    }
    if (writes(kind)) {
      dirty.insert(word);
    }
  }
  moved.writes += std::ssize(dirty);
  return moved;
}

// Returns the fewest reads over all choices of evictions. It visits all sets of at most M words
// that a cache can hold, with the fewest reads that lead to each.
Index fewest_reads(const Accesses& accesses, Index M) {
  std::map<std::uint32_t, Index> reached = {{0, 0}};  // words as bits
  for (const auto& [kind, word] : accesses.in_order) {
    const std::uint32_t bit = std::uint32_t{1} << word;
    std::map<std::uint32_t, Index> next;
    const auto reach = [&](std::uint32_t words, Index reads) {
      const auto [known, added] = next.try_emplace(words, reads);
      known->second = std::min(known->second, reads);
    };
    for (const auto& [words, moved] : reached) {
      if (kind == Kind::dead) {
        reach(words & ~bit, moved);
      } else if ((words & bit) != 0) {
        reach(words, moved);
      } else {
        const Index now = moved + (redblue::reads(kind) ? 1 : 0);
        if (std::popcount(words) < M) {
          reach(words | bit, now);
        }
        for (std::uint32_t left = words; left != 0; left &= left - 1) {
          reach((words & ~(left & -left)) | bit, now);
        }
      }
    }
    reached = std::move(next);
  }
  return std::ranges::min_element(reached, {}, &std::pair<const std::uint32_t, Index>::second)
      ->second;
}

Accesses random_accesses(std::mt19937& random, Index words, Index length) {
  const auto below = [&](Index n) {
    return std::uniform_int_distribution<Index>(0, n - 1)(random);
  };
  Accesses made;
  made.widths.assign(static_cast<std::size_t>(words), 1);
  for (Index i = 0; i < length; ++i) {
    const Index kind = below(8);
    made.in_order.push_back({kind < 3   ? Kind::need
                             : kind < 5 ? Kind::change
                             : kind < 7 ? Kind::overwrite
                                        : Kind::dead,
                             static_cast<std::uint32_t>(below(words))});
  }
  return made;
}

// The replay of all sizes together has the counts of one cache of each size, and the fewest reads
// over all choices.
TEST(Replay, AgreesWithOneCacheOfEachSize) {
  std::mt19937 random(1);
  for (int trace = 0; trace < (kSanitized ? 500 : 10'000); ++trace) {
    const Index words = 1 + static_cast<Index>(random() % 6);
    const Accesses accesses = random_accesses(random, words, static_cast<Index>(random() % 24));
    const Replayed all = replay(accesses);
    for (Index M = 1; M <= words + 1; ++M) {
      SCOPED_TRACE(fmt::format("trace {}, M = {}", trace, M));
      const Moved lru = naive_lru(accesses, M);
      EXPECT_EQ(all.lru_reads[all.at(M)], lru.reads);
      EXPECT_EQ(all.lru_writes[all.at(M)], lru.writes);
      const Moved belady = naive_belady(accesses, M);
      EXPECT_EQ(all.opt_reads[all.at(M)], belady.reads);
      EXPECT_EQ(all.belady_writes[all.at(M)], belady.writes);
      ASSERT_EQ(all.opt_reads[all.at(M)], fewest_reads(accesses, M));
    }
  }
}

// Traces with many accesses and words, so that the tree of accesses is rebuilt. Without writes, the
// reads of OPT are convex in M (Michaud 2016).
TEST(Replay, OfLongTraces) {
  std::mt19937 random(2);
  for (const Index words : {40, 300}) {
    const Accesses accesses = random_accesses(random, words, 6000);
    const Replayed all = replay(accesses);
    for (Index M = 1; M <= words; M += 37) {
      const Moved lru = naive_lru(accesses, M);
      EXPECT_EQ(all.lru_reads[all.at(M)], lru.reads) << M;
      EXPECT_EQ(all.lru_writes[all.at(M)], lru.writes) << M;
    }
    Accesses reads = accesses;
    std::erase_if(reads.in_order, [](const Access& access) { return access.kind != Kind::need; });
    const Replayed of_reads = replay(reads);
    for (std::size_t M = 1; M + 1 < of_reads.opt_reads.size(); ++M) {
      EXPECT_LE(2 * of_reads.opt_reads[M], of_reads.opt_reads[M - 1] + of_reads.opt_reads[M + 1]);
    }
    for (std::size_t M = 0; M < all.opt_reads.size(); ++M) {
      EXPECT_LE(all.opt_reads[M], all.lru_reads[M]);
    }
  }
}

// More words than a block of OPT's stack holds.
TEST(Replay, OfManyWordsAgreesWithOneCacheOfEachSize) {
  std::mt19937 random(3);
  for (int trace = 0; trace < 8; ++trace) {
    const Accesses accesses = random_accesses(random, 100, 700);
    const Replayed all = replay(accesses);
    for (const Index M : {1, 2, 31, 32, 33, 64, 65, 90}) {
      const Moved belady = naive_belady(accesses, M);
      EXPECT_EQ(all.opt_reads[all.at(M)], belady.reads) << M;
      EXPECT_EQ(all.belady_writes[all.at(M)], belady.writes) << M;
    }
  }
}

// OPT's stack as its rule defines it, place by place.
class PlainOptStack {
 public:
  using Time = OptStack::Time;
  Index touch(std::uint32_t word, Time next) {
    const std::size_t old = place_of(word);
    std::pair<Time, std::uint32_t> carried = {next, word};
    for (std::size_t at = 0; at < places_.size(); ++at) {
      if (at == 0 || at == old || places_[at].first > carried.first) {
        std::swap(places_[at], carried);
      }
      if (at == old) {
        return static_cast<Index>(at) + 1;
      }
    }
    if (carried.first != kHole) {
      places_.push_back(carried);
    }
    return kNotThere;
  }
  Index die(std::uint32_t word) {
    const std::size_t old = place_of(word);
    if (old == places_.size()) {
      return kNotThere;
    }
    places_[old].first = kHole;
    return static_cast<Index>(old) + 1;
  }

 private:
  static constexpr Time kHole = std::numeric_limits<Time>::max();
  [[nodiscard]] std::size_t place_of(std::uint32_t word) const {
    const auto found = std::ranges::find_if(
        places_, [&](const auto& of) { return of.first != kHole && of.second == word; });
    return static_cast<std::size_t>(found - places_.begin());
  }
  std::vector<std::pair<Time, std::uint32_t>> places_;  // next use, word
};

// A stack of more than 1,024 words has blocks of blocks. The words come in turn with rising next
// uses, and at random.
TEST(OptStack, OfBlocksOfBlocksIsThatOfPlaces) {
  constexpr std::uint32_t kWords = 2500;
  std::mt19937 random(5);
  OptStack stack(kWords);
  PlainOptStack plain;
  for (OptStack::Time t = 1; t <= 12'000; ++t) {
    const bool in_turn = t % 5000 < 3000;
    const auto word = static_cast<std::uint32_t>((in_turn ? t : random()) % kWords);
    if (random() % 10 == 0) {
      ASSERT_EQ(stack.die(word), plain.die(word)) << t;
      continue;
    }
    const auto later = static_cast<OptStack::Time>(in_turn ? kWords : random() % (2 * kWords));
    const OptStack::Time next = ((t + later) << 14) + t;  // all different
    ASSERT_EQ(stack.touch(word, next), plain.touch(word, next)) << t;
  }
}

// Returns accesses to units of up to `widest` words.
Accesses random_rows(std::mt19937& random, Index units, Index widest, Index length) {
  Accesses made = random_accesses(random, units, length);
  for (std::uint32_t& width : made.widths) {
    width = 1 + static_cast<std::uint32_t>(random() % static_cast<std::uint32_t>(widest));
  }
  return made;
}

// Replaces each unit by its words, in turn.
Accesses words_of(const Accesses& rows) {
  Accesses words;
  words.widths.assign(static_cast<std::size_t>(rows.words()), 1);
  std::vector<std::uint32_t> first(rows.widths.size());
  std::exclusive_scan(rows.widths.begin(), rows.widths.end(), first.begin(), std::uint32_t{0});
  for (const auto& [kind, unit] : rows.in_order) {
    for (std::uint32_t word = 0; word < rows.widths[unit]; ++word) {
      words.in_order.push_back({kind, first[unit] + word});
    }
  }
  return words;
}

// LRU of rows equals LRU of their words in turn, word for word. OPT of rows holds a whole row
// together, and OPT of words only single words of it, so OPT of rows reads no less. Let w be the
// width of the widest row. OPT of rows in M words reads no more than OPT of words in M - w + 1
// words. While that smaller cache touches a word of a row, its words of other rows also fit in M
// with that whole row.
TEST(Rows, AreTheirWordsInTurn) {
  std::mt19937 random(6);
  for (int trace = 0; trace < (kSanitized ? 200 : 3000); ++trace) {
    const Accesses rows = random_rows(random, 1 + static_cast<Index>(random() % 7), 5,
                                      1 + static_cast<Index>(random() % 40));
    const Replayed all = replay(rows), words = replay(words_of(rows));
    ASSERT_EQ(all.words, words.words);
    for (Index M = all.widest; M <= all.words; ++M) {
      SCOPED_TRACE(fmt::format("trace {}, M = {}", trace, M));
      ASSERT_EQ(all.lru_reads[all.at(M)], words.lru_reads[words.at(M)]);
      ASSERT_EQ(all.lru_writes[all.at(M)], words.lru_writes[words.at(M)]);
      ASSERT_GE(all.opt_reads[all.at(M)], words.opt_reads[words.at(M)]);
      ASSERT_LE(all.opt_reads[all.at(M)], words.opt_reads[words.at(M - all.widest + 1)]);
    }
  }
}

// Rows of one width, in a cache of whole rows, behave as one word for each row.
TEST(Rows, OfOneWidthAreAsWordsInCachesOfWholeRows) {
  constexpr Index kWidth = 7;
  std::mt19937 random(7);
  for (int trace = 0; trace < 50; ++trace) {
    Accesses accesses = random_accesses(random, 30, 400);
    const Replayed words = replay(accesses);
    std::ranges::fill(accesses.widths, std::uint32_t{kWidth});
    const Replayed rows = replay(accesses);
    for (Index M = 1; M <= words.words; ++M) {
      const std::size_t at = rows.at(M * kWidth);
      ASSERT_EQ(rows.lru_reads[at], kWidth * words.lru_reads[words.at(M)]);
      ASSERT_EQ(rows.lru_writes[at], kWidth * words.lru_writes[words.at(M)]);
      ASSERT_EQ(rows.opt_reads[at], kWidth * words.opt_reads[words.at(M)]);
      ASSERT_EQ(rows.belady_writes[at], kWidth * words.belady_writes[words.at(M)]);
    }
  }
}

// Returns the fewest reads over all choices of how many words of each row stay. An access needs all
// words of its row.
Index fewest_reads_of_rows(const Accesses& rows, Index M) {
  using Kept = std::vector<Index>;  // words kept, for each row
  std::map<Kept, Index> reached = {{Kept(rows.widths.size()), 0}};
  for (const Access& access : rows.in_order) {
    const std::uint32_t unit = access.unit;
    std::map<Kept, Index> next;
    const auto keep = [&](const auto& self, Kept kept, std::size_t row, Index reads) -> void {
      if (row == kept.size()) {
        if (std::accumulate(kept.begin(), kept.end(), Index{0}) <= M) {
          const auto [known, added] = next.try_emplace(kept, reads);
          known->second = std::min(known->second, reads);
        }
        return;
      }
      self(self, kept, row + 1, reads);
      while (row != unit && kept[row]-- > 0) {
        self(self, kept, row + 1, reads);
      }
    };
    for (const auto& [before, moved] : reached) {
      Kept kept = before;
      const Index missed = static_cast<Index>(rows.widths[unit]) - kept[unit];
      kept[unit] += access.kind == Kind::dead ? -kept[unit] : missed;
      keep(keep, kept, 0, moved + (reads(access.kind) ? missed : 0));
    }
    reached = std::move(next);
  }
  return std::ranges::min_element(reached, {}, &std::pair<const Kept, Index>::second)->second;
}

TEST(Rows, OptReadsFewest) {
  std::mt19937 random(8);
  for (int trace = 0; trace < (kSanitized ? 20 : 200); ++trace) {
    const Accesses rows = random_rows(random, 1 + static_cast<Index>(random() % 4), 3,
                                      1 + static_cast<Index>(random() % 16));
    const Replayed all = replay(rows);
    for (Index M = all.widest; M <= all.words; ++M) {
      ASSERT_EQ(all.opt_reads[all.at(M)], fewest_reads_of_rows(rows, M))
          << "trace " << trace << ", M = " << M;
    }
  }
}

TEST(Dinero, WordsOfFourBytesInOrder) {
  const Accesses found =
      parse_dinero("0 1000\n1 0x1004 2 more\n\n0 1003\n 1 FFFFFFFFFFFFFFFF\n", "t");
  ASSERT_EQ(found.in_order.size(), 4U);
  EXPECT_EQ(found.words(), 3);
  const std::uint32_t words[] = {0, 1, 0, 2};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(found.in_order[i].unit, words[i]);
    EXPECT_EQ(found.in_order[i].kind, i % 2 == 0 ? Kind::need : Kind::overwrite);
  }
}

TEST(Dinero, RefusesWhatIsNoTrace) {
  const struct {
    const char *text, *why;
  } cases[] = {
      {"", "t: no accesses: each is a line such as '0 1f40'"},
      {"\n \n", "t: no accesses"},
      {"0 10\n2 14\n", "t: line 2: label '2': expected 0 (read) or 1 (write); leave others out"},
      {"0\n", "t: line 1: the address is missing"},
      {"0 0x\n", "t: line 1: '0x' is no address of 64 bits in hexadecimal"},
      {"0 -4\n", "t: line 1: '-4' is no address"},
      {"1 12g\n", "t: line 1: '12g' is no address"},
      {"1 10000000000000000\n", "t: line 1: '10000000000000000' is no address"},
  };
  for (const auto& [text, why] : cases) {
    try {
      static_cast<void>(parse_dinero(text, "t"));
      FAIL() << text;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace redblue
