// A tile owns its words: a move passes them on, and its end returns them once.

#include "memsim/tile.hpp"

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <gtest/gtest.h>

#include "memsim/errors.hpp"
#include "memsim/machine.hpp"
#include "tests/support/thrown.hpp"

namespace redblue {
namespace {

TEST(Tile, HoldsNothingByDefault) {
  Tile tile;
  EXPECT_EQ(tile.rows(), 0);
  EXPECT_EQ(tile.cols(), 0);
  EXPECT_EQ(tile.words(), 0);
  tile.reset();
  EXPECT_EQ(tile.words(), 0);
}

TEST(Tile, OfFewColumnsIsRowMajor) {
  Machine machine(12);
  Tile tile = machine.initialize("t", 3, 4);
  for (Index i = 0; i < 3; ++i) {
    for (Index j = 0; j < 4; ++j) {
      tile(i, j) = static_cast<float>(4 * i + j);
    }
  }
  const Tile& constant = tile;
  for (Index k = 0; k < 12; ++k) {
    EXPECT_EQ(ConstView(tile).at(0, 0)[k], static_cast<float>(k));
  }
  EXPECT_EQ(ConstView(constant).at(2, 0), ConstView(constant).at(0, 0) + 8);
  EXPECT_EQ(constant(2, 3), 11);
  EXPECT_EQ(&tile.machine(), &machine);
}

TEST(Tile, GivesItsWordsBackOnce) {
  Machine machine(10);
  {
    Tile tile = machine.initialize("t", 2, 5);
    EXPECT_EQ(machine.live(), 10);
    tile.reset();
    EXPECT_EQ(machine.live(), 0);
    EXPECT_EQ(tile.rows(), 0);
    EXPECT_EQ(tile.cols(), 0);
    tile.reset();
    EXPECT_EQ(machine.live(), 0);
  }
  EXPECT_EQ(machine.live(), 0);
}

TEST(Tile, HandsItsWordsOnWhenMoved) {
  Machine machine(10);
  Tile a = machine.initialize("a", 2, 5, 3);
  Tile b = std::move(a);
  EXPECT_EQ(machine.live(), 10);
  EXPECT_EQ(b.words(), 10);
  EXPECT_EQ(b(1, 4), 3);
  EXPECT_EQ(a.words(), 0);  // NOLINT(bugprone-use-after-move): 0 x 0 is the promise
  a.reset();
  EXPECT_EQ(machine.live(), 10);
}

TEST(Tile, AssignedToReleasesWhatItHeldFirst) {
  Machine machine(30);
  Tile a = machine.initialize("a", 10, 1, 1);
  Tile b = machine.initialize("b", 20, 1, 2);
  a = std::move(b);
  EXPECT_EQ(machine.live(), 20);
  EXPECT_EQ(a.words(), 20);
  EXPECT_EQ(a(19, 0), 2);
  Tile& self = a;
  a = std::move(self);
  EXPECT_EQ(a.words(), 20);
  EXPECT_EQ(machine.live(), 20);
  a = Tile();
  EXPECT_EQ(machine.live(), 0);
}

TEST(Tile, MayMoveBetweenMachinesOwners) {
  Machine one(4);
  Machine two(6);
  Tile tile = one.initialize("t", 4);
  tile = two.initialize("t", 6);
  EXPECT_EQ(one.live(), 0);
  EXPECT_EQ(two.live(), 6);
  EXPECT_EQ(&tile.machine(), &two);
}

// An index outside the tile would reach a word of another tile.
TEST(Tile, ChecksEveryIndex) {
  Machine machine(200);
  Tile a = machine.initialize("a", 2, 2);
  const Tile b = machine.initialize("b", 2, 2, 7);
  const Tile wide = machine.initialize("wide", 3, 40);
  const Tile& constant = a;
  EXPECT_EQ(thrown<ShapeMismatch>([&] {
              for (Index k = 0; k < 400; ++k) {
                a(k, 0) = 5;
              }
            }),
            "a(2, 0) leaves a, which is 2 x 2");
  EXPECT_EQ(a(1, 0), 5);
  EXPECT_EQ(b(0, 0), 7);
  EXPECT_EQ(thrown<ShapeMismatch>([&] { static_cast<void>(wide(2, 40)); }),
            "wide(2, 40) leaves wide, which is 3 x 40");
  EXPECT_EQ(wide(2, 39), 0);

  constexpr Index kFar = std::numeric_limits<Index>::max();
  for (const auto& [i, j] : {std::pair<Index, Index>{2, 0},
                             {0, 2},
                             {-1, 0},
                             {0, -1},
                             {-1, -1},
                             {Index{1} << 32, 0},
                             {0, Index{1} << 62},
                             {kFar, kFar},
                             {-kFar - 1, 0},
                             {0, -kFar - 1}}) {
    const std::string message =
        "a(" + std::to_string(i) + ", " + std::to_string(j) + ") leaves a, which is 2 x 2";
    EXPECT_EQ(thrown<ShapeMismatch>([&, i = i, j = j] { a(i, j) = 1; }), message);
    EXPECT_EQ(thrown<ShapeMismatch>([&, i = i, j = j] { static_cast<void>(constant(i, j)); }),
              message);
  }
}

const std::string kNothing =
    "a tile of 0 x 0 has no words: it was reset, moved, never made, or its machine is gone";

TEST(Tile, ThatHoldsNothingHasNoWord) {
  Machine machine(4);
  Tile tile = machine.initialize("t", 2, 2);
  tile.reset();
  const Tile never;
  for (const Tile* none : {&std::as_const(tile), &never}) {
    EXPECT_EQ(thrown<ShapeMismatch>([&] { static_cast<void>((*none)(0, 0)); }), kNothing);
    EXPECT_EQ(thrown<ShapeMismatch>([&] { static_cast<void>(ConstView(*none)); }), kNothing);
  }
  EXPECT_EQ(thrown<ShapeMismatch>([&] { static_cast<void>(View(tile)); }), kNothing);
  EXPECT_EQ(thrown<ShapeMismatch>([&] { static_cast<void>(never.machine()); }), kNothing);
}

// When the machine ends, every tile is left without words, wherever it was moved.
TEST(Tile, ThatOutlivesItsMachineHoldsNothing) {
  Tile kept;
  Tile assigned;
  std::unique_ptr<Tile> moved;
  {
    Machine machine(20);
    kept = machine.initialize("kept", 2, 2);
    Tile passed = machine.initialize("passed", 3);
    moved = std::make_unique<Tile>(std::move(passed));
    Tile first = machine.initialize("first", 1, 5);
    Tile second = std::move(first);
    assigned = std::move(second);
    EXPECT_EQ(machine.live(), 12);
    EXPECT_EQ(machine.contents(), "kept 4, passed 3, first 5");
  }
  for (Tile* tile : {&kept, &assigned, moved.get()}) {
    EXPECT_EQ(tile->rows(), 0);
    EXPECT_EQ(tile->cols(), 0);
    EXPECT_EQ(tile->words(), 0);
    EXPECT_EQ(thrown<ShapeMismatch>([&] { (*tile)(0, 0) = 1; }), kNothing);
    EXPECT_EQ(thrown<ShapeMismatch>([&] { static_cast<void>(View(*tile)); }), kNothing);
    EXPECT_EQ(thrown<ShapeMismatch>([&] { static_cast<void>(tile->machine()); }), kNothing);
  }
  // Such a tile can be reused and moved like any other empty tile.
  Tile on = std::move(kept);
  EXPECT_EQ(on.words(), 0);
  Machine another(4);
  assigned = another.initialize("again", 4);
  EXPECT_EQ(assigned(3, 0), 0);
  moved->reset();
  EXPECT_EQ(another.live(), 4);
}

// A reused slot belongs only to its new tile.
TEST(Tile, ThatDiedBeforeItsMachineIsLeftAlone) {
  std::optional<Machine> machine(4);
  Tile old = machine->initialize("old", 4);
  old.reset();
  Tile next = machine->initialize("next", 4);
  Tile other;
  other = std::move(next);
  machine.reset();
  EXPECT_EQ(old.words() + next.words() + other.words(), 0);  // NOLINT(bugprone-use-after-move)
}

TEST(Tile, CannotBeCopied) {
  static_assert(!std::is_copy_constructible_v<Tile> && !std::is_copy_assignable_v<Tile>);
  static_assert(std::is_nothrow_move_constructible_v<Tile> &&
                std::is_nothrow_move_assignable_v<Tile>);
}

}  // namespace
}  // namespace redblue
