// The nests of kernels as text. The formula of a kernel in C++ and the loops in its file are two
// descriptions of the same schedule. They give the same words and the same peak for each phase.

#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/kernel.hpp"
#include "kernels/nests/nest_kernel.hpp"
#include "runtime/report/nest_report.hpp"
#include "tests/support/cases.hpp"

namespace redblue {
namespace {

std::string text_of(const std::vector<PhaseCost>& phases) {
  std::string text;
  for (const PhaseCost& phase : phases) {
    text += phase.path + " reads " + std::to_string(phase.reads.value()) + " writes " +
            std::to_string(phase.writes.value()) + " peak " + std::to_string(phase.peak.value()) +
            "\n";
  }
  return text;
}

// Returns the plan's phases as its nest counts them: printed as text, and read back.
std::vector<PhaseCost> read_back(const Plan& plan) {
  const Kernel& nest = load_nest("nest of " + plan.kernel, nest_text(plan), plan.kernel + ".nest");
  return nest.plan(plan.problem, plan.M, plan.blocks).phases;
}

std::string name_of(const KnownFile& file) {
  const std::string name(file.name);
  return name.substr(0, name.size() - std::string(".nest").size());
}

// A problem of a few sizes, and an M from the least that fits to all of it.
struct Case {
  Problem problem;
  Index M;
};
Case random_case(const Kernel& kernel, std::mt19937_64& random, const std::string& mask) {
  const auto size = [&](Index most) {
    return std::uniform_int_distribution<Index>(1, most)(random);
  };
  Problem problem(size(60), size(60), size(30));
  const Index n = problem.shape.n, m = problem.shape.m;
  if (mask == "causal") {
    problem.mask = Mask::causal(n, m).called("causal");
  } else if (mask == "window") {
    problem.mask = Mask::window(n, m, size(9), size(4)).called("window");
  } else if (mask == "prefix") {
    problem.mask = Mask::prefix(n, m, size(m)).called("prefix");
  }
  const Index least = kernel.least_M(problem);
  return {problem, least + size(4 * least)};
}

bool takes(const Kernel& kernel, const std::string& mask) {
  return mask == "full" || (kernel.takes_causal ? mask == "causal" : kernel.takes_masks);
}

// Returns the kernels with a nest that gives other words under this mask.
std::set<std::string> different(const std::string& mask) {
  std::set<std::string> found;
  for (const KnownFile& file : kernel_nests()) {
    const Kernel& kernel = find_kernel(name_of(file));
    std::mt19937_64 random(seed_of_case(0));
    for (Index k = 0; takes(kernel, mask) && k < cases(60); ++k) {
      const auto [problem, M] = random_case(kernel, random, mask);
      const Plan plan = kernel.plan(problem, M);
      if (text_of(read_back(plan)) != text_of(plan.phases)) {
        found.insert(name_of(file));
        break;
      }
    }
  }
  return found;
}

TEST(NestText, GivesTheWordsOfEachKernel) {
  EXPECT_EQ(different("full"), std::set<std::string>());
}

// Under a mask these nests give other words: resident keys roll with the blocks of queries, and the
// language has no tile that keeps some rows from one pass to the next.
const std::set<std::string> kDifferent = {"attention/rows-resident", "backward/rows-resident",
                                          "forward/rows-resident", "gradients/resident",
                                          "gradients/resident-queries"};

// Returns the kernels that differ and are not known to.
std::set<std::string> unknown(const std::string& mask) {
  std::set<std::string> found = different(mask);
  for (const std::string& known : kDifferent) {
    found.erase(known);
  }
  return found;
}

TEST(NestText, GivesTheWordsUnderACausalMask) {
  EXPECT_EQ(unknown("causal"), std::set<std::string>());
}
TEST(NestText, GivesTheWordsUnderAWindow) {
  EXPECT_EQ(unknown("window"), std::set<std::string>());
}
TEST(NestText, GivesTheWordsUnderAPrefix) {
  EXPECT_EQ(unknown("prefix"), std::set<std::string>());
}

// Returns a mask that a file gives: its indices are words, too.
Mask stored_mask(std::mt19937_64& random, Index n, Index m) {
  const auto up_to = [&](Index most) {
    return std::uniform_int_distribution<Index>(0, most)(random);
  };
  if (up_to(1) == 0) {
    const Index query = up_to(n), key = up_to(m);
    return Mask::documents({0, query, n}, {0, key, m}).called("documents");
  }
  BlockPattern pairs{.rows = n, .cols = m};
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < m; ++j) {
      if (up_to(3) == 0) {
        pairs.columns.push_back(j);
      }
    }
    pairs.offsets.push_back(pairs.stored());
  }
  return Mask::pattern(pairs).called("pattern");
}

// `plan --loops` of these kernels comes from the nest alone, so it has all that their problems may
// ask for: other activations, and masks with indices.
TEST(NestText, GivesTheWordsOfActivationsAndIndices) {
  int kernels_without_loops = 0;
  for (const KnownFile& file : kernel_nests()) {
    const Kernel& kernel = find_kernel(name_of(file));
    if (kernel.formula.nest != nullptr) {
      continue;
    }
    ++kernels_without_loops;
    const Kernel& nest = load_nest("all of " + name_of(file), file.text, file.name);
    std::mt19937_64 random(seed_of_case(0));
    for (Index k = 0; k < cases(60); ++k) {
      auto [problem, M] = random_case(kernel, random, "full");
      if (kernel.takes_activations && k % 3 > 0) {
        problem.activation = k % 3 == 1 ? Activation::relu : Activation::softmax;
      }
      if (kernel.takes_masks && k % 2 == 0) {
        problem.mask = stored_mask(random, problem.shape.n, problem.shape.m);
      }
      const Plan plan = kernel.plan(problem, std::max(M, kernel.least_M(problem)));
      const std::vector<PhaseCost> phases = nest.formula.cost(problem, plan.blocks);
      ASSERT_EQ(text_of(phases), text_of(plan.phases)) << to_string(plan);
    }
  }
  EXPECT_EQ(kernels_without_loops, 15);
}

// The language has no matrices that are one.
TEST(NestText, IsThereForEachDenseKernel) {
  std::set<std::string> without;
  for (const Kernel& kernel : kernels()) {
    if (!kernel.of_one_source) {
      without.emplace(kernel.name);
    }
  }
  for (const KnownFile& file : kernel_nests()) {
    without.erase(name_of(file));
  }
  EXPECT_EQ(without, std::set<std::string>());
}

}  // namespace
}  // namespace redblue
