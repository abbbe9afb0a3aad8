#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "runtime/replay/replay_report.hpp"
#include "runtime/text/table.hpp"

namespace redblue {
namespace {

// Returns the sizes M to draw, from `least` to `most`, and the peak. Each is about 3% or at least
// one word larger than the one before.
std::vector<Index> sizes_drawn(Index least, Index most, Index peak) {
  constexpr double kStep = 1.03;
  std::vector<Index> sizes = {peak};
  for (Index M = least; M < most;
       M = std::max(M + 1, static_cast<Index>(std::lround(static_cast<double>(M) * kStep)))) {
    sizes.push_back(M);
  }
  sizes.push_back(most);
  std::ranges::sort(sizes);
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

}  // namespace

Picture replay_picture(const ReplayReport& report) {
  const Replayed& all = report.replayed;
  const TouchedRun& run = *report.kernel;
  const Index peak = run.moved.peak;
  // M runs from an eighth of the peak to the number of words, limited to between 4 and 64 peaks.
  const Index least = std::max(all.widest, peak / 8);
  const Index most = std::max(4 * peak, std::min(all.words, 64 * peak));
  const std::vector<Index> sizes = sizes_drawn(least, most, peak);

  Picture picture{.title = fmt::format("{} and caches{}: {}", run.run.kernel,
                                       report.unit == ReplayUnit::word ? "" : " of rows",
                                       sizes_text(run.run, true)),
                  .x_label = "M, words of fast memory or of the cache",
                  .y_label = "words moved, read and written",
                  .words_above = true};
  double fewest = static_cast<double>(run.moved.io.reads);
  double largest = static_cast<double>(run.moved.io.io());
  std::string plot;
  int type = 0;
  const auto draw = [&](const std::string& title, const std::function<Index(Index)>& words) {
    std::string lines;
    for (const Index M : sizes) {
      if (const Index moved = words(M); moved > 0) {
        lines += fmt::format("{} {}\n", M, moved);
        fewest = std::min(fewest, static_cast<double>(moved));
        largest = std::max(largest, static_cast<double>(moved));
      }
    }
    ++type;
    if (lines.empty()) {
      return;
    }
    const std::string name = fmt::format("$curve{}", type);
    picture.data.emplace_back(name, std::move(lines));
    plot += fmt::format("{}{} with lines linetype {} title {}", plot.empty() ? "plot " : ", ", name,
                        type, gnuplot_text(title));
  };
  draw("LRU", [&](Index M) { return all.lru_reads[all.at(M)] + all.lru_writes[all.at(M)]; });
  draw("Belady", [&](Index M) { return all.opt_reads[all.at(M)] + all.belady_writes[all.at(M)]; });
  draw("OPT, fewest reads", [&](Index M) { return all.opt_reads[all.at(M)]; });
  if (run.bound) {
    draw("lower bound", run.bound);
  }
  picture.data.emplace_back("$kernel",
                            fmt::format("{} {} {}\n", peak, run.moved.io.io(), run.moved.io.reads));
  const double low = fewest / 1.2, high = largest * 1.2;
  const auto from = static_cast<double>(least), to = static_cast<double>(most);
  picture.commands =
      fmt::format("set logscale x 2\nset logscale y\nset xrange [{}:{}]\nset yrange [{}:{}]\n",
                  from / 1.05, to * 1.05, low, high) +
      gnuplot_size_tics('x', from, to, 10) + gnuplot_log_tics('y', low, high) +
      fmt::format(
          "set arrow from {0}, graph 0 to {0}, graph 1 nohead back linecolor rgb '#555555' "
          "linewidth 1.5 dashtype (2,3)\n"
          "set label {1} at {0}, graph 1 center offset 0, char 0.5 font ',{2}'\n",
          peak, gnuplot_text("the kernel's peak, " + grouped(peak)), kSmallFont) +
      plot +
      fmt::format(
          ", $kernel using 1:2 with points pointtype 7 pointsize 1.6 linecolor black "
          "title {}, $kernel using 1:3 with points pointtype 6 pointsize 1.6 linewidth 2 "
          "linecolor black title {}\n",
          gnuplot_text("the kernel"), gnuplot_text("its reads alone"));
  return picture;
}

}  // namespace redblue
