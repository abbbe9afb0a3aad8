#pragma once
// Occupancy, drawn: the words of each tile name on top of each other, over the words moved, below a
// line at M; and which phase it was.

#include "kernels/plan.hpp"
#include "runtime/observe/occupancy.hpp"
#include "runtime/text/gnuplot.hpp"

namespace redblue {

// As many columns as a picture can show.
inline constexpr Index kOccupancyColumns = 700;

// Without a caption. Requires: something was moved.
Picture occupancy_picture(const Occupancy& occupancy, const Plan& plan);

}  // namespace redblue
