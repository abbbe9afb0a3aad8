#pragma once
// Pictures of a sweep of redblue's kernels: beside those of any sweep the paper's Figure 1, and
// speed. Values.

#include <array>
#include <string_view>
#include <vector>

#include "runtime/sweep/figures.hpp"

namespace redblue {

// The sizes that can be the axis of a figure. Over n, m varies with n if they are equal everywhere.
inline constexpr std::array<std::string_view, 3> kAxes = {"M", "n", "d"};
// Usual are one thread, one head, memory, all pairs, a softmax.
const Family& kernel_family();

// The points that share one lower bound: backward, with one thread and one head. Points with A3 =
// A2 have another bound and are left out, unless all points are such.
Points backward_of(const Points& points);

// The paper's Figure 1, measured: words against M (or n, or d), the proven lower bound and M = d^2,
// and beside them the ratios to the bound. Requires: points of backward_of(). Throws (all
// pictures): InputError if there is nothing to draw.
Picture figure1_picture(const Slice& slice);
// Speed against words a flop, below the speed that the machine reached in the same process.
Picture roofline_picture(const Points& points);

// All figures that the points allow; by level and by phase for at most `phases` subjects. A point
// belongs to the slice, over any size, that has the most points.
std::vector<Picture> figures_of(const Sweep& sweep, std::size_t phases);

}  // namespace redblue
