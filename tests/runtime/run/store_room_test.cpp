// Tests the disk space that a run reserves.

#include "runtime/run/store_room.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/kernel.hpp"
#include "tests/support/temporary_directory.hpp"

namespace redblue {
namespace {

// If a resumed run finds a part of a matrix, each window of one row of 64 words needs a whole
// sector. A matrix that it starts again needs no more space than without --resume.
TEST(StoreRoom, HoldsWhatLiesApart) {
  const TemporaryDirectory directory;
  Store store(directory / "store");
  const Shape shape{64, 3000, 64};
  const auto more_to_resume = [&](const char* name, const std::vector<std::string>& of_one_row) {
    const Kernel& kernel = find_kernel(name);
    const Problem problem{shape};
    Blocks blocks = kernel.plan(problem, {1 << 20}).blocks;
    for (const std::string& block : of_one_row) {
      blocks.set(block, 1);
    }
    Report report;
    report.kernel.plan = kernel.plan(problem, {1 << 20}, blocks);
    const auto needed = [&](bool resume) {
      return room_needed(store, report, {}, {.directory = {}, .options = {}, .resume = resume})
          .value();
    };
    return needed(true) - needed(false);
  };
  const Index padding = 3000 * (4096 - 64 * 4);  // for m rows
  EXPECT_GE(more_to_resume("layer/rows-keys", {"dKV.Bc"}), 2 * padding) << "dV and dA2";
  EXPECT_GE(more_to_resume("gradients/rows-keys", {"dKV.Bc"}), 2 * padding) << "dV and dK";
  for (const char* kernel : {"layer/score-rows", "gradients/score-rows"}) {
    EXPECT_LE(more_to_resume(kernel, {"Bc", "groups"}), 0) << kernel;
  }
}

}  // namespace
}  // namespace redblue
