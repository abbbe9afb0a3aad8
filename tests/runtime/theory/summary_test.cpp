// Tests the table of docs/theory/summary.md. For large n, the bound and the plan of each line have
// the constants that the line states, and the line names that bound and a best kernel.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/theory/bounds.hpp"
#include "runtime/theory/planner.hpp"
#include "tests/support/temporary_directory.hpp"

namespace redblue {
namespace in_summary_test {
namespace {

const std::filesystem::path kRoot = REDBLUE_SOURCE_DIR;

struct Line {
  std::string text, problem, sharing, algorithms, M;
  double bound;
  std::string proof;
  double schedule;
  std::string kernel;
  double ratio;
};

std::vector<Line> lines_of_the_table() {
  std::istringstream page(content_of(kRoot / "docs/theory/summary.md"));
  std::vector<Line> lines;
  bool in_table = false;
  for (std::string text; std::getline(page, text);) {
    if (text.starts_with("| problem |")) {
      in_table = true;
    } else if (in_table && text.empty()) {
      break;
    } else if (in_table && !text.starts_with("|---")) {
      std::istringstream cells(text.substr(2));
      std::vector<std::string> cell;
      for (std::string each; std::getline(cells, each, '|');) {
        const std::size_t first = std::min(each.find_first_not_of(' '), each.size());
        cell.push_back(each.substr(first, each.find_last_not_of(' ') + 1 - first));
      }
      cell.resize(9);
      lines.push_back({text, cell[0], cell[1], cell[2], cell[3], std::stod(cell[4]), cell[5],
                       std::stod(cell[6]), cell[7], std::stod(cell[8])});
    }
  }
  return lines;
}

// n = m far above d, and M far below or above d^2.
struct Sizes {
  Index n, d, M;
};
constexpr Sizes kSmall = {Index{1} << 25, Index{1} << 17, Index{1} << 18};
constexpr Sizes kLarge = {Index{1} << 30, Index{1} << 10, Index{1} << 30};

Task task_of(const Line& line, const Sizes& sizes) {
  static const std::map<std::string, Pass> passes = {
      {"product", Pass::product},     {"attention", Pass::attention},
      {"forward", Pass::forward},     {"backward", Pass::backward},
      {"gradients", Pass::gradients}, {"layer", Pass::layer},
      {"linear", Pass::linear},       {"linear-gradient", Pass::linear_gradient}};
  static const std::map<std::string, Sharing> sharings = {
      {"none", Sharing::none}, {"kv", Sharing::kv}, {"self", Sharing::self}};
  Task task{passes.at(line.problem), Problem(sizes.n, sizes.n, sizes.d, sharings.at(line.sharing)),
            sizes.M};
  task.problem.inputs = inputs_of(task.pass);
  return task;
}

Schedule class_of(const Line& line) {
  static const std::map<std::string, Schedule> classes = {
      {"any", {}},
      {"once", {.recomputes = false}},
      {"two-step", {.order = Order::two_step}},
      {"two-step, once", {.order = Order::two_step, .recomputes = false}}};
  Schedule schedule = classes.at(line.algorithms);
  schedule.sharing = task_of(line, kSmall).problem.sharing;
  return schedule;
}

bool in_class(const Schedule& algorithm, const Schedule& of) {
  return (of.order == Order::any || algorithm.order == of.order) &&
         (of.recomputes || !algorithm.recomputes);
}

// A constant is multiplied by n m d / sqrt(M) for small M and by n m d^2 / M for large M. Lower
// terms are left out:
//
//   small   at most 6 n m, so 6 sqrt(M) / d; products with d x d matrices, 2 d / n each; and a
//           border of each tile, which takes 2 / sqrt(M) of its side. Linear attention has n d in
//           place of n m, and products of three d x d matrices.
//   large   n m words of C, which are subtracted; words that stay, at most 14 n d; scratch of some
//           words beside the d words of a row, 8 / d; 2 d^2 / M for X and g, which stay; and the
//           pairs that cross in Lemma 20, 5 d^2 / M
TEST(Summary, HoldsForLargeSizes) {
  const std::vector<Line> lines = lines_of_the_table();
  std::set<std::string> problems;
  for (const Line& line : lines) {
    SCOPED_TRACE(line.text);
    problems.insert(line.problem);
    const bool small = line.M == "small";
    ASSERT_TRUE(small || line.M == "large");
    const Sizes sizes = small ? kSmall : kLarge;
    const auto n = static_cast<double>(sizes.n), d = static_cast<double>(sizes.d);
    const auto M = static_cast<double>(sizes.M);
    const bool linear = line.problem.starts_with("linear");
    const double unit =
        (linear ? 2 * n * d * d : n * n * d) / std::sqrt(M) * (small ? 1 : d / std::sqrt(M));
    const double written = line.problem == "product" && !small ? n * n : 0;
    const double beside = linear  ? 2 * std::sqrt(M) / d + 3 * d / n
                          : small ? 6 * std::sqrt(M) / d + 8 * d / n
                                  : 14 * M / (n * d);
    const double of_each = small ? 4 / std::sqrt(M) : 8 / d + 5 * d * d / M;
    const Task task = task_of(line, sizes);
    const Schedule schedule = class_of(line);

    const std::vector<Bound> bounds = lower_bounds(task);
    const Bound& bound = largest(bounds, schedule);
    EXPECT_TRUE(line.proof.starts_with("[" + std::string(bound.name) + "](bounds.md#"))
        << bound.name;
    // The last digit of a constant is rounded.
    EXPECT_NEAR((static_cast<double>(bound.words) - written) / unit, line.bound,
                beside + line.bound * of_each + 0.005);

    double best = 1e300, named = 0;
    for (const Choice& choice : choices(task)) {
      if (in_class(schedule_of(choice.plan), schedule)) {
        const double words = (static_cast<double>(choice.words.value()) - written) / unit;
        best = std::min(best, words);
        named = line.kernel == "`" + spelled(choice.plan) + "`" ? words : named;
      }
    }
    EXPECT_NEAR(best, line.schedule, beside + line.schedule * of_each);
    EXPECT_NEAR(named, line.schedule, beside + line.schedule * of_each);
    EXPECT_NEAR(line.ratio, line.schedule / line.bound, 0.0051);
  }
  EXPECT_EQ(problems.size(), 8U);
}

}  // namespace
}  // namespace in_summary_test
}  // namespace redblue
