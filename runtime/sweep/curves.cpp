#include "runtime/sweep/curves.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace redblue {

Points fitting(const Slice& slice) {
  Points points;
  std::ranges::copy_if(slice.points, std::back_inserter(points), &Swept::fits);
  std::ranges::stable_sort(points, {}, [&](const Swept* swept) { return swept->size(slice.over); });
  return points;
}

std::size_t sizes_of(const Slice& slice) {
  std::set<Index> sizes;
  for (const Swept* swept : fitting(slice)) {
    sizes.insert(swept->size(slice.over));
  }
  return sizes.size();
}

std::string plot_of(const Curves& curves, int column, bool titles) {
  // The most marks on a curve, so that its dashes stay visible.
  constexpr std::size_t kMarks = 9;
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
                                title(curves.names[k])));
  }
  return fmt::format("plot {}\n", fmt::join(plots, ", "));
}

std::string y_range(double least, double most) {
  return fmt::format("set logscale y 10\nset yrange [{0}:{1}]\n{2}", least / 1.25, most * 1.25,
                     gnuplot_log_tics('y', least / 1.25, most * 1.25));
}

std::string x_range(double least, double most, std::size_t most_tics) {
  const double edge = std::pow(most / least, 0.015);
  return fmt::format("set logscale x 2\nset xrange [{}:{}]\n{}", least / edge, most * edge,
                     gnuplot_size_tics('x', least, most, most_tics));
}

std::string two_plots(const Curves& curves, const std::string& marks) {
  // Two plots with short numbers, with room between them for the second axis.
  constexpr double kLeft = 0.09;
  constexpr double kBetween = 0.085;
  constexpr double kPlot = (kPlotRight - kLeft - kBetween) / 2;
  return "set multiplot\n" + x_range(curves.least, curves.most, kMostTics / 2) +
         fmt::format("set lmargin at screen {}\nset rmargin at screen {}\nset key off\n", kLeft,
                     kLeft + kPlot) +
         y_range(curves.least_words, curves.most_words) + marks + plot_of(curves, 2, false) +
         // The first plot has drawn the title and the caption, which are labels.
         "unset label\nunset arrow\nset ylabel 'words over the lower bound'\n" +
         fmt::format("set lmargin at screen {}\nset rmargin at screen {}\nset key on\n",
                     kPlotRight - kPlot, kPlotRight) +
         y_range(1, curves.most_ratio) + marks + plot_of(curves, 3, true) + "unset multiplot\n";
}

}  // namespace redblue
