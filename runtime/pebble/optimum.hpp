#pragma once
// Finds the fewest words of a task for each M: the best game fma on any graph of the task
// (orders_of). The game computes each word once. A lower bound for such algorithms is at most the
// optimum, and a kernel that plays such a game moves at least the optimum.

#include <optional>
#include <string>
#include <vector>

#include "runtime/pebble/attention_dags.hpp"
#include "runtime/pebble/solve.hpp"

namespace redblue {

struct Optimum {
  Index M = 0;
  Index lower = 0;                            // every game moves at least this many words
  std::optional<Index> upper = std::nullopt;  // words of the best game found
  std::string graph = {};                     // the graph of that game: to_string(GraphOrder)
  Index states = 0;                           // the number of states that the searches met
  [[nodiscard]] bool exact() const { return upper == lower; }
};

struct Optima {
  std::vector<Optimum> each;  // for each M, in order
  Index graphs = 0;           // the number of graphs
  Index too_large = 0;  // graphs too large to search; inputs and results alone bound their games
  std::string why;      // the reason for one such graph: "66 words, and at most 64 can be solved"
};

// Returns the fewest red pebbles for a graph that the solver can hold. Nullopt if it can hold no
// graph.
std::optional<Index> least_M(const Task& task);

// Returns the optimum for each M from first_M to last_M. The limits are for each graph and each M.
// Requires: has_graph(task.pass), dense operands, no shared sources, M at least 1.
Optima optima(const Task& task, Index first_M, Index last_M, const SolveLimits& limits);

}  // namespace redblue
