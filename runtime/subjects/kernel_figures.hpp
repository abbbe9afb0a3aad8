#pragma once
// Pictures of a sweep of redblue's kernels: the general pictures, the paper's Figure 1, and speed.
// All types are values.

#include <array>
#include <string_view>
#include <vector>

#include "runtime/sweep/figures.hpp"

namespace redblue {

// The sizes that can be the axis of a figure. Over n, m varies with n if n = m at all points.
inline constexpr std::array<std::string_view, 3> kAxes = {"M", "n", "d"};
// Its usual arguments are one thread, one head, main memory, all pairs and softmax.
const Family& kernel_family();

// Returns the points that share one lower bound: backward, with one thread and one head. Points
// with A3 = A2 have another bound. They are left out unless all points have A3 = A2.
Points backward_of(const Points& points);

// Draws the paper's Figure 1 from measured counts: words against M (or n, or d), the proven lower
// bound, the line M = d^2, and the ratios to the bound. Requires: points of backward_of(). Throws
// (all pictures): InputError if there is nothing to draw.
Picture figure1_picture(const Slice& slice);
// Draws speed against words per flop, with the machine's measured limit as the roof.
Picture roofline_picture(const Points& points);

// Returns all figures that the points allow, with pictures by level and by phase for at most
// `phases` subjects. A point belongs to the slice, over any size, that has the most points.
std::vector<Picture> figures_of(const Sweep& sweep, std::size_t phases);

}  // namespace redblue
