#pragma once
// Curves of words against a size, and the axes of pictures of a sweep. All types are values.

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "runtime/sweep/figures.hpp"

namespace redblue {

// The data of a plot: blocks of lines "size words ratio". $bound has the lower bounds. $once, if
// present, has the bounds for algorithms that compute each sum once.
struct Curves {
  std::vector<std::pair<std::string, std::string>> data;
  std::vector<std::string> names;  // names in the legend
  std::vector<std::size_t> sizes;  // number of points of each curve
  std::vector<bool> joined;        // curve points are joined by lines
  double least = 0, most = 0;      // range of sizes
  double least_words = 0, most_words = 0, most_ratio = 0;
  bool once = true;  // $once is present
};

// The points that fit, ordered by size.
Points fitting(const Slice& slice);
// Returns the number of different sizes among them.
std::size_t sizes_of(const Slice& slice);

// Returns the "plot" command for one column of all curves and bounds.
std::string plot_of(const Curves& curves, int column, bool titles);
// Returns a slightly wider range for a logarithmic axis.
std::string y_range(double least, double most);
inline constexpr std::size_t kMostTics = 10;  // for tics like "512K" in a plot of full width
std::string x_range(double least, double most, std::size_t most_tics);
// Plots words on the left and words over the bound on the right, with `marks` above both.
std::string two_plots(const Curves& curves, const std::string& marks);

}  // namespace redblue
