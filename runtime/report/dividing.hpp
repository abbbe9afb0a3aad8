#pragma once
// The report of `redblue plot dividing`: the words of the kernels of small and of large caches
// against M, on the same sparse operands, and the M that divides the two, beside the paper's.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernels/kernel.hpp"
#include "runtime/text/description.hpp"
#include "runtime/text/gnuplot.hpp"

namespace redblue {

struct Dividing {
  // Of a plan of fewest words; nothing where M is below the least M.
  struct Moved {
    Index words = 0;
    Index index = 0;    // of these, those that are no values
    Index prepare = 0;  // those that regroup operands, which may serve many calls
  };
  struct Point {
    Index M = 1;
    std::optional<Moved> tiles, rows;
  };
  Problem problem;
  std::map<std::string, std::string> sources;  // the rules and files of operands, by name
  std::vector<Point> points = {};              // from M = 2^7 by the square root of 2
  // The least M of a point at which rows move fewer words than tiles; and where no word that
  // regroups counts.
  std::optional<Index> measured = {}, measured_without_prepare = {};
  // Z_A^2 / Z_QK (Remark 4.7), Z_A the fewer of the entries of A1 and A2; nothing without a pair.
  std::optional<double> remark = {};
};

inline constexpr std::string_view kDividingTiles = "logsumexp/sparse-tiles";
inline constexpr std::string_view kDividingRows = "logsumexp/sparse-rows";

// Up to eight times the larger of both dividing points, or where all of S stays in fast memory.
// Requires: sparse operands.
Dividing report_dividing(const Problem& problem, std::map<std::string, std::string> sources);

Description describe(const Dividing& report);
// Throws: InputError where a kernel has fewer than two points.
Picture dividing_picture(const Dividing& report);

}  // namespace redblue
