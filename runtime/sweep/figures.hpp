#pragma once
// Pictures of a sweep: words against M or a size, and words by phase. Values.

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

// What pictures know of the kernels of a sweep, beside their counts. Its functions are not null.
struct Family {
  // The sizes that can be the axis of a figure, the first ones before others.
  std::vector<std::string> (*axes)(const Points& points);
  // Whether an argument varies with the axis, or with an argument before it.
  bool (*goes_with)(const Points& points, std::string_view name, std::string_view other);
  bool (*is_usual)(std::string_view name, const Value& value);  // then nobody names it
  std::string (*said)(const Arguments& common);                 // "n = 64, M = 1K"
  std::string (*axis)(const Slice& slice);                      // "M, words of fast memory"
  std::string (*in_legend)(const std::string& subject);
  std::string (*marks)(const Slice& slice, double least, double most);  // above the plot
};
// Of kernels of which nothing is known but their counts.
const Family& plain_family();

// Points that differ only in their subject and in one size.
struct Slice {
  std::string over;
  Arguments common = {};  // of all points, without the usual ones
  Points points = {};
  const Family* family = &plain_family();
};

// The points with the arguments of `where`, compared as text.
Points points_of(const Sweep& sweep, const std::map<std::string, std::string>& where = {});
// The points of one subject.
Points only(const Points& points, std::string_view subject);
std::vector<std::string> subjects_of(const Points& points);

// The arguments that vary, each with its values, without those that go with another.
struct Differing {
  std::string name;
  std::vector<std::string> values = {};
};
std::vector<Differing> differing(const Points& points, const Family& family);

bool has_size(const Swept& swept, std::string_view name);
// Points without a size of that name are in no slice.
std::vector<Slice> slices(const Points& points, std::string_view over, const Family& family);
// For each point the slice, over any size, that has the most sizes, of at least two.
std::vector<Slice> best_slices(const Points& points, const Family& family);

// The words of each subject. Throws (all pictures): InputError if there is nothing to draw.
Picture words_picture(const Slice& slice);
// The points of several levels of fast memory that differ in nothing else than M and these.
std::vector<Slice> level_slices(const Points& points, const Family& family);
// The words of one subject at each of its levels against the level's M, and over the lower bound at
// that M. Requires: a slice of level_slices().
Picture levels_picture(const Slice& slice);
// The words of one subject by phase.
Picture phases_picture(const Slice& slice);

// All figures that the points allow, of a plain family; by phase for at most `phases` subjects. A
// point belongs to the slice, over any size, that has the most points.
std::vector<Picture> plain_figures(const Sweep& sweep, std::size_t phases);
// Those by level, and those by phase of slices, for at most so many subjects each.
std::vector<Picture> level_figures(const Points& points, const Family& family, std::size_t most);
std::vector<Picture> phase_figures(const std::vector<Slice>& slices, std::size_t most);

}  // namespace redblue
