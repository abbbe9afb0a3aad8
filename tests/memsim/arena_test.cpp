// The arena holds any set of tiles of at most M words in total, whatever tiles came and went
// before. Contents survive, tiles never overlap, and addresses stay within M + M / 8 + 16384 words.

#include "memsim/arena.hpp"

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace redblue {
namespace {

// An arena, with a copy of its expected content.
class Watched {
 public:
  explicit Watched(Index M) : M_(M), arena_(M) {}

  [[nodiscard]] Index free() const { return M_ - live_; }
  [[nodiscard]] std::size_t count() const { return slots_.size(); }
  [[nodiscard]] Index span() const { return arena_.span(); }
  [[nodiscard]] bool slides_for(Index words) const { return arena_.slides_for(words); }

  Arena::Slot* place(Index words) {
    Arena::Slot* slot = arena_.place("tile", words);
    EXPECT_EQ(slot->words, words);
    EXPECT_TRUE(slot->id >= next_id_) << "an id is never used twice";
    next_id_ = slot->id + 1;
    ids_.insert(slot->id);
    float* at = arena_.address(*slot);
    for (Index i = 0; i < words; ++i) {
      at[i] = content(*slot, i);
    }
    slots_.push_back(slot);
    live_ += words;
    return slot;
  }

  void release(std::size_t which) {
    Arena::Slot* slot = slots_[which];
    slots_[which] = slots_.back();
    slots_.pop_back();
    live_ -= slot->words;
    ids_.erase(slot->id);
    arena_.release(slot);
  }

  // Checks that no tiles overlap, that every tile is where the arena says, that large tiles start
  // on a cache line, and that the span is bounded.
  [[nodiscard]] testing::AssertionResult sound() const {
    if (arena_.living().size() != slots_.size()) {
      return testing::AssertionFailure() << "living() has not the living";
    }
    Index end = 0;
    for (const Arena::Slot* slot : arena_.living()) {
      if (!ids_.contains(slot->id)) {
        return testing::AssertionFailure() << "a dead tile lives";
      }
      if (slot->offset < end) {
        return testing::AssertionFailure() << "tiles overlap at " << slot->offset;
      }
      end = slot->offset + slot->words;
      if (slot->words >= 128 && reinterpret_cast<std::uintptr_t>(arena_.address(*slot)) % 64 != 0) {
        return testing::AssertionFailure() << "a large tile straddles cache lines";
      }
    }
    if (end > arena_.span() || arena_.span() > M_ + M_ / 8 + 16384) {
      return testing::AssertionFailure() << "span " << arena_.span() << " of M = " << M_;
    }
    return testing::AssertionSuccess();
  }

  [[nodiscard]] testing::AssertionResult intact() const {
    for (const Arena::Slot* slot : slots_) {
      const float* at = arena_.address(*slot);
      for (Index i = 0; i < slot->words; ++i) {
        if (at[i] != content(*slot, i)) {
          return testing::AssertionFailure() << "word " << i << " of " << slot->words << " changed";
        }
      }
    }
    return testing::AssertionSuccess();
  }

 private:
  static float content(const Arena::Slot& slot, Index i) {
    return static_cast<float>((slot.id * 7919 + static_cast<std::uint64_t>(i)) % 16777213);
  }

  Index M_;
  Arena arena_;
  Index live_ = 0;
  std::vector<Arena::Slot*> slots_;
  std::set<std::uint64_t> ids_;  // ids of the live tiles
  std::uint64_t next_id_ = 0;
};

// Releases tiles at random, then fills the arena to the last word with tiles of all lengths. M is
// so large that the slack alone could not hide fragmentation.
TEST(Arena, HoldsTilesAtFullOccupancyWhateverCameBefore) {
  std::mt19937_64 random(2);
  for (const Index M : {Index{70001}, Index{150000}}) {
    Watched arena(M);
    int placed = 0;
    for (int round = 0; round < 250; ++round) {
      const std::size_t keep = arena.count() == 0 ? 0 : random() % arena.count();
      while (arena.count() > keep) {
        arena.release(random() % arena.count());
      }
      while (arena.free() > 0) {
        const Index wish = round % 3 == 0 ? arena.free() : Index{1} << (random() % 15);
        const Index spread = wish + static_cast<Index>(random() % static_cast<std::uint64_t>(wish));
        arena.place(std::min(arena.free(), spread));
        ++placed;
        ASSERT_TRUE(arena.sound());
      }
      ASSERT_TRUE(arena.intact());
    }
    EXPECT_GT(placed, 2000);
    EXPECT_GT(arena.span(), M) << "no alignment was ever needed: the test shows too little";
  }
}

TEST(Arena, OfTinyMHoldsMTilesOfOneWord) {
  for (const Index M : {Index{1}, Index{2}, Index{3}, Index{17}}) {
    Watched arena(M);
    std::mt19937_64 random(3);
    for (int round = 0; round < 300; ++round) {
      while (arena.free() > 0) {
        arena.place(1 + static_cast<Index>(random() % static_cast<std::uint64_t>(arena.free())));
        ASSERT_TRUE(arena.sound());
      }
      ASSERT_TRUE(arena.intact());
      arena.release(random() % arena.count());
    }
  }
}

// Releasing every second tile leaves half of M free, in holes of 64 words. A tile of M / 2 words
// fits no hole, and does not fit behind the last tile within the span either.
TEST(Arena, SlidesTilesTogetherWhereNoHoleIsLargeEnough) {
  constexpr Index kSide = 64;
  constexpr Index kTiles = 2048;
  constexpr Index kM = kSide * kTiles;
  static_assert(kM + kM / 2 > kM + kM / 8 + 16384);
  Watched arena(kM);
  for (Index i = 0; i < kTiles; ++i) {
    arena.place(kSide);
  }
  // Backwards, because release() moves the last tile to the released index.
  for (std::size_t i = kTiles; i > 0; i -= 2) {
    arena.release(i - 2);
  }
  ASSERT_EQ(arena.free(), kM / 2);
  EXPECT_TRUE(arena.slides_for(kM / 2));
  EXPECT_FALSE(arena.slides_for(kSide));
  arena.place(kM / 2);
  EXPECT_EQ(arena.free(), 0);
  EXPECT_TRUE(arena.sound());
  EXPECT_TRUE(arena.intact());
}

// Tiles keep their addresses where none may slide, whatever came before, and any M words still fit.
TEST(Arena, PlacesTilesThatStayWithoutMovingOthers) {
  constexpr Index M = 5000;
  std::mt19937_64 random(3);
  Arena arena(M, Arena::Tiles::stay);
  std::vector<std::pair<Arena::Slot*, float*>> living;
  Index live = 0;
  for (int step = 0; step < 20000; ++step) {
    // Sizes double now and then, so that the holes of small tiles are too small for later ones.
    const Index words = 1 + static_cast<Index>(random() % (std::uint64_t{1} << (step / 50 % 13)));
    while (live + words > M) {
      const std::size_t which = random() % living.size();
      live -= living[which].first->words;
      arena.release(living[which].first);
      living[which] = living.back();
      living.pop_back();
    }
    Arena::Slot* const slot = arena.place("tile", words);
    living.emplace_back(slot, arena.address(*slot));
    live += words;
  }
  for (const auto& [slot, address] : living) {
    EXPECT_EQ(arena.address(*slot), address);
  }
  EXPECT_GT(arena.span(), M + M / 8) << "no tile needed another place: the test shows nothing";
}

// The classical pattern against first fit: fill with tiles of size s, free every second tile, ask
// for s + 1, double s.
TEST(Arena, SurvivesDoublingSizes) {
  constexpr Index kM = 1 << 17;
  Watched arena(kM);
  for (Index size = 16; size <= kM / 4; size *= 2) {
    while (arena.free() >= size + 1) {
      arena.place(size + 1);
    }
    ASSERT_TRUE(arena.sound());
    for (std::size_t i = 0; i < arena.count(); ++i) {
      arena.release(i);
    }
  }
  if (arena.free() > 0) {
    arena.place(arena.free());
  }
  EXPECT_TRUE(arena.sound());
  EXPECT_TRUE(arena.intact());
}

// The worst cost of alignment: 15 words of padding before each tile of 128, with M full.
TEST(Arena, KeepsItsSpanWhereEveryTileNeedsPadding) {
  constexpr Index kPairs = 2000;
  constexpr Index kM = kPairs * 129;
  Watched arena(kM);
  for (Index i = 0; i < kPairs; ++i) {
    arena.place(128);
    arena.place(1);
  }
  EXPECT_TRUE(arena.sound());
  // All small tiles are replaced by tiles of 129 words.
  for (std::size_t i = arena.count(); i-- > 0;) {
    if (i % 2 == 1) {
      arena.release(i);
    }
  }
  while (arena.free() >= 129) {
    arena.place(129);
  }
  EXPECT_TRUE(arena.sound());
  EXPECT_TRUE(arena.intact());
}

TEST(Arena, SpanIsTheFarthestWordEverInUse) {
  Arena arena(1000);
  EXPECT_EQ(arena.span(), 0);
  Arena::Slot* a = arena.place("a", 10);
  Arena::Slot* b = arena.place("b", 20);
  EXPECT_EQ(arena.span(), 30);
  arena.release(b);
  arena.release(a);
  EXPECT_EQ(arena.span(), 30);
  EXPECT_TRUE(arena.living().empty());
}

// A thread's arenas, one after another or several at once, have their own words.
TEST(Arena, TakesOverNoWordsOfALivingArena) {
  for (int round = 0; round < 3; ++round) {
    Arena one(1000);
    Arena other(1000);
    Arena large(Index{8} << 20);
    float* const words[] = {one.address(*one.place("a", 1000)),
                            other.address(*other.place("a", 1000)),
                            large.address(*large.place("a", 1000))};
    for (int k = 0; k < 3; ++k) {
      std::fill_n(words[k], 1000, static_cast<float>(k));
    }
    for (int k = 0; k < 3; ++k) {
      EXPECT_EQ(std::count(words[k], words[k] + 1000, static_cast<float>(k)), 1000);
    }
  }
}

}  // namespace
}  // namespace redblue
