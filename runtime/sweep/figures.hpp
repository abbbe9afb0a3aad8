#pragma once
// Pictures of a sweep: words against M or a size, and words by phase. All types are values.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/sweep/sweep.hpp"
#include "runtime/text/gnuplot.hpp"

namespace redblue {

// Some points of a sweep, in its order. Requires: the sweep outlives them.
using Points = std::vector<const Swept*>;

struct Slice;

// The facts that pictures need about a family of kernels, apart from counts. No function is null.
struct Family {
  // The sizes that can be the axis of a figure, in order of preference.
  std::vector<std::string> (*axes)(const Points& points);
  // True if an argument varies together with `other`, which is the axis or an earlier argument.
  bool (*goes_with)(const Points& points, std::string_view name, std::string_view other);
  bool (*is_usual)(std::string_view name, const Value& value);  // usual values are not named
  std::string (*said)(const Arguments& common);                 // such as "n = 64, M = 1K"
  std::string (*axis)(const Slice& slice);                      // such as "M, words of fast memory"
  std::string (*in_legend)(const std::string& subject);
  std::string (*marks)(const Slice& slice, double least, double most);  // marks above the plot
};
// The family of kernels that are known only by their counts.
const Family& plain_family();

// Points that differ only in their subject and in one size.
struct Slice {
  std::string over;
  Arguments common = {};  // arguments common to all points, without usual values
  Points points = {};
  const Family* family = &plain_family();
};

// Returns the points that have the arguments in `where`, compared as text.
Points points_of(const Sweep& sweep, const std::map<std::string, std::string>& where = {});
// Returns the points of one subject.
Points only(const Points& points, std::string_view subject);
std::vector<std::string> subjects_of(const Points& points);

// The arguments that vary, each with its values. Omits arguments that vary with another one.
struct Differing {
  std::string name;
  std::vector<std::string> values = {};
};
std::vector<Differing> differing(const Points& points, const Family& family);

bool has_size(const Swept& swept, std::string_view name);
// Groups the points into slices over one size. Omits points that do not have this size.
std::vector<Slice> slices(const Points& points, std::string_view over, const Family& family);
// Returns for each point the slice, over any size, that has the most sizes. Slices have at least
// two sizes.
std::vector<Slice> best_slices(const Points& points, const Family& family);

// Plots the words of each subject. Throws (all pictures): InputError if there is nothing to draw.
Picture words_picture(const Slice& slice);
// Groups points with several levels of fast memory. Points of a slice differ only in M and the
// levels.
std::vector<Slice> level_slices(const Points& points, const Family& family);
// Plots the words of one subject at each level against the level's M, and over the lower bound at
// that M. Requires: a slice of level_slices().
Picture levels_picture(const Slice& slice);
// Plots the words of one subject by phase.
Picture phases_picture(const Slice& slice);

// Returns all figures that the points of a plain family allow, with pictures by phase for at most
// `phases` subjects. A point belongs to the slice, over any size, that has the most points.
std::vector<Picture> plain_figures(const Sweep& sweep, std::size_t phases);
// Return pictures by level, and by phase, for at most `most` subjects each.
std::vector<Picture> level_figures(const Points& points, const Family& family, std::size_t most);
std::vector<Picture> phase_figures(const std::vector<Slice>& slices, std::size_t most);

}  // namespace redblue
