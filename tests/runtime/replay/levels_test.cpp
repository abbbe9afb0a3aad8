// Tests the words of levels against LRU caches without hints. A run of backward/rows, with blocks
// of b rows and c keys at a level, touches rows of d words. LRU of M words hits a row if fewer than
// M words were touched since its last use.
//
//   core   S, G, W, L and v of a row block wait while its keys stream, in row blocks of the level
//          inside. Before a row is used again, all others were used with all keys, and so were
//          the next keys: (3 b + 4 c) d + 2 b words, where the nest holds (3 b + 2 c) d + 2 b.
//   seam   S waits while G is computed from dO, O and Y, and v, and until the first keys have met
//          all rows before: (5 b + 2 c + d) d + 2 b words.
//
// The words of the innermost level come on top.

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/replay/replay.hpp"
#include "runtime/report/kernel_replay.hpp"
#include "tests/support/traced_runs.hpp"

namespace redblue {
namespace {

struct RowsAndKeys {
  Index rows, keys;
};

// Blocks of levels, from the innermost out. The last are the blocks of the machine. All levels have
// room.
struct Leveled {
  Shape shape;
  std::vector<RowsAndKeys> by;

  [[nodiscard]] Request request() const {
    Request request = redblue::request("backward/rows", shape, 10'000'000);
    const auto add = [&](const std::string& level, RowsAndKeys of) {
      request.blocks[level + "Br"] = of.rows;
      request.blocks[level + "Bc"] = of.keys;
      request.blocks[level + "Bw"] = shape.d;
    };
    for (std::size_t level = 0; level + 1 < by.size(); ++level) {
      request.inner.push_back(100'000 * static_cast<Index>(level + 1));
      add("L" + std::to_string(level + 1) + ".", by[level]);
    }
    add("", by.back());
    return request;
  }
};

class SeenByCaches {
 public:
  explicit SeenByCaches(const Leveled& leveled)
      : run_(accesses_of(leveled.request(), ReplayUnit::row)), all_(replay(run_.accesses)) {}

  // Returns the counts of level 1, 2, ... The last level is the machine.
  [[nodiscard]] const RunCounts::Level& level(std::size_t number) const {
    return counted().inner.at(number - 1);
  }
  [[nodiscard]] PhaseCounts phase(std::size_t number, const std::string& path) const {
    return *std::ranges::find(level(number).phases, path, &PhaseCounts::path);
  }
  [[nodiscard]] IoCount machine() const { return counted().total.io; }
  [[nodiscard]] IoCount lru(Index M) const {
    return {all_.lru_reads[all_.at(M)], all_.lru_writes[all_.at(M)]};
  }
  [[nodiscard]] Index lru_reads(const std::string& path, Index M) const {
    return std::ranges::find(all_.phases, path, &PhaseReads::phase)->lru[all_.at(M)];
  }
  [[nodiscard]] Index opt_reads(const std::string& path, Index M) const {
    return std::ranges::find(all_.phases, path, &PhaseReads::phase)->opt[all_.at(M)];
  }

 private:
  [[nodiscard]] const RunCounts& counted() const { return *run_.report.kernel.counted; }

  KernelAccesses run_;
  Replayed all_;
};

// Two levels. From the larger of the two sizes on, LRU reads and writes exactly the words of the
// machine. This ends when LRU keeps keys or rows of A1 for longer than a row block: they are used
// again after at least 2 m rows of keys.
TEST(LevelsInCaches, LruMovesTheWordsOfTheMachine) {
  const Leveled cases[] = {
      {{256, 256, 8}, {{8, 1}, {64, 32}}},  {{256, 256, 8}, {{16, 4}, {64, 16}}},
      {{128, 256, 8}, {{10, 1}, {32, 32}}}, {{100, 300, 5}, {{7, 2}, {24, 60}}},
      {{250, 241, 8}, {{6, 1}, {60, 32}}},  {{96, 512, 8}, {{12, 4}, {24, 64}}}};
  for (const Leveled& leveled : cases) {
    const auto [n, m, d] = leveled.shape;
    const auto [b, c] = leveled.by.back();
    SCOPED_TRACE("b " + std::to_string(b) + ", c " + std::to_string(c));
    const SeenByCaches seen(leveled);
    const Index core = (3 * b + 4 * c) * d + 2 * b, seam = (5 * b + 2 * c + d) * d + 2 * b;
    const Index from = std::max(core, seam) + seen.level(1).total.peak;
    const Index until = 2 * m * d;
    ASSERT_LT(from, until);
    for (Index M = from; M <= until; ++M) {
      ASSERT_EQ(seen.lru(M), seen.machine()) << M;
    }
  }
}

// Three levels, and one block of the machine. In the core, S, G and W enter and leave level 2. LRU
// of (3 b + 4 c) d + 2 b words reads the words of that level. This ends when it keeps G from the
// phase before, after 2 (n - b) other rows. LRU of the words that level 1 holds, plus one key
// block, reads the words of level 1. There every key touches the rows, so the rows do not wait for
// a next block.
TEST(LevelsInCaches, LruReadsTheWordsOfEachLevelOfTheCore) {
  const Leveled cases[] = {{{256, 256, 8}, {{8, 1}, {64, 32}, {256, 256}}},
                           {{256, 256, 8}, {{8, 2}, {64, 16}, {256, 256}}},
                           {{256, 512, 8}, {{8, 2}, {32, 32}, {256, 512}}},
                           {{240, 240, 8}, {{6, 1}, {48, 24}, {240, 240}}}};
  for (const Leveled& leveled : cases) {
    const auto [n, m, d] = leveled.shape;
    const auto [b, c] = leveled.by[1];
    SCOPED_TRACE("b " + std::to_string(b) + ", c " + std::to_string(c));
    const SeenByCaches seen(leveled);
    const Index from = (3 * b + 4 * c) * d + 2 * b + seen.level(1).total.peak;
    const Index until = 2 * std::min(n - b, m) * d;
    ASSERT_LT(from, until);
    for (Index M = from; M <= until; ++M) {
      ASSERT_EQ(seen.lru_reads("core", M), seen.phase(2, "core").io.reads) << M;
      ASSERT_EQ(seen.lru(M).writes, seen.level(2).total.io.writes) << M;
    }
    const Index inside = seen.phase(1, "core").peak + 2 * leveled.by[0].keys * d;
    EXPECT_EQ(seen.lru_reads("core", inside), seen.phase(1, "core").io.reads);
  }
}

// n = m = 256, in rows of d words. The levels have room for 26 rows and for 256, with blocks of 8
// rows and one key, and of 64 rows and 32 keys. Without L and v, of one word each, the levels of
// the core move 24,320 and 2,816 rows. LRU of the larger fast memory, (3 b + 2 c) d words, reads
// more than twice the second number. With one level, LRU reads all 2 m n / 8 rows of keys. A cache
// that knows the future reads 61% of them.
TEST(LevelsInCaches, LruOfWhatTheNestHoldsDoesNotDo) {
  constexpr Index n = 256, d = 8, b = 64, c = 32;
  const Leveled three{{n, n, d}, {{8, 1}, {b, c}, {n, n}}}, one{{n, n, d}, {{8, 1}}};
  const SeenByCaches seen(three);
  const auto rows = [&](std::size_t level, Index passes) {
    const Index L_and_v = 2 * n * passes;
    return (seen.phase(level, "core").io.io() - L_and_v) / d;
  };
  EXPECT_EQ(rows(1, n / c), 24'320);
  EXPECT_EQ(rows(2, 1), 2'816);
  const Index held = (3 * b + 2 * c) * d + 2 * b + seen.level(1).total.peak;
  EXPECT_GT(seen.lru_reads("core", held), 2 * seen.phase(2, "core").io.reads);

  const SeenByCaches flat(one);
  EXPECT_EQ(flat.lru_reads("core", 256 * d), 2 * n * (n / 8) * d + n);
  EXPECT_EQ(flat.opt_reads("core", 256 * d), 80'720);
}

}  // namespace
}  // namespace redblue
