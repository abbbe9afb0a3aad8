#pragma once
// The report of `redblue curve`: the words of every kernel that solves a task against M or a
// length, by formulas; beside them two lower bounds, that of every algorithm and that of the
// kernel's class; and the least M in which so few words move.

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
    std::vector<Choice> choices;  // none where nothing fits
    Bound bound;                  // of every algorithm; that of a class is in the choice
  };
  // The least M in which a kernel moves at most so many words, with what it moves there.
  struct Reached {
    Words asked;
    Choice choice;
  };
  Over over = Over::M;
  std::vector<Point> points = {};
  std::optional<Reached> reached = {};
};
std::string_view to_string(Curve::Over over);

// Sizes from one to another, both among them: powers of two, and those and a half; nine, if there
// are so many.
std::vector<Index> curve_sizes(Index from, Index to);
// For a task of any M: from the least in which a kernel fits to the least power of two in which
// words no longer fall. Throws: FastMemoryTooSmall where none fits in any.
std::vector<Index> curve_memories(const Task& task);

// Requires: tasks of one level of fast memory. Throws: FastMemoryTooSmall where nothing fits in any
// of them; as choices().
Curve report_curve(const std::vector<Task>& tasks, Curve::Over over);
// Whatever M the task has. A word less than its M does not do. Throws: FastMemoryTooSmall where no
// kernel moves so few words in any M.
Curve::Reached least_M_for(const Task& task, Words words);

Description describe(const Curve& report);
Picture curve_picture(const Curve& report);

}  // namespace redblue
