#pragma once
// Curves of words against a size, and the axes of pictures of a sweep. Values.

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "runtime/sweep/figures.hpp"

namespace redblue {

// Blocks of lines "size words ratio", and $bound and perhaps $once.
struct Curves {
  std::vector<std::pair<std::string, std::string>> data;
  std::vector<std::string> names;  // in the legend
  std::vector<std::size_t> sizes;  // the number of points of each curve
  std::vector<bool> joined;        // by lines
  double least = 0, most = 0;      // the range of sizes
  double least_words = 0, most_words = 0, most_ratio = 0;
  bool once = true;  // $once is there
};

// The points that fit, ordered by size.
Points fitting(const Slice& slice);
// How many sizes these have.
std::size_t sizes_of(const Slice& slice);

// The "plot" command of one column of all curves, the bounds among them.
std::string plot_of(const Curves& curves, int column, bool titles);
// A slightly wider range on a logarithmic axis.
std::string y_range(double least, double most);
inline constexpr std::size_t kMostTics = 10;  // tics as wide as "512K" in a plot of full width
std::string x_range(double least, double most, std::size_t most_tics);
// Words, and beside them words over the bound. `marks` are above both.
std::string two_plots(const Curves& curves, const std::string& marks);

}  // namespace redblue
