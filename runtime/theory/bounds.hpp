#pragma once
// Lower bounds on the words that a problem moves: on reads + writes in a fast memory of M words.
// Each bound says what it assumes of an algorithm; docs/theory/bounds.md proves them, under the
// same names.
//
//   const auto bounds = lower_bounds({.problem = {n, m, d}, .memory = M});
//   largest(bounds).words;                              // of all algorithms
//   largest(bounds, {.order = Order::two_step}).words;  // of those that sum p A2 before g
//
// Values and functions of values: safe to use from any thread.

#include <string_view>
#include <vector>

#include "kernels/kernel.hpp"

namespace redblue {

// The knowledge that backward may use beside its operands. The bounds are those of O_and_L. They
// hold from nothing as well: an algorithm that is given less moves no less.
enum class Known { nothing, O_and_L };

struct Task {
  Pass pass = Pass::backward;
  Problem problem = {};
  Memory memory = 1;
  Known known = Known::O_and_L;
  // Problems like this one, each with a head of keys of its own. Words are those of all together.
  Index heads = 1;
};

// The order of g = A1^T p A2: any; or with W = p A2, or T = A1^T p, summed over all keys, or all
// queries, before g. Forward and the product have only one order.
enum class Order { any, two_step };

enum class Status {
  proven,
  cited,      // proven elsewhere
  numerical,  // proven except for a constant: a maximum that was searched for
  asymptotic  // up to an unknown constant, taken as 1: no bound on words
};

struct Bound {
  std::string_view name;
  Index words = 0;
  Status status = Status::proven;
  Order order = Order::any;
  // Whether it also holds if partial sums of W, or T, are made more than once; of gradients, each
  // p.
  bool recomputation = true;
  // The most that an algorithm may be given, and the most that it may read as one.
  Known known = Known::O_and_L;
  Sharing sharing = Sharing::none;
  // The range of M of an asymptotic bound, and whether the task's M is in it.
  std::string_view regime = {};
  bool in_regime = true;
};

// The known properties of an algorithm. The default holds for all algorithms.
struct Schedule {
  Order order = Order::any;
  bool recomputes = true;
  Known known = Known::O_and_L;
  Sharing sharing = Sharing::none;  // the sources that it reads as one
};

// The bounds in the order of docs/theory/bounds.md, in words rounded down. Throws: ShapeMismatch
// for extents or M below 1 and for self with n != m; CountOverflow.
std::vector<Bound> lower_bounds(const Task& task);

// The same for each level of the task's memory, from the innermost out, in a fast memory of as many
// words; the last are lower_bounds(task).
std::vector<std::vector<Bound>> bounds_of_levels(const Task& task);
// Whether an algorithm is of the kind that a bound is for.
bool meets(const Schedule& schedule, const Bound& bound);

// The largest proven bound that the schedule meets; the first of equals.
// Requires: bounds of a task that shares as much as the schedule does.
const Bound& largest(const std::vector<Bound>& bounds, const Schedule& schedule = {});
// The largest of each level, each word at its cost: no such algorithm has a smaller weighted sum.
double weighted_bound(const Memory& memory, const std::vector<std::vector<Bound>>& of_levels,
                      const Schedule& schedule = {});

// The M at which the paper divides small caches from large ones: d^2.
Words dividing_point(const Shape& shape);
// The paper's Theta of this pass without its constant, rounded down (Theorem 1.1; forward: without
// the terms of X). Throws: CountOverflow.
Index asymptotic_words(const Task& task);

std::string_view to_string(Sharing sharing);
std::string_view to_string(Known known);
std::string_view to_string(Order order);
std::string_view to_string(Status status);

}  // namespace redblue
