// A workspace knows the words that its matrices take now, and the maximum so far.

#include "memsim/workspace.hpp"

#include <cmath>
#include <optional>
#include <utility>

#include <gtest/gtest.h>

#include "memsim/errors.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace {

TEST(RamWorkspace, MetersItsMatricesInWhateverOrderTheyDie) {
  RamWorkspace workspace;
  EXPECT_EQ(workspace.peak(), 0);
  std::optional<SlowMatrix> S = workspace.matrix("S", 3, 4);
  std::optional<SlowMatrix> f = workspace.matrix("f", 5, 5);
  EXPECT_EQ(workspace.live(), 37);
  S.reset();
  EXPECT_EQ(workspace.live(), 25);
  const SlowMatrix q = workspace.matrix("q", 2, 3);
  EXPECT_EQ(workspace.live(), 31);
  EXPECT_EQ(workspace.peak(), 37);
  {
    const SlowMatrix moved = std::move(*f);  // a kernel passes a matrix on like this
    f.reset();
    EXPECT_EQ(workspace.live(), 31);
  }
  EXPECT_EQ(workspace.live(), 6);
  EXPECT_EQ(workspace.peak(), 37);
}

TEST(RamWorkspace, GivesFreshMatricesWithTheirNames) {
  RamWorkspace workspace;
  const SlowMatrix S = workspace.matrix("S", 2, 2);
  EXPECT_EQ(S.name(), "S");
  Machine machine(4);
  const Tile s = machine.read(S.whole());
  EXPECT_TRUE(std::isnan(s(0, 0)) && std::isnan(s(1, 1)));
}

TEST(RamWorkspace, CountsNothingForARefusedMatrix) {
  RamWorkspace workspace;
  EXPECT_THROW(static_cast<void>(workspace.matrix("S", 0, 7)), ShapeMismatch);
  EXPECT_THROW(static_cast<void>(workspace.matrix("S", Index{1} << 32, Index{1} << 32)),
               CountOverflow);
  EXPECT_EQ(workspace.live(), 0);
  EXPECT_EQ(workspace.peak(), 0);
}

}  // namespace
}  // namespace redblue
