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

void expect_round_trips(const std::string& mask, const std::set<std::string>& but) {
  std::mt19937_64 random(seed_of_case(0));
  for (const KnownFile& file : kernel_nests()) {
    const Kernel& kernel = find_kernel(name_of(file));
    if (but.contains(name_of(file)) || (!kernel.takes(Mask::causal(2, 2)) && mask != "full") ||
        (kernel.takes_causal && mask != "full" && mask != "causal")) {
      continue;
    }
    for (Index k = 0; k < cases(60); ++k) {
      const auto [problem, M] = random_case(kernel, random, mask);
      const Plan plan = kernel.plan(problem, M);
      ASSERT_EQ(text_of(read_back(plan)), text_of(plan.phases)) << to_string(plan) << "\n"
                                                                << nest_text(plan);
    }
  }
}

TEST(NestText, GivesTheWordsOfEachKernel) {
  expect_round_trips("full", {});
}
TEST(NestText, GivesTheWordsUnderACausalMask) {
  expect_round_trips("causal", {});
}
TEST(NestText, GivesTheWordsUnderAWindow) {
  expect_round_trips("window", {});
}
TEST(NestText, GivesTheWordsUnderAPrefix) {
  expect_round_trips("prefix", {});
}

// A few kernels have plans that a nest cannot describe: groups of keys, and keys that roll.
TEST(NestText, IsThereForAlmostAllDenseKernels) {
  std::set<std::string> without;
  for (const Kernel& kernel : kernels()) {
    without.emplace(kernel.name);
  }
  for (const KnownFile& file : kernel_nests()) {
    without.erase(name_of(file));
  }
  EXPECT_EQ(without, std::set<std::string>());
}

}  // namespace
}  // namespace redblue
