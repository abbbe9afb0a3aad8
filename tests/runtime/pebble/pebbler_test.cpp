// Tests runs as games. A run with peak M, without indices, is a game on its own graph with the same
// number of words. The sliding game needs M red pebbles. The strict game needs one more, for the
// word that changes. Products with separate pebbles need another one.

#include "runtime/pebble/pebbler.hpp"

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/kernel_requests.hpp"
#include "tests/support/pebbled.hpp"
#include "tests/support/run_kernel.hpp"
#include "tests/support/traced_runs.hpp"

namespace redblue {
namespace {

// The sliding game again, directly from its definition.
bool keeps_the_rules(const Dag& dag, Index M, const std::vector<Move>& moves) {
  std::set<Index> red, blue, used;
  for (Index v = 0; v < dag.size(); ++v) {
    if (dag.input(v)) {
      blue.insert(v);
    }
    used.insert(dag[v].operands.begin(), dag[v].operands.end());
  }
  const auto is_red = [&](Index v) { return red.contains(v); };
  for (const auto& [act, v, slides, adds] : moves) {
    if ((act == Act::read && !blue.contains(v)) || (act == Act::write && !is_red(v)) ||
        (act == Act::remove && red.erase(v) == 0)) {
      return false;
    }
    if (act == Act::write) {
      blue.insert(v);
    }
    if (act == Act::compute) {
      const std::vector<Index>& operands = dag[v].operands;
      if (operands.empty() || !std::ranges::all_of(operands, is_red) ||
          (slides && std::ranges::find(operands, *slides) == operands.end())) {
        return false;
      }
      if (slides) {
        red.erase(*slides);
      }
    }
    if (act == Act::read || act == Act::compute) {
      red.insert(v);
    }
    if (std::ssize(red) > M) {
      return false;
    }
  }
  for (Index v = 0; v < dag.size(); ++v) {
    if (!used.contains(v) && !blue.contains(v)) {
      return false;
    }
  }
  return true;
}

const std::vector<Shape> kPebbledShapes = {{7, 5, 3}, {4, 6, 2}, {3, 3, 4}};

class PebblingOf : public testing::TestWithParam<FollowedKernel> {
 protected:
  static std::vector<Request> requests() {
    std::vector<Request> all;
    for (const Shape& shape : kPebbledShapes) {
      std::ranges::copy(GetParam().requests(shape), std::back_inserter(all));
    }
    return all;
  }
};

TEST_P(PebblingOf, KeepsTheRulesAndMovesTheWordsThatAreCounted) {
  bool reached = false;  // the peak
  for (const Request& request : requests()) {
    SCOPED_TRACE(said(request));
    const Pebbled run = pebbled(request, ProductPebbles::fused);
    const auto& [dag, moves, made, stored, beside, by_hand, unused] = run.pebbling;
    const Index M = run.peak;
    EXPECT_EQ(by_hand, 0);
    const Judged sliding = judge(dag, Game::sliding, M, moves);
    EXPECT_EQ(sliding.broken, "");
    EXPECT_EQ(sliding.played.words() + beside, run.counted.io.reads + run.counted.io.writes);
    if (dag.size() > 0) {
      EXPECT_THAT(judge(dag, Game::sliding, sliding.played.red - 1, moves).broken,
                  testing::HasSubstr("one red pebble more than M"));
    }
    reached = reached || sliding.played.red == M;
    EXPECT_EQ(judge(dag, Game::strict, M + 1, without_slides(moves)).broken, "");
  }
  // These kernels hold dO twice: as rows, and transposed for a strip. A word and its copy are one
  // pebble.
  const bool holds_copies = GetParam().name.starts_with("gradients/resident");
  EXPECT_EQ(reached, !holds_copies);
}

// An input has the name of its place in a stored matrix, even if a mask leaves out rows.
TEST_P(PebblingOf, NamesInputsByTheirPlace) {
  for (const Request& request : GetParam().requests(kPebbledShapes.front())) {
    SCOPED_TRACE(said(request));
    const Pebbling run = pebbled(request, ProductPebbles::fused).pebbling;
    std::set<Index> inputs, named;
    for (const auto& [matrix, row, column, vertex] : run.stored) {
      if (run.dag.input(vertex)) {
        inputs.insert(vertex);
        if (run.dag[vertex].name == fmt::format("{}({},{})", matrix, row, column)) {
          named.insert(vertex);
        }
      }
    }
    EXPECT_EQ(named, inputs);
  }
}

// Returns whether the run reaches its peak M and the strict game needs no further pebble.
bool is_strict_with_M(const Pebbled& run) {
  const auto& [dag, moves, made, stored, beside, by_hand, unused] = run.pebbling;
  return judge(dag, Game::sliding, run.peak, moves).played.red == run.peak &&
         judge(dag, Game::strict, run.peak, without_slides(moves)).broken.empty();
}

// If reads, or words computed from others, reach the peak, then no word changes while M words are
// red. Then the strict game needs only M pebbles. This happens in some run of each listed kernel,
// and in no run of the others that reaches its peak.
TEST_P(PebblingOf, IsStrictWithMWhereNoWordChangesAtThePeak) {
  static const std::set<std::string_view> enough_in = {
      "forward/naive",        "backward/naive",     "backward/small",
      "backward/large",       "matmul/sparse-stay", "matmul/sparse-pass",
      "backward/sparse-rows", "backward/sparse-x",  "logsumexp/sparse-tiles"};
  bool enough = false;
  for (const Request& request : requests()) {
    enough = enough || is_strict_with_M(pebbled(request, ProductPebbles::fused));
  }
  EXPECT_EQ(enough, enough_in.contains(GetParam().name));
}

// With the least M, the strict game needs a further pebble in almost all dense kernels. The
// exceptions reach their peak when scores are computed from words that stay, not when a sum grows.
// In the third shape, X and Y cause the peak.
TEST_P(PebblingOf, IsStrictWithTheLeastMInFewKernels) {
  static const std::set<std::string_view> beside_scores = {"forward/naive", "backward/naive"};
  if (GetParam().kernel->takes_sparse) {
    return;
  }
  for (const Shape& shape : kPebbledShapes) {
    const Request request = GetParam().requests(shape).front();
    EXPECT_EQ(is_strict_with_M(pebbled(request, ProductPebbles::fused)),
              beside_scores.contains(GetParam().name) && shape.d < shape.n)
        << said(request) << " n=" << shape.n;
  }
}

TEST_P(PebblingOf, OfProductsAsVerticesTakesOnePebbleMore) {
  for (const Request& request : requests()) {
    SCOPED_TRACE(said(request));
    const Pebbled run = pebbled(request, ProductPebbles::vertices);
    const auto& [dag, moves, made, stored, beside, by_hand, unused] = run.pebbling;
    const Index M = run.peak;
    EXPECT_EQ(judge(dag, Game::sliding, M + 1, moves).broken, "");
    EXPECT_EQ(judge(dag, Game::strict, M + 2, without_slides(moves)).broken, "");
    if (run.pebbling.made_twice() == 0) {
      EXPECT_EQ(judge(dag, Game::fma, M, without_terms(Rules(dag, Game::fma), moves)).broken, "");
    }
  }
}

TEST_P(PebblingOf, PlaysOnceWhereNothingIsMadeTwice) {
  for (const Request& request : requests()) {
    SCOPED_TRACE(said(request));
    const Pebbled run = pebbled(request, ProductPebbles::fused);
    const Judged once =
        judge(run.pebbling.dag, Game::once, run.peak + 1, without_slides(run.pebbling.moves));
    EXPECT_EQ(once.broken.empty(), run.pebbling.made_twice() == 0) << once.broken;
  }
}

// One move is dropped, doubled, swapped with the next, or applied to another vertex. The referee
// agrees with the definition.
TEST_P(PebblingOf, WithAMoveChangedIsJudgedAsByTheDefinition) {
  const Pebbled run = pebbled(requests().front(), ProductPebbles::fused);
  const Dag& dag = run.pebbling.dag;
  std::mt19937_64 random(1);
  const auto below = [&](Index end) {
    return static_cast<Index>(random() % static_cast<std::uint64_t>(end));
  };
  Index refused = 0;
  for (Index mutant = 0; mutant < 16; ++mutant) {
    std::vector<Move> moves = run.pebbling.moves;
    const auto at = moves.begin() + below(std::ssize(moves) - 1);
    switch (mutant % 4) {
      case 0:
        moves.erase(at);
        break;
      case 1:
        moves.insert(at, Move(*at));
        break;
      case 2:
        std::swap(*at, *(at + 1));
        break;
      default:
        at->vertex = below(dag.size());
    }
    const std::string broken = judge(dag, Game::sliding, run.peak, moves).broken;
    EXPECT_EQ(broken.empty(), keeps_the_rules(dag, run.peak, moves)) << broken;
    refused += broken.empty() ? 0 : 1;
  }
  EXPECT_GT(refused, 0);
}

INSTANTIATE_TEST_SUITE_P(Kernels, PebblingOf, testing::ValuesIn(followed_kernels()),
                         [](const auto& of) { return test_name(of.param.name); });

}  // namespace
}  // namespace redblue
