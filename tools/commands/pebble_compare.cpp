#include "tools/commands/pebble_compare.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "runtime/pebble/optimum.hpp"
#include "runtime/report/bounds_report.hpp"
#include "runtime/report/context.hpp"
#include "runtime/text/table.hpp"
#include "runtime/theory/planner.hpp"

namespace redblue {
namespace {

// The class of the games: each word is computed once, and each sum p A2 or A1^T p is complete
// before use.
constexpr Schedule kPlayed{.order = Order::two_step, .recomputes = false};
constexpr Index kMostCompared = 64;
constexpr Index kWordsForAll = 4096;  // words, enough for the whole problem in any kernel

// Returns whether the plan is in this class. A plan with a forward pass computes each score twice.
bool plays(const Choice& choice) {
  const Schedule schedule = schedule_of(choice.plan);
  return schedule.order == kPlayed.order && !schedule.recomputes && !choice.forward;
}

struct Compared {
  Optimum optimum;
  Bound bound;
  std::optional<Choice> kernel;
};

std::optional<Choice> kernel_of(Task task, Index M) {
  task.memory = M;
  const std::vector<Choice> all = choices(task);
  const auto found = std::ranges::find_if(all, plays);
  return found == all.end() ? std::nullopt : std::optional(*found);
}

Compared compared(Task task, const Optimum& optimum) {
  task.memory = optimum.M;
  return {optimum, largest(lower_bounds(task), kPlayed), kernel_of(task, optimum.M)};
}

// Removes rows from the end while they repeat the row before: same optimum, bound and kernel's
// words.
void drop_equal_rows(std::vector<Compared>& rows) {
  const auto words = [](const Compared& row) {
    return row.kernel ? std::optional(row.kernel->words) : std::nullopt;
  };
  while (rows.size() > 1) {
    const Compared &last = rows.back(), &before = *(rows.end() - 2);
    if (words(last) != words(before) || last.optimum.upper != before.optimum.upper ||
        last.optimum.lower != before.optimum.lower || last.bound.words != before.bound.words) {
      return;
    }
    rows.pop_back();
  }
}

// Returns the least M at which a kernel moves the fewest words of all kernels. If no kernel solves
// this problem, returns the last M to compare.
Index last_M(const Task& task, Index first) {
  const std::optional<Choice> best = kernel_of(task, kWordsForAll);
  Index M = first;
  for (; M < first + kMostCompared - 1; ++M) {
    const std::optional<Choice> here = kernel_of(task, M);
    if (here && here->words <= best->words) {
      break;
    }
  }
  return M;
}

Cells compared_cells(const Compared& row) {
  const Optimum& of = row.optimum;
  const Json upper = of.upper ? Json(*of.upper) : Json();
  const Index lower = of.exact() ? of.lower : std::max(of.lower, row.bound.words);
  const std::string words = of.exact() ? grouped(lower)
                            : of.upper ? fmt::format("{} to {}", grouped(lower), grouped(*of.upper))
                                       : fmt::format("at least {}", grouped(lower));
  const bool kernel = row.kernel.has_value();
  return {{"M", of.M},
          {{"bound", "bound.words"}, row.bound.words},
          {{"of", "bound.name"}, row.bound.name},
          {in_table("optimum"), words},
          {in_json("optimum.lower"), lower},
          {in_json("optimum.upper"), upper},
          {in_json("optimum.exact"), of.exact()},
          {{"of", "optimum.graph"}, of.graph.empty() ? Json() : Json(of.graph)},
          {in_json("optimum.states"), of.states},
          {{"kernel", "kernel.words"}, kernel ? Json(row.kernel->words.value()) : Json()},
          {{"of", "kernel.name"}, kernel ? Json(spelled(row.kernel->plan)) : Json()}};
}

std::string reasons(const std::vector<Compared>& rows, const Optima& optima,
                    const SolveLimits& limits) {
  std::string text;
  const auto open = [](const Compared& row) { return !row.optimum.exact(); };
  if (std::ranges::none_of(rows, open)) {
    return text;
  }
  if (optima.too_large > 0) {
    text += fmt::format(
        "{} of {} are too large to solve ({}): of these only inputs and results are counted\n",
        optima.too_large, counted(optima.graphs, "graph"), optima.why);
  }
  if (optima.too_large < optima.graphs) {
    text += fmt::format(
        "where the optimum is a range, a search of a graph ended after {} s or in its memory\n",
        limits.seconds);
  }
  return text;
}

}  // namespace

Description comparison_of(const Task& task, std::optional<std::pair<Index, Index>> range,
                          const SolveLimits& limits) {
  if (!range) {
    constexpr Index kFewest = 3;  // operands and sum of a product
    const Index first = least_M(task).value_or(kFewest);
    range = {first, last_M(task, first)};
  }
  const Optima all = optima(task, range->first, range->second, limits);
  std::vector<Compared> rows;
  for (const Optimum& optimum : all.each) {
    rows.push_back(compared(task, optimum));
  }
  drop_equal_rows(rows);
  Description of;
  of.facts({{in_json("schema"), kSchema},
            {in_json("problem"), to_string(task.pass)},
            {in_json("n"), task.problem.shape.n},
            {in_json("m"), task.problem.shape.m},
            {in_json("d"), task.problem.shape.d},
            {in_json("dv"), task.problem.shape.dv},
            {in_json("given"), is_backward(task.pass) ? Json(to_string(task.known)) : Json()},
            {in_json("wanted"), task.problem.wanted.text()},
            {in_json("mask"), mask_json(task.problem)},
            {in_json("game"), to_string(Game::fma)},
            {in_json("graphs"), all.graphs},
            {in_json("too_large"), all.too_large},
            {in_json("why"), all.why}});
  of.say("{}   (reads + writes, in words)\n", to_words(task, "M"));
  of.table("comparison", rows_of(rows, compared_cells));
  of.text(reasons(rows, all, limits));
  return of;
}

}  // namespace redblue
