// Phases: the words, operations and peak that are booked on each.

#include "memsim/phase.hpp"

#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "memsim/machine.hpp"
#include "tests/support/print.hpp"

namespace redblue {
namespace {

TEST(Phase, BooksOnTheInnermostOpenOne) {
  SlowMatrix A("A", 10, 10);
  Machine machine(100);
  {
    const Phase outer(machine, "outer");
    {
      const Phase inner(machine, "inner");
      const Tile a = machine.read(A.block({0, 2}, {0, 3}));
      machine.write(a, A.block({0, 2}, {0, 3}));
      machine.computed({.flops = 4, .elementwise = 1});
    }
    const Phase other(machine, "other");
    const Tile a = machine.read(A.block({0, 1}, {0, 5}));
  }
  const std::vector<PhaseCounts> expected = {
      {"outer/inner", {6, 6}, {4, 1}, 6},
      {"outer/other", {5, 0}, {}, 5},
  };
  EXPECT_EQ(leaves(machine.phases()), expected);
  EXPECT_EQ(total(machine.phases()), (PhaseCounts{"", {11, 6}, {4, 1}, 6}));
}

TEST(Phase, EnteredAgainAccumulates) {
  SlowMatrix A("A", 10, 10);
  Machine machine(100);
  const Phase strip(machine, "strip");
  for (const Range I : blocks(10, 4)) {
    {
      const Phase phase(machine, "read");
      const Tile a = machine.read(A.row_block(I));
    }
    const Phase phase(machine, "write");
    machine.write(machine.initialize("w", I.size(), 1), A.block(I, {0, 1}));
  }
  const std::vector<PhaseCounts> expected = {
      {"strip/read", {100, 0}, {}, 40},
      {"strip/write", {0, 10}, {}, 4},
  };
  EXPECT_EQ(leaves(machine.phases()), expected);
}

// The same name under two parents, and at the root, makes three phases.
TEST(Phase, IsKnownByItsPath) {
  Machine machine(10);
  for (const char* outer : {"a", "b"}) {
    const Phase phase(machine, outer);
    const Phase inner(machine, "x");
    machine.computed({.flops = 1});
  }
  const Phase x(machine, "x");
  const std::vector<PhaseCounts> found = leaves(machine.phases());
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].path, "a/x");
  EXPECT_EQ(found[1].path, "b/x");
  EXPECT_EQ(found[2].path, "x");
  EXPECT_EQ(found[2].operations, Operations{});
}

TEST(Phase, ShowsWordsBookedDirectlyOnANodeWithPhasesWithin) {
  SlowMatrix A("A", 4, 4);
  Machine machine(100);
  static_cast<void>(machine.read(A.whole()));  // before any phase
  {
    const Phase outer(machine, "outer");
    static_cast<void>(machine.read(A.row_block({0, 2})));
    {
      const Phase inner(machine, "inner");
      static_cast<void>(machine.read(A.row_block({0, 1})));
    }
    static_cast<void>(machine.read(A.block({0, 1}, {0, 1})));
  }
  const std::vector<PhaseCounts> expected = {
      {"", {16, 0}, {}, 16},
      {"outer", {9, 0}, {}, 8},
      {"outer/inner", {4, 0}, {}, 4},
  };
  EXPECT_EQ(leaves(machine.phases()), expected);

  IoCount sum;
  for (const PhaseCounts& leaf : leaves(machine.phases())) {
    sum += leaf.io;
  }
  EXPECT_EQ(sum, total(machine.phases()).io);
}

TEST(Phase, PeakIsAllThatIsLiveWhileInIt) {
  Machine machine(100);
  const Tile before = machine.initialize("before", 10);
  {
    const Phase idle(machine, "idle");  // makes no tile: its peak is the words already live
  }
  {
    const Phase first(machine, "first");
    const Tile a = machine.initialize("a", 30);
    { const Tile b = machine.initialize("b", 20); }
    const Tile c = machine.initialize("c", 5);
  }
  {
    const Phase second(machine, "second");
    const Tile a = machine.initialize("a", 7);
  }
  const std::vector<PhaseCounts> found = leaves(machine.phases());
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].peak, 10);
  EXPECT_EQ(found[1].peak, 60);
  EXPECT_EQ(found[2].peak, 17);
  EXPECT_EQ(total(machine.phases()).peak, 60);
}

// A tile made in an inner phase that outlives it is live in the outer phase.
TEST(Phase, PeakCountsWhatAPhaseWithinLeftBehind) {
  SlowMatrix A("A", 10, 1);
  Machine machine(100);
  {
    const Phase outer(machine, "outer");
    Tile kept;
    {
      const Phase inner(machine, "inner");
      kept = machine.initialize("kept", 10);
    }
    machine.write(kept, A.whole());
  }
  const std::vector<PhaseCounts> expected = {
      {"outer", {0, 10}, {}, 10},
      {"outer/inner", {0, 0}, {}, 10},
  };
  EXPECT_EQ(leaves(machine.phases()), expected);
}

// A phase that outlives its machine ends without being booked, in whatever order phases end.
TEST(Phase, ThatOutlivesItsMachineEndsWithoutIt) {
  auto machine = std::make_unique<Machine>(10);
  auto outer = std::make_unique<Phase>(*machine, "outer");
  { const Phase over(*machine, "over"); }
  const Phase inner(*machine, "inner");
  EXPECT_EQ(machine->open_phase(), "outer/inner");
  machine.reset();
  outer.reset();
}

TEST(Phase, OfAMachineThatDidNothingIsNone) {
  const Machine machine(1);
  EXPECT_TRUE(leaves(machine.phases()).empty());
  EXPECT_EQ(total(machine.phases()), PhaseCounts{});
  EXPECT_EQ(machine.phases().path(), "");
  EXPECT_EQ(machine.open_phase(), "");
}

}  // namespace
}  // namespace redblue
