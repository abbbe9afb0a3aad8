#pragma once
// The fewest words of a task for each M: the best game fma on any graph of the task (orders_of).
// The game computes each word once. A bound of such algorithms is at most the optimum, and a kernel
// that plays such a game moves at least the optimum.

#include <optional>
#include <string>
#include <vector>

#include "runtime/pebble/attention_dags.hpp"
#include "runtime/pebble/solve.hpp"

namespace redblue {

struct Optimum {
  Index M = 0;
  Index lower = 0;                            // words of every game
  std::optional<Index> upper = std::nullopt;  // words of a game that was found
  std::string graph = {};                     // the one it is on: to_string(GraphOrder)
  Index states = 0;                           // that the searches met
  [[nodiscard]] bool exact() const { return upper == lower; }
};

struct Optima {
  std::vector<Optimum> each;  // for each M, in order
  Index graphs = 0;           // that there are
  Index too_large = 0;        // of these; their games are bounded by inputs and results alone
  std::string why;            // of one of these: "66 words, and at most 64 can be solved"
};

// The fewest red pebbles for a graph that the solver can hold. Empty if it can hold no graph.
std::optional<Index> least_M(const Task& task);

// The limits are of each graph and each M. Requires: has_graph(task.pass), dense operands, no
// shared sources, M at least 1.
Optima optima(const Task& task, Index first_M, Index last_M, const SolveLimits& limits);

}  // namespace redblue
