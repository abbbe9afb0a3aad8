// The four moves: their counts, and that a refused request changes no state.

#include "memsim/machine.hpp"

#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "memsim/host_access.hpp"
#include "memsim/workspace.hpp"
#include "tests/support/print.hpp"

namespace redblue {
namespace {

// Everything that a machine reports about its past.
struct Snapshot {
  std::vector<PhaseCounts> leaves;
  PhaseCounts all;
  std::size_t phases;
  Index live;

  explicit Snapshot(const Machine& machine)
      : leaves(redblue::leaves(machine.phases())),
        all(total(machine.phases())),
        phases(count(machine.phases())),
        live(machine.live()) {}
  friend bool operator==(const Snapshot&, const Snapshot&) = default;

 private:
  static std::size_t count(const PhaseNode& node) {
    std::size_t nodes = 1;
    for (const auto& child : node.children) {
      nodes += count(*child);
    }
    return nodes;
  }
};

// A store that fails on request.
class FailingBacking final : public Backing {
 public:
  struct Switch {
    bool broken = false;
  };
  explicit FailingBacking(const Switch& state) : switch_(state) {}
  void read(Range, Range, std::span<float> to) const override {
    fail();
    std::fill(to.begin(), to.end(), 1.0F);
  }
  void write(Range, Range, std::span<const float>) override { fail(); }

 private:
  void fail() const {
    if (switch_.broken) {
      throw std::runtime_error("the disk is on fire");
    }
  }
  const Switch& switch_;
};

TEST(Machine, CountsTheWordsOfEachMove) {
  SlowMatrix A("A", 6, 5);
  HostAccess::put(A, std::vector<float>(30, 2.0F));
  Machine machine(40);
  EXPECT_EQ(machine.capacity(), 40);

  const Tile a = machine.read(A.block({1, 4}, {0, 2}));  // 3 x 2
  EXPECT_EQ(total(machine.phases()).io, (IoCount{6, 0}));
  EXPECT_EQ(machine.live(), 6);

  Tile b = machine.initialize("b", 3, 2, 7);  // free
  EXPECT_EQ(total(machine.phases()).io, (IoCount{6, 0}));
  EXPECT_EQ(machine.live(), 12);
  EXPECT_EQ(b(2, 1), 7);

  machine.write(b, A.block({3, 6}, {3, 5}));
  machine.write(b, A.block({0, 3}, {0, 2}));
  EXPECT_EQ(total(machine.phases()).io, (IoCount{6, 12}));
  EXPECT_EQ(total(machine.phases()).io.io(), 18);

  b.reset();  // free
  EXPECT_EQ(total(machine.phases()).io, (IoCount{6, 12}));
  EXPECT_EQ(machine.live(), 6);
  EXPECT_EQ(total(machine.phases()).peak, 12);
  EXPECT_GE(machine.span(), 12);
}

TEST(Machine, InitializesAColumnOfZeroesByDefault) {
  Machine machine(10);
  { const Tile rubbish = machine.initialize("rubbish", 10, 1, 3); }
  const Tile sum = machine.initialize("sum", 10);
  EXPECT_EQ(sum.cols(), 1);
  for (Index i = 0; i < 10; ++i) {
    EXPECT_EQ(sum(i, 0), 0);
  }
}

// An unset tile counts in live and peak like any other tile of its size. No word moves.
TEST(Machine, ChargesATileThatIsNotSet) {
  Machine machine(12);
  {
    const Tile tile = machine.initialize("later", 3, 4, kUnset);
    EXPECT_EQ(tile.rows(), 3);
    EXPECT_EQ(tile.cols(), 4);
    EXPECT_EQ(machine.live(), 12);
    EXPECT_THROW((void)machine.initialize("one more", 1, 1, kUnset), FastMemoryOverflow);
#ifndef NDEBUG
    for (Index i = 0; i < 3; ++i) {
      for (Index j = 0; j < 4; ++j) {
        EXPECT_TRUE(std::isnan(tile(i, j))) << i << ", " << j;
      }
    }
#endif
  }
  EXPECT_EQ(machine.live(), 0);
  EXPECT_EQ(total(machine.phases()).peak, 12);
  EXPECT_EQ(total(machine.phases()).io.io(), 0);
}

TEST(Machine, NeedsAWordOfMemory) {
  EXPECT_THROW(Machine(0), ShapeMismatch);
  EXPECT_THROW(Machine(-5), ShapeMismatch);
  EXPECT_THROW(Machine(Index{1} << 60), std::system_error);
}

TEST(Machine, HoldsExactlyM) {
  for (const Index M : {Index{1}, Index{7}, Index{1000}}) {
    Machine machine(M);
    { const Tile all = machine.initialize("all", M); }
    EXPECT_THROW(static_cast<void>(machine.initialize("more", M + 1)), FastMemoryOverflow);
    const Tile all = machine.initialize("all", 1, M);
    EXPECT_THROW(static_cast<void>(machine.initialize("one", 1)), FastMemoryOverflow);
  }
}

TEST(Machine, WritesATileToABlockOfItsShapeAlone) {
  SlowMatrix A("A", 6, 6);
  Machine machine(12);
  const Tile tile = machine.initialize("t", 2, 3);
  const Snapshot before(machine);
  EXPECT_THROW(machine.write(tile, A.block({0, 3}, {0, 2})), ShapeMismatch);
  EXPECT_THROW(machine.write(tile, A.block({0, 1}, {0, 6})), ShapeMismatch);
  EXPECT_THROW(machine.write(tile, A.block({0, 2}, {0, 2})), ShapeMismatch);
  EXPECT_EQ(Snapshot(machine), before);
  machine.write(tile, A.block({0, 2}, {0, 3}));
}

TEST(Machine, MakesNoEmptyTile) {
  SlowMatrix A("A", 2, 2);
  Machine machine(4);
  EXPECT_THROW(static_cast<void>(machine.initialize("t", 0, 3)), ShapeMismatch);
  EXPECT_THROW(static_cast<void>(machine.initialize("t", 3, -1)), ShapeMismatch);
  EXPECT_THROW(static_cast<void>(machine.read(A.block({1, 1}, {0, 2}))), ShapeMismatch);
  EXPECT_EQ(Snapshot(machine), Snapshot(Machine(4)));
}

TEST(Machine, RefusesBeforeItCharges) {
  SlowMatrix A("A", 10, 10);
  Machine machine(100);
  const Phase outer(machine, "outer");
  const Tile a = machine.read(A.block({0, 5}, {0, 6}));
  const Phase inner(machine, "inner");
  const Tile b = machine.initialize("b", 4, 5);
  const Snapshot before(machine);

  EXPECT_THROW(static_cast<void>(machine.initialize("c", 51)), FastMemoryOverflow);
  EXPECT_THROW(static_cast<void>(machine.read(A.whole())), FastMemoryOverflow);
  EXPECT_THROW(static_cast<void>(machine.initialize("c", Index{1} << 62)), FastMemoryOverflow);
  EXPECT_EQ(Snapshot(machine), before);

  const Tile c = machine.initialize("c", 50);  // the rest of M can still be used
  EXPECT_EQ(machine.live(), 100);
}

TEST(Machine, TellsWhatAnOverflowMissed) {
  SlowMatrix A("A1", 8, 8);
  Machine machine(100);
  const Phase outer(machine, "phase1");
  const Tile a = machine.read(A.block({0, 6}, {0, 8}));
  const Phase inner(machine, "S");
  const Tile s = machine.initialize("max", 21);
  try {
    static_cast<void>(machine.initialize("rescale", 9, 5));
    FAIL() << "69 + 45 > 100";
  } catch (const FastMemoryOverflow& error) {
    EXPECT_EQ(error.missing(), 14);
    const std::string message = error.what();
    for (const char* part : {"phase1/S", "rescale", "45 words", "69", "M = 100", "A1 48", "max 21",
                             "14 words are missing"}) {
      EXPECT_NE(message.find(part), std::string::npos) << part << " is not in: " << message;
    }
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }
}

TEST(Machine, NamesTheMatrixThatARefusedReadAskedFor) {
  const SlowMatrix A("A2", 8, 8);
  Machine machine(63);
  try {
    static_cast<void>(machine.read(A.whole()));
    FAIL() << "64 > 63";
  } catch (const FastMemoryOverflow& error) {
    EXPECT_EQ(error.missing(), 1);
    const std::string message = error.what();
    for (const char* part : {"no phase", "A2 asks for 64", "none"}) {
      EXPECT_NE(message.find(part), std::string::npos) << part << " is not in: " << message;
    }
  }
}

// A machine of M + missing words suffices, and M + missing - 1 does not.
TEST(Machine, KnowsExactlyHowMuchIsMissing) {
  const auto needs = [](Index M) -> Index {
    Machine machine(M);
    try {
      const Tile a = machine.initialize("a", 3, 4);
      const Tile b = machine.initialize("b", 5, 5);
    } catch (const FastMemoryOverflow& error) {
      return error.missing();
    }
    return 0;
  };
  for (Index M = 12; M < 40; ++M) {
    const Index missing = needs(M);
    EXPECT_EQ(missing, std::max<Index>(0, 37 - M));
    EXPECT_EQ(needs(M + missing), 0);
    if (missing > 0) {
      EXPECT_EQ(needs(M + missing - 1), 1);
    }
  }
}

TEST(Machine, DoesNotWrapOnSizesBeyond63Bits) {
  Machine machine(10);
  EXPECT_THROW(static_cast<void>(machine.initialize("t", Index{1} << 32, Index{1} << 32)),
               CountOverflow);
  EXPECT_EQ(Snapshot(machine), Snapshot(Machine(10)));
}

TEST(Machine, CountsNothingWhenTheStoreFails) {
  FailingBacking::Switch state;
  SlowMatrix A("A", 4, 4, std::make_unique<FailingBacking>(state));
  Machine machine(32);
  const Phase phase(machine, "p");
  const Tile a = machine.read(A.whole());
  machine.write(a, A.whole());
  const Snapshot before(machine);

  state.broken = true;
  EXPECT_THROW(static_cast<void>(machine.read(A.whole())), std::runtime_error);
  EXPECT_THROW(machine.write(a, A.whole()), std::runtime_error);
  EXPECT_EQ(Snapshot(machine), before);
  EXPECT_EQ(before.live, 16);

  try {  // the words of the failed read are free again, and its tile is not listed as live
    static_cast<void>(machine.initialize("b", 17));
    FAIL() << "16 + 17 > 32";
  } catch (const FastMemoryOverflow& error) {
    EXPECT_NE(std::string(error.what()).find("(A 16)"), std::string::npos) << error.what();
  }
  state.broken = false;
  const Tile b = machine.read(A.whole());
  EXPECT_EQ(machine.live(), 32);
}

TEST(Machine, KeepsContentsWhenARequestIsRefused) {
  Machine machine(20);
  Tile a = machine.initialize("a", 4, 4, 5);
  EXPECT_THROW(static_cast<void>(machine.initialize("b", 5)), FastMemoryOverflow);
  for (Index i = 0; i < 4; ++i) {
    for (Index j = 0; j < 4; ++j) {
      EXPECT_EQ(a(i, j), 5);
    }
  }
}

// Tiles slide together when M is fragmented, and their contents survive.
TEST(Machine, NeverFailsALegalRequestForFragmentation) {
  constexpr Index kSide = 100;
  constexpr Index kTiles = 1000;
  Machine machine(kSide * kTiles);
  std::vector<Tile> tiles;
  for (Index k = 0; k < kTiles; ++k) {
    tiles.push_back(machine.initialize("t", kSide, 1, static_cast<float>(k)));
  }
  for (std::size_t k = 0; k < kTiles; k += 2) {
    tiles[k].reset();
  }
  const Tile large = machine.initialize("large", kSide, kTiles / 2, -1);
  EXPECT_EQ(machine.live(), machine.capacity());
  for (std::size_t k = 1; k < kTiles; k += 2) {
    for (Index i = 0; i < kSide; ++i) {
      ASSERT_EQ(tiles[k](i, 0), static_cast<float>(k));
    }
  }
  for (Index i = 0; i < kSide; ++i) {
    ASSERT_EQ(large(i, kTiles / 2 - 1), -1);
  }
  EXPECT_LE(machine.span(), machine.capacity() * 9 / 8 + 16384);
}

// The hook runs before each read, write and read of a stream. If it throws, the move does not
// happen.
TEST(Machine, AsksBeforeEachMove) {
  RamWorkspace workspace;
  SlowMatrix A = workspace.matrix("A", 4, 4);
  HostAccess::put(A, std::vector<float>(16, 1.0F));
  Machine machine(64);
  int asked = 0;
  constexpr int kMost = 2;
  machine.before_each_move([&] {
    if (++asked > kMost) {
      throw std::runtime_error("enough");
    }
  });
  {
    Tile a = machine.read(A.block({0, 2}, {0, 2}));
    machine.write(a, A.block({2, 4}, {2, 4}));
    const Snapshot before(machine);
    EXPECT_THROW(machine.write(a, A.block({2, 4}, {2, 4})), std::runtime_error);
    EXPECT_THROW(static_cast<void>(machine.read(A.block({0, 2}, {0, 2}))), std::runtime_error);
    EXPECT_THROW(
        {
          for ([[maybe_unused]] const Tile& tile : machine.stream(A.row_blocks(2))) {
          }
        },
        std::runtime_error);
    EXPECT_EQ(Snapshot(machine), before);
    EXPECT_EQ(asked, 5);
  }
  machine.before_each_move(nullptr);
  static_cast<void>(machine.read(A.block({0, 2}, {0, 2})));
  EXPECT_EQ(asked, 5);
}

TEST(Machine, AddsUpReportedOperations) {
  Machine machine(1);
  machine.computed({.flops = 10, .elementwise = 3});
  {
    const Phase phase(machine, "p");
    machine.computed({.flops = 5});
  }
  EXPECT_EQ(total(machine.phases()).operations, (Operations{15, 3}));
}

TEST(IoCount, IsAValueWithSumAndDifference) {
  const IoCount a{5, 3};
  const IoCount b{2, 1};
  EXPECT_EQ(a + b, (IoCount{7, 4}));
  EXPECT_EQ(a - b, (IoCount{3, 2}));
  EXPECT_EQ((a + b) - b, a);
  EXPECT_NE(a, b);
  EXPECT_EQ(a.io(), 8);
}

}  // namespace
}  // namespace redblue
