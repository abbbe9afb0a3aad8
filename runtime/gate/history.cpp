#include "runtime/gate/history.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "runtime/gate/arguments_json.hpp"
#include "runtime/gate/comparison.hpp"
#include "runtime/gate/metrics.hpp"
#include "runtime/text/printable.hpp"
#include "runtime/text/table.hpp"

namespace redblue {
namespace {

constexpr int kHistorySchema = 1;
constexpr std::size_t kMostNamed = 12;  // most lines with names in a picture
constexpr std::size_t kMostLetters = 60;
// The right end of a plot that leaves room for names of points, and the most letters of such a
// name.
constexpr double kNarrowRight = 0.66;
constexpr std::size_t kMostOfName = 44;

// Returns reasons such as "keys come once; and once more".
std::string reasons_of(const History::Value& value) {
  std::string text;
  for (const Accepted& accepted : value.accepted) {
    text += (text.empty() ? "" : "; ") + accepted.reason;
  }
  return text;
}

std::string shown(const History::Value& value) {
  return value.number   ? grouped(*value.number)
         : !value.there ? "no such point"
         : !value.fits  ? "does not fit"
                        : "none";
}

bool differs(const History::Value& a, const History::Value& b) {
  return a.there != b.there || a.fits != b.fits || a.number != b.number;
}

std::string change_text(const History::Value& before, const History::Value& now) {
  if (!before.number || !now.number || *before.number == *now.number) {
    return "";
  }
  const Index change = *now.number - *before.number;
  return fmt::format("{}{}{}", change > 0 ? "+" : "", grouped(change),
                     *before.number == 0 ? "" : ", " + to_share(*before.number, *now.number));
}

// Returns the note about a commit, next to the numbers.
std::string note_of(const Commit& commit, const History::Value& value) {
  const std::string reasons = reasons_of(value);
  return shortened(commit.author + ": " + commit.subject, kMostLetters) +
         (reasons.empty() ? "" : "  accepted: " + shortened(reasons, kMostLetters));
}

// Returns the largest relative distance of a line from its first number.
double largest_change(const History::Line& line) {
  double first = 0, most = 0;
  for (const History::Value& value : line.values) {
    if (value.number) {
      first = first == 0 ? static_cast<double>(*value.number) : first;
      most =
          std::max(most, first == 0 ? 0 : std::abs(static_cast<double>(*value.number) / first - 1));
    }
  }
  return most;
}

// Labels the axis with the hashes of a few commits.
std::string commit_tics(const std::vector<Commit>& commits) {
  constexpr std::size_t kAtMost = 9;
  const std::size_t stride = 1 + (commits.size() - 1) / kAtMost;
  std::string tics;
  for (std::size_t k = 0; k < commits.size(); ++k) {
    const bool named = k % stride == 0;
    tics += fmt::format("{}{} {}{}", tics.empty() ? "" : ", ",
                        named ? gnuplot_text(commits[k].short_hash) : "''", k, named ? "" : " 1");
  }
  return fmt::format("set xtics ({}) nomirror out\n", tics);
}

// Returns dates such as "2026-11-22 to 2026-11-24".
std::string dates_of(const std::vector<Commit>& commits) {
  const std::string &first = commits.front().date, &last = commits.back().date;
  return first == last ? first : first + " to " + last;
}

// Writes each reason vertically at its commit.
std::string reason_labels(const History& history) {
  constexpr std::size_t kLetters = 44;  // as many as fit in the height of a plot
  std::string commands;
  for (std::size_t k = 0; k < history.commits.size(); ++k) {
    std::set<std::string> reasons;
    for (const History::Line& line : history.lines) {
      for (const Accepted& accepted : line.values[k].accepted) {
        reasons.insert(accepted.reason);
      }
    }
    if (reasons.empty()) {
      continue;
    }
    const std::string text =
        *reasons.begin() + (reasons.size() == 1 ? "" : fmt::format(" (+{})", reasons.size() - 1));
    commands += fmt::format(
        "set arrow from {0}, graph 0 to {0}, graph 1 nohead back dashtype 3 linecolor rgb "
        "'#999999'\nset label {1} at {0}, graph 0.98 right rotate by 90 offset character -0.6, 0 "
        "font ',{2}' textcolor rgb '#555555'\n",
        k, gnuplot_plain(shortened(text, kLetters)), kSmallFont);
  }
  return commands;
}

}  // namespace

bool History::Line::changes() const {
  return std::ranges::adjacent_find(values, differs) != values.end() ||
         std::ranges::any_of(values, [](const Value& value) { return !value.accepted.empty(); });
}

MetricAsked parse_metric(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  MetricAsked asked{.phase = colon == std::string::npos ? "" : text.substr(0, colon),
                    .metric = colon == std::string::npos ? text : text.substr(colon + 1)};
  const bool least = asked.metric == kLeastM;
  if (colon == 0 || (least && !asked.phase.empty()) ||
      (!least && asked.metric != kWords && find_metric(asked.metric) == nullptr)) {
    throw std::invalid_argument(
        fmt::format("'{}': expected [PHASE:]METRIC, METRIC words, reads, writes, index_reads, "
                    "index_writes or peak; or least_M",
                    shortened(text)));
  }
  return asked;
}

History history_of(const std::string& file, const MetricAsked& asked,
                   const std::vector<Version>& versions, const std::vector<RecordedPoint>& before) {
  History history{.file = file,
                  .metric = asked.phase.empty() ? asked.metric : asked.phase + ":" + asked.metric};
  std::map<PointKey, std::size_t> lines;
  std::map<PointKey, std::vector<Accepted>> accepted_before;
  for (const RecordedPoint& recorded : before) {
    accepted_before[key_of(recorded.point)] = recorded.accepted;
  }
  for (std::size_t k = 0; k < versions.size(); ++k) {
    history.commits.push_back(versions[k].commit);
    for (const RecordedPoint& recorded : versions[k].points) {
      const PointKey key = key_of(recorded.point);
      const auto [line, is_new] = lines.emplace(key, history.lines.size());
      if (is_new) {
        history.lines.push_back(
            {.point = recorded.point, .values = std::vector<History::Value>(versions.size())});
      }
      History::Value& value = history.lines[line->second].values[k];
      value = {.there = true,
               .fits = recorded.fits,
               .number = number_of(recorded, asked.phase, asked.metric)};
      std::vector<Accepted>& known = accepted_before[key];
      for (const Accepted& accepted : recorded.accepted) {
        if (std::ranges::find(known, accepted) == known.end()) {
          value.accepted.push_back(accepted);
        }
      }
      known = recorded.accepted;
    }
  }
  return history;
}

namespace {

// Writes a row for each commit at which a point changes, and the number of points that never
// change.
std::string changes_text(const History& history) {
  Table table;
  table.add({"point", "commit", "date", history.metric, "change"});
  bool any = false;
  Index constant = 0;
  for (const History::Line& line : history.lines) {
    if (!line.changes() && history.lines.size() > 1) {
      ++constant;
      continue;
    }
    std::string name = to_string(line.point);
    for (std::size_t k = 0; k < line.values.size(); ++k) {
      const History::Value& value = line.values[k];
      if (k == 0 ? value.there : differs(value, line.values[k - 1]) || !value.accepted.empty()) {
        const Commit& commit = history.commits[k];
        table.add({std::exchange(name, ""), commit.short_hash, commit.date, shown(value),
                   k == 0 ? "" : change_text(line.values[k - 1], value)},
                  note_of(commit, value));
        any = true;
      }
    }
  }
  return (any ? "\n" + table.text() : "") +
         (constant != 0 ? fmt::format("\n{} did not change\n", counted(constant, "point")) : "");
}

Json accepted_json(const Accepted& accepted, const Commit& commit) {
  return {{"commit", commit.hash},     {"date", accepted.date},     {"who", accepted.who},
          {"reason", accepted.reason}, {"before", accepted.before}, {"after", accepted.after}};
}

// Describes one point at each commit.
Description describe(const History& history, const History::Line& line) {
  Json values = Json::array(), accepted = Json::array();
  std::vector<Cells> rows;
  for (std::size_t k = 0; k < line.values.size(); ++k) {
    const History::Value& value = line.values[k];
    const Commit& commit = history.commits[k];
    values.push_back(value.number   ? Json(*value.number)
                     : !value.there ? Json()
                                    : Json(value.fits ? "none" : "does not fit"));
    for (const Accepted& each : value.accepted) {
      accepted.push_back(accepted_json(each, commit));
    }
    rows.push_back({{in_csv("kernel"), line.point.subject},
                    {in_csv("arguments"), to_string(line.point.arguments)},
                    {in_csv("commit"), commit.hash},
                    {in_csv("date"), commit.date},
                    {in_csv("author"), commit.author},
                    {in_csv("subject"), commit.subject},
                    {in_csv("metric"), history.metric},
                    {in_csv("value"), value.number},
                    {in_csv("accepted"), reasons_of(value)}});
  }
  Description of;
  of.facts({{in_json("kernel"), line.point.subject},
            {in_json("arguments"), arguments_json(line.point.arguments)},
            {in_json("values"), std::move(values)},
            {in_json("accepted"), std::move(accepted)}});
  of.table("", std::move(rows));
  return of;
}

// Returns the axes for values from `least` to `most`, at this number of commits.
std::string history_axes(std::size_t commits, double least, double most, bool one) {
  const double room = std::max(1.0, 0.08 * (most - least));
  std::string commands = fmt::format("set xrange [{}:{}]\nset yrange [{}:{}]\n", -0.3,
                                     static_cast<double>(commits) - 0.7, least - room, most + room);
  commands += one ? gnuplot_tics('y', static_cast<Index>(most + room),
                                 static_cast<Index>(std::max(0.0, least - room)))
                  : fmt::format(
                        "set ytics nomirror out format '%+g%%'\nset rmargin at screen {}\nset key "
                        "at screen {}, graph 1 left top font ',{}'\n",
                        kNarrowRight, kNarrowRight + 0.005, kSmallFont);
  return commands;
}

}  // namespace

Description describe(const History& history) {
  Description of;
  of.facts({{in_json("schema"), kHistorySchema},
            {in_json("file"), history.file},
            {in_json("metric"), history.metric},
            {in_json("shallow"), history.shallow},
            {in_json("points"), Json::array()}});
  of.say("{}: {} of {} in {}{}", history.file, history.metric,
         counted(std::ssize(history.lines), "point"),
         counted(std::ssize(history.commits), "commit"),
         history.shallow ? ", of a shallow clone" : "");
  of.text(changes_text(history));
  of.table("commits", rows_of(history.commits, [](const Commit& commit) -> Cells {
             return {{in_json("commit"), commit.hash},
                     {in_json("short"), commit.short_hash},
                     {in_json("date"), commit.date},
                     {in_json("author"), commit.author},
                     {in_json("subject"), commit.subject}};
           }));
  for (const History::Line& line : history.lines) {
    of.element("points", describe(history, line));
  }
  return of;
}

Picture history_picture(const History& history) {
  const bool one = history.lines.size() == 1;
  Picture picture{
      .title = one ? fmt::format("{} of {}", history.metric, to_string(history.lines.front().point))
                   : fmt::format("{} of the points of {}", history.metric, history.file),
      .x_label = fmt::format("commits of {}, {}", history.file, dates_of(history.commits)),
      .y_label =
          one ? history.metric : history.metric + ", change since the first commit in percent"};
  std::vector<const History::Line*> lines;
  for (const History::Line& line : history.lines) {
    lines.push_back(&line);
  }
  std::ranges::stable_sort(lines, std::greater<>(),
                           [](const History::Line* line) { return largest_change(*line); });
  double least = std::numeric_limits<double>::infinity(), most = -least;
  std::string plot, marks, constant;
  const auto draw = [&](std::string points, const std::string& style, const std::string& title) {
    const std::string block = fmt::format("$lines{}", picture.data.size());
    picture.data.emplace_back(block, std::move(points));
    plot += fmt::format("{}{} using 1:2 with {} {}", plot.empty() ? "plot " : ", ", block, style,
                        title.empty() ? "notitle" : "title " + gnuplot_text(title));
  };
  std::vector<std::pair<std::string, std::string>> named;  // points and names
  std::string others;
  std::size_t other = 0, unchanged = 0;
  for (const History::Line* line : lines) {
    std::optional<double> first;
    std::string points;
    for (std::size_t k = 0; k < line->values.size(); ++k) {
      const History::Value& value = line->values[k];
      if (!value.number) {
        points += "\n";  // the line ends here
        continue;
      }
      const auto number = static_cast<double>(*value.number);
      first = first.value_or(number);
      const double at = one ? number : *first == 0 ? 0 : 100 * (number / *first - 1);
      least = std::min(least, at);
      most = std::max(most, at);
      points += fmt::format("{} {}\n", k, at);
      if (!value.accepted.empty()) {
        marks += fmt::format("{} {}\n", k, at);
      }
    }
    if (!first) {
      continue;
    }
    if (!one && largest_change(*line) == 0) {
      ++unchanged;
      constant += points + "\n\n";
    } else if (named.size() < kMostNamed) {
      named.emplace_back(points, to_string(line->point));
    } else {
      ++other;
      others += points + "\n\n";
    }
  }
  if (unchanged != 0) {
    draw(constant, "lines dashtype 1 linecolor rgb '#dddddd' linewidth 1.5",
         fmt::format("{} unchanged", unchanged));
  }
  if (other != 0) {
    draw(others, "lines dashtype 1 linecolor rgb '#b0b0b0' linewidth 1",
         fmt::format("{} others", other));
  }
  for (std::size_t k = 0; k < named.size(); ++k) {
    draw(named[k].first, fmt::format("linespoints linetype {} pointsize 0.6", k + 1),
         one ? "" : shortened(named[k].second, kMostOfName));
  }
  if (!marks.empty()) {
    draw(marks, "points pointtype 6 pointsize 1.6 linewidth 1.5 linecolor rgb 'black'", "accepted");
  }
  picture.commands = history_axes(history.commits.size(), least, most, one);
  picture.commands += commit_tics(history.commits) + reason_labels(history) + plot + "\n";
  return picture;
}

}  // namespace redblue
