#pragma once
// The report of `redblue plot ranks`: the words of one rank against the number of ranks that share
// a problem, on the best grid and on a ring, beside the lower bound; and those of runs.

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
    Index received = 0;  // all words, by the rank that receives most: fewest on the best grid
    // Those of links that the bound counts, of the rank that has most: sources that it receives,
    // and parts of results that it sends, without the running sum of g.
    Index words = 0;
    std::optional<Index> bound = {};
    std::optional<double> ratio = {};
  };
  struct Point {
    Index ranks;
    OnGrid best;
    std::optional<OnGrid> ring;  // ranks x 1, if it fits in M
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

// For 2, 4, 8, ... and `most` ranks. `runs`: files of `redblue run --format json` of this kernel
// and problem on ranks. Requires: `most` is at least 2. Throws: ShapeMismatch for what does not run
// on ranks; FastMemoryTooSmall
// where it fits on no grid; InputError, std::system_error for files.
Scaling report_scaling(const Kernel& kernel, const Problem& problem, Index M, Index most,
                       const std::vector<std::string>& runs);

Description describe(const Scaling& report);
Picture scaling_picture(const Scaling& report);

}  // namespace redblue
