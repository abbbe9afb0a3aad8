#include "runtime/subjects/kernel_figures.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kernels/kernel.hpp"
#include "runtime/subjects/kernel_subjects.hpp"
#include "runtime/sweep/curves.hpp"
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

// Returns true if a point reads A2 and A3 as one matrix.
bool shares(const Swept* swept) {
  const auto name = parse_kernel_name(swept->point.subject);
  return shares_keys(swept->point.arguments) || (name && name->sharing != Sharing::none);
}

// The lower bound for all algorithms with the same sharing, and the lower bound for algorithms that
// compute each sum once.
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

// Returns true for the usual arguments, which figures do not name: one thread, one head, main
// memory, no sharing, softmax, all pairs.
bool is_usual(std::string_view name, const Value& value) {
  const bool shape = name == "n" || name == "m" || name == "d";
  return (value == Value(Index{1}) && !shape) || value == Value("memory") ||
         value == Value("none") || value == Value("softmax") || value == Value("full");
}

// Returns "8K, 64K".
std::string level_texts(const std::vector<Index>& levels) {
  std::vector<std::string> texts;
  std::ranges::transform(levels, std::back_inserter(texts), size_text);
  return fmt::format("{}", fmt::join(texts, ", "));
}

// Returns "n = m = 4,096, d = 64, O and L given".
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
      continue;  // with another activation, O and L are never given
    }
    if (name == "given") {
      parts.emplace_back(value == Value("OL") ? "after a forward pass" : "from scratch");
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

// Returns a short name for the legend. The title has the rest.
std::string short_name(const std::string& subject) {
  constexpr std::string_view kBackward = "backward/";
  return subject.starts_with(kBackward) ? subject.substr(kBackward.size()) : subject;
}

// Returns a curve for each subject. The planner's choice is first.
Curves curves_of(const Slice& slice) {
  Curves curves;
  std::map<Index, BoundsAt> bounds;
  std::vector<std::string> subjects = subjects_of(slice.points);
  std::stable_partition(subjects.begin(), subjects.end(),
                        [](const std::string& name) { return name.ends_with("/auto"); });
  for (const std::string& subject : subjects) {
    std::string lines;
    const Points points = fitting({.over = slice.over, .points = only(slice.points, subject)});
    for (const Swept* swept : points) {
      const Index at = swept->size(slice.over);
      if (!bounds.contains(at)) {
        bounds.emplace(at, bounds_of(*swept));
      }
      const Index bound = bounds.at(at).all;
      const auto words = static_cast<double>(swept->total.counts.io.io());
      const double ratio = words / static_cast<double>(std::max<Index>(bound, 1));
      lines += fmt::format("{} {} {}\n", at, swept->total.counts.io.io(), ratio);
      curves.most_words = std::max(curves.most_words, words);
      curves.most_ratio = std::max(curves.most_ratio, ratio);
    }
    if (!lines.empty()) {
      curves.data.emplace_back(fmt::format("$curve{}", curves.data.size()), std::move(lines));
      curves.names.push_back(short_name(subject));
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
    curves.least_words = static_cast<double>(
        std::max<Index>(words(*std::ranges::min_element(bounds, {}, words)), 1));
  }
  curves.data.emplace_back("$bound", std::move(lines));
  curves.data.emplace_back("$once", std::move(once));
  return curves;
}

// Returns commands that write a text above the plot.
std::string mark_above(double at, const std::string& text) {
  return fmt::format(
      "set label {1} at first {0}, graph 1 center offset 0,0.9 font ',{2}'\n"
      "set arrow from {0}, graph 1 to {0}, graph 1.01 nohead back linecolor black linewidth 1 "
      "dashtype 1\n",
      at, gnuplot_text(text), kSmallFont);
}

// Returns marks above the plot: M in units of d^2, or over d the point d^2 = M. A line through the
// plot marks M = d^2.
std::string dividing_line(const Slice& slice, double least, double most) {
  const Swept& some = *slice.points.front();
  const auto inside = [&](double at) { return at >= least && at <= most; };
  double square = 0;
  std::string marks;
  if (slice.over == "M") {
    square = static_cast<double>(dividing_point(shape_of(some)).value());
    const double step = most / least > 2048 ? 16 : 4;
    constexpr double kMostWords = 0x1p63;
    for (double times = 1;
         times < kMostWords && (square * times <= most || square / times >= least); times *= step) {
      const std::string factor = grouped(static_cast<Index>(times));
      if (inside(square * times)) {
        marks += mark_above(square * times, times == 1 ? "d^2" : factor + " d^2");
      }
      if (times > 1 && inside(square / times)) {
        marks += mark_above(square / times, "d^2/" + factor);
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

// The measured limit is for one thread.
bool on_roofline(const Swept* swept) {
  return swept->speed && swept->total.counts.operations.flops > 0 && is_one(*swept, "threads");
}

}  // namespace

const Family& kernel_family() {
  static constexpr Family kKernels{
      .axes = [](const Points&) { return std::vector<std::string>(kAxes.begin(), kAxes.end()); },
      .goes_with =
          [](const Points& points, std::string_view name, std::string_view other) {
            return name == "m" && other == "n" && std::ranges::all_of(points, has_as_many_keys);
          },
      .is_usual = is_usual,
      .said = text_of,
      .axis = x_label,
      .in_legend = short_name,
      .marks = dividing_line};
  return kKernels;
}

Points backward_of(const Points& points) {
  Points backward;
  std::ranges::copy_if(points, std::back_inserter(backward), [](const Swept* swept) {
    return swept->point.subject.starts_with("backward/") && is_one(*swept, "threads") &&
           is_one(*swept, "heads") &&
           // Bounds need the problem again: files may have moved, and entries differ from point to
           // point.
           !has_files(swept->point.arguments) && !has_sparse_operands(swept->point);
  });
  if (!std::ranges::all_of(backward, shares)) {
    std::erase_if(backward, shares);
  }
  return backward;
}

Picture figure1_picture(const Slice& slice) {
  Slice backward = slice;
  backward.points = backward_of(slice.points);
  const Curves curves = curves_of(backward);
  if (curves.most == 0) {
    throw InputError(fmt::format(
        "{}no backward kernel of one thread and one head fits with two sizes of {} or more",
        to_string(slice.common).empty() ? "" : to_string(slice.common) + ": ", slice.over));
  }
  Picture picture{.title = "Words of backward passes: " + text_of(slice.common),
                  .x_label = x_label(slice),
                  .y_label = "words moved, read and written",
                  .data = curves.data};
  const std::string dividing = dividing_line(backward, curves.least, curves.most);
  picture.words_above = !dividing.empty();
  picture.commands = two_plots(curves, dividing);
  return picture;
}

Picture roofline_picture(const Points& points) {
  std::map<std::string, std::string> lines;
  struct Roof {
    std::vector<double> peaks, reads;
  };
  // By processor. One empty name if all points have the same processor.
  std::map<std::string, Roof> roofs;
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
  // Numbers the roofs, because the legend has no room for names of processors.
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
  Picture picture{
      .title = std::move(title), .x_label = "words moved for each flop", .y_label = "GF/s"};
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
  std::erase_if(all, [](const Swept* swept) {
    return !has_size(*swept, "m") || !std::ranges::all_of(kAxes, [&](const std::string_view axis) {
      return has_size(*swept, axis);
    });
  });
  const auto others = std::stable_partition(all.begin(), all.end(), has_as_many_keys);
  std::vector<Slice> best = best_slices({all.begin(), others}, kernel_family());
  std::ranges::move(best_slices({others, all.end()}, kernel_family()), std::back_inserter(best));
  std::vector<Picture> figures;
  for (const Slice& slice : best) {
    Slice backward = slice;
    backward.points = backward_of(slice.points);
    if (subjects_of(backward.points).size() >= 2 && sizes_of(backward) >= 2) {
      figures.push_back(figure1_picture(backward));
    }
  }
  if (std::ranges::any_of(all, on_roofline)) {
    figures.push_back(roofline_picture(all));
  }
  std::ranges::move(level_figures(all, kernel_family(), phases), std::back_inserter(figures));
  std::ranges::move(phase_figures(best, phases), std::back_inserter(figures));
  return figures;
}

}  // namespace redblue
