#include "runtime/sweep/figures.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kernels/kernel.hpp"
#include "runtime/sweep/kernel_subjects.hpp"
#include "runtime/text/printable.hpp"
#include "runtime/text/table.hpp"
#include "runtime/theory/bounds.hpp"
#include "runtime/theory/rates.hpp"

namespace redblue {
namespace {

Shape shape_of(const Swept& swept) {
  return {swept.size("n"), swept.size("m"), swept.size("d")};
}

bool is_one(const Swept& swept, std::string_view name) {
  return !swept.point.arguments.contains(name) || swept.size(name) == 1;
}

bool has_as_many_keys(const Swept* swept) {
  return swept->size("m") == swept->size("n");
}

// Whether a point reads A2 and A3 as one matrix.
bool shares(const Swept* swept) {
  const auto name = parse_kernel_name(swept->point.subject);
  return shares_keys(swept->point.arguments) || (name && name->sharing != Sharing::none);
}

// The bounds for all algorithms with the same sharing, and for those that make no sum twice.
struct BoundsAt {
  Index all, once;
};
BoundsAt bounds_of(const Swept& swept) {
  Task task{.pass = Pass::backward,
            .problem = Problem(shape_of(swept), shares(&swept) ? Sharing::kv : Sharing::none),
            .memory = swept.size("M")};
  task.problem.mask = mask_of(swept.point.arguments, task.problem.shape);
  task.problem.activation = activation_of(swept.point.arguments);
  const std::vector<Bound> bounds = lower_bounds(task);
  const Schedule once{.recomputes = false, .sharing = task.problem.sharing};
  return {.all = largest(bounds).words, .once = largest(bounds, once).words};
}

// The usual arguments, which are not named: one thread, one head, memory, no sharing, a
// softmax, all pairs.
bool is_usual(std::string_view name, const Value& value) {
  const bool shape = name == "n" || name == "m" || name == "d";
  return (value == Value(Index{1}) && !shape) || value == Value("memory") ||
         value == Value("none") || value == Value("softmax") || value == Value("full");
}

// The points that fit, ordered by size.
Points fitting(const Slice& slice) {
  Points points;
  std::ranges::copy_if(slice.points, std::back_inserter(points), &Swept::fits);
  std::ranges::stable_sort(points, {}, [&](const Swept* swept) { return swept->size(slice.over); });
  return points;
}

// "8K, 64K"
std::string level_texts(const std::vector<Index>& levels) {
  std::vector<std::string> texts;
  std::ranges::transform(levels, std::back_inserter(texts), size_text);
  return fmt::format("{}", fmt::join(texts, ", "));
}

// "n = m = 4,096, d = 64, O and L given".
std::string text_of(const Arguments& common) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : common) {
    const bool square =
        common.contains("n") && common.contains("m") && common.value("n") == common.value("m");
    const Index* size = std::get_if<Index>(&value);
    if ((name == "m" && square) ||
        (name == "dv" && common.contains("d") && value == common.value("d"))) {
      continue;
    }
    if (name == "given" && common.contains("activation")) {
      continue;  // whose O and L nobody is given
    }
    if (name == "given") {
      parts.emplace_back(value == Value("OL") ? "O and L given" : "from nothing");
    } else {
      parts.push_back(fmt::format("{}{} = {}", name == kInner ? "levels below M" : name,
                                  name == "n" && square ? " = m" : "",
                                  name == kInner    ? level_texts(inner_levels(value))
                                  : size == nullptr ? to_string(value)
                                  : name == "M"     ? size_text(*size)
                                                    : grouped(*size)));
    }
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string x_label(const Slice& slice) {
  return slice.over == "M"            ? "M, words of fast memory"
         : slice.over == "d"          ? "d, width"
         : slice.common.contains("m") ? "n, queries"
                                      : "n = m, queries and keys";
}

// A short name for the legend; the title has the rest.
std::string short_name(const std::string& subject) {
  constexpr std::string_view kBackward = "backward/";
  return subject.starts_with(kBackward) ? subject.substr(kBackward.size()) : subject;
}

// Blocks of lines "size words ratio", and $bound and perhaps $once.
struct Curves {
  std::vector<std::pair<std::string, std::string>> data;
  std::vector<std::string> names;
  std::vector<std::size_t> sizes;  // the number of points of each curve
  std::vector<bool> joined;        // by lines
  double least = 0, most = 0;      // the range of sizes
  double least_words = 0, most_words = 0, most_ratio = 0;
  bool once = true;  // $once is there
};

// A curve for each subject; the planner's choice is the first.
Curves curves_of(const Slice& slice) {
  Curves curves;
  std::map<Index, BoundsAt> bounds;
  std::vector<std::string> subjects = subjects_of(slice.points);
  std::stable_partition(subjects.begin(), subjects.end(),
                        [](const std::string& name) { return name.ends_with("/auto"); });
  for (const std::string& subject : subjects) {
    std::string lines;
    const Points points =
        fitting({.over = slice.over, .common = {}, .points = only(slice.points, subject)});
    for (const Swept* swept : points) {
      const Index at = swept->size(slice.over);
      if (!bounds.contains(at)) {
        bounds.emplace(at, bounds_of(*swept));
      }
      const Index bound = bounds.at(at).all;
      const auto words = static_cast<double>(swept->total.counts.io.io());
      const double ratio = words / static_cast<double>(bound);
      lines += fmt::format("{} {} {}\n", at, swept->total.counts.io.io(), ratio);
      curves.most_words = std::max(curves.most_words, words);
      curves.most_ratio = std::max(curves.most_ratio, ratio);
    }
    if (!lines.empty()) {
      curves.data.emplace_back(fmt::format("$curve{}", curves.data.size()), std::move(lines));
      curves.names.push_back(subject);
      curves.sizes.push_back(points.size());
      curves.joined.push_back(true);
    }
  }
  std::string lines, once;
  for (const auto& [at, bound] : bounds) {
    lines += fmt::format("{} {} 1\n", at, bound.all);
    once += fmt::format("{} {} {}\n", at, bound.once,
                        static_cast<double>(bound.once) / static_cast<double>(bound.all));
  }
  if (bounds.size() >= 2) {
    curves.least = static_cast<double>(bounds.begin()->first);
    curves.most = static_cast<double>(bounds.rbegin()->first);
    const auto words = [](const auto& bound) { return bound.second.all; };
    curves.least_words = static_cast<double>(words(*std::ranges::min_element(bounds, {}, words)));
  }
  curves.data.emplace_back("$bound", std::move(lines));
  curves.data.emplace_back("$once", std::move(once));
  return curves;
}

// A curve for each level; without bounds where one of them has none.
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
      const double ratio = bound ? static_cast<double>(words) / static_cast<double>(*bound) : 0;
      lines += fmt::format("{} {} {}\n", M, words, ratio);
      curves.most_words = std::max(curves.most_words, static_cast<double>(words));
      curves.most_ratio = std::max(curves.most_ratio, ratio);
      const auto least = static_cast<double>(bound.value_or(words));
      curves.least_words = sizes.empty() ? least : std::min(curves.least_words, least);
      sizes.insert(M);
      if (bound) {
        bounds.emplace(M, *bound);
      }
    }
    curves.data.emplace_back(fmt::format("$curve{}", curves.data.size()), std::move(lines));
    curves.names.push_back(fmt::format("level {}", curves.names.size() + 1));
    curves.sizes.push_back(level.size());
    // Not where points have other levels besides.
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

// The "plot" command of one column of all curves, the bounds among them.
std::string plot_of(const Curves& curves, int column, bool titles) {
  constexpr std::size_t kMarks = 9;  // the most on a curve, so that its dashes show between them
  const auto title = [&](const std::string& text) {
    return titles ? "title " + gnuplot_text(text) : "notitle";
  };
  std::vector<std::string> plots;
  if (curves.most_ratio > 0) {
    plots.push_back(fmt::format("$bound using 1:{} with lines linecolor black linewidth 3 {}",
                                column, title("lower bound")));
  }
  if (curves.once) {
    plots.push_back(
        fmt::format("$once using 1:{} with lines linecolor black linewidth 1.5 dashtype (6,3) {}",
                    column, title("each sum once")));
  }
  for (std::size_t k = 0; k < curves.names.size(); ++k) {
    const std::string style =
        curves.joined[k] ? fmt::format("linespoints linetype {} pointsize 0.8 pointinterval {}",
                                       k + 1, 1 + (curves.sizes[k] - 1) / kMarks)
                         : fmt::format("points linetype {} pointsize 0.8", k + 1);
    plots.push_back(fmt::format("{} using 1:{} with {} {}", curves.data[k].first, column, style,
                                title(short_name(curves.names[k]))));
  }
  return fmt::format("plot {}\n", fmt::join(plots, ", "));
}

// A text above the plot.
std::string mark_above(double at, const std::string& text) {
  return fmt::format(
      "set label {1} at first {0}, graph 1 center offset 0,0.9 font ',{2}'\n"
      "set arrow from {0}, graph 1 to {0}, graph 1.01 nohead back linecolor black linewidth 1 "
      "dashtype 1\n",
      at, gnuplot_text(text), kSmallFont);
}

// Marks above the plot: M in units of d^2, or over d the point d^2 = M. A line through the plot
// marks M = d^2.
std::string dividing_line(const Slice& slice, double least, double most) {
  const Swept& some = *slice.points.front();
  const auto inside = [&](double at) { return at >= least && at <= most; };
  double square = 0;
  std::string marks;
  if (slice.over == "M") {
    square = static_cast<double>(dividing_point(shape_of(some)).value());
    const Index step = most / least > 2048 ? 16 : 4;
    double times = 1;
    for (Index factor = 1; square * times <= most || square / times >= least;
         times = static_cast<double>(factor *= step)) {
      if (inside(square * times)) {
        marks += mark_above(square * times, factor == 1 ? "d^2" : grouped(factor) + " d^2");
      }
      if (factor > 1 && inside(square / times)) {
        marks += mark_above(square / times, "d^2/" + grouped(factor));
      }
    }
  } else if (slice.over == "d") {
    square = std::sqrt(static_cast<double>(some.size("M")));
    marks = inside(square) ? mark_above(square, "d^2 = M") : "";
  }
  if (inside(square)) {
    marks += fmt::format(
        "set arrow from {0}, graph 0 to {0}, graph 1 nohead back linecolor rgb '#555555' "
        "linewidth 1.5 dashtype (2,3)\n",
        square);
  }
  return marks;
}

// A slightly wider range on a logarithmic axis.
std::string y_range(double least, double most) {
  return fmt::format("set logscale y 10\nset yrange [{0}:{1}]\n{2}", least / 1.25, most * 1.25,
                     gnuplot_log_tics('y', least / 1.25, most * 1.25));
}

constexpr std::size_t kMostTics = 10;  // tics as wide as "512K" in a plot of full width
std::string x_range(double least, double most, std::size_t most_tics) {
  const double edge = std::pow(most / least, 0.015);
  return fmt::format("set logscale x 2\nset xrange [{}:{}]\n{}", least / edge, most * edge,
                     gnuplot_size_tics('x', least, most, most_tics));
}

// Words, and beside them words over the bound.
std::string two_plots(const Curves& curves, const std::string& dividing) {
  // Two plots with short numbers, and between them room for the second axis.
  constexpr double kLeft = 0.09;
  constexpr double kBetween = 0.085;
  constexpr double kPlot = (kPlotRight - kLeft - kBetween) / 2;
  return "set multiplot\n" + x_range(curves.least, curves.most, kMostTics / 2) +
         fmt::format("set lmargin at screen {}\nset rmargin at screen {}\nset key off\n", kLeft,
                     kLeft + kPlot) +
         y_range(curves.least_words, curves.most_words) + dividing + plot_of(curves, 2, false) +
         // The first plot has drawn the title and the caption, which are labels.
         "unset label\nunset arrow\nset ylabel 'words over the lower bound'\n" +
         fmt::format("set lmargin at screen {}\nset rmargin at screen {}\nset key on\n",
                     kPlotRight - kPlot, kPlotRight) +
         y_range(1, curves.most_ratio) + dividing + plot_of(curves, 3, true) + "unset multiplot\n";
}

// The roof holds for one thread.
bool on_roofline(const Swept* swept) {
  return swept->speed && swept->total.counts.operations.flops > 0 && is_one(*swept, "threads");
}

std::size_t sizes_of(const Slice& slice) {
  std::set<Index> sizes;
  for (const Swept* swept : fitting(slice)) {
    sizes.insert(swept->size(slice.over));
  }
  return sizes.size();
}

// For each point the slice, over any size, that has the most sizes.
std::vector<Slice> best_slices(const Points& points) {
  std::vector<std::pair<Slice, std::size_t>> all;
  std::map<const Swept*, std::size_t> most;
  for (const std::string_view over : kAxes) {
    for (Slice& slice : slices(points, over)) {
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

}  // namespace

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

Points backward_of(const Points& points) {
  Points backward;
  std::ranges::copy_if(points, std::back_inserter(backward), [](const Swept* swept) {
    return swept->point.subject.starts_with("backward/") && is_one(*swept, "threads") &&
           is_one(*swept, "heads") &&
           // For a bound: files may be elsewhere now, and entries differ from point to point.
           !has_files(swept->point.arguments) && !has_sparse_operands(swept->point);
  });
  if (!std::ranges::all_of(backward, shares)) {
    std::erase_if(backward, shares);
  }
  return backward;
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

std::vector<Differing> differing(const Points& points) {
  std::vector<Differing> found;
  const bool square = std::ranges::all_of(points, has_as_many_keys);
  for (const Swept* swept : points) {
    for (const auto& [name, value] : swept->point.arguments) {
      auto known = std::ranges::find(found, name, &Differing::name);
      if (known == found.end()) {
        known = found.insert(found.end(), {.name = name, .values = {}});
      }
      if (std::ranges::find(known->values, to_string(value)) == known->values.end()) {
        known->values.push_back(to_string(value));
      }
    }
  }
  std::erase_if(found, [&](const Differing& argument) {
    return argument.values.size() == 1 || (argument.name == "m" && square);
  });
  return found;
}

std::vector<Slice> slices(const Points& points, std::string_view over) {
  const bool square = over == "n" && std::ranges::all_of(points, has_as_many_keys);
  std::vector<Slice> found;
  for (const Swept* swept : points) {
    Arguments common;
    for (const auto& [name, value] : swept->point.arguments) {
      if (name != over && !(name == "m" && square) && !is_usual(name, value)) {
        common.set(name, value);
      }
    }
    auto slice = std::ranges::find(found, common, &Slice::common);
    if (slice == found.end()) {
      slice =
          found.insert(found.end(), {.over = std::string(over), .common = common, .points = {}});
    }
    slice->points.push_back(swept);
  }
  return found;
}

Picture figure1_picture(const Slice& slice) {
  const Slice backward{
      .over = slice.over, .common = slice.common, .points = backward_of(slice.points)};
  const Curves curves = curves_of(backward);
  if (curves.most == 0) {
    throw InputError(fmt::format(
        "{}no backward kernel of one thread and one head fits with two sizes of {} or more",
        to_string(slice.common).empty() ? "" : to_string(slice.common) + ": ", slice.over));
  }
  Picture picture{.title = "Words of backward passes: " + text_of(slice.common),
                  .x_label = x_label(slice),
                  .y_label = "words moved, read and written",
                  .caption = {},
                  .data = curves.data,
                  .commands = {}};
  const std::string dividing = dividing_line(backward, curves.least, curves.most);
  picture.words_above = !dividing.empty();
  picture.commands = two_plots(curves, dividing);
  return picture;
}

std::vector<Slice> level_slices(const Points& points) {
  std::vector<Slice> found;
  for (const Swept* swept : points) {
    if (swept->inner.empty()) {
      continue;
    }
    Arguments common;
    for (const auto& [name, value] : swept->point.arguments) {
      if (name != "M" && name != kInner && !is_usual(name, value)) {
        common.set(name, value);
      }
    }
    const auto same = [&](const Slice& slice) {
      return slice.common == common && slice.points.front()->point.subject == swept->point.subject;
    };
    auto slice = std::ranges::find_if(found, same);
    if (slice == found.end()) {
      slice = found.insert(found.end(), {.over = "M", .common = common, .points = {}});
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
                                       text_of(slice.common)),
                  .x_label = "M of the level, words",
                  .y_label = "words moved, read and written",
                  .caption = {},
                  .data = curves.data,
                  .commands = {}};
  const std::string dividing = dividing_line(slice, curves.least, curves.most);
  picture.words_above = !dividing.empty();
  picture.commands = curves.most_ratio > 0 ? two_plots(curves, dividing)
                                           : x_range(curves.least, curves.most, kMostTics) +
                                                 y_range(curves.least_words, curves.most_words) +
                                                 dividing + plot_of(curves, 2, true);
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
  // The size, the ends of its box, and the words of the first 0, 1, ... phases.
  std::string lines;
  for (std::size_t k = 0; k < points.size(); ++k) {
    lines += fmt::format("{} {} {} 0", points[k]->size(slice.over), sizes[k] / box, sizes[k] * box);
    Index words = 0;
    for (const std::string& name : names) {
      const auto phase = std::ranges::find_if(
          points[k]->phases, [&](const SweptPhase& each) { return each.counts.path == name; });
      words += phase == points[k]->phases.end() ? 0 : phase->counts.io.io();
      lines += fmt::format(" {}", words);
    }
    lines += "\n";
  }
  const double least = sizes.front() / box;
  const double most = sizes.back() * box;
  const auto words = [](const Swept* swept) { return swept->total.counts.io.io(); };
  const Index largest = words(*std::ranges::max_element(points, {}, words));
  Picture picture{
      .title = fmt::format("Where the words of {} go: {}", subjects.front(), text_of(slice.common)),
      .x_label = x_label(slice),
      .y_label = "words moved, read and written",
      .caption = {},
      .data = {{"$words", std::move(lines)}},
      .commands = {}};
  const std::string dividing = dividing_line(slice, least, most);
  picture.words_above = !dividing.empty();
  picture.commands = fmt::format("set grid noxtics\nset yrange [0:{}]\n{}{}{}",
                                 1.03 * static_cast<double>(largest), gnuplot_tics('y', largest),
                                 x_range(least, most, kMostTics), dividing);
  // From the top of the stack down.
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

Picture roofline_picture(const Points& points) {
  std::map<std::string, std::string> lines;
  struct Roof {
    std::vector<double> peaks, reads;
  };
  std::map<std::string, Roof> roofs;  // by processor, empty where all points are of one
  std::vector<double> intensities, speeds;
  for (const Swept* swept : points) {
    if (!on_roofline(swept)) {
      continue;
    }
    const double words_a_flop = static_cast<double>(swept->total.counts.io.io()) /
                                static_cast<double>(swept->total.counts.operations.flops);
    lines[swept->point.subject] += fmt::format("{} {}\n", words_a_flop, swept->speed->gflops);
    Roof& roof = roofs[swept->processor.value_or("")];
    roof.peaks.push_back(swept->speed->peak_gflops);
    roof.reads.push_back(swept->speed->words_per_second);
    intensities.push_back(words_a_flop);
    speeds.push_back(swept->speed->gflops);
  }
  if (intensities.empty()) {
    throw InputError("nothing of one thread was timed: a suite with \"how\": \"time\" is");
  }
  const auto [least, most] = std::ranges::minmax(intensities);
  // A legend has no room for the names of processors: their roofs have numbers.
  double highest = std::ranges::max(speeds);
  std::string title = "How fast, against the words that a flop takes";
  std::string plots;
  std::size_t number = 0;
  for (const auto& [processor, roof] : roofs) {
    const double peak = median(roof.peaks);
    const double read = 1e-9 * median(roof.reads);
    highest = std::max(highest, peak);
    std::string of;
    if (!processor.empty()) {
      of = fmt::format("{}: ", ++number);
      title +=
          fmt::format("{} {} is {}", number == 1 ? ":" : ",", number, shortened(processor, 40));
    }
    plots += fmt::format(
        "{} {} with lines linecolor black linewidth 3 dashtype solid title {}, "
        "{} / x with lines linecolor black linewidth 3 dashtype (8,4) title {}",
        plots.empty() ? "plot" : ",", peak,
        gnuplot_text(fmt::format("{}{:.0f} GF/s (FMA)", of, peak)), read,
        gnuplot_text(fmt::format("{}{:.2g} Gwords/s{}", of, read, of.empty() ? " read" : "")));
  }
  Picture picture{.title = std::move(title),
                  .x_label = "words moved for each flop",
                  .y_label = "GF/s",
                  .caption = {},
                  .data = {},
                  .commands = {}};
  picture.commands = fmt::format("set logscale x 10\nset xrange [{}:{}]\n", least / 2, most * 2) +
                     gnuplot_log_tics('x', least / 2, most * 2) +
                     y_range(std::ranges::min(speeds), highest) + "set samples 500\n" + plots;
  std::size_t k = 0;
  for (auto& [subject, data] : lines) {
    const std::string block = fmt::format("$points{}", k++);
    picture.data.emplace_back(block, std::move(data));
    picture.commands += fmt::format(", {} with points linetype {} pointsize 1.2 title {}", block, k,
                                    gnuplot_text(short_name(subject)));
  }
  picture.commands += "\n";
  return picture;
}

std::vector<Picture> figures_of(const Sweep& sweep, std::size_t phases) {
  Points all = points_of(sweep);
  const auto others = std::stable_partition(all.begin(), all.end(), has_as_many_keys);
  std::vector<Slice> best = best_slices({all.begin(), others});
  std::ranges::move(best_slices({others, all.end()}), std::back_inserter(best));
  std::vector<Picture> figures;
  for (const Slice& slice : best) {
    const Slice backward{
        .over = slice.over, .common = slice.common, .points = backward_of(slice.points)};
    if (subjects_of(backward.points).size() >= 2 && sizes_of(backward) >= 2) {
      figures.push_back(figure1_picture(backward));
    }
  }
  if (std::ranges::any_of(all, on_roofline)) {
    figures.push_back(roofline_picture(all));
  }
  const auto of_levels = level_slices(all);
  for (std::size_t k = 0; k < std::min(phases, of_levels.size()); ++k) {
    if (curves_of_levels(of_levels[k]).most > 0) {
      figures.push_back(levels_picture(of_levels[k]));
    }
  }
  for (const Slice& slice : best) {
    for (const std::string& subject : subjects_of(slice.points)) {
      const Slice part{
          .over = slice.over, .common = slice.common, .points = only(slice.points, subject)};
      if (phases > 0 && sizes_of(part) >= 2) {
        figures.push_back(phases_picture(part));
        --phases;
      }
    }
  }
  return figures;
}

}  // namespace redblue
