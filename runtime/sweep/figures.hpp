#pragma once
// Pictures of a sweep: words against M, n or d, words by phase, and speed. Values.

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/sweep/sweep.hpp"
#include "runtime/text/gnuplot.hpp"

namespace redblue {

// Some points of a sweep, in its order. Requires: the sweep outlives them.
using Points = std::vector<const Swept*>;

// The points with the arguments of `where`, compared as text.
Points points_of(const Sweep& sweep, const std::map<std::string, std::string>& where = {});
// The points of one subject.
Points only(const Points& points, std::string_view subject);
// The points that share one lower bound: backward, with one thread and one head. Points with A3 =
// A2 have another bound and are left out, unless all points are such.
Points backward_of(const Points& points);
std::vector<std::string> subjects_of(const Points& points);

// The arguments that vary, each with its values. m is left out if it equals n at all points.
struct Differing {
  std::string name;
  std::vector<std::string> values;
};
std::vector<Differing> differing(const Points& points);

// The sizes that can be the axis of a figure. Over n, m varies with n if they are equal everywhere.
inline constexpr std::array<std::string_view, 3> kAxes = {"M", "n", "d"};

// Points that differ only in their subject and in one size.
struct Slice {
  std::string over;
  Arguments common;  // of all points, without the usual ones: one thread, one head, memory
  Points points;
};
std::vector<Slice> slices(const Points& points, std::string_view over);

// The paper's Figure 1, measured: words against M (or n, or d), the proven lower bound and M = d^2,
// and beside them the ratios to the bound. Requires: points of backward_of(). Throws (all
// pictures): InputError if there is nothing to draw.
Picture figure1_picture(const Slice& slice);
// The points of several levels of fast memory that differ in nothing else than M and these.
std::vector<Slice> level_slices(const Points& points);
// The words of one subject at each of its levels against the level's M, and over the lower bound at
// that M. Requires: a slice of level_slices().
Picture levels_picture(const Slice& slice);
// The words of one subject by phase.
Picture phases_picture(const Slice& slice);
// Speed against words a flop, below the speed that the machine reached in the same process.
Picture roofline_picture(const Points& points);

// All figures that the points allow; by level and by phase for at most `phases` subjects. A point
// belongs to the slice, over any size, that has the most points.
std::vector<Picture> figures_of(const Sweep& sweep, std::size_t phases);

}  // namespace redblue
