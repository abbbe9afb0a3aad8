// A tile owns its words: it hands them on when moved and gives them back once, when it dies.

#include "memsim/tile.hpp"

#include <type_traits>
#include <utility>

#include <gtest/gtest.h>

#include "memsim/machine.hpp"

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

TEST(Tile, CannotBeCopied) {
  static_assert(!std::is_copy_constructible_v<Tile> && !std::is_copy_assignable_v<Tile>);
  static_assert(std::is_nothrow_move_constructible_v<Tile> &&
                std::is_nothrow_move_assignable_v<Tile>);
}

}  // namespace
}  // namespace redblue
