#include "runtime/trace/occupancy_picture.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "runtime/text/table.hpp"

namespace redblue {
namespace {

// The space above M for the names of phases, as a share of M.
constexpr double kHeadroom = 0.1;
// M is drawn if it is at most this multiple of the peak. With a higher M the areas would be too
// flat.
constexpr Index kFarAbove = 5;
// A share of the x axis. Phases that begin closer together share a line.
constexpr double kApart = 0.003;

// Returns the upper edge of an area: the sum of the first `names` names, at each change.
std::string edge(const Occupancy& occupancy, std::size_t names) {
  std::string lines;
  std::optional<Index> last;
  Index begin = 0;
  for (const Occupancy::Column& column : occupancy.columns()) {
    const auto first = column.words.begin();
    const auto there = static_cast<std::ptrdiff_t>(std::min(names, column.words.size()));
    const Index sum = std::accumulate(first, first + there, Index{0});
    if (sum != last) {
      lines += fmt::format("{} {}\n", begin, sum);
      last = sum;
    }
    begin += occupancy.width();
  }
  return lines + fmt::format("{} {}\n", occupancy.moved(), *last);  // the end of the last column
}

class PhaseMarks {
 public:
  explicit PhaseMarks(const Occupancy& occupancy) : all_(static_cast<double>(occupancy.moved())) {
    const std::vector<Occupancy::Span>& spans = occupancy.spans();
    for (auto first = spans.begin(); first != spans.end();) {
      const std::string outer = outermost(*first);
      const auto last = std::find_if(first, spans.end(), [&](const Occupancy::Span& span) {
        return outermost(span) != outer;
      });
      separate(first->begin, 0);
      // If no phase has room for its name, all of them share the name of the outer phase.
      if (std::none_of(first, last, [&](const Occupancy::Span& span) { return fits(span); })) {
        name({outer, first->begin, (last - 1)->end});
      } else {
        for (auto span = first; span != last; ++span) {
          separate(span->begin, 1 / (1 + kHeadroom));
          name(*span);
        }
      }
      first = last;
    }
  }
  [[nodiscard]] const std::string& commands() const { return commands_; }

 private:
  static std::string outermost(const Occupancy::Span& span) {
    return span.path.substr(0, span.path.find('/'));
  }
  // Draws a line from a share of the height to the top, unless the last line is near.
  void separate(Index begin, double from) {
    const double at = static_cast<double>(begin) / all_;
    if (at - last_ > kApart) {
      commands_ += fmt::format(
          "set arrow from {0}, graph {1:.3f} to {0}, graph 1 nohead front linecolor rgb '#555555' "
          "linewidth 1 dashtype 3\n",
          begin, from);
      last_ = at;
    }
  }
  [[nodiscard]] bool fits(const Occupancy::Span& span) const {
    const double share = static_cast<double>(span.end - span.begin) / all_;
    return span.path.size() < label_room(share);
  }
  void name(const Occupancy::Span& span) {
    if (fits(span)) {
      commands_ += fmt::format("set label {} at {}, graph {:.3f} center front font ',{}'\n",
                               gnuplot_text(span.path), (span.begin + span.end) / 2,
                               1 - kHeadroom / 2, kSmallFont);
    }
  }

  double all_;
  double last_ = 0;  // the place of the last line
  std::string commands_;
};

}  // namespace

Picture occupancy_picture(const Occupancy& occupancy, const FollowedRun& run) {
  Picture picture{
      .title = fmt::format("Fast memory of {}: {}, at most {} of M = {} words", run.kernel,
                           sizes_text(run), grouped(occupancy.peak()), grouped(run.M)),
      .x_label = "words moved, read and written",
      .y_label = "words in fast memory, by tile"};
  const bool far_above = run.M / kFarAbove > occupancy.peak();
  const Index top = far_above ? occupancy.peak() : run.M;
  const std::string M_line =
      fmt::format("{} with lines linecolor black linewidth 3 dashtype (14,4)", run.M);
  picture.commands =
      fmt::format("set xrange [0:{}]\nset yrange [0:{}]\n", occupancy.moved(),
                  static_cast<double>(top) * (1 + kHeadroom)) +
      gnuplot_tics('x', occupancy.moved()) + gnuplot_tics('y', top) +
      PhaseMarks(occupancy).commands() +
      fmt::format("plot {} title {}", M_line,
                  gnuplot_text(far_above ? "M is far above" : "M = " + grouped(run.M)));
  // Areas are drawn from the top of the stack down, each in front of the one before. White fills
  // the gaps of the hatching.
  for (std::size_t names = occupancy.names().size(); names > 0; --names) {
    const std::string block = fmt::format("$edge{}", names);
    picture.data.emplace_back(block, edge(occupancy, names));
    picture.commands += fmt::format(
        ", {0} with fillsteps {1} notitle, {0} with fillsteps {2} title {3}", block, kGnuplotWhite,
        gnuplot_fill(names - 1), gnuplot_text(occupancy.names()[names - 1]));
  }
  picture.commands += fmt::format(", {} notitle\n", M_line);  // once more, in front of all
  return picture;
}

}  // namespace redblue
