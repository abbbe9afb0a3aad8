#pragma once
// Draws the words in fast memory during a run, as stacked areas by tile name over the words moved.
// A line marks M. The phases are named above it.

#include "runtime/text/gnuplot.hpp"
#include "runtime/trace/followed_run.hpp"
#include "runtime/trace/occupancy.hpp"

namespace redblue {

// The maximum number of columns in a picture.
inline constexpr Index kOccupancyColumns = 700;

// Returns the picture without a caption. Requires: words were moved.
Picture occupancy_picture(const Occupancy& occupancy, const FollowedRun& run);

}  // namespace redblue
