#pragma once
// A picture of fast memory's occupancy: stacked areas of the words of each tile name, over the
// words moved so far, below a line at M; and the names of the phases.

#include "runtime/text/gnuplot.hpp"
#include "runtime/trace/followed_run.hpp"
#include "runtime/trace/occupancy.hpp"

namespace redblue {

// The most columns that a picture can show.
inline constexpr Index kOccupancyColumns = 700;

// The picture has no caption. Requires: words were moved.
Picture occupancy_picture(const Occupancy& occupancy, const FollowedRun& run);

}  // namespace redblue
