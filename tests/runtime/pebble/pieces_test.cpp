// Tests Hong and Kung's partition of a game. A piece has a dominator of at most red + its reads,
// and a minimum of at most red + its writes. The least dominator is no larger than the one that the
// game shows.

#include "runtime/pebble/pieces.hpp"

#include <algorithm>
#include <bit>
#include <random>

#include <gtest/gtest.h>

#include "tests/support/kernel_requests.hpp"
#include "tests/support/pebbled.hpp"
#include "tests/support/run_kernel.hpp"
#include "tests/support/traced_runs.hpp"

namespace redblue {
namespace {

// Returns whether a path from an input to a target avoids every vertex of `cut`.
bool passes(const Dag& dag, unsigned targets, unsigned cut) {
  unsigned open = 0;
  for (Index v = 0; v < dag.size(); ++v) {
    const unsigned bit = 1U << v;
    const bool reached = dag.input(v) || std::ranges::any_of(dag[v].operands, [&](Index operand) {
                           return ((open >> operand) & 1U) != 0;
                         });
    open |= reached && (cut & bit) == 0 ? bit : 0;
  }
  return (open & targets) != 0;
}

TEST(Pieces, LeastDominatorIsTheLeastOfAllSets) {
  std::mt19937_64 random(7);
  for (int trial = 0; trial < 400; ++trial) {
    const Index size = 3 + static_cast<Index>(random() % 8);
    Dag dag;
    for (Index v = 0; v < size; ++v) {
      std::vector<Index> operands;
      for (Index u = 0; u < v; ++u) {
        if (random() % 3 == 0) {
          operands.push_back(u);
        }
      }
      dag.add("v", operands);
    }
    unsigned targets = 0;
    std::vector<Index> list;
    for (Index v = 0; v < size; ++v) {
      if (v == size - 1 || random() % 3 == 0) {
        targets |= 1U << v;
        list.push_back(v);
      }
    }
    int least = static_cast<int>(size);
    for (unsigned cut = 0; cut < 1U << size; ++cut) {
      if (!passes(dag, targets, cut)) {
        least = std::min(least, std::popcount(cut));
      }
    }
    EXPECT_EQ(least_dominator(dag, list), least) << "trial " << trial;
  }
}

class PiecesOf : public testing::TestWithParam<TestedKernel> {};

TEST_P(PiecesOf, AreWhatTheLemmaSays) {
  const Request request = requests_of(GetParam(), {7, 5, 3}).front();
  const Pebbled run = pebbled(request, ProductPebbles::vertices);
  const Dag& dag = run.pebbling.dag;
  const std::vector<Move> all = without_slides(run.pebbling.moves);
  const std::vector<Move> moves = without_useless(dag, all);
  const Judged played = judge(dag, Game::strict, run.counted.peak + 2, moves);
  ASSERT_EQ(played.broken, "");
  EXPECT_EQ(without_useless(dag, moves).size(), moves.size());
  const Index red = played.played.red, words = played.played.words();
  EXPECT_LE(words + run.pebbling.beside, run.counted.io.reads + run.counted.io.writes);
  for (const Index T : {Index{1}, Index{7}, red, words}) {
    const std::vector<Piece> pieces = pieces_of(run.pebbling, moves, T);
    Piece sum;
    for (const Piece& piece : pieces) {
      EXPECT_LE(piece.dominator, red + piece.reads);
      EXPECT_LE(piece.minimum, red + piece.writes);
      ASSERT_TRUE(piece.least_dominator.has_value());
      EXPECT_LE(*piece.least_dominator, piece.dominator);
      sum.vertices += piece.vertices;
      sum.reads += piece.reads;
      sum.writes += piece.writes;
    }
    EXPECT_EQ(sum.vertices, dag.size());
    EXPECT_EQ(sum.reads, played.played.reads);
    EXPECT_EQ(sum.writes, played.played.writes);
    EXPECT_EQ(std::ssize(pieces), (words + T - 1) / T);
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, PiecesOf, testing::ValuesIn(tested_kernels()),
                         [](const auto& of) { return test_name(of.param.name); });

Piece most(const std::vector<Piece>& pieces) {
  Piece most;
  most.least_dominator = 0;
  for (const Piece& piece : pieces) {
    most.vertices = std::max(most.vertices, piece.vertices);
    most.products = std::max(most.products, piece.products);
    most.dominator = std::max(most.dominator, piece.dominator);
    most.least_dominator = std::max(most.least_dominator, piece.least_dominator);
    most.minimum = std::max(most.minimum, piece.minimum);
  }
  return most;
}

// An 8 x 8 x 8 product in blocks of 4: a piece of 50 moves has at most two products of blocks.
TEST(Pieces, OfAProductByBlocks) {
  Request request = redblue::request("matmul/blocked", {8, 8, 8}, 48);
  request.blocks["B"] = 4;
  const Pebbled run = pebbled(request, ProductPebbles::vertices);
  const std::vector<Move> moves = without_slides(run.pebbling.moves);
  const Played played = judge(run.pebbling.dag, Game::strict, 50, moves).played;
  EXPECT_EQ(played.words(), 320);
  EXPECT_EQ(played.red, 50);
  const std::vector<Piece> pieces = pieces_of(run.pebbling, moves, 50);
  EXPECT_EQ(pieces.size(), 7U);
  const Piece at_most = most(pieces);
  EXPECT_EQ(at_most.products, 128);
  EXPECT_EQ(at_most.dominator, 68);
  EXPECT_EQ(at_most.least_dominator, 64);
  EXPECT_EQ(at_most.minimum, 34);
}

}  // namespace
}  // namespace redblue
