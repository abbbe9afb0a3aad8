// Calls attention() or gradients() without an M, and prints the plan that the call chose.

#include <cstdio>
#include <string_view>
#include <vector>

#include "runtime/run/attention.hpp"

int main(int argc, char** argv) {
  using namespace redblue;  // NOLINT(google-build-using-namespace): a user's program
  const bool backward = argc > 1 && std::string_view(argv[1]) == "gradients";
  const AttentionProblem problem{.shape = {60, 60, 8}};
  const std::vector<float> in(480, 0.1F);
  std::vector<float> a(480), b(480), c(480), L(60);
  const AttentionRun run = backward ? gradients(problem, {in, in, in, in}, {a, b, c}, {})
                                    : attention(problem, {in, in, in}, {a, L}, {});
  std::printf("%s\n", to_string(run.kernel.plan).c_str());
}
