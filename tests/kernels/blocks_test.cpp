// The plan takes the fitting blocks that move the fewest words: brute force over all blocks, phase
// by phase, finds no better ones. This holds for each registered kernel with blocks named after its
// phases ("core.Br"). Blocks of other kernels are prescribed.

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/parts/rows.hpp"
#include "memsim/sanitized.hpp"
#include "tests/support/run_kernel.hpp"

namespace redblue {
namespace {

// Returns the names of blocks by phase, for blocks that name a phase, and for a product with a
// resident block.
std::map<std::string, std::vector<std::string>> blocks_by_phase(const Blocks& blocks) {
  std::map<std::string, std::vector<std::string>> by_phase;
  for (const auto& [name, size] : blocks) {
    const std::size_t dot = name.find('.');
    if (dot != std::string::npos || blocks.contains("piece")) {
      by_phase[dot == std::string::npos ? "" : name.substr(0, dot)].push_back(name);
    }
  }
  return by_phase;
}

Words words_of(const PhaseCost& phase) {
  return phase.reads + phase.writes;
}

PhaseCost find(const std::vector<PhaseCost>& phases, const std::string& path) {
  return *std::ranges::find(phases, path, &PhaseCost::path);
}

// Returns the cost of all phases together for each value of the named blocks.
std::vector<PhaseCost> costs(const TestedKernel& kernel, const Plan& plan,
                             const std::vector<std::string>& names, Index limit) {
  std::vector<PhaseCost> all;
  Blocks blocks = plan.blocks;
  std::vector<Index> sizes(names.size(), 1);
  // A larger piece takes more of M and does not save words.
  const auto most = [&](std::size_t k) { return names[k].ends_with("piece") ? 1 : limit; };
  for (;;) {
    for (std::size_t k = 0; k < names.size(); ++k) {
      blocks.set(names[k], sizes[k]);
    }
    all.push_back(total(kernel.cost(plan.problem.shape, blocks)));
    std::size_t k = 0;
    while (k < sizes.size() && sizes[k] == most(k)) {
      sizes[k++] = 1;
    }
    if (k == sizes.size()) {
      return all;
    }
    ++sizes[k];
  }
}

// The row-stationary kernels have one set of blocks for all phases, so brute force tries all of
// them. Columns of A1 are kept if few row blocks fill M.
TEST(Plan, OfARowKernelTakesTheFittingBlocksOfFewestWords) {
  int plans = 0;
  int keeping = 0;
  for (const TestedKernel& kernel : tested_kernels()) {
    const Blocks names = kernel.blocks({1, 1, 1}, 1, Objective::words);
    if (!names.contains("Bw")) {
      continue;
    }
    const bool keeps =
        kernel.split() && kernel.split()->reduce != nullptr && kernel.name != "backward/score-rows";
    for (const Shape& shape : {Shape{1, 1, 1}, Shape{9, 9, 3}, Shape{7, 11, 4}, Shape{11, 5, 5}}) {
      const Index least = kernel.least_M(shape);
      for (Index M = least; M <= 8 * least; M += 1 + least / 3) {
        const Plan plan = kernel.plan(shape, M);
        const Words planned = words_of(total(plan.phases));
        Words best = planned;
        Words plain = Words(std::numeric_limits<Index>::max());  // without kept columns
        Index row_blocks = shape.n;
        Blocks others;  // of the products before and after
        for (const auto& [name, size] : plan.blocks) {
          if (name.find('.') != std::string::npos) {
            others.add(name, size);
          }
        }
        for (Index r = 1; r <= shape.n; ++r) {
          for (Index c = 1; c <= shape.m; ++c) {
            for (Index w = 1; w <= shape.d; ++w) {
              for (Index k = 0; k <= (keeps ? shape.d : 0); ++k) {
                if (0 < k && 2 * k < shape.d && w != k) {
                  continue;  // then the rest comes in pieces as wide
                }
                Blocks tried = others;
                for (const auto& [name, size] :
                     RowPlan(kernel.problem(shape), r, c, w, 1, k).blocks()) {
                  tried.add(name, size);
                }
                const PhaseCost cost = total(kernel.cost(shape, tried));
                if (cost.peak <= Words(M)) {
                  best = std::min(best, words_of(cost));
                  if (k == 0) {
                    plain = std::min(plain, words_of(cost));
                    row_blocks = std::min(row_blocks, ceil_div(shape.n, r));
                  }
                }
              }
            }
          }
        }
        ++plans;
        keeping += plan.blocks.contains(kKept) ? 1 : 0;
        const bool few = row_blocks <= kFewRowBlocks;
        EXPECT_LE(planned.value(), plain.value()) << to_string(plan);
        EXPECT_EQ(planned.value(), (few ? best : plain).value()) << to_string(plan);
        // The fastest blocks fit, too.
        EXPECT_NO_THROW(static_cast<void>(kernel.plan(shape, M, Objective::time)));
      }
    }
  }
  EXPECT_GT(plans, 100);
  EXPECT_GT(keeping, 20);
}

TEST(Plan, OfAResidentKernelTakesTheFittingBlocksOfFewestWords) {
  int plans = 0;
  for (const TestedKernel& kernel : tested_kernels()) {
    if (!kernel.blocks({1, 1, 1}, 1, Objective::words).contains("resident")) {
      continue;
    }
    for (const Shape& shape : {Shape{1, 1, 1}, Shape{9, 9, 3}, Shape{7, 11, 4}, Shape{23, 5, 2},
                               Shape{31, 29, 3}, Shape{5, 37, 1}}) {
      const auto [n, m, d] = shape;
      const Index least = kernel.least_M(shape);
      for (Index M = least; M <= least + 6 * d * (n + m); M += 1 + d) {
        const Plan plan = kernel.plan(shape, M);
        Words best = words_of(total(plan.phases));
        for (Index r = 1; r <= n; ++r) {
          for (Index k = 1; k <= m; ++k) {  // a larger Bc takes more of M and moves as many words
            const PhaseCost cost =
                total(kernel.cost(shape, {{"Br", r}, {"Bc", 1}, {"resident", k}}));
            if (cost.peak <= Words(M)) {
              best = std::min(best, words_of(cost));
            }
          }
        }
        ++plans;
        EXPECT_EQ(words_of(total(plan.phases)).value(), best.value()) << to_string(plan);
      }
    }
  }
  EXPECT_GT(plans, 1000);
}

// For least time, keys come in groups if row blocks are few and keys many. This adds at most a
// sixteenth to the words. For fewest words, keys never come in groups.
TEST(Plan, GroupsKeysWhereRowBlocksAreFew) {
  constexpr Index M = 98304;
  for (const char* const name : {"attention/rows", "forward/rows", "attention/rows-shared"}) {
    const TestedKernel kernel = tested_kernel(name);
    const auto groups = [&](const Shape& shape, Objective objective, Index prefetch = 1) {
      const Blocks blocks = kernel.plan(shape, M, objective, prefetch).blocks;
      return blocks.contains("groups") ? blocks["groups"] : 1;
    };
    for (const Shape& shape : {Shape{1, 65536, 128}, Shape{4, 65536, 128}, Shape{1, 8192, 64}}) {
      EXPECT_GE(groups(shape, Objective::time), 4) << name;
      const Plan plan = kernel.plan(shape, M, Objective::time);
      Blocks one = plan.blocks;
      one.set("groups", 1);
      EXPECT_LE(16 * words_of(total(plan.phases)).value(),
                17 * words_of(total(kernel.cost(shape, one))).value())
          << to_string(plan);
      EXPECT_EQ(groups(shape, Objective::words), 1) << name;
      EXPECT_EQ(groups(shape, Objective::time, 2), 1) << name;
    }
    for (const Shape& shape : {Shape{4096, 65536, 128}, Shape{1, 500, 64}, Shape{1, 1, 1}}) {
      EXPECT_EQ(groups(shape, Objective::time), 1) << name;
    }
  }
}

// For least time, a mask that gives all rows and keys equal work changes no block. Under a causal
// mask, work is uneven, and blocks have at most 96 of 1024 rows or keys.
TEST(Plan, CutsUnevenRowsFinely) {
  constexpr Index n = 1024;
  BlockPattern checkered{.rows = n, .cols = n};
  for (Index i = 0; i < n; ++i) {
    for (Index j = i % 2; j < n; j += 2) {
      checkered.columns.push_back(j);
    }
    checkered.offsets.push_back(checkered.stored());
  }
  for (const char* const name :
       {"attention/rows", "attention/columns", "backward/rows", "gradients/rows-keys"}) {
    TestedKernel kernel = tested_kernel(name);
    const auto blocks = [&](const Mask& mask) {
      kernel.mask = mask;
      return kernel.blocks({n, n, 64}, 1 << 17, Objective::time);
    };
    EXPECT_EQ(blocks(Mask::pattern(checkered)), blocks({})) << name;
    for (const auto& [block, size] : blocks(Mask::causal(n, n))) {
      EXPECT_LE(size, 96) << name << " " << block;
    }
  }
}

// Kept or resident words are read once. The result has the same bits, except where the order of
// keys changes.
TEST(Plan, ThatKeepsColumnsOfA1GivesTheSameBits) {
  const Shape shape{61, 43, 22};
  for (const char* const name : {"backward/rows", "backward/rows-onepass", "backward/rows-shared",
                                 "backward/rows-onepass-shared", "backward/score-rows"}) {
    const TestedKernel kernel = tested_kernel(name);
    TestProblem problem = make_problem(kernel, shape, 1);
    add_forward(problem);
    const auto run_with = [&](Index kept) {
      const Blocks blocks = RowPlan(kernel.problem(shape), 25, 7, 5, 1, kept).blocks();
      const Plan plan = kernel.plan(shape, total(kernel.cost(shape, blocks)).peak.value(), blocks);
      SCOPED_TRACE(to_string(plan));
      Result result = run_kernel(kernel, plan, problem);
      EXPECT_EQ(without_elementwise(result.phases), as_counted(plan.phases));
      return result;
    };
    const Result plain = run_with(0);
    for (const Index kept : {1, 4, 5, 16, 21, 22}) {
      const Result result = run_with(kept);
      EXPECT_EQ(plain.all.io.reads - result.all.io.reads, shape.n * kept) << name;
      EXPECT_TRUE(same_bits(result.returned, plain.returned)) << name << " " << kept;
    }
  }
}

// Tiles of scores, tall or wide, in slices and pieces of any size. The counts match the formula.
// Each sum has the same order, so the result has the same bits.
TEST(Plan, OfTilesGivesTheSameBitsWithAnyBlocks) {
  const TestedKernel kernel = tested_kernel("backward/tiles");
  const Shape shape{61, 83, 22};
  constexpr Index kM = 16384;
  const TestProblem problem = [&] {
    TestProblem made = make_problem(kernel, shape, 1);
    add_forward(made);
    return made;
  }();
  const Plan chosen = kernel.plan(shape, kM);
  const Buffers expected = run_kernel(kernel, chosen, problem).returned;
  for (const auto& [rows, cols] : {std::pair<Index, Index>{7, 40}, {40, 7}, {61, 33}, {33, 83}}) {
    for (const Index piece : {1, 2, 3, 7, 8, 15, 16, 17, 24, 33, 64}) {
      Blocks blocks = chosen.blocks;
      for (const std::string phase : {"f", "p"}) {
        blocks.set(phase + ".rows", rows);
        blocks.set(phase + ".cols", cols);
        blocks.set(phase + ".depth", 3);
        blocks.set(phase + ".piece", piece);
      }
      const Plan plan = kernel.plan(shape, kM, blocks);
      SCOPED_TRACE(to_string(plan));
      const Result result = run_kernel(kernel, plan, problem);
      EXPECT_EQ(without_elementwise(result.phases), as_counted(plan.phases));
      EXPECT_TRUE(same_bits(result.returned, expected));
    }
  }
}

// Brute force tries all blocks of one phase. The others keep those of the first plan that has these
// blocks. They fit in its M, so in a larger M the blocks of this phase decide alone what fits.
TEST(Plan, TakesTheFittingBlocksOfFewestWords) {
  int phases = 0;
  for (const TestedKernel& kernel : tested_kernels()) {
    for (const Shape& shape : {Shape{1, 1, 1}, Shape{12, 12, 3}, Shape{7, 15, 4}, Shape{16, 5, 5},
                               Shape{11, 11, 11}, Shape{2, 13, 8}}) {
      const auto [n, m, d] = shape;
      const Index least = kernel.least_M(shape);
      const Index everything = least + 3 * (n * d + m * d + d * d + n * m);
      struct Tried {
        Blocks first;
        std::vector<PhaseCost> costs;
      };
      std::map<std::vector<std::string>, Tried> tried;
      constexpr Index kSteps = kSanitized ? 2 : 12;
      for (Index M = least; M <= everything; M += 1 + (everything - least) / kSteps) {
        const Plan plan = kernel.plan(shape, M);
        for (const auto& [phase, names] : blocks_by_phase(plan.blocks)) {
          ++phases;
          Tried& of = tried[names];
          if (of.costs.empty()) {
            of = {plan.blocks, costs(kernel, plan, names, std::max({n, m, d}))};
          }
          Words best = Words(std::numeric_limits<Index>::max());
          for (const PhaseCost& cost : of.costs) {
            best = cost.peak <= Words(M) ? std::min(best, words_of(cost)) : best;
          }
          Blocks blocks = of.first;
          for (const std::string& name : names) {
            blocks.set(name, plan.blocks[name]);
          }
          EXPECT_EQ(words_of(total(kernel.cost(shape, blocks))).value(), best.value())
              << phase << " of " << to_string(plan);
        }
        // The fastest blocks fit, too.
        EXPECT_NO_THROW(static_cast<void>(kernel.plan(shape, M, Objective::time)));
      }
    }
  }
  EXPECT_GT(phases, kSanitized ? 100 : 1000);
}

// Algorithm 8 at the demonstrated size. The test tries every Br, with Bc = 1 so that as many rows
// as possible fit.
TEST(Plan, OfBackwardLargeIsBestAtTheDemonstratedSize) {
  const TestedKernel kernel = tested_kernel("backward/large");
  const Shape shape{2000, 2000, 32};
  const Plan plan = kernel.plan(shape, 8192);
  for (const char* phase : {"phase1", "phase2"}) {
    const std::string rows = std::string(phase) + ".Br";
    const std::string cols = std::string(phase) + ".Bc";
    const Words planned = words_of(find(plan.phases, phase));
    Blocks blocks = plan.blocks;
    blocks.set(cols, 1);
    int fitting = 0;
    for (Index Br = 1; Br <= 2000; ++Br) {
      blocks.set(rows, Br);
      const PhaseCost cost = find(kernel.cost(shape, blocks), phase);
      if (cost.peak <= Words(8192)) {
        ++fitting;
        EXPECT_LE(planned.value(), words_of(cost).value()) << phase << " Br = " << Br;
      }
    }
    EXPECT_GT(fitting, 10);
    EXPECT_LT(fitting, 2000);
    // Words do not depend on Bc, so no larger Bc could be better.
    for (const Index Bc : {Index{1}, Index{5}, Index{32}}) {
      blocks = plan.blocks;
      blocks.set(cols, Bc);
      EXPECT_EQ(words_of(find(kernel.cost(shape, blocks), phase)), planned);
    }
  }
}

// The largest fitting squares: if they were larger by one, three (matmul) or four (small) of them
// would not fit.
TEST(Plan, OfSquareBlocksTakesThePrescribedSide) {
  for (Index M = 3; M < 3000; ++M) {
    const Index three = tested_kernel("matmul/blocked").plan({50, 50, 50}, M).blocks["B"];
    EXPECT_LE(3 * three * three, M);
    EXPECT_GT(3 * (three + 1) * (three + 1), M);
    if (M < 5) {
      continue;
    }
    for (const char* name : {"forward/small", "backward/small"}) {
      const Index four = tested_kernel(name).plan({50, 50, 50}, M).blocks["B"];
      EXPECT_LE(4 * four * four, M);
      EXPECT_GT(4 * (four + 1) * (four + 1), M);
    }
  }
}

}  // namespace
}  // namespace redblue
