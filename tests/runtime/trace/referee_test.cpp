// Tests that runs use only words that they have. Every operation of every kernel takes words of
// living tiles that were set, and every product is reported.

#include "runtime/trace/referee.hpp"

#include <functional>
#include <memory>
#include <utility>

#include <gtest/gtest.h>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/registry.hpp"
#include "tests/support/kernel_requests.hpp"
#include "tests/support/run_kernel.hpp"
#include "tests/support/traced_runs.hpp"

namespace redblue {
namespace {

struct Seen {
  Index by_hand = 0, illegal = 0, operations = 0;
  Index untold = 0;  // multiplications and additions
  std::string verdict;
};

Seen seen_in(const Request& request) {
  Seen seen;
  const auto refereed = [&](Machine& machine, const Plan&, const std::function<void()>& go) {
    const Referee referee(machine);
    go();
    referee.check();
    seen = {referee.by_hand(), referee.illegal(), referee.operations(),
            total(machine.phases()).operations.flops - referee.flops(), referee.verdict()};
  };
  run(request, Topology(), {.kernel = refereed, .peak_gflops = false});
  return seen;
}

class RefereeOf : public testing::TestWithParam<FollowedKernel> {};

TEST_P(RefereeOf, EveryOperationTakesWordsThatItHas) {
  for (const Request& request : GetParam().requests({13, 11, 5})) {
    SCOPED_TRACE(said(request));
    const Seen seen = seen_in(request);
    EXPECT_EQ(seen.verdict, "legal");
    EXPECT_EQ(seen.untold, 0);
    EXPECT_GT(seen.operations, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, RefereeOf, testing::ValuesIn(followed_kernels()),
                         [](const auto& of) { return test_name(of.param.name); });

class RefereeTest : public testing::Test {
 protected:
  Machine machine_{1000};
  Referee referee_{machine_};
};

TEST_F(RefereeTest, CatchesAWordThatNobodySet) {
  const Tile a = machine_.initialize("a", 3, 20, 1.0F);
  const Tile b = machine_.initialize("b", 20, 18, 1.0F);
  Tile c = machine_.initialize("c", 3, 18, kUnset);
  multiply(a.part({0, 2}), b, c.part({0, 2}));
  EXPECT_EQ(referee_.by_hand(), 0);
  multiply_add(a, b, c);  // no words for the third row
  EXPECT_EQ(referee_.by_hand(), 18);
  EXPECT_EQ(referee_.first_by_hand(), "product takes c(2, 0), which nobody set");
  multiply_add(a, b, c);
  EXPECT_EQ(referee_.by_hand(), 18) << "each once";
  EXPECT_EQ(referee_.illegal(), 0);
}

TEST_F(RefereeTest, CatchesAWrittenWordThatNobodySet) {
  SlowMatrix S("S", 2, 3);
  Tile t = machine_.initialize("t", 3, 2, kUnset);
  fill_in_row(t, 1, {0, 2}, 4.0F);
  machine_.write(t, transposed(S.whole()));
  EXPECT_EQ(referee_.by_hand(), 4);
  EXPECT_EQ(referee_.first_by_hand(), "write takes t(0, 0), which nobody set");
}

TEST_F(RefereeTest, ReadsOfUnsetWordsDoNotEndWithTheTileBefore) {
  for (int i = 0; i < 2; ++i) {
    Tile sum = machine_.initialize("sum", 4, 1, kUnset);
    scale(sum, 2.0F);
  }
  EXPECT_EQ(referee_.by_hand(), 8);
}

TEST_F(RefereeTest, CatchesWhatNoTileHas) {
  const Tile a = machine_.initialize("a", 3, 4, 1.0F);
  std::uint64_t gone = 0;
  {
    const Tile b = machine_.initialize("b", 3, 4, 1.0F);
    gone = machine_.part_of(b).tile;
  }
  const TilePart whole = machine_.part_of(a);
  const auto tell = [&](const TilePart& result, const TilePart& operand) {
    machine_.tell(Operation{.form = Operation::Form::map,
                            .name = "add",
                            .result = result,
                            .old = true,
                            .operands = {&operand, 1}});
  };
  tell(whole, whole);
  EXPECT_EQ(referee_.illegal(), 0);
  TilePart other = whole;
  other.tile = gone;
  tell(whole, other);
  EXPECT_EQ(referee_.illegal(), 1);
  EXPECT_EQ(referee_.first_illegal(), "add takes a tile that is gone");
  other = whole;
  other.column = 1;
  tell(whole, other);
  EXPECT_EQ(referee_.illegal(), 2);
  other = whole;
  other.transposed = true;
  tell(whole, other);
  EXPECT_EQ(referee_.illegal(), 3);
}

}  // namespace
}  // namespace redblue
