// Tests query heads that share key heads. The counts of a run equal its formula. Its results equal
// separate heads with repeated keys and values, with dK and dV summed over the heads that share
// them.

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/run/run.hpp"
#include "runtime/system/npy.hpp"
#include "runtime/theory/reference.hpp"
#include "tests/support/npy_bytes.hpp"
#include "tests/support/random_masks.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/tested_kernel.hpp"

namespace redblue {
namespace {

std::vector<TestedKernel> plain_kernels() {
  std::vector<TestedKernel> all = tested_kernels_of_any_shape();
  std::erase_if(all, [](const TestedKernel& kernel) {
    return inputs_of(kernel.kernel->pass) == Inputs::weighted;
  });
  return all;
}

constexpr const char* kMasks[] = {"", "causal", "window:3,2", "prefix:4|window:2,0", "global:1-2"};

TEST(KvHeads, CountedIsTheFormulaAndVerified) {
  RandomMasks random(7);
  for (const TestedKernel& kernel : plain_kernels()) {
    for (int k = 0; k < 25; ++k) {
      const Shape shape{random.any(1, 40), random.any(4, 40), random.any(1, 9)};
      const Index kv_heads = random.any(1, 3);
      const Index stacked = random.any(1, 4);
      Request request;
      request.kernel = kernel.name;
      request.n = shape.n;
      request.m = shape.m;
      request.d = shape.d;
      request.heads = kv_heads * stacked;
      request.kv_heads = kv_heads;
      request.M = kernel.least_M({stacked * shape.n, shape.m, shape.d}) + 100 + random.any(0, 1000);
      request.forward_in_more_M = true;
      if (kernel.kernel->takes_masks) {
        request.mask = kMasks[random.any(0, 4)];
      }
      if (kv_heads > 1 || kernel.split()) {
        request.threads = random.any(1, 3);
      }
      request.seed = static_cast<std::uint64_t>(k);
      request.verify = true;
      const Report counted = count(request);
      const Report report = run(request, {}, {.peak_gflops = false});
      SCOPED_TRACE(to_string(report.kernel.plan, kv_heads) + ", threads " +
                   std::to_string(request.threads));
      EXPECT_EQ(report.kernel.heads(), kv_heads * stacked);
      EXPECT_EQ(report.kernel.team.heads, kv_heads);
      ASSERT_EQ(report.kernel.counted->phases.size(), counted.kernel.formula.size());
      for (std::size_t i = 0; i < counted.kernel.formula.size(); ++i) {
        const PhaseCost& cost = counted.kernel.formula[i];
        const PhaseCounts& phase = report.kernel.counted->phases[i];
        SCOPED_TRACE(phase.path);
        EXPECT_EQ(Words(phase.io.reads), cost.reads);
        EXPECT_EQ(Words(phase.io.writes), cost.writes);
        EXPECT_GE(Words(phase.operations.flops), cost.flops) << "tiles are whole under a mask";
        EXPECT_TRUE(!request.mask.empty() || Words(phase.operations.flops) == cost.flops);
        EXPECT_LE(Words(phase.peak), cost.peak);
      }
      EXPECT_TRUE(report.error->ok) << report.error->output << " " << report.error->error;
      if (request.threads == 1) {
        EXPECT_LE(report.bound->words, report.kernel.io()) << report.bound->name;
      }
    }
  }
}

// A few heads of one problem, in files of words that a seed makes.
class SharedHeads : public testing::Test {
 protected:
  static constexpr Index kHeads = 6, kKvHeads = 2, kEach = kHeads / kKvHeads;
  static constexpr Shape kShape{13, 11, 4};
  static constexpr std::uint64_t kSeed = 3;
  using Words32 = std::vector<float>;
  using Results = std::map<std::string, Words32, std::less<>>;

  static std::size_t words_of(const Signature& operand) {
    return static_cast<std::size_t>(operand.rows_of(kShape) * operand.cols_of(kShape));
  }
  static bool is_of_keys(const Signature& operand) { return operand.rows == &Shape::m; }

  // Returns head h of the operand, made from the seed + h.
  static Words32 seeded(const TestedKernel& kernel, const Signature& operand, Index head) {
    Words32 words(words_of(operand));
    fill_input(operand.name, kernel.problem(kShape), kSeed + static_cast<std::uint64_t>(head), 1, 0,
               operand.rows_of(kShape), words);
    return words;
  }
  // Writes all query heads, or all key heads with each repeated.
  std::string file(const TestedKernel& kernel, const Signature& operand, Index repeated) {
    Words32 all;
    const Index heads = is_of_keys(operand) ? kKvHeads * repeated : kHeads;
    for (Index head = 0; head < heads; ++head) {
      const Words32 one = seeded(kernel, operand, is_of_keys(operand) ? head / repeated : head);
      all.insert(all.end(), one.begin(), one.end());
    }
    const std::string name = std::string(operand.name) + std::to_string(repeated) + ".npy";
    directory_.write(name,
                     npy_bytes({heads, operand.rows_of(kShape), operand.cols_of(kShape)}, all));
    return (directory_ / name).string();
  }
  static Request request_for(const TestedKernel& kernel, const std::string& mask) {
    Request request;
    request.kernel = kernel.name;
    request.M = kernel.least_M({kEach * kShape.n, kShape.m, kShape.d}) + 200;
    request.forward_in_more_M = true;
    request.mask = mask;
    return request;
  }
  // Returns the results, with the heads that the files state.
  Results results(const TestedKernel& kernel, Request request, Index kv_heads) {
    for (const Signature& operand : kernel.returns) {
      request.out[std::string(operand.name)] = directory_ / (std::string(operand.name) + ".npy");
    }
    run(request);
    Results all;
    for (const auto& [name, path] : request.out) {
      const Signature& operand = *find_operand(kernel.returns, name);
      NpyReader reader(path);
      reader.accept_minus_infinity();  // L of a query without a key
      std::vector<Index> shape = {is_of_keys(operand) ? kv_heads : kHeads, operand.rows_of(kShape)};
      if (operand.cols != nullptr) {
        shape.push_back(operand.cols_of(kShape));
      }
      EXPECT_EQ(reader.shape(), shape) << name;
      Words32& words = all[name];
      words.resize(static_cast<std::size_t>(reader.rows() * reader.cols()));
      reader.read_rows({0, reader.rows()}, words);
    }
    return all;
  }
  Results from_files(const TestedKernel& kernel, Request request, Index repeated) {
    for (const Signature& operand : kernel.given) {
      if (operand.name != "O" && operand.name != "L") {
        request.in[std::string(operand.name)] = file(kernel, operand, repeated);
      }
    }
    return results(kernel, request, kKvHeads * repeated);
  }
  TemporaryDirectory directory_;
};

// Returns how far the words of a result may be from the exact ones, summed over query heads.
std::map<std::string, std::vector<double>> allowed_of(const TestedKernel& kernel,
                                                      AttentionInput input) {
  input.sharing = kernel.sharing;
  for (const Signature& operand : kernel.returns) {
    input.results.push_back(operand.name);
  }
  std::map<std::string, std::vector<double>> all;
  for (const auto& [name, expected] : evaluate(input)) {
    all[name] = expected.allowed;
  }
  return all;
}

// Each word is within the sum of both error bounds of the word from separate heads. For dK and dV,
// it is the sum over these heads.
TEST_F(SharedHeads, AreAsManyWithKeysRepeated) {
  for (const TestedKernel& kernel : plain_kernels()) {
    for (const std::string mask : {"", "causal", "window:2,1|prefix:2"}) {
      if (!mask.empty() && !kernel.kernel->takes_masks) {
        continue;
      }
      SCOPED_TRACE(kernel.name + " " + mask);
      const Request request = request_for(kernel, mask);
      const Results shared = from_files(kernel, request, 1);
      const Results apart = from_files(kernel, request, kEach);
      Problem one = kernel.problem(kShape);
      one.mask = mask == "causal" ? Mask::causal(kShape.n, kShape.m)
                 : mask.empty()
                     ? Mask()
                     : Mask::window(kShape.n, kShape.m, 2, 1) | Mask::prefix(kShape.n, kShape.m, 2);
      const Problem all = one.with_stacked(kEach);

      for (Index k = 0; k < kKvHeads; ++k) {
        // The operands of one key head, and of each query head with these keys.
        std::map<std::string_view, Words32> words;
        for (const Signature& operand : kernel.given) {
          for (Index h = 0; h < (is_of_keys(operand) ? 1 : kEach); ++h) {
            const bool seeds = operand.name != "O" && operand.name != "L";
            const Words32 own =
                !seeds ? Words32()
                       : seeded(kernel, operand, is_of_keys(operand) ? k : k * kEach + h);
            words[operand.name].insert(words[operand.name].end(), own.begin(), own.end());
          }
        }
        const auto input = [&](const Problem& problem, Index first) {
          const auto queries = [&](std::string_view name) {
            const Words32& of = words[name];
            return of.empty() ? std::span<const float>()
                              : std::span<const float>(of).subspan(
                                    static_cast<std::size_t>(first * kShape.n * kShape.d),
                                    static_cast<std::size_t>(problem.shape.n * kShape.d));
          };
          const auto values = kernel.sharing == Sharing::none ? "V" : "K";
          return AttentionInput{.shape = problem.shape,
                                .A1 = queries("Q"),
                                .A2 = words["K"],
                                .A3 = words[values],
                                .X = {},
                                .Y = {},
                                .dO = queries("dO"),
                                .O = {},
                                .L = {},
                                .scale = problem.scale(),
                                .mask = problem.mask};
        };
        const auto stacked = allowed_of(kernel, input(all, 0));
        std::map<std::string, std::vector<double>> sums;  // sums of the bounds of separate heads
        for (Index h = 0; h < kEach; ++h) {
          for (const auto& [name, bound] : allowed_of(kernel, input(one, h))) {
            std::vector<double>& sum = sums[name];
            if (name == "dK" || name == "dV") {
              sum.resize(bound.size());
              std::ranges::transform(sum, bound, sum.begin(), std::plus());
            } else {
              sum.insert(sum.end(), bound.begin(), bound.end());
            }
          }
        }
        for (const Signature& operand : kernel.returns) {
          const std::string name(operand.name);
          const std::size_t size = words_of(operand);
          const std::size_t rows = is_of_keys(operand) ? size : kEach * size;
          for (std::size_t at = 0; at < rows; ++at) {
            const float found = shared.at(name)[static_cast<std::size_t>(k) * rows + at];
            double expected = 0;
            if (is_of_keys(operand)) {
              for (std::size_t h = 0; h < kEach; ++h) {
                expected += apart.at(name)[(static_cast<std::size_t>(k) * kEach + h) * size + at];
              }
            } else {
              expected = apart.at(name)[static_cast<std::size_t>(k) * rows + at];
            }
            const double bound = stacked.at(name)[at] + sums.at(name)[at];
            if (std::isinf(found) || std::isinf(expected)) {
              ASSERT_EQ(found, expected);  // L of a query without a key
            } else {
              ASSERT_LE(std::abs(found - expected), bound) << name << " " << at;
            }
          }
        }
      }
    }
  }
}

// Query head h is made from the seed + h, and key head k from the seed + k.
TEST_F(SharedHeads, AreMadeAsHeadsAre) {
  for (const TestedKernel& kernel : plain_kernels()) {
    SCOPED_TRACE(kernel.name);
    Request request = request_for(kernel, "");
    const Results files = from_files(kernel, request, 1);
    request.n = kShape.n;
    request.m = kShape.m;
    request.d = kShape.d;
    request.seed = kSeed;
    request.heads = kHeads;
    request.kv_heads = kKvHeads;
    EXPECT_EQ(results(kernel, request, kKvHeads), files);
  }
}

}  // namespace
}  // namespace redblue
