// Activations other than softmax, where mistakes are easy: at s = 0, far from 0, and where every f
// is 0. masked_kernels_test.cpp checks the words moved and the results of kernels with them.

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "kernels/arithmetic/arithmetic.hpp"
#include "memsim/errors.hpp"
#include "memsim/machine.hpp"
#include "runtime/theory/double_pairs.hpp"
#include "tests/kernels/contract.hpp"
#include "tests/support/run_kernel.hpp"

namespace redblue {
namespace {

constexpr Activation kOthers[] = {Activation::relu, Activation::sigmoid, Activation::silu};

// f and p of one score, with q = 1.
struct OfScore {
  float f, p;
};
OfScore of_score(Activation phi, float s) {
  Machine machine(64);
  Tile scores = machine.initialize("s", 3, 5, s);  // whole vectors and a rest
  Tile q = machine.initialize("q", 3, 5, 1);
  activation_gradient(phi, scores, q, q);
  activate(phi, scores, scores);
  for (Index i = 0; i < 3; ++i) {
    for (Index j = 0; j < 5; ++j) {
      EXPECT_EQ(scores(i, j), scores(0, 0));
      EXPECT_EQ(q(i, j), q(0, 0));
    }
  }
  return {scores(0, 0), q(0, 0)};
}

TEST(Activations, AtZero) {
  for (const float zero : {0.0F, -0.0F}) {
    EXPECT_EQ(of_score(Activation::relu, zero).f, 0);
    EXPECT_EQ(of_score(Activation::relu, zero).p, 0);  // relu's derivative at 0
    EXPECT_EQ(of_score(Activation::sigmoid, zero).f, 0.5F);
    EXPECT_EQ(of_score(Activation::sigmoid, zero).p, 0.25F);
    EXPECT_EQ(of_score(Activation::silu, zero).f, 0);
    EXPECT_EQ(of_score(Activation::silu, zero).p, 0.5F);
  }
}

TEST(Activations, AreFiniteFarFromZero) {
  for (const float s : {88.0F, 104.0F, 1e4F, 1e30F, 3e38F}) {
    EXPECT_EQ(of_score(Activation::relu, s).f, s);
    EXPECT_EQ(of_score(Activation::relu, s).p, 1);
    EXPECT_EQ(of_score(Activation::relu, -s).f, 0);
    EXPECT_EQ(of_score(Activation::relu, -s).p, 0);
    EXPECT_EQ(of_score(Activation::sigmoid, s).f, 1);
    EXPECT_NEAR(of_score(Activation::sigmoid, s).p, 0, 1e-38);
    EXPECT_NEAR(of_score(Activation::sigmoid, -s).f, 0, 1e-38);
    EXPECT_NEAR(of_score(Activation::sigmoid, -s).p, 0, 1e-38);
    EXPECT_EQ(of_score(Activation::silu, s).f, s);
    EXPECT_EQ(of_score(Activation::silu, s).p, 1);
    EXPECT_NEAR(of_score(Activation::silu, -s).f, 0, 1e-36);
    EXPECT_NEAR(of_score(Activation::silu, -s).p, 0, 1e-36);
  }
}

TEST(Activations, AreTheFunctionsOfTheirDefinition) {
  for (double s = -20; s <= 20; s += 0.37) {
    const auto word = static_cast<float>(s);
    const double at = static_cast<double>(word);
    const double sigmoid = 1 / (1 + std::exp(-at));
    const double slope = sigmoid * (1 - sigmoid);
    const auto near = [&](Activation phi, double f, double p) {
      const OfScore found = of_score(phi, word);
      EXPECT_NEAR(found.f, f, 1e-6 * std::abs(f) + 1e-30) << to_string(phi) << " at " << at;
      EXPECT_NEAR(found.p, p, 1e-6) << to_string(phi) << "' at " << at;
    };
    near(Activation::relu, std::max(at, 0.0), at > 0 ? 1 : 0);
    near(Activation::sigmoid, sigmoid, slope);
    near(Activation::silu, at * sigmoid, sigmoid + at * slope);
  }
}

// Each listed activation has a unique name that parses back to it. The arithmetic and the reference
// know it, or refuse it: softmax is not a function of one score.
TEST(Activations, OfTheListAreKnownEverywhere) {
  std::set<std::string_view> names;
  for (const Activation activation : kActivations) {
    const std::string_view name = to_string(activation);
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_EQ(parse_activation(name), activation);
    if (activation == Activation::softmax) {
      EXPECT_THROW(of_score(activation, 1), ShapeMismatch);
      continue;
    }
    std::vector<double> s(48, 1), f(s), slope(s);
    s[1] = -2.5;
    s[2] = kDeadScore;
    activate(activation, s.data(), f.data(), slope.data(), std::ssize(s));
    for (const std::size_t k : {0U, 1U}) {
      const auto [found, found_slope] = of_score(activation, static_cast<float>(s[k]));
      EXPECT_NEAR(found, f[k], 1e-6) << name;
      EXPECT_NEAR(found_slope, slope[k], 1e-6) << name;
    }
    EXPECT_EQ(f[2], 0) << name;
    EXPECT_EQ(slope[2], 0) << name;
  }
  EXPECT_EQ(parse_activation("Relu"), std::nullopt);
  EXPECT_EQ(parse_activation(""), std::nullopt);
}

// A value outside the list is an error, and is not treated as the last activation.
TEST(Activations, OutsideOfTheListAreRefused) {
  const auto none = static_cast<Activation>(kActivations.size());
  EXPECT_THROW(to_string(none), ShapeMismatch);
  Machine machine(64);
  Tile s = machine.initialize("s", 3, 5, 1);
  Tile q = machine.initialize("q", 3, 5, 1);
  EXPECT_THROW(activate(none, s, s), ShapeMismatch);
  EXPECT_THROW(activation_slope(none, s, s), ShapeMismatch);
  EXPECT_THROW(activation_gradient(none, s, q, q), ShapeMismatch);
  EXPECT_EQ(s(0, 0), 1) << "nothing was computed";
  EXPECT_EQ(q(0, 0), 1) << "nothing was computed";
}

TEST(Activations, ThatAreNotANumberStaySo) {
  for (const Activation phi : kOthers) {
    Machine machine(64);
    Tile s = machine.initialize("s", 3, 5, std::numeric_limits<float>::quiet_NaN());
    Tile q = machine.initialize("q", 3, 5, 1);
    activation_gradient(phi, s, q, q);
    activate(phi, s, s);
    EXPECT_TRUE(std::isnan(s(2, 4)) && std::isnan(q(2, 4))) << to_string(phi);
  }
}

// No score is above 0, or every score is 0.
TEST(Activations, OfReluAreNothingWhereNoScoreIsAbove0) {
  const Shape shape{9, 13, 4};
  for (const TestedKernel& kernel : tested_kernels_of(Activation::relu)) {
    if (kernel.sharing == Sharing::self) {
      continue;  // the score of a source with itself is a square
    }
    SCOPED_TRACE(kernel.name);
    TestProblem problem = make_problem(kernel, shape, 1);
    const auto fill = [&](const char* name, float value) {
      if (problem.given.contains(name)) {
        std::ranges::fill(problem.given.at(name), value);
      }
    };
    for (const float query : {-1.0F, 0.0F}) {
      fill("A1", query);
      fill("Q", query);
      fill("X", 1);
      fill("A2", 1);
      fill("K", 1);
      const Plan plan = kernel.plan(shape, kernel.least_M(shape) + 100);
      for (const auto& [name, words] : run_kernel(kernel, plan, problem).returned) {
        EXPECT_TRUE(std::ranges::all_of(words, [](float word) { return word == 0; })) << name;
      }
    }
  }
}

// These kernels take neither L nor O, and do not return L.
TEST(Activations, HaveNeitherLNorO) {
  for (const Activation activation : kOthers) {
    for (const TestedKernel& kernel : tested_kernels_of(activation)) {
      EXPECT_FALSE(takes(kernel, "L")) << kernel.name;
      EXPECT_FALSE(takes(kernel, "O")) << kernel.name;
      EXPECT_EQ(find_operand(kernel.returns, "L"), nullptr) << kernel.name;
    }
  }
}

TEST(Activations, ArePlannedWithFewerWordsThanSoftmax) {
  for (const TestedKernel& kernel : tested_kernels_of(Activation::relu)) {
    TestedKernel softmax = kernel;
    softmax.activation = Activation::softmax;
    const Shape shape{300, 260, 16};
    for (const Index M : {softmax.least_M(shape) + 500, Index{40000}}) {
      if (M < softmax.least_M(shape)) {
        continue;
      }
      const PhaseCost others = total(kernel.plan(shape, M).phases);
      const PhaseCost own = total(softmax.plan(shape, M).phases);
      EXPECT_LE(others.reads + others.writes, own.reads + own.writes) << kernel.name << ' ' << M;
    }
  }
}

// `contract` names the softmax kernel from which the words `less` are subtracted: words of L, v and
// O, and words kept between two passes. A kernel that becomes another one without a softmax has
// that kernel's contract.
struct WithoutSoftmax {
  std::string_view contract;
  MovedWords<Index> less;
};
std::optional<WithoutSoftmax> without_softmax(std::string_view kernel, const Shape& shape,
                                              const Blocks& blocks) {
  const Index n = shape.n, m = shape.m, d = shape.d, w = shape.dv;
  const auto over = [&](Index extent, std::string_view block) {
    return (extent + blocks[block] - 1) / blocks[block];
  };
  const auto entered = [&](const std::string& name) {
    return blocks[name + ".depth"] >= d ? 1 : over(m, name + ".cols");
  };
  if (kernel == "forward/naive" || kernel == "forward/flash" || kernel == "forward/rows" ||
      kernel == "forward/rows-resident" || kernel == "attention/rows" ||
      kernel == "attention/rows-resident") {
    return WithoutSoftmax{kernel, {0, n}};
  }
  if (kernel == "forward/columns" || kernel == "attention/columns") {
    const Index between = 2 * n * (over(m, "Bc") - 1);
    return WithoutSoftmax{kernel, {between, n + between}};
  }
  if (kernel == "forward/small") {  // f replaces s
    return WithoutSoftmax{kernel, {n * m, n * m + n}};
  }
  if (kernel == "backward/small") {  // f replaces s, and there is no v
    return WithoutSoftmax{kernel, {3 * n * m, n * m}};
  }
  if (kernel == "backward/large" || kernel == "backward/rows" || kernel == "backward/rows-xg") {
    return WithoutSoftmax{kernel, {n * d + n, 0}};
  }
  if (kernel == "backward/flash" || kernel.starts_with("gradients/flash")) {
    return WithoutSoftmax{kernel, {2 * n * w + 2 * n * over(m, "core.Bc"), n}};
  }
  if (kernel.starts_with("gradients/resident-queries")) {
    const Index resident = std::min(blocks["resident"], n);
    const Index times = resident + (n - resident) * over(m, "Bc");
    return WithoutSoftmax{kernel, {n * w + times + times - n, times > n ? n : 0}};
  }
  if (kernel.starts_with("gradients/resident")) {
    return WithoutSoftmax{kernel, {n * w + n, 0}};
  }
  if (kernel == "gradients/sources") {
    return WithoutSoftmax{kernel, {2 * n * w + 2 * n * over(n, "Br"), n}};
  }
  if (kernel == "backward/columns") {
    const Index C = over(m, "Bc");
    return WithoutSoftmax{kernel, {n * C + n * d + n * (C - 1), C > 1 ? n : 0}};
  }
  if (kernel == "backward/tiles") {
    return WithoutSoftmax{kernel, {n * (entered("f") + entered("p")) + 2 * n * d, n}};
  }
  if (kernel == "gradients/rows-keys" || kernel == "gradients/rows-keys-onepass") {
    return WithoutSoftmax{"gradients/rows-keys-onepass", {2 * n * over(m, "dKV.Bc"), 2 * n}};
  }
  if (kernel == "gradients/rows-keys-shared" || kernel == "gradients/rows-keys-onepass-shared") {
    return WithoutSoftmax{"gradients/rows-keys-onepass-shared", {2 * n * over(m, "dKV.Bc"), 2 * n}};
  }
  const std::pair<std::string_view, std::string_view> same[] = {
      {"backward/naive", "backward/naive"},
      {"backward/rows-onepass", "backward/rows-onepass"},
      {"backward/score-rows", "backward/rows-onepass"},
      {"backward/rows-w", "backward/rows-onepass-w"},
      {"backward/rows-onepass-w", "backward/rows-onepass-w"},
      {"backward/rows-q", "backward/rows-q-onepass"},
      {"backward/rows-q-onepass", "backward/rows-q-onepass"},
      {"backward/rows-resident", "backward/rows-resident"}};
  for (const auto& [name, other] : same) {
    if (name == kernel) {
      return WithoutSoftmax{other, {0, 0}};
    }
  }
  return std::nullopt;
}

TEST(Activations, MoveTheWordsOfTheContract) {
  std::mt19937_64 random(3);
  const auto any = [&](Index from, Index to) {
    return std::uniform_int_distribution<Index>(from, to)(random);
  };
  std::set<std::string> held;
  for (int k = 0; k < 500; ++k) {
    Shape shape{any(1, 300), any(1, 300), any(1, 40)};
    for (const TestedKernel& kernel : tested_kernels_of(kOthers[k % 3])) {
      shape.dv = kernel.takes_dv() && k % 2 == 0 ? any(1, 40) : shape.d;
      const Plan plan = kernel.plan(shape, kernel.least_M(shape) + any(0, 20000));
      const auto contract = without_softmax(kernel.name, shape, plan.blocks);
      if (!contract) {
        continue;
      }
      held.insert(kernel.name);
      const MovedWords<Index> softmax =
          moved_by_contract<Index>(contract->contract, shape, plan.blocks);
      const PhaseCost all = total(plan.phases);
      EXPECT_EQ(all.reads.value(), softmax.reads - contract->less.reads) << to_string(plan);
      EXPECT_EQ(all.writes.value(), softmax.writes - contract->less.writes) << to_string(plan);
    }
  }
  EXPECT_EQ(held.size(), 35);
}

TEST(Activations, AreRefusedByKernelsThatKnowSoftmaxAlone) {
  Problem problem(8, 8, 4);
  problem.activation = Activation::relu;
  for (const Kernel& kernel : kernels()) {
    if (!kernel.takes(Activation::relu)) {
      EXPECT_THROW(static_cast<void>(kernel.plan(problem, 1 << 20)), ShapeMismatch) << kernel.name;
    }
  }
}

}  // namespace
}  // namespace redblue
