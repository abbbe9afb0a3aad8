// The gate's baseline against runs in this process, on a caller's buffers. The least M, and the
// words and peak of each phase, are the same for every compiler, build type and instruction set.

#include <algorithm>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "runtime/gate/baseline.hpp"
#include "tests/support/run_kernel.hpp"
#include "tests/support/temporary_directory.hpp"

namespace redblue {
namespace {

constexpr const char* kSuite = "tests/gate/suite.json";
constexpr const char* kBaseline = "tests/gate/baseline.json";

// Threads, heads, prefetch and stores are options of the command. ctest's gate runs those points.
bool is_of_sizes_alone(const Arguments& arguments) {
  return std::ranges::all_of(arguments, [](const auto& argument) {
    const std::string& name = argument.first;
    return name == "n" || name == "m" || name == "d" || name == "M";
  });
}

RecordedPoint record_here(const TestedKernel& kernel, const Point& point) {
  const Index n = point.arguments["n"];
  const Index m = point.arguments.contains("m") ? point.arguments["m"] : n;
  const Index M = point.arguments["M"];
  const Shape shape{n, m, point.arguments["d"]};
  RecordedPoint now{.point = point, .least_M = std::nullopt, .fits = false, .counts = {}};
  const Index least = kernel.least_M(shape);
  if (least <= M) {
    const Result result = run_kernel(kernel, kernel.plan(shape, M), make_problem(kernel, shape, 1));
    now = recorded(point, {.phases = result.phases, .total = result.all});
  }
  now.least_M = least;
  return now;
}

std::string text(const RecordedPoint& point) {
  return to_json({How::run, {point}});
}

TEST(Golden, RunsMoveTheWordsOfTheBaseline) {
  const std::string root = REDBLUE_SOURCE_DIR "/";
  std::map<std::string, int> ran;
  const Recording baseline = parse_recording(content_of(root + kBaseline), kBaseline);
  for (const RecordedPoint& expected : baseline.points) {
    const auto kernel = parse_kernel_name(expected.point.subject);
    if (kernel && is_of_sizes_alone(expected.point.arguments)) {
      const RecordedPoint now = record_here(*kernel, expected.point);
      ran[expected.point.subject] += now.fits ? 1 : 0;
      EXPECT_EQ(text(now), text(expected))
          << "If this was meant to change: redblue record " << kSuite << " -o " << kBaseline;
    }
  }
  for (const TestedKernel& kernel : tested_kernels()) {
    EXPECT_GE(ran[kernel.name], 3)
        << kernel.name << ": redblue record " << kSuite << " -o " << kBaseline;
  }
}

}  // namespace
}  // namespace redblue
