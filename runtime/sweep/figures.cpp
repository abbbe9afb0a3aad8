#include "runtime/sweep/figures.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <set>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/sweep/curves.hpp"
#include "runtime/text/table.hpp"

namespace redblue {
namespace {

// Returns "n = 64, M = 1K".
std::string said_plainly(const Arguments& common) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : common) {
    const Index* const size = std::get_if<Index>(&value);
    parts.push_back(fmt::format("{} = {}", name,
                                size == nullptr ? to_string(value)
                                : name == "M"   ? size_text(*size)
                                                : grouped(*size)));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

bool are_equal(const Points& points, std::string_view name, std::string_view other) {
  return std::ranges::all_of(points, [&](const Swept* swept) {
    const Arguments& arguments = swept->point.arguments;
    return arguments.contains(name) && arguments.contains(other) &&
           arguments.value(name) == arguments.value(other);
  });
}

// Returns M, then the other arguments that vary.
std::vector<std::string> plain_axes(const Points& points) {
  std::vector<std::string> axes = {"M"};
  for (const auto& [name, values] : differing(points, plain_family())) {
    if (name != "M") {
      axes.push_back(name);
    }
  }
  return axes;
}

std::string plain_axis(const Slice& slice) {
  if (slice.over == "M") {
    return "M, words of fast memory";
  }
  std::string label = slice.over;
  for (const auto& [name, value] : slice.points.front()->point.arguments) {
    if (name != slice.over && !slice.common.contains(name)) {
      label += " = " + name;
    }
  }
  return label;
}

// Returns a curve for each subject, without bounds.
Curves curves_of_words(const Slice& slice) {
  Curves curves;
  curves.once = false;
  std::set<Index> sizes;
  for (const std::string& subject : subjects_of(slice.points)) {
    std::string lines;
    const Points points = fitting({.over = slice.over, .points = only(slice.points, subject)});
    for (const Swept* swept : points) {
      const Index at = swept->size(slice.over);
      const Index words = swept->total.counts.io.io();
      lines += fmt::format("{} {} 0\n", at, words);
      const auto drawn = static_cast<double>(std::max<Index>(words, 1));
      curves.least_words = sizes.empty() ? drawn : std::min(curves.least_words, drawn);
      curves.most_words = std::max(curves.most_words, drawn);
      sizes.insert(at);
    }
    if (!lines.empty()) {
      curves.data.emplace_back(fmt::format("$curve{}", curves.data.size()), std::move(lines));
      curves.names.push_back(slice.family->in_legend(subject));
      curves.sizes.push_back(points.size());
      curves.joined.push_back(true);
    }
  }
  if (sizes.size() >= 2) {
    curves.least = static_cast<double>(*sizes.begin());
    curves.most = static_cast<double>(*sizes.rbegin());
  }
  return curves;
}

// Returns a curve for each level. Omits bounds if a level has none.
Curves curves_of_levels(const Slice& slice) {
  struct At {
    Index M, words;
    std::optional<Index> bound;
  };
  std::vector<std::vector<At>> levels;
  for (const Swept* swept : fitting(slice)) {
    const std::vector<SweptLevel> all = swept->levels();
    levels.resize(std::max(levels.size(), all.size()));
    for (std::size_t level = 0; level < all.size(); ++level) {
      levels[level].push_back({all[level].M, all[level].total.counts.io.io(), all[level].bound});
    }
  }
  Curves curves;
  curves.once = false;
  std::map<Index, Index> bounds;
  std::set<Index> sizes;
  for (std::vector<At>& level : levels) {
    std::ranges::stable_sort(level, {}, &At::M);
    std::string lines;
    for (const auto& [M, words, bound] : level) {
      const double ratio =
          bound && *bound > 0 ? static_cast<double>(words) / static_cast<double>(*bound) : 0;
      lines += fmt::format("{} {} {}\n", M, words, ratio);
      curves.most_words = std::max(curves.most_words, static_cast<double>(words));
      curves.most_ratio = std::max(curves.most_ratio, ratio);
      const auto least = static_cast<double>(std::max<Index>(bound.value_or(words), 1));
      curves.least_words = sizes.empty() ? least : std::min(curves.least_words, least);
      sizes.insert(M);
      if (bound) {
        bounds.emplace(M, *bound);
      }
    }
    curves.data.emplace_back(fmt::format("$curve{}", curves.data.size()), std::move(lines));
    curves.names.push_back(fmt::format("level {}", curves.names.size() + 1));
    curves.sizes.push_back(level.size());
    // Two points with equal M differ in other levels. Such a curve is not joined.
    curves.joined.push_back(std::ranges::adjacent_find(level, {}, &At::M) == level.end());
  }
  if (sizes.size() >= 2) {
    curves.least = static_cast<double>(*sizes.begin());
    curves.most = static_cast<double>(*sizes.rbegin());
  }
  if (bounds.size() == sizes.size()) {
    std::string lines;
    for (const auto& [M, words] : bounds) {
      lines += fmt::format("{} {} 1\n", M, words);
    }
    curves.data.emplace_back("$bound", std::move(lines));
  } else {
    curves.most_ratio = 0;
  }
  return curves;
}

}  // namespace

const Family& plain_family() {
  static constexpr Family kPlain{
      .axes = plain_axes,
      .goes_with =
          [](const Points& points, std::string_view name, std::string_view other) {
            return name != "M" && other != "M" && are_equal(points, name, other);
          },
      .is_usual = [](std::string_view, const Value&) { return false; },
      .said = said_plainly,
      .axis = plain_axis,
      .in_legend = [](const std::string& subject) { return subject; },
      .marks = [](const Slice&, double, double) { return std::string(); }};
  return kPlain;
}

Points points_of(const Sweep& sweep, const std::map<std::string, std::string>& where) {
  Points points;
  for (const Swept& swept : sweep.points) {
    const Arguments& arguments = swept.point.arguments;
    if (std::ranges::all_of(where, [&](const auto& asked) {
          return arguments.contains(asked.first) &&
                 to_string(arguments.value(asked.first)) == asked.second;
        })) {
      points.push_back(&swept);
    }
  }
  return points;
}

Points only(const Points& points, std::string_view subject) {
  Points part;
  std::ranges::copy_if(points, std::back_inserter(part),
                       [&](const Swept* swept) { return swept->point.subject == subject; });
  return part;
}

std::vector<std::string> subjects_of(const Points& points) {
  std::vector<std::string> names;
  for (const Swept* swept : points) {
    if (std::ranges::find(names, swept->point.subject) == names.end()) {
      names.push_back(swept->point.subject);
    }
  }
  return names;
}

std::vector<Differing> differing(const Points& points, const Family& family) {
  std::vector<Differing> found;
  for (const Swept* swept : points) {
    for (const auto& [name, value] : swept->point.arguments) {
      auto known = std::ranges::find(found, name, &Differing::name);
      if (known == found.end()) {
        known = found.insert(found.end(), {.name = name});
      }
      if (std::ranges::find(known->values, to_string(value)) == known->values.end()) {
        known->values.push_back(to_string(value));
      }
    }
  }
  std::erase_if(found, [](const Differing& argument) { return argument.values.size() == 1; });
  for (std::size_t k = found.size(); k-- > 1;) {
    const auto before = found.begin() + static_cast<std::ptrdiff_t>(k);
    if (std::any_of(found.begin(), before, [&](const Differing& other) {
          return family.goes_with(points, before->name, other.name);
        })) {
      found.erase(before);
    }
  }
  return found;
}

bool has_size(const Swept& swept, std::string_view name) {
  const Arguments& arguments = swept.point.arguments;
  return arguments.contains(name) && std::holds_alternative<Index>(arguments.value(name));
}

std::vector<Slice> slices(const Points& points, std::string_view over, const Family& family) {
  std::map<std::string, bool, std::less<>> goes;  // by argument: varies with the axis
  std::vector<Slice> found;
  for (const Swept* swept : points) {
    if (!has_size(*swept, over)) {  // another kernel's size
      continue;
    }
    Arguments common;
    for (const auto& [name, value] : swept->point.arguments) {
      if (!goes.contains(name)) {
        goes.emplace(name, name == over || family.goes_with(points, name, over));
      }
      if (!goes.at(name) && !family.is_usual(name, value)) {
        common.set(name, value);
      }
    }
    auto slice = std::ranges::find(found, common, &Slice::common);
    if (slice == found.end()) {
      slice = found.insert(found.end(),
                           {.over = std::string(over), .common = common, .family = &family});
    }
    slice->points.push_back(swept);
  }
  return found;
}

std::vector<Slice> best_slices(const Points& points, const Family& family) {
  std::vector<std::pair<Slice, std::size_t>> all;
  std::map<const Swept*, std::size_t> most;
  for (const std::string& over : family.axes(points)) {
    for (Slice& slice : slices(points, over, family)) {
      const std::size_t sizes = sizes_of(slice);
      for (const Swept* swept : slice.points) {
        most[swept] = std::max(most[swept], sizes);
      }
      all.emplace_back(std::move(slice), sizes);
    }
  }
  std::vector<Slice> best;
  std::set<const Swept*> drawn;
  for (auto& [slice, sizes] : all) {
    const bool wanted = std::ranges::any_of(slice.points, [&, many = sizes](const Swept* swept) {
      return most[swept] == many && !drawn.contains(swept);
    });
    if (wanted && sizes >= 2) {
      drawn.insert(slice.points.begin(), slice.points.end());
      best.push_back(std::move(slice));
    }
  }
  return best;
}

Picture words_picture(const Slice& slice) {
  const Curves curves = curves_of_words(slice);
  if (curves.most == 0) {
    throw InputError(fmt::format("{}{}nothing fits with two sizes of {} or more",
                                 to_string(slice.common),
                                 to_string(slice.common).empty() ? "" : ": ", slice.over));
  }
  const std::vector<std::string> subjects = subjects_of(slice.points);
  const std::string said = slice.family->said(slice.common);
  Picture picture{
      .title = fmt::format(
          "Words of {}{}{}",
          subjects.size() == 1 ? subjects.front() : fmt::format("{} kernels", subjects.size()),
          said.empty() ? "" : ": ", said),
      .x_label = slice.family->axis(slice),
      .y_label = "words moved, read and written",
      .data = curves.data};
  const std::string marks = slice.family->marks(slice, curves.least, curves.most);
  picture.words_above = !marks.empty();
  picture.commands = x_range(curves.least, curves.most, kMostTics) +
                     y_range(curves.least_words, curves.most_words) + marks +
                     plot_of(curves, 2, true);
  return picture;
}

std::vector<Slice> level_slices(const Points& points, const Family& family) {
  std::vector<Slice> found;
  for (const Swept* swept : points) {
    if (swept->inner.empty()) {
      continue;
    }
    Arguments common;
    for (const auto& [name, value] : swept->point.arguments) {
      if (name != "M" && name != kInner && !family.is_usual(name, value)) {
        common.set(name, value);
      }
    }
    const auto same = [&](const Slice& slice) {
      return slice.common == common && slice.points.front()->point.subject == swept->point.subject;
    };
    auto slice = std::ranges::find_if(found, same);
    if (slice == found.end()) {
      slice = found.insert(found.end(), {.over = "M", .common = common, .family = &family});
    }
    slice->points.push_back(swept);
  }
  return found;
}

Picture levels_picture(const Slice& slice) {
  const Curves curves = curves_of_levels(slice);
  const std::string& subject = slice.points.front()->point.subject;
  if (curves.most == 0) {
    throw InputError(
        fmt::format("{} {}: all its levels have one M", subject, to_string(slice.common)));
  }
  Picture picture{.title = fmt::format("Words of {} at each level of fast memory: {}", subject,
                                       slice.family->said(slice.common)),
                  .x_label = "M of the level, words",
                  .y_label = "words moved, read and written",
                  .data = curves.data};
  const std::string marks = slice.family->marks(slice, curves.least, curves.most);
  picture.words_above = !marks.empty();
  picture.commands = curves.most_ratio > 0 ? two_plots(curves, marks)
                                           : x_range(curves.least, curves.most, kMostTics) +
                                                 y_range(curves.least_words, curves.most_words) +
                                                 marks + plot_of(curves, 2, true);
  return picture;
}

Picture phases_picture(const Slice& slice) {
  const Points points = fitting(slice);
  const std::vector<std::string> subjects = subjects_of(slice.points);
  if (points.empty() || subjects.size() != 1) {
    throw InputError(fmt::format("{}: the phases of one kernel that fits are drawn, not of {}",
                                 to_string(slice.common), subjects.size()));
  }
  std::vector<std::string> names;
  for (const Swept* swept : points) {
    for (const SweptPhase& phase : swept->phases) {
      if (std::ranges::find(names, phase.counts.path) == names.end()) {
        names.push_back(phase.counts.path);
      }
    }
  }
  // Boxes are as wide as the nearest neighbours allow, at most an octave.
  std::vector<double> sizes;
  double apart = 2;
  for (const Swept* swept : points) {
    const auto size = static_cast<double>(swept->size(slice.over));
    apart = sizes.empty() ? apart : std::min(apart, size / sizes.back());
    sizes.push_back(size);
  }
  const double box = std::pow(apart, 0.4);
  // Each line has the size, the ends of its box, and the words of the first 0, 1, ... phases.
  std::string lines;
  for (std::size_t k = 0; k < points.size(); ++k) {
    lines += fmt::format("{} {} {} 0", points[k]->size(slice.over), sizes[k] / box, sizes[k] * box);
    Words words = 0;
    for (const std::string& name : names) {
      const auto phase = std::ranges::find_if(
          points[k]->phases, [&](const SweptPhase& each) { return each.counts.path == name; });
      words += phase == points[k]->phases.end() ? 0 : phase->counts.io.io();
      lines += fmt::format(" {}", words.overflowed() ? INT64_MAX : words.value());
    }
    lines += "\n";
  }
  const double least = sizes.front() / box;
  const double most = sizes.back() * box;
  const auto words = [](const Swept* swept) { return swept->total.counts.io.io(); };
  const Index largest = words(*std::ranges::max_element(points, {}, words));
  Picture picture{.title = fmt::format("Where the words of {} go: {}", subjects.front(),
                                       slice.family->said(slice.common)),
                  .x_label = slice.family->axis(slice),
                  .y_label = "words moved, read and written",
                  .data = {{"$words", std::move(lines)}}};
  const std::string marks = slice.family->marks(slice, least, most);
  picture.words_above = !marks.empty();
  picture.commands = fmt::format("set grid noxtics\nset yrange [0:{}]\n{}{}{}",
                                 1.03 * static_cast<double>(largest), gnuplot_tics('y', largest),
                                 x_range(least, most, kMostTics), marks);
  // Draws the stack from top to bottom.
  picture.commands += fmt::format("plot $words using 1:{0}:2:3:4:{0} with boxxyerror {1} notitle",
                                  names.size() + 4, kGnuplotWhite);
  for (std::size_t k = names.size(); k > 0; --k) {
    picture.commands +=
        fmt::format(", $words using 1:{0}:2:3:{1}:{0} with boxxyerror {2} title {3}", k + 4, k + 3,
                    gnuplot_fill(k - 1), gnuplot_text(names[k - 1]));
  }
  picture.commands += "\n";
  return picture;
}

std::vector<Picture> level_figures(const Points& points, const Family& family, std::size_t most) {
  std::vector<Picture> figures;
  const std::vector<Slice> of_levels = level_slices(points, family);
  for (std::size_t k = 0; k < std::min(most, of_levels.size()); ++k) {
    if (curves_of_levels(of_levels[k]).most > 0) {
      figures.push_back(levels_picture(of_levels[k]));
    }
  }
  return figures;
}

std::vector<Picture> phase_figures(const std::vector<Slice>& slices, std::size_t most) {
  std::vector<Picture> figures;
  for (const Slice& slice : slices) {
    for (const std::string& subject : subjects_of(slice.points)) {
      Slice part = slice;
      part.points = only(slice.points, subject);
      if (figures.size() < most && sizes_of(part) >= 2) {
        figures.push_back(phases_picture(part));
      }
    }
  }
  return figures;
}

std::vector<Picture> plain_figures(const Sweep& sweep, std::size_t phases) {
  const std::vector<Slice> best = best_slices(points_of(sweep), plain_family());
  std::vector<Picture> figures;
  std::ranges::transform(best, std::back_inserter(figures), words_picture);
  std::ranges::move(phase_figures(best, phases), std::back_inserter(figures));
  return figures;
}

}  // namespace redblue
