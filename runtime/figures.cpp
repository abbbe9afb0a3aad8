#include "runtime/figures.hpp"

#include <algorithm>
#include <iterator>
#include <set>

#include <fmt/format.h>

#include "kernels/kernel.hpp"
#include "runtime/bounds.hpp"
#include "runtime/buffers.hpp"

namespace redblue {
namespace {

Shape shape_of(const Swept& swept) {
  return {swept.size("n"), swept.size("m"), swept.size("d")};
}

bool is_one(const Swept& swept, std::string_view name) {
  return !swept.point.arguments.contains(name) || swept.size(name) == 1;
}

// Whether it reads A2 and A3 as one.
bool shares(const Swept& swept) {
  const auto kernel = std::ranges::find(kernels(), swept.point.subject, &Kernel::name);
  return kernel != kernels().end() && has_one_source(*kernel);
}

// What no algorithm moves fewer words than that reads as much as one.
Index bound_of(const Swept& swept) {
  const Task task{.pass = Pass::backward,
                  .shape = shape_of(swept),
                  .M = swept.size("M"),
                  .sharing = shares(swept) ? Sharing::kv : Sharing::none};
  return largest(lower_bounds(task)).words;
}

std::vector<const Swept*> fitting(const Slice& slice) {
  std::vector<const Swept*> points;
  std::ranges::copy_if(slice.points, std::back_inserter(points), &Swept::fits);
  std::ranges::stable_sort(points, {}, [](const Swept* swept) { return swept->size("M"); });
  return points;
}

// Powers of two with K and M, as people give them to --M.
std::string power_tics(char axis, double least, double most) {
  std::string tics;
  for (Index at = 1; static_cast<double>(at) <= 2 * most; at *= 2) {
    if (static_cast<double>(at) >= least / 2) {
      const std::string text = at >= 1 << 20   ? fmt::format("{}M", at >> 20)
                               : at >= 1 << 10 ? fmt::format("{}K", at >> 10)
                                               : fmt::format("{}", at);
      tics += fmt::format("{}'{}' {}", tics.empty() ? "" : ", ", text, at);
    }
  }
  return fmt::format("set {}tics ({}) nomirror out\n", axis, tics);
}

// In a legend, which has no room for more; the title says what it is of.
std::string short_name(const std::string& subject) {
  constexpr std::string_view kBackward = "backward/";
  return subject.starts_with(kBackward) ? subject.substr(kBackward.size()) : subject;
}

// For each subject a block of lines "M words ratio".
struct Curves {
  std::vector<std::pair<std::string, std::string>> data;
  std::vector<std::string> names;
  double least_M = 0, most_M = 0, least_words = 0, most_words = 0, most_ratio = 0;
};

Curves curves_of(const Slice& slice) {
  Curves curves;
  std::map<Index, Index> bounds;
  for (const std::string& subject : subjects_of(slice)) {
    std::string lines;
    for (const Swept* swept : fitting(only(slice, subject))) {
      const Index bound = bounds.try_emplace(swept->size("M"), bound_of(*swept)).first->second;
      const auto words = static_cast<double>(swept->total.io());
      const double ratio = words / static_cast<double>(bound);
      lines += fmt::format("{} {} {}\n", swept->size("M"), swept->total.io(), ratio);
      curves.most_words = std::max(curves.most_words, words);
      curves.most_ratio = std::max(curves.most_ratio, ratio);
    }
    if (!lines.empty()) {
      curves.data.emplace_back(fmt::format("$curve{}", curves.data.size()), std::move(lines));
      curves.names.push_back(subject);
    }
  }
  std::string lines;
  for (const auto& [M, bound] : bounds) {
    lines += fmt::format("{} {} 1\n", M, bound);
  }
  if (bounds.size() >= 2) {
    curves.least_M = static_cast<double>(bounds.begin()->first);
    curves.most_M = static_cast<double>(bounds.rbegin()->first);
    curves.least_words = static_cast<double>(bounds.rbegin()->second);  // of the largest M
  }
  curves.data.emplace_back("$bound", std::move(lines));
  return curves;
}

// "plot" of that column of all curves, the bound among them.
std::string plot_of(const Curves& curves, int column, bool titles) {
  std::string plot =
      fmt::format("plot $bound using 1:{} with lines linecolor black linewidth 2 dashtype (6,4) {}",
                  column, titles ? "title 'lower bound'" : "notitle");
  for (std::size_t k = 0; k < curves.names.size(); ++k) {
    plot += fmt::format(", {} using 1:{} with linespoints linetype {} pointsize 0.6 {}",
                        curves.data[k].first, column, k + 1,
                        titles ? "title " + gnuplot_text(short_name(curves.names[k])) : "notitle");
  }
  return plot + "\n";
}

// Where it is within the picture.
std::string dividing_line(const Shape& shape, const Curves& curves) {
  const auto square = static_cast<double>(dividing_point(shape).value());
  if (square < curves.least_M || square > curves.most_M) {
    return "";
  }
  return fmt::format(
      "set arrow from {0}, graph 0 to {0}, graph 1 nohead linecolor rgb '#555555' dashtype 3\n"
      "set label {1} at {0}, graph 0.97 offset 0.5,0 font ',{2}'\n",
      square, gnuplot_text("M = d^2"), kSmallFont);
}

// A little more than these, on an axis of logarithms.
std::string y_range(double least, double most) {
  return fmt::format("set yrange [{}:{}]\n", least / 1.25, most * 1.25);
}

// Those that one bound is for: of one machine and one head; and, unless all are for A3 = A2, none
// that is.
Slice backward_of(const Slice& slice) {
  Slice backward{.arguments = slice.arguments, .points = {}};
  std::ranges::copy_if(slice.points, std::back_inserter(backward.points), [](const Swept* swept) {
    return swept->point.subject.starts_with("backward/") && is_one(*swept, "threads") &&
           is_one(*swept, "heads");
  });
  const auto one_source = [](const Swept* swept) { return shares(*swept); };
  if (!std::ranges::all_of(backward.points, one_source)) {
    std::erase_if(backward.points, one_source);
  }
  return backward;
}

// The roof is one thread's.
bool on_roofline(const Swept& swept) {
  return swept.speed && swept.total.flops > 0 && is_one(swept, "threads");
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

std::vector<Slice> slices(const Sweep& sweep, const std::map<std::string, std::string>& where) {
  std::vector<Slice> found;
  for (const Swept& swept : sweep.points) {
    const Arguments& arguments = swept.point.arguments;
    if (!std::ranges::all_of(where, [&](const auto& asked) {
          return arguments.contains(asked.first) &&
                 to_string(arguments.value(asked.first)) == asked.second;
        })) {
      continue;
    }
    Arguments common;
    for (const auto& [name, value] : arguments) {
      const bool usual = value == Value(Index{1}) && name != "n" && name != "m" && name != "d";
      if (name != "M" && !usual && value != Value("memory")) {
        common.set(name, value);
      }
    }
    const std::string text = to_string(common);
    auto slice = std::ranges::find(found, text, &Slice::arguments);
    if (slice == found.end()) {
      slice = found.insert(found.end(), {.arguments = text, .points = {}});
    }
    slice->points.push_back(&swept);
  }
  return found;
}

Slice only(const Slice& slice, std::string_view subject) {
  Slice part{.arguments = slice.arguments, .points = {}};
  std::ranges::copy_if(slice.points, std::back_inserter(part.points),
                       [&](const Swept* swept) { return swept->point.subject == subject; });
  return part;
}

std::vector<std::string> subjects_of(const Slice& slice) {
  std::vector<std::string> names;
  for (const Swept* swept : slice.points) {
    if (std::ranges::find(names, swept->point.subject) == names.end()) {
      names.push_back(swept->point.subject);
    }
  }
  return names;
}

Picture figure1_picture(const Slice& slice) {
  const Slice backward = backward_of(slice);
  const Curves curves = curves_of(backward);
  if (curves.most_M == 0) {
    throw InputError(fmt::format(
        "{}: no backward kernel of one thread and one head fits with two sizes of M or more",
        slice.arguments));
  }
  Picture picture{.title = "Words of backward: " + slice.arguments,
                  .x_label = "M, words of fast memory",
                  .y_label = "words moved, read and written",
                  .caption = {},
                  .data = curves.data,
                  .commands = {}};
  const std::string x_axis =
      fmt::format("set logscale x 2\nset xrange [{}:{}]\n", curves.least_M, curves.most_M) +
      power_tics('x', curves.least_M, curves.most_M) + "set xtics rotate by -45\n";
  picture.commands =
      "set multiplot\n" + x_axis +
      "set rmargin at screen 0.40\nset logscale y 10\nset format y '10^%T'\n"
      "set ytics nomirror out\nset mytics 10\nset key off\n" +
      y_range(curves.least_words, curves.most_words) +
      dividing_line(shape_of(*backward.points.front()), curves) + plot_of(curves, 2, false) +
      // The caption and the title are drawn once.
      "unset label\nunset title\n"
      "set lmargin at screen 0.49\nset rmargin at screen 0.78\n"
      "set ylabel 'words over the lower bound'\n"
      "set key outside right top vertical Left reverse samplen 2.5\n"
      "unset mytics\nset logscale y 2\nset format y '%g'\nset ytics 2 nomirror out\n" +
      y_range(1, curves.most_ratio) + dividing_line(shape_of(*backward.points.front()), curves) +
      plot_of(curves, 3, true) + "unset multiplot\n";
  return picture;
}

Picture phases_picture(const Slice& slice) {
  const std::vector<const Swept*> points = fitting(slice);
  const std::vector<std::string> subjects = subjects_of(slice);
  if (points.empty() || subjects.size() != 1) {
    throw InputError(fmt::format("{}: the phases of one kernel that fits are drawn, not of {}",
                                 slice.arguments, subjects.size()));
  }
  std::vector<std::string> names;
  for (const Swept* swept : points) {
    for (const SweptPhase& phase : swept->phases) {
      if (std::ranges::find(names, phase.path) == names.end()) {
        names.push_back(phase.path);
      }
    }
  }
  std::string lines;
  for (const Swept* swept : points) {
    lines += fmt::format("{}", swept->size("M"));
    for (const std::string& name : names) {
      const auto phase = std::ranges::find(swept->phases, name, &SweptPhase::path);
      lines += fmt::format(" {}", phase == swept->phases.end() ? 0 : phase->io());
    }
    lines += "\n";
  }
  const auto largest =
      *std::ranges::max_element(points, {}, [](const Swept* swept) { return swept->total.io(); });
  Picture picture{
      .title = fmt::format("Where the words of {} go: {}", subjects.front(), slice.arguments),
      .x_label = "M, words of fast memory",
      .y_label = "words moved, read and written",
      .caption = {},
      .data = {{"$words", std::move(lines)}},
      .commands = {}};
  picture.commands = fmt::format(
      "set style data histogram\nset style histogram rowstacked\nset boxwidth 0.8\n"
      "set xtics rotate by -45 nomirror out\nset yrange [0:*]\n{}",
      gnuplot_tics('y', largest->total.io()));
  std::string plot;
  for (std::size_t k = 0; k < names.size(); ++k) {
    plot += fmt::format("{} $words using {}:xtic(1) {} title {}", k == 0 ? "plot" : ",", k + 2,
                        gnuplot_fill(k), gnuplot_text(names[k]));
  }
  picture.commands += plot + "\n";
  return picture;
}

Picture roofline_picture(const std::vector<Slice>& slices) {
  std::map<std::string, std::string> lines;
  std::vector<double> peaks, reads, intensities;
  for (const Slice& slice : slices) {
    for (const Swept* swept : slice.points) {
      if (!on_roofline(*swept)) {
        continue;
      }
      const double words_a_flop =
          static_cast<double>(swept->total.io()) / static_cast<double>(swept->total.flops);
      lines[swept->point.subject] += fmt::format("{} {}\n", words_a_flop, swept->speed->gflops);
      peaks.push_back(swept->speed->peak_gflops);
      reads.push_back(swept->speed->words_per_second);
      intensities.push_back(words_a_flop);
    }
  }
  if (intensities.empty()) {
    throw InputError("nothing of one thread was timed: a suite with \"how\": \"time\" is");
  }
  const auto [least, most] = std::ranges::minmax(intensities);
  const double peak = median(peaks);
  const double read = 1e-9 * median(reads);
  Picture picture{.title = "How fast, against the words that a flop takes",
                  .x_label = "words moved, a flop",
                  .y_label = "GF/s",
                  .caption = {},
                  .data = {},
                  .commands = {}};
  picture.commands = fmt::format(
      "set logscale xy 10\nset xrange [{}:{}]\nset yrange [*:{}]\nset tics nomirror out\n"
      "set format x '%g'\nset format y '%g'\nset samples 500\n"
      "plot {} with lines linecolor black linewidth 2 title {}, "
      "{} / x with lines linecolor black linewidth 2 dashtype (6,4) title {}",
      least / 2, most * 2, peak * 2, peak, gnuplot_text(fmt::format("{:.0f} GF/s (FMA)", peak)),
      read, gnuplot_text(fmt::format("{:.2g} Gwords/s read", read)));
  std::size_t k = 0;
  for (auto& [subject, points] : lines) {
    const std::string block = fmt::format("$points{}", k++);
    picture.data.emplace_back(block, std::move(points));
    picture.commands += fmt::format(", {} with points linetype {} pointsize 1 title {}", block, k,
                                    gnuplot_text(short_name(subject)));
  }
  picture.commands += "\n";
  return picture;
}

std::vector<Picture> figures_of(const Sweep& sweep, std::size_t phases) {
  const std::vector<Slice> all = slices(sweep);
  std::vector<Picture> figures;
  const auto sizes_of_M = [](const Slice& slice) {
    std::set<Index> sizes;
    for (const Swept* swept : fitting(slice)) {
      sizes.insert(swept->size("M"));
    }
    return sizes.size();
  };
  for (const Slice& slice : all) {
    const Slice backward = backward_of(slice);
    if (subjects_of(backward).size() >= 2 && sizes_of_M(backward) >= 2) {
      figures.push_back(figure1_picture(slice));
    }
  }
  if (std::ranges::any_of(sweep.points, on_roofline)) {
    figures.push_back(roofline_picture(all));
  }
  for (const Slice& slice : all) {
    for (const std::string& subject : subjects_of(slice)) {
      const Slice part = only(slice, subject);
      if (phases > 0 && sizes_of_M(part) >= 2) {
        figures.push_back(phases_picture(part));
        --phases;
      }
    }
  }
  return figures;
}

}  // namespace redblue
