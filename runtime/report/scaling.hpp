#pragma once
// The report of `redblue plot ranks`: the words of one rank against the number of ranks. It
// compares the best grid, a ring, the lower bound and measured runs.

#include <optional>
#include <string>
#include <vector>

#include "kernels/kernel.hpp"
#include "runtime/ranks/grid.hpp"
#include "runtime/text/description.hpp"
#include "runtime/text/gnuplot.hpp"

namespace redblue {

struct Scaling {
  struct OnGrid {
    Grid grid;
    // All words received by the rank that receives the most. The best grid has the fewest.
    Index received = 0;
    // The words of links that the bound counts, of the rank with the most: sources that it
    // receives, and parts of results that it sends. The running sum g is left out.
    Index words = 0;
    std::optional<Index> bound = {};
    std::optional<double> ratio = {};
  };
  struct Point {
    Index ranks;
    OnGrid best;
    std::optional<OnGrid> ring;  // ranks x 1, if the kernel fits in M
  };
  struct Run {
    std::string file;
    Index ranks;
    OnGrid on;
  };
  const Kernel* kernel;
  Problem problem;
  Index M;
  std::vector<Point> points = {};
  std::vector<Run> runs = {};
};

// Reports 2, 4, 8, ... and `most` ranks. `runs` are files of `redblue run --format json` of this
// kernel and problem on ranks. Requires: `most` is at least 2. Throws: ShapeMismatch if the problem
// does not run on ranks. Throws FastMemoryTooSmall if the kernel fits on no grid. Throws InputError
// and std::system_error for files.
Scaling report_scaling(const Kernel& kernel, const Problem& problem, Index M, Index most,
                       const std::vector<std::string>& runs);

Description describe(const Scaling& report);
Picture scaling_picture(const Scaling& report);

}  // namespace redblue
