#pragma once
// Lower bounds on the words moved (reads + writes) by an algorithm that solves a problem in a fast
// memory of M words. Each bound states its assumptions about the algorithm. docs/theory/bounds.md
// proves the bounds under the same names.
//
//   const auto bounds = lower_bounds({.problem = {n, m, d}, .memory = M});
//   largest(bounds).words;                              // for all algorithms
//   largest(bounds, {.order = Order::two_step}).words;  // for algorithms that sum p A2 before g
//
// Values and functions of values: safe to use from any thread.

#include <optional>
#include <string_view>
#include <vector>

#include "kernels/kernel.hpp"

namespace redblue {

// Forward results that a backward pass may read in addition to its operands. The bounds are proven
// for `O_and_L`. They hold for `nothing` too: an algorithm with less input moves at least as many
// words.
enum class Known { nothing, O_and_L };

struct Task {
  Pass pass = Pass::backward;
  Problem problem = {};
  Memory memory = 1;
  Known known = Known::O_and_L;
  // The number of equal problems, each with its own head of keys. Words are totals of all heads.
  Index heads = 1;
  // For Pass::own: the words of its inputs and results.
  std::optional<Words> compulsory = {};
  // Nests that a planner considers, too, if they are of this pass.
  std::vector<const Kernel*> nests = {};
};

// The order in which g = A1^T p A2 is computed. `any`: no assumption. `two_step`: W = p A2 is
// summed over all keys, or T = A1^T p over all queries, before it is used for g. The forward pass
// and the product have only one order.
enum class Order { any, two_step };

enum class Status {
  proven,
  cited,      // proven elsewhere
  numerical,  // proven except for a constant: a maximum found by search
  asymptotic  // up to an unknown constant, taken as 1: not a bound on counted words
};

struct Bound {
  std::string_view name;
  Index words = 0;
  Status status = Status::proven;
  Order order = Order::any;
  // True if the bound also holds for algorithms that compute a partial sum of W or T more than once
  // (gradients: a p more than once).
  bool recomputation = true;
  // The most forward results and the most sharing that an algorithm may use for the bound to hold.
  Known known = Known::O_and_L;
  Sharing sharing = Sharing::none;
  // An asymptotic bound's range of M, and whether the task's M is in it.
  std::string_view regime = {};
  bool in_regime = true;
};

// Properties of an algorithm that a bound may assume. The defaults fit every algorithm.
struct Schedule {
  Order order = Order::any;
  bool recomputes = true;
  Known known = Known::O_and_L;
  Sharing sharing = Sharing::none;  // the sources that it reads as one matrix
};

// Returns the bounds in the order of docs/theory/bounds.md, in words rounded down. Throws:
// CountOverflow; ShapeMismatch for extents or M below 1, for `self` with n != m, and for a mask of
// another shape.
std::vector<Bound> lower_bounds(const Task& task);

// Returns lower_bounds() for each level of the task's memory, innermost level first. Each level
// counts as one fast memory of its size. The last entry equals lower_bounds(task).
std::vector<std::vector<Bound>> bounds_of_levels(const Task& task);
// Returns whether the bound holds for algorithms with these properties.
bool meets(const Schedule& schedule, const Bound& bound);

// Returns the largest proven bound that the schedule meets; the first one if several are equal.
// Requires: bounds of a task that shares at least as much as the schedule does.
const Bound& largest(const std::vector<Bound>& bounds, const Schedule& schedule = {});
// Returns the sum over levels of the largest bound times the cost of a word at that level. No
// algorithm with these properties has a smaller weighted sum.
double weighted_bound(const Memory& memory, const std::vector<std::vector<Bound>>& of_levels,
                      const Schedule& schedule = {});

// Returns d^2, the M at which the paper separates small caches from large ones.
Words dividing_point(const Shape& shape);
// Returns the paper's Theta for this pass without its constant, rounded down (Theorem 1.1; forward:
// without the terms of X). Throws: CountOverflow.
Index asymptotic_words(const Task& task);

std::string_view to_string(Sharing sharing);
std::string_view to_string(Known known);
std::string_view to_string(Order order);
std::string_view to_string(Status status);

}  // namespace redblue
