#pragma once
// Pictures of a sweep: how words fall with M, where they go, and how fast they went. Values.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/gnuplot.hpp"
#include "runtime/sweep.hpp"

namespace redblue {

// Points of a sweep that differ in nothing but their subject and M.
struct Slice {
  std::string arguments;  // those that they have in common: "n=4096 m=4096 d=64"
  std::vector<const Swept*> points;
};
// Those whose arguments, as text, are what `where` says. Requires: a sweep that outlives them.
std::vector<Slice> slices(const Sweep& sweep, const std::map<std::string, std::string>& where = {});
// Those of one subject.
Slice only(const Slice& slice, std::string_view subject);
std::vector<std::string> subjects_of(const Slice& slice);

// The paper's Figure 1, by measurement: words against M of each backward algorithm of one thread
// and one head, the proven lower bound and the dividing point M = d^2; beside it the ratios to the
// bound. Kernels for A3 = A2, which have a bound of their own, are drawn only among themselves.
// Throws (the three of them): InputError where there is nothing of the kind to draw.
Picture figure1_picture(const Slice& slice);
// Where the words of one subject go, by phase, over M.
Picture phases_picture(const Slice& slice);
// How fast against words a flop, under what the machine reached beside it.
Picture roofline_picture(const std::vector<Slice>& slices);

// All that a sweep has the points for; `phases` of at most so many subjects.
std::vector<Picture> figures_of(const Sweep& sweep, std::size_t phases);

}  // namespace redblue
