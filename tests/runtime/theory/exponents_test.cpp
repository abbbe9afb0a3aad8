// Tests that power laws are found again, from grids and from scattered sizes. The residual is the
// part that no law explains. A grid that leaves an exponent open is refused.

#include "runtime/theory/exponents.hpp"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "memsim/errors.hpp"

namespace redblue {
namespace {

double words_of(const PowerLaw& law, const Sample& at) {
  const auto& [n, d, M] = law.exponents;
  return law.constant * std::pow(static_cast<double>(at.n), n) *
         std::pow(static_cast<double>(at.d), d) * std::pow(static_cast<double>(at.M), M);
}

// {2, 8} x {4, 64} x {16, 4096}: in octaves, the sizes deviate from their mean by 1, 2 and 4.
std::vector<Sample> box() {
  std::vector<Sample> corners;
  for (const Index n : {2, 8}) {
    for (const Index d : {4, 64}) {
      for (const Index M : {16, 4096}) {
        corners.push_back({n, d, M, 1});
      }
    }
  }
  return corners;
}

// A logarithm below 2^8 is off by at most 2^-46, after the roundings of pow. The sizes below spread
// over an octave and more, each independently. So an exponent collects at most some tens of such
// errors, and the constant collects 64 octaves of each.
constexpr double kExponent = 0x1p-40;
constexpr double kConstant = 0x1p-32;

void expect_found(const PowerLaw& law, std::vector<Sample> samples) {
  for (Sample& sample : samples) {
    sample.words = words_of(law, sample);
  }
  const PowerLaw found = fit_power_law(samples);
  EXPECT_NEAR(found.exponents.n, law.exponents.n, kExponent);
  EXPECT_NEAR(found.exponents.d, law.exponents.d, kExponent);
  EXPECT_NEAR(found.exponents.M, law.exponents.M, kExponent);
  EXPECT_NEAR(found.constant / law.constant, 1, kConstant);
  EXPECT_LT(found.residual, kExponent);
}

TEST(Exponents, LawsAreFoundAgain) {
  const PowerLaw laws[] = {{4, {2, 2, -1}, 0}, {12, {2, 1, -0.5}, 0},      {5, {2, 0, 0}, 0},
                           {1, {0, 0, 0}, 0},  {0.001, {-1, 0.3, 1.7}, 0}, {1e9, {1, 2, -0.5}, 0}};
  std::mt19937_64 random(1);
  for (const PowerLaw& law : laws) {
    expect_found(law, box());
    std::vector<Sample> scattered(50);
    for (Sample& sample : scattered) {
      const auto size = [&](double most) {
        std::uniform_real_distribution<double> octaves(0, most);
        return static_cast<Index>(std::exp2(octaves(random)));
      };
      sample = {size(40), size(20), size(30), 1};
    }
    expect_found(law, scattered);
    // A regime in which M grows with d^2.
    for (Sample& sample : scattered) {
      sample.M = sample.d * sample.d * (1 + sample.M % 64);
    }
    expect_found(law, scattered);
  }
}

// A part that no power law explains: at the corners of a box, the product of the three signs.
TEST(Exponents, WhatIsNoLawIsTheResidual) {
  const PowerLaw law{3, {2, 1, -0.5}, 0};
  std::vector<Sample> samples = box();
  constexpr double kOctaves = 0.25;
  for (Sample& sample : samples) {
    const bool odd = ((sample.n == 2) != (sample.d == 4)) != (sample.M == 16);
    sample.words = words_of(law, sample) * std::exp2(odd ? kOctaves : -kOctaves);
  }
  const PowerLaw found = fit_power_law(samples);
  EXPECT_NEAR(found.residual, kOctaves, kExponent);
  EXPECT_NEAR(found.exponents.n, 2, kExponent);
  EXPECT_NEAR(found.exponents.d, 1, kExponent);
  EXPECT_NEAR(found.exponents.M, -0.5, kExponent);
  EXPECT_NEAR(found.constant / 3, 1, kConstant);
}

// One corner of eight has twice the words. An eighth of that octave goes into the mean, and an
// eighth into the slope along each size, where the deviations are 1, 2 and 4 octaves. Half of it
// remains. Twice the words at the larger M is one octave in eight.
TEST(Exponents, LeastSquares) {
  std::vector<Sample> samples = box();
  samples.back().words = 2;
  const PowerLaw found = fit_power_law(samples);
  EXPECT_NEAR(found.exponents.n, 1.0 / 8, kExponent);
  EXPECT_NEAR(found.exponents.d, 1.0 / 16, kExponent);
  EXPECT_NEAR(found.exponents.M, 1.0 / 32, kExponent);
  EXPECT_NEAR(found.residual, 1 - 4.0 / 8, kExponent);
  for (Sample& sample : samples) {
    sample.words = sample.M == 4096 ? 2 : 1;
  }
  EXPECT_NEAR(fit_power_law(samples).exponents.M, 1.0 / 8, kExponent);
}

TEST(Exponents, GridsThatLeaveAnExponentOpen) {
  const auto refused = [](auto change) {
    std::vector<Sample> samples = box();
    for (Sample& sample : samples) {
      change(sample);
    }
    EXPECT_THROW(fit_power_law(samples), ShapeMismatch);
  };
  refused([](Sample& sample) { sample.n = 3; });
  refused([](Sample& sample) { sample.d = 48; });
  refused([](Sample& sample) { sample.M = 1000; });
  refused([](Sample& sample) { sample.M = sample.d * sample.d; });
  refused([](Sample& sample) { sample.M = 3 * sample.n * sample.d; });
  refused([](Sample& sample) { sample = {sample.n, sample.n, sample.n, 1}; });
  refused([](Sample& sample) { sample.words = 0; });
  refused([](Sample& sample) { sample.M = 0; });
  refused([](Sample& sample) { sample.n = -sample.n; });
  EXPECT_THROW(fit_power_law({}), ShapeMismatch);
  EXPECT_THROW(fit_power_law({{2, 4, 16, 1}, {4, 4, 16, 1}, {2, 8, 16, 1}}), ShapeMismatch);
  EXPECT_NO_THROW(fit_power_law({{2, 4, 16, 1}, {4, 4, 16, 1}, {2, 8, 16, 1}, {2, 4, 32, 1}}));
}

}  // namespace
}  // namespace redblue
