#include "runtime/pebble/optimum.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "runtime/pebble/terms.hpp"

namespace redblue {
namespace {

constexpr Index kNoWords = std::numeric_limits<Index>::max();

// A graph of a task. A graph that is too large has no least_M.
struct Graph {
  Dag dag;
  std::string name;
  Index inputs_and_results = 0;
  std::optional<Index> least_M = std::nullopt;
  std::string why = {};
};

Graph graph_of(const Task& task, const GraphOrder& order) {
  Graph graph{dag_of(task, Sums::any, order), to_string(order, task.pass)};
  const std::vector<bool> results = graph.dag.results();
  for (Index v = 0; v < graph.dag.size(); ++v) {
    graph.inputs_and_results += graph.dag.input(v) ? 1 : 0;
    graph.inputs_and_results += results[slot(v)] ? 1 : 0;
  }
  try {
    graph.least_M = terms_of(Rules(graph.dag, Game::fma)).least_M();
  } catch (const TooManyWords& many) {
    graph.why = many.what();
  }
  return graph;
}

// Returns the graphs of a task. A task that is given O and L may ignore them.
std::vector<Graph> graphs_of(const Task& task) {
  std::vector<Graph> graphs;
  for (const Known known : {Known::nothing, Known::O_and_L}) {
    if (known == Known::nothing || (is_backward(task.pass) && task.known == known)) {
      Task of = task;
      of.known = known;
      for (const GraphOrder& order : orders_of(of)) {
        graphs.push_back(graph_of(of, order));
        graphs.back().name += known == Known::O_and_L ? ", given O, L" : "";
      }
    }
  }
  return graphs;
}

// Adds the solution for one graph to the best one so far.
void take(Optimum& best, const Graph& graph, const Solution& of, Index& lower) {
  best.states += of.states;
  lower = std::min(lower, of.lower);
  if (!best.upper || of.upper < *best.upper) {
    best.upper = of.upper;
    best.graph = graph.name;
  }
}

void solve_graph(const Graph& graph, const SolveLimits& limits, std::vector<Optimum>& all,
                 std::vector<Index>& lower) {
  const Index first = all.front().M;
  const auto best = [&](Index M) -> Optimum& { return all[slot(M - first)]; };
  // Skip the search if a game that was found is as good as any game on this graph.
  const auto beaten = [&](Index M) { return best(M).upper.value_or(kNoWords); };
  Index last = all.back().M;
  while (last >= first && beaten(last) <= graph.inputs_and_results) {
    --last;
  }
  const Index from = std::max(first, *graph.least_M);
  if (from > last) {
    return;
  }
  SolveLimits own = limits;
  own.enough = beaten;
  for (const Solution& solution : solve(Rules(graph.dag, Game::fma), from, last, own)) {
    take(best(solution.M), graph, solution, lower[slot(solution.M - first)]);
  }
}

}  // namespace

std::optional<Index> least_M(const Task& task) {
  std::optional<Index> least;
  for (const Graph& graph : graphs_of(task)) {
    if (graph.least_M) {
      least = std::min(least.value_or(kNoWords), *graph.least_M);
    }
  }
  return least;
}

Optima optima(const Task& task, Index first_M, Index last_M, const SolveLimits& limits) {
  Optima found;
  for (Index M = first_M; M <= last_M; ++M) {
    found.each.push_back({.M = M});
  }
  std::vector<Index> lower(found.each.size(), kNoWords);
  for (const Graph& graph : graphs_of(task)) {
    ++found.graphs;
    if (graph.least_M) {
      solve_graph(graph, limits, found.each, lower);
      continue;
    }
    ++found.too_large;
    found.why = graph.why;
    for (Index& words : lower) {
      words = std::min(words, graph.inputs_and_results);
    }
  }
  // A game in less memory is also a game in more memory.
  for (std::size_t k = found.each.size(); k-- > 0;) {
    Optimum& at = found.each[k];
    at.lower = std::min(lower[k], at.upper.value_or(kNoWords));
    if (k + 1 < found.each.size()) {
      at.lower = std::max(at.lower, found.each[k + 1].lower);
    }
  }
  for (std::size_t k = 1; k < found.each.size(); ++k) {
    const Optimum& less = found.each[k - 1];
    Optimum& at = found.each[k];
    if (less.upper && *less.upper < at.upper.value_or(kNoWords)) {
      at.upper = less.upper;
      at.graph = less.graph;
    }
  }
  return found;
}

}  // namespace redblue
