#pragma once
// Pictures of a sweep: how words fall with M, or grow with n and d, where they go, and how fast
// they went. Values.

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/sweep/sweep.hpp"
#include "runtime/text/gnuplot.hpp"

namespace redblue {

// Some of a sweep's, in its order. Requires: the sweep outlives them.
using Points = std::vector<const Swept*>;

// The points whose arguments, as text, are those of `where`.
Points points_of(const Sweep& sweep, const std::map<std::string, std::string>& where = {});
// The points of one subject.
Points only(const Points& points, std::string_view subject);
// Those that one lower bound is for: backward, of one thread and one head. Kernels for A3 = A2,
// which have a bound of their own, are there only where all are such.
Points backward_of(const Points& points);
std::vector<std::string> subjects_of(const Points& points);

// An argument that is not the same everywhere, and what it is. Keys that are everywhere as many as
// queries are not named beside them.
struct Differing {
  std::string name;
  std::vector<std::string> values;
};
std::vector<Differing> differing(const Points& points);

// The sizes that a figure may be over. Over n, m is n where it is so at all points.
inline constexpr std::array<std::string_view, 3> kAxes = {"M", "n", "d"};

// Points that differ in nothing but their subject and that size.
struct Slice {
  std::string over;
  Arguments common;  // of all; but not one thread, one head, the memory
  Points points;
};
std::vector<Slice> slices(const Points& points, std::string_view over);

// The paper's Figure 1, by measurement: words against M (or n, or d) and the proven lower bound,
// and where M = d^2; beside it the ratios to the bound. Of backward_of() the slice's points. Throws
// (the three of them): InputError where there is nothing of the kind to draw.
Picture figure1_picture(const Slice& slice);
// Where the words of one subject go, by phase.
Picture phases_picture(const Slice& slice);
// How fast against words a flop, under what the machine reached beside it.
Picture roofline_picture(const Points& points);

// All that a sweep has the points for; `phases` of at most so many subjects. A point is drawn over
// that size of which there are the most beside it.
std::vector<Picture> figures_of(const Sweep& sweep, std::size_t phases);

}  // namespace redblue
