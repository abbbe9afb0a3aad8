#pragma once
// A picture of fast memory's occupancy: stacked areas of the words of each tile name, over the
// words moved so far, below a line at M; and the names of the phases.

#include "kernels/plan.hpp"
#include "runtime/observe/occupancy.hpp"
#include "runtime/text/gnuplot.hpp"

namespace redblue {

// The most columns that a picture can show.
inline constexpr Index kOccupancyColumns = 700;

// The picture has no caption. Requires: words were moved.
Picture occupancy_picture(const Occupancy& occupancy, const Plan& plan);

}  // namespace redblue
