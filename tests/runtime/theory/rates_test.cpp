// Tests the time of a plan with made-up rates: along a kernel's curve, beyond its ends, and for
// kernels without measurements. The default rates equal their file, and belong to existing kernels.

#include "runtime/theory/rates.hpp"

#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "kernels/kernel.hpp"
#include "runtime/report/calibration.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/tested_kernel.hpp"

namespace redblue {
namespace {

Plan plan(const char* kernel, Index words, Index flops, Blocks blocks = {},
          Sharing sharing = Sharing::none) {
  return {.kernel = kernel,
          .problem = Problem({100, 100, 40}, sharing),
          .M = 1000,
          .blocks = std::move(blocks),
          .phases = {{.path = "a", .reads = words, .writes = 0, .peak = 9, .flops = flops / 2},
                     {.path = "b", .reads = 0, .writes = words, .peak = 9, .flops = flops / 2}}};
}

const Rates kRates{.origin = "made up",
                   .granule = 16,
                   .kernels = {{"fast", {{0.1, 1}, {0.2, 3}}}, {"slow", {{0.1, 50}}}}};

TEST(Rates, BetweenTwoSamplesALine) {
  EXPECT_DOUBLE_EQ(seconds(plan("fast", 50, 1000), kRates), 1000 * 1);
  EXPECT_DOUBLE_EQ(seconds(plan("fast", 75, 1000), kRates), 1000 * 2);
  EXPECT_DOUBLE_EQ(seconds(plan("fast", 100, 1000), kRates), 1000 * 3);
}

TEST(Rates, BelowThemAFlopAndAboveAWordTakesAsLong) {
  EXPECT_DOUBLE_EQ(seconds(plan("fast", 1, 1000), kRates), 1000 * 1);
  EXPECT_DOUBLE_EQ(seconds(plan("fast", 1000, 1000), kRates), 10 * 1000 * 3);
  EXPECT_DOUBLE_EQ(seconds(plan("slow", 100, 1000), kRates), 2 * 1000 * 50);
}

TEST(Rates, WithoutKinTheMedian) {
  EXPECT_TRUE(kRates.measured("slow"));
  EXPECT_FALSE(kRates.measured("new"));
  EXPECT_DOUBLE_EQ(seconds(plan("new", 75, 1000), kRates), 1000 * (2 + 75.) / 2);
}

// Pieces of 24 words need two granules of 16. Pieces of 40, the whole width, need three.
TEST(Rates, SquareBlocksAskForWholeGranules) {
  EXPECT_DOUBLE_EQ(words_per_flop(plan("fast", 50, 1000), 16), 0.1);
  EXPECT_DOUBLE_EQ(words_per_flop(plan("fast", 50, 1000, {{"Br", 3}}), 16), 0.1);
  EXPECT_DOUBLE_EQ(words_per_flop(plan("fast", 50, 1000, {{"B", 32}}), 16), 0.1);
  EXPECT_DOUBLE_EQ(words_per_flop(plan("fast", 50, 1000, {{"B", 24}}), 16), 0.1 * 32 / 24);
  EXPECT_DOUBLE_EQ(words_per_flop(plan("fast", 50, 1000, {{"B", 90}}), 16), 0.1 * 48 / 40);
  EXPECT_DOUBLE_EQ(words_per_flop(plan("fast", 50, 1000, {{"B", 1}}), 16), 0.1 * 16);
}

TEST(Rates, SamplesComeInOrder) {
  KernelRates rates{"any", {}};
  for (const RateSample& sample : {RateSample{2, 20}, {1, 10}, {3, 30}, {2, 21}}) {
    add_sample(rates, sample);
  }
  EXPECT_EQ(rates.samples, (std::vector<RateSample>{{1, 10}, {2, 21}, {3, 30}}));
}

// The order is: the exact kernel, the kernel without shared keys, its kin with the same spelling,
// its kin without shared keys.
TEST(Rates, AKernelThatIsUnmeasuredTakesTheCurveOfItsKin) {
  Rates rates{.origin = "made up", .granule = 16, .kernels = {}};
  const auto seconds_a_flop = [&](const char* kernel, Sharing sharing) {
    return seconds(plan(kernel, 100, 1000, {}, sharing), rates) / 1000;
  };
  const char* const kResident = "backward/rows-resident";
  double curve = 8;
  for (const char* measured : {"backward/rows-onepass", "backward/rows-onepass-shared", kResident,
                               "backward/rows-resident-shared"}) {
    rates.kernels.push_back({measured, {{0.2, curve /= 2}}});
    EXPECT_DOUBLE_EQ(seconds_a_flop(kResident, Sharing::kv), curve) << measured;
  }
  EXPECT_DOUBLE_EQ(seconds_a_flop(kResident, Sharing::none), 1);
  EXPECT_DOUBLE_EQ(seconds_a_flop("backward/rows-onepass", Sharing::none), 4);
  EXPECT_DOUBLE_EQ(seconds_a_flop("backward/small", Sharing::none), 1.5) << "the median";
}

// The kin has the same pass, or the pass with weights.
TEST(Rates, KinAreOtherKernelsOfTheSamePass) {
  int with_kin = 0;
  for (const Kernel& kernel : kernels()) {
    std::set<std::string_view> line = {kernel.name};
    for (const Kernel* of = &kernel; !of->kin.empty();) {
      of = &find_kernel(of->kin);
      EXPECT_EQ(is_backward(of->pass), is_backward(kernel.pass)) << kernel.name;
      EXPECT_TRUE(of->pass == kernel.pass || inputs_of(of->pass) == Inputs::weighted)
          << kernel.name;
      ASSERT_TRUE(line.insert(of->name).second) << kernel.name << " is its own kin";
    }
    with_kin += line.size() > 1 ? 1 : 0;
  }
  EXPECT_GE(with_kin, 2);
}

// A renamed kernel must not silently lose its rates.
TEST(Rates, TheDefaultsAreOfKernelsThatExist) {
  std::set<std::string> names;
  for (const auto& [kernel, samples] : default_rates().kernels) {
    EXPECT_EQ(tested_kernel(kernel).name, kernel);
    EXPECT_TRUE(names.insert(kernel).second) << kernel;
    ASSERT_FALSE(samples.empty());
    for (std::size_t k = 0; k < samples.size(); ++k) {
      EXPECT_GT(samples[k].seconds_per_flop, 0);
      EXPECT_GT(samples[k].words_per_flop, k == 0 ? 0 : samples[k - 1].words_per_flop);
    }
  }
}

// The command would accept this file on the machine that it names.
TEST(Rates, TheDefaultsAreThoseOfTheirFile) {
  const std::string file = REDBLUE_SOURCE_DIR "/runtime/theory/rates.json";
  const std::string text = content_of(file);
  const auto context = nlohmann::json::parse(text).at("context");
  Topology machine;
  machine.model = context.at("model").get<std::string>();
  machine.cores = {{0}};
  for (const auto& cache : context.at("caches")) {
    for (const CacheLevel level : kCacheLevels) {
      if (cache.at("cache") == to_string(level)) {
        machine.caches[static_cast<std::size_t>(level)].push_back(
            {.bytes = cache.at("bytes").get<std::uint64_t>(),
             .line = {},
             .ways = {},
             .cores = {0}});
      }
    }
  }
  const Rates written = calibrated_rates(text, file, machine);
  EXPECT_EQ(default_rates().granule, written.granule);
  ASSERT_EQ(default_rates().kernels.size(), written.kernels.size());
  for (std::size_t k = 0; k < written.kernels.size(); ++k) {
    EXPECT_EQ(default_rates().kernels[k].kernel, written.kernels[k].kernel);
    EXPECT_EQ(default_rates().kernels[k].samples, written.kernels[k].samples);
  }
}

TEST(Rates, Median) {
  EXPECT_EQ(median({3}), 3);
  EXPECT_EQ(median({9, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
}

}  // namespace
}  // namespace redblue
