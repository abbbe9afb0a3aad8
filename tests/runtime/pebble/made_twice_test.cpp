// Tests what runs compute more than once, named by tile. A kernel must state that it recomputes
// exactly if the bounds for algorithms that compute their sums once do not cover it.

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/kernel_requests.hpp"
#include "tests/support/pebbled.hpp"
#include "tests/support/run_kernel.hpp"

namespace redblue {
namespace {

using Names = std::set<std::string>;

// The dense kernels that compute something twice in some run of the shape below.
const std::map<std::string, Names>& known() {
  static const std::map<std::string, Names> all = {
      // With little M, the weight exp(s - L) is computed for each piece of its factors.
      {"forward/tiles", {"s"}},
      {"forward/tiles-shared", {"s"}},
      {"attention/tiles", {"s"}},
      {"attention/tiles-shared", {"s"}},
      // The weight is computed for v and again for p. With little M, p is computed for each piece
      // of its factors.
      {"backward/tiles-sqp", {"s"}},
      {"backward/tiles-sq", {"s", "q"}},
      // For each block of queries.
      {"backward/rows-xg", {"X A2^T"}},
      {"backward/rows-xg-shared", {"X A2^T"}},
      // c Q, for each block of keys.
      {"gradients/flash-shared", {"Q"}},
      {"gradients/resident-queries", {"Q"}},
      {"gradients/resident-queries-shared", {"Q"}},
      // The scores are computed in both passes. If one pass applies c to the keys, its s has other
      // factors.
      {"gradients/rows-keys", {"q"}},
      {"gradients/rows-keys-onepass", {"q"}},
      {"gradients/rows-keys-shared", {"Q", "p", "q"}},
      {"gradients/rows-keys-onepass-shared", {"Q", "e", "p", "q"}},
      // Each pair of sources meets twice: once for either sum.
      {"gradients/sources", {"f", "p", "s"}},
      {"layer/rows-keys", {"q"}}};
  return all;
}

std::set<Index> made_twice(const Pebbling& run) {
  std::set<Index> once, again;
  for (const Move& move : run.moves) {
    if (move.act == Act::compute && !once.insert(move.vertex).second) {
      again.insert(move.vertex);
    }
  }
  return again;
}

// Returns the tile of a vertex: "q" for "q(0,0)+1".
std::string tile_of(const Pebbling& run, Index vertex) {
  return run.dag[vertex].name.substr(0, run.dag[vertex].name.find('('));
}

// exp(m - m) is the weight of a largest score. The factor of a row is also this 1 if all keys of
// the next block are dead.
bool is_one(const Pebbling& run, const Request& request, Index vertex) {
  const std::string tile = tile_of(run, vertex);
  return !request.mask.empty() && request.activation == Activation::softmax &&
         run.dag[vertex].operands.size() == 1 && (tile == "e" || tile == "rescale");
}

// Visits the sum, its state before each term, and the sums among the factors of its terms.
template <class Visit>
void each_sum(const Pebbling& run, Index sum, const Visit& visit) {
  for (; sum >= 0; sum = run.made[slot(sum)].sum) {
    visit(sum);
    if (const Index joined = run.made[slot(sum)].joined; joined >= 0) {
      each_sum(run, joined, visit);
    }
  }
}

// Counts repeated sums of a backward pass: W or T, which g multiplies by A1 or A2, and g itself.
Index sums_made_twice(const Pebbling& run, const std::set<Index>& again) {
  std::set<Index> sums;
  for (const Pebbling::Stored& word : run.stored) {
    if (word.matrix != "g") {
      continue;
    }
    each_sum(run, word.vertex, [&](Index g) {
      sums.insert(g);
      for (const Index factor : {run.made[slot(g)].a, run.made[slot(g)].b}) {
        if (factor >= 0 && !run.dag.input(factor)) {
          each_sum(run, factor, [&](Index sum) { sums.insert(sum); });
        }
      }
    });
  }
  EXPECT_GE(std::ssize(sums), 1);
  return std::ranges::count_if(sums, [&](Index sum) { return again.contains(sum); });
}

class MadeTwiceIn : public testing::TestWithParam<TestedKernel> {};

TEST_P(MadeTwiceIn, IsWhatTheKernelSays) {
  const TestedKernel& kernel = GetParam();
  Names names;
  Index sums = 0;
  for (const Request& request : requests_of(kernel, {7, 5, 3})) {
    SCOPED_TRACE(said(request));
    const Pebbling run = pebbled(request, ProductPebbles::fused).pebbling;
    const std::set<Index> again = made_twice(run);
    EXPECT_EQ(std::ssize(again), run.made_twice());
    for (const Index vertex : again) {
      if (!is_one(run, request, vertex)) {
        names.insert(tile_of(run, vertex));
      }
    }
    if (kernel.kernel->pass == Pass::backward) {
      sums += sums_made_twice(run, again);
    }
  }
  const auto found = known().find(kernel.name);
  EXPECT_EQ(names, found == known().end() ? Names() : found->second);
  // For a backward pass, sums count. For gradients, p and its factors count.
  const bool scores =
      (kernel.kernel->pass == Pass::gradients || kernel.kernel->pass == Pass::layer) &&
      (names.contains("q") || names.contains("p"));
  EXPECT_EQ(kernel.kernel->numerics.recomputes, scores || sums > 0);
}

INSTANTIATE_TEST_SUITE_P(Kernels, MadeTwiceIn, testing::ValuesIn(tested_kernels()),
                         [](const auto& of) { return test_name(of.param.name); });

// No kernel computes a sum of W twice, so this checks that the test would find it.
TEST(MadeTwice, SeesASumOfW) {
  const Pebbling run =
      pebbled(request("backward/rows", {7, 5, 3}, 200), ProductPebbles::fused).pebbling;
  Index found = 0;
  for (Index v = 0; v < run.dag.size(); ++v) {
    if (tile_of(run, v) == "W") {
      EXPECT_EQ(sums_made_twice(run, {v}), 1) << run.dag[v].name;
      ++found;
    }
  }
  EXPECT_EQ(found, 7 * 5 * 3);  // one sum for each word and key
}

}  // namespace
}  // namespace redblue
