// One file of counts for every compiler, build type and instruction set: the words and operations
// of actual runs of all kernels, phase by phase.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/run_kernel.hpp"

namespace redblue {
namespace {

const std::filesystem::path kGolden =
    std::filesystem::path(REDBLUE_SOURCE_DIR) / "tests" / "golden" / "counts.csv";
constexpr const char* kAccept = "REDBLUE_ACCEPT_GOLDEN";

// Two problems a kernel: a ragged one with n != m, and one with whole blocks; at an M that
// suits most, or the least where that is more.
std::vector<std::string> run_the_grid() {
  std::vector<std::string> lines = {"kernel,n,m,d,M,phase,reads,writes,peak,flops,elementwise"};
  for (const TestedKernel& kernel : tested_kernels()) {
    for (const auto& [shape, M] :
         {std::pair(Shape{50, 37, 11}, Index{512}), std::pair(Shape{96, 96, 16}, Index{1024})}) {
      const Plan plan = kernel.plan(shape, std::max(M, kernel.least_M(shape)));
      const Result result = run_kernel(kernel, plan, make_problem(kernel, shape, 1));
      for (const PhaseCounts& phase : result.phases) {
        std::ostringstream line;
        line << kernel.name << ',' << shape.n << ',' << shape.m << ',' << shape.d << ',' << plan.M
             << ',' << phase.path << ',' << phase.io.reads << ',' << phase.io.writes << ','
             << phase.peak << ',' << phase.operations.flops << ',' << phase.operations.elementwise;
        lines.push_back(line.str());
      }
    }
  }
  return lines;
}

std::vector<std::string> lines_of(const std::filesystem::path& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    lines.push_back(line);
  }
  return lines;
}

TEST(Golden, CountsAreThoseOfTheFile) {
  const std::vector<std::string> counted = run_the_grid();
  if (std::getenv(kAccept) != nullptr) {
    std::ofstream file(kGolden);
    for (const std::string& line : counted) {
      file << line << '\n';
    }
    ASSERT_TRUE(file.flush()) << kGolden << " cannot be written";
  }
  const std::vector<std::string> golden = lines_of(kGolden);
  const auto line = [](const std::vector<std::string>& lines, std::size_t k) {
    return k < lines.size() ? lines[k] : std::string("(no such line)");
  };
  for (std::size_t k = 0; k < std::max(counted.size(), golden.size()); ++k) {
    ASSERT_EQ(line(counted, k), line(golden, k))
        << "line " << k + 1 << " of " << kGolden.string()
        << ". If the counts were meant to change, run this test again with " << kAccept
        << "=1 in the environment, and commit the file.";
  }
}

}  // namespace
}  // namespace redblue
