#pragma once
// The report of `redblue plot dividing`: the words moved by two kernels against M, on the same
// sparse operands. One kernel suits small caches, the other large ones. The report compares the M
// at which they cross with the dividing point of the paper.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernels/kernel.hpp"
#include "runtime/text/description.hpp"
#include "runtime/text/gnuplot.hpp"

namespace redblue {

struct Dividing {
  // The words of the plan that moves the fewest. Not set if M is below the kernel's least M.
  struct Moved {
    Index words = 0;
    Index index = 0;    // words of indices among them
    Index prepare = 0;  // words that regroup operands, once for many calls
  };
  struct Point {
    Index M = 1;
    std::optional<Moved> tiles, rows;
  };
  Problem problem;
  std::map<std::string, std::string> sources;  // the rules and files of operands, by name
  std::vector<Point> points = {};              // M = 2^7, then growing by a factor of sqrt(2)
  // The least M of a point at which rows move fewer words than tiles: with all words, and without
  // the words that regroup operands.
  std::optional<Index> measured = {}, measured_without_prepare = {};
  // Z_A^2 / Z_QK (Remark 4.7). Z_A is the smaller number of entries of A1 and A2, Z_QK the number
  // of live pairs. Not set without a live pair.
  std::optional<double> remark = {};
};

inline constexpr std::string_view kDividingTiles = "logsumexp/sparse-tiles";
inline constexpr std::string_view kDividingRows = "logsumexp/sparse-rows";

// Reports M up to about eight times the larger of `measured` and `remark`, or less if all of S fits
// in fast memory before that. Requires: sparse operands.
Dividing report_dividing(const Problem& problem, std::map<std::string, std::string> sources);

Description describe(const Dividing& report);
// Throws: InputError if a kernel has fewer than two points.
Picture dividing_picture(const Dividing& report);

}  // namespace redblue
