// Tests the kind of a backward pass and the terms of its g. Under every mask and activation, each
// word of g is a sum over the live pairs, each exactly once.

#include "runtime/pebble/kind.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/run/mask_spec.hpp"
#include "tests/support/kernel_requests.hpp"
#include "tests/support/pebbled.hpp"
#include "tests/support/run_kernel.hpp"

namespace redblue {
namespace {

const std::vector<Shape> kKindShapes = {{7, 5, 3}, {4, 6, 2}, {5, 5, 2}};

class KindOf : public testing::TestWithParam<FollowedKernel> {};

// A backward pass that folds no partial sums into g is two-step in every run. A pass that folds
// them is not two-step with the least M.
TEST_P(KindOf, IsWhatTheKernelSays) {
  const bool folds = GetParam().kernel->numerics.folds_partial_sums;
  for (const Shape& shape : kKindShapes) {
    const std::vector<Request> requests = GetParam().requests(shape);
    for (const Request& request : requests) {
      SCOPED_TRACE(said(request));
      const bool two_step = is_two_step(pebbled(request, ProductPebbles::fused).pebbling);
      if (!folds) {
        EXPECT_TRUE(two_step);
      } else if (&request == requests.data()) {
        EXPECT_FALSE(two_step);
      }
    }
  }
}

std::vector<FollowedKernel> backward_kernels() {
  std::vector<FollowedKernel> all = followed_kernels();
  std::erase_if(all,
                [](const FollowedKernel& kernel) { return !kernel.name.starts_with("backward/"); });
  return all;
}

INSTANTIATE_TEST_SUITE_P(Kernels, KindOf, testing::ValuesIn(backward_kernels()),
                         [](const auto& of) { return test_name(of.param.name); });

// ---- masks -------------------------------------------------------------------------------------

class MaskedKindOf : public testing::TestWithParam<TestedKernel> {
 protected:
  // Returns requests with each activation that the kernel takes, with `more` words above the least
  // M.
  static std::vector<Request> requests(const Shape& shape, Index more) {
    std::vector<Request> all;
    for (const char* const mask : {"causal", "window:2,1", "prefix:2|window:1,0"}) {
      for (const Activation phi :
           {Activation::softmax, Activation::relu, Activation::sigmoid, Activation::silu}) {
        TestedKernel kernel = GetParam();
        if (phi == Activation::softmax || kernel.kernel->takes(phi)) {
          kernel.mask = parse_mask(mask, shape, "--mask");
          kernel.activation = phi;
          all.push_back(request(kernel.name, shape, kernel.least_M(shape) + more));
          all.back().mask = mask;
          all.back().activation = phi;
          all.back().forward_in_more_M = true;
        }
      }
    }
    return all;
  }
};

// Visits the factors of each term of a sum. A factor that does not exist is -1.
template <class Visit>
void each_term(const Pebbling& run, Index sum, const Visit& visit) {
  for (; sum >= 0; sum = run.made[slot(sum)].sum) {
    const Pebbling::Made& made = run.made[slot(sum)];
    if (made.a >= 0 || made.b >= 0) {
      visit(made.a, made.b);
    }
    if (made.joined >= 0) {
      each_term(run, made.joined, visit);
    }
  }
}

// Counts the terms of the inner sums in a word of g: one for each pair.
Index pairs_in(const Pebbling& run, Index g) {
  Index pairs = 0;
  each_term(run, g, [&](Index a, Index b) {
    for (const Index factor : {a, b}) {
      if (factor >= 0 && !run.dag.input(factor)) {
        each_term(run, factor, [&](Index, Index) { ++pairs; });
      }
    }
  });
  return pairs;
}

// Each word of g is a sum over the live pairs, each once. Dead pairs add no term. With the least M,
// tiles have few dead pairs. With more M, kernels that fold may have all keys in one tile.
TEST_P(MaskedKindOf, IsWhatTheKernelSays) {
  const bool folds = GetParam().kernel->numerics.folds_partial_sums;
  for (const Shape& shape : kKindShapes) {
    for (const Index more : {0, 100}) {
      for (const Request& request : requests(shape, more)) {
        SCOPED_TRACE(said(request));
        const Pebbling run = pebbled(request, ProductPebbles::fused).pebbling;
        if (!folds || more == 0) {
          EXPECT_EQ(is_two_step(run), !folds);
        }
        const Mask mask = parse_mask(request.mask, shape, "--mask");
        const Index live = mask.pairs({0, shape.n}, {0, shape.m}).value();
        Index words = 0;
        for (const Pebbling::Stored& word : run.stored) {
          if (word.matrix == "g") {
            EXPECT_EQ(pairs_in(run, word.vertex), live);
            ++words;
          }
        }
        EXPECT_EQ(words, shape.d * shape.d);
      }
    }
  }
}

std::vector<TestedKernel> masked_backward_kernels() {
  std::vector<TestedKernel> all = tested_kernels();
  std::erase_if(all, [](const TestedKernel& kernel) {
    return kernel.kernel->pass != Pass::backward || !kernel.kernel->takes_masks;
  });
  return all;
}

INSTANTIATE_TEST_SUITE_P(Kernels, MaskedKindOf, testing::ValuesIn(masked_backward_kernels()),
                         [](const auto& of) { return test_name(of.param.name); });

}  // namespace
}  // namespace redblue
