// `REDBLUE_SIMD=SSE4 ctest --preset dev` runs all tests in that instruction set.
// tests/support/cli.hpp passes it on to the command.

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "kernels/arithmetic/simd.hpp"

namespace redblue {
namespace {

class SimdEnvironment final : public testing::Environment {
 public:
  void SetUp() override {
    const char* const name = std::getenv("REDBLUE_SIMD");
    if (name == nullptr || *name == '\0') {
      return;
    }
    std::string known;
    for (const std::string& target : simd_targets()) {
      known += (known.empty() ? "" : ", ") + target;
    }
    ASSERT_TRUE(use_simd_target(name)) << "REDBLUE_SIMD '" << name << "': expected " << known;
  }
};

[[maybe_unused]] const testing::Environment* const kEnvironment =
    testing::AddGlobalTestEnvironment(new SimdEnvironment);  // GoogleTest deletes it

}  // namespace
}  // namespace redblue
