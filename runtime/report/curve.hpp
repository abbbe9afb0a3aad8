#pragma once
// The report of `redblue curve`: the words of each kernel against M or a length, computed by
// formulas. Each point has two lower bounds, one for every algorithm and one for the kernel's
// class. The report can also name the least M for a given number of words.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/gnuplot.hpp"
#include "runtime/theory/planner.hpp"

namespace redblue {

class Description;

struct Curve {
  enum class Over { M, n, d };
  struct Point {
    Task task;
    std::vector<Choice> choices;  // empty if no kernel fits
    Bound bound;                  // for every algorithm; each choice has the bound of its class
  };
  // The least M in which a kernel moves at most `asked` words, and its plan there.
  struct Reached {
    Words asked;
    Choice choice;
  };
  Over over = Over::M;
  std::optional<Rates> rates = {};  // set if the fastest kernels are asked for
  std::vector<Point> points = {};
  std::optional<Reached> reached = {};
};
std::string_view to_string(Curve::Over over);

// Returns sizes from `from` to `to`, both included: powers of two and 1.5 times these. If they are
// fewer than nine, evenly spaced sizes are added.
std::vector<Index> curve_sizes(Index from, Index to);
// Returns values of M for a task; its own M is ignored. They range from the least M in which a
// kernel fits to the least power of two from which the words no longer fall. Throws:
// FastMemoryTooSmall if no kernel fits in any M.
std::vector<Index> curve_memories(const Task& task);

// With `rates`, the choices are those of the least time. Requires: tasks of one level of fast
// memory. Throws: FastMemoryTooSmall if no kernel fits in any
// task; as choices().
Curve report_curve(const std::vector<Task>& tasks, Curve::Over over,
                   const std::optional<Rates>& rates = std::nullopt);
// Returns the least M in which a kernel moves at most `words`. The M of the task is ignored.
// Throws: FastMemoryTooSmall if every kernel moves more words in every M.
Curve::Reached least_M_for(const Task& task, Words words);

Description describe(const Curve& report);
Picture curve_picture(const Curve& report);

}  // namespace redblue
