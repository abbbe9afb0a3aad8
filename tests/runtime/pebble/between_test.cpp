// Bounds, optima and kernels of the same computation: each is at most the next. Where a search is
// too long, its bracket stands for the optimum.

#include <algorithm>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/pebble/attention_dags.hpp"
#include "runtime/pebble/solve.hpp"
#include "runtime/pebble/terms.hpp"
#include "runtime/theory/bounds.hpp"
#include "runtime/theory/planner.hpp"

namespace redblue {
namespace {

// The passes whose kernels compute the graph, each vertex once. Those of backward rearrange sums,
// and some of gradients compute scores again.
bool kernels_play(Pass pass) {
  return pass == Pass::product || pass == Pass::forward || pass == Pass::attention;
}
// The words of L, which bounds and kernels of these have for a result, and graphs have not: whoever
// has the sum of a row may write it.
Index words_of_L(const Task& task) {
  return task.pass == Pass::forward || task.pass == Pass::attention ? task.problem.shape.n : 0;
}

struct Tried {
  Index instances = 0, exact = 0, beside_kernels = 0, above_bounds = 0;
};

void compare(Pass pass, const Shape& shape, Index more, Tried& seen) {
  Task task{.pass = pass, .problem = Problem(shape), .known = Known::O_and_L};
  task.problem.inputs = inputs_of(pass);
  const Dag dag = dag_of(pass, task.problem, Sums::any);
  const Rules rules(dag, Game::fma);
  const Index least_M = terms_of(rules).least_M();
  const SolveLimits limits{.seconds = 1000, .bytes = 1 << 19};
  for (const Solution& solution : solve(rules, least_M, least_M + more, limits)) {
    task.memory = solution.M;
    SCOPED_TRACE(testing::Message() << to_string(pass) << " " << shape.n << " " << shape.m << " "
                                    << shape.d << " M = " << solution.M);
    const Index bound = largest(lower_bounds(task)).words - words_of_L(task);
    EXPECT_LE(bound, solution.upper);
    if (solution.exact()) {
      ++seen.exact;
      seen.above_bounds += bound < solution.upper ? 1 : 0;
    }
    const std::vector<Choice> found = kernels_play(pass) ? choices(task) : std::vector<Choice>();
    if (!found.empty()) {
      ++seen.beside_kernels;
      EXPECT_LE(solution.lower, found.front().words.value() - words_of_L(task));
    }
    ++seen.instances;
  }
}

TEST(Optima, AreBetweenBoundsAndKernels) {
  Tried seen;
  for (Index n = 1; n <= 3; ++n) {
    for (Index m = 1; m <= 3; ++m) {
      for (Index d = 1; d <= 3; ++d) {
        compare(Pass::product, {n, m, d, d}, 6, seen);
        if (n * m <= 4 && d <= 2) {
          compare(Pass::attention, {n, m, d, d}, 6, seen);
          compare(Pass::forward, {n, m, d, d}, 6, seen);
        }
        if (n * m <= 2 && d <= 2) {
          compare(Pass::gradients, {n, m, d, d}, 6, seen);
          compare(Pass::backward, {n, m, d, d}, 6, seen);
        }
      }
    }
  }
  EXPECT_GE(seen.instances, 300);
  EXPECT_GE(seen.exact, 250);
  EXPECT_GE(seen.beside_kernels, 150);
  EXPECT_GE(seen.above_bounds, 80);
}

}  // namespace
}  // namespace redblue
