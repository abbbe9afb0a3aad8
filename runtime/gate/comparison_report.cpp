#include "runtime/gate/comparison_report.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "runtime/gate/arguments_json.hpp"
#include "runtime/gate/metrics.hpp"
#include "runtime/text/cells.hpp"
#include "runtime/text/html.hpp"
#include "runtime/text/printable.hpp"
#include "runtime/text/shell_word.hpp"
#include "runtime/text/table.hpp"

namespace redblue {
namespace {

using Kind = Difference::Kind;

constexpr int kComparisonSchema = 1;
constexpr std::size_t kMostLines = 60;  // lines of a table; the other forms have all differences

constexpr std::string_view kKinds[] = {
    "words",       "phase_gone",  "phase_new",   "no_longer_fits", "fits_now", "least_M_unknown",
    "other_input", "over_budget", "budget_gone", "budget_raised",  "gone",     "failed",
    "added"};

std::string_view name_of(Kind kind) {
  return kKinds[static_cast<std::size_t>(kind)];
}

// Returns reads plus writes. In a damaged file the sum may exceed 63 bits.
std::uint64_t words_of(const IoCount& io) {
  return static_cast<std::uint64_t>(io.reads) + static_cast<std::uint64_t>(io.writes);
}

// Calls `line` for each difference, with its point.
template <class Line>
void each_difference(const GateComparison& comparison, const Line& line) {
  for (const Compared& compared : comparison.points) {
    for (const Difference& difference : compared.differences) {
      line(compared, difference);
    }
  }
}

// Returns why a difference is not a failure. Empty if it is one.
std::string passed_by(const Compared& compared, const Difference& difference) {
  return compared.accepted              ? "accepted: " + compared.accepted->reason
         : difference.hidden_by.empty() ? ""
                                        : "hidden by " + difference.hidden_by;
}

// Returns the reasons of changes that only the newer recording has accepted, as the user gave them.
std::string reasons_since(const Compared& compared) {
  std::string reasons;
  for (const Accepted& taken : compared.now ? compared.now->accepted : std::vector<Accepted>()) {
    const bool known = compared.before && std::ranges::find(compared.before->accepted, taken) !=
                                              compared.before->accepted.end();
    if (!known) {
      reasons += fmt::format("{}accepted on {} by {}: {}", reasons.empty() ? "" : "; ", taken.date,
                             taken.who, taken.reason);
    }
  }
  return reasons;
}

// Returns why a difference passes or was accepted.
std::string remark_on(const Compared& compared, const Difference& difference) {
  const std::string passed = passed_by(compared, difference);
  return passed.empty() ? reasons_since(compared) : passed;
}

// Returns the note next to the numbers, which is usually empty.
std::string note_of(const Compared& compared, const Difference& difference) {
  constexpr std::size_t kMost = 400;  // keeps lines readable; forms for programs have all of it
  const std::string remark = remark_on(compared, difference);
  const std::string between = remark.empty() || difference.why.empty() ? "" : "; ";
  return shortened(difference.why + between + remark, kMost);
}

// Returns the cells that follow the point: phase, metric, before, now, change, share.
std::vector<std::string> difference_cells(const Difference& difference) {
  const Index change = difference.after - difference.before;
  const std::string share =
      difference.before == 0 ? "new" : to_share(difference.before, difference.after);
  const std::string moved = fmt::format("{}{}", change > 0 ? "+" : "", grouped(change));
  switch (difference.kind) {
    case Kind::words:
      return {place_of(difference),
              difference.metric,
              grouped(difference.before),
              grouped(difference.after),
              moved,
              share};
    case Kind::phase_gone:
      return {place_of(difference), "words", grouped(difference.before),
              "no such phase",      moved,   "gone"};
    case Kind::phase_new:
      return {place_of(difference),      "words", "no such phase",
              grouped(difference.after), moved,   "new"};
    case Kind::no_longer_fits:
      return {"total", "fits", "yes", "no", "-", "-"};
    case Kind::fits_now:
      return {"total", "fits", "no", "yes", "-", "-"};
    case Kind::least_M_unknown: {
      const auto known = [](Index M) { return M == 0 ? "unknown" : grouped(M); };
      return {"total", "least_M", known(difference.before), known(difference.after), "-", "-"};
    }
    case Kind::other_input:
      return {"total", difference.metric, "as recorded", "another", "-", "-"};
    case Kind::over_budget:
      if (difference.after <= difference.before) {  // the number does not exist
        return {place_of(difference), difference.metric, "a budget", "-", "-", "-"};
      }
      return {place_of(difference),
              difference.metric,
              "at most " + grouped(difference.before),
              grouped(difference.after),
              moved,
              share};
    case Kind::budget_gone:
      return {place_of(difference), difference.metric, "a budget", "gone", "-", "-"};
    case Kind::budget_raised:
      return {place_of(difference), difference.metric, "a budget", "raised", "-", "-"};
    case Kind::gone:
      return {"total", "point", "there", "gone", "-", "-"};
    case Kind::failed:
      return {"total", "point", "ran", "failed", "-", "-"};
    case Kind::added:
      break;
  }
  return {"total", "point", "-", "new", "-", "-"};
}

std::string with_passed(const Compared& compared, const Difference& difference) {
  const std::string remark = remark_on(compared, difference);
  return printable(to_words(difference) + (remark.empty() ? "" : ", " + remark));
}

// Returns the points that differ, largest change first.
std::vector<const Compared*> changed_points(const GateComparison& comparison) {
  std::vector<const Compared*> changed;
  for (const Compared& compared : comparison.points) {
    if (!compared.differences.empty()) {
      changed.push_back(&compared);
    }
  }
  return changed;
}

// Returns cells for the total words of a point: before, now, change, share.
std::vector<std::string> total_cells(const Compared& compared) {
  const auto words = [](const std::optional<RecordedPoint>& recorded) {
    return recorded ? number_of(*recorded, "", kWords) : std::nullopt;
  };
  const auto cell = [&](const std::optional<RecordedPoint>& recorded) {
    return !recorded ? "-" : recorded->fits ? grouped(*words(recorded)) : "does not fit in M";
  };
  std::vector<std::string> cells = {cell(compared.before), cell(compared.now), "-", "-"};
  const std::optional<Index> before = words(compared.before);
  const std::optional<Index> now = words(compared.now);
  if (before && now) {
    cells[2] = fmt::format("{}{}", *now > *before ? "+" : "", grouped(*now - *before));
    cells[3] = *before == 0 ? "new" : to_share(*before, *now);
  }
  return cells;
}

// Returns "5,000 -> 5,001 words in total (+1, +0.02%)". Empty if one recording has no words.
std::string total_line(const Compared& compared) {
  const std::vector<std::string> cells = total_cells(compared);
  return cells[2] == "-" ? ""
                         : fmt::format("{} -> {} words in total ({}, {})", cells[0], cells[1],
                                       cells[2], cells[3]);
}

// Returns the text about a point: the total, then a line for each difference.
std::string told_of(const Compared& compared) {
  std::string words = total_line(compared);
  for (const Difference& difference : compared.differences) {
    words += (words.empty() ? "" : "\n") + with_passed(compared, difference);
  }
  return words;
}

struct Told {
  const Compared* point;
  const Difference* difference;
};

// Returns all differences in order. First come differences without a size, such as a failed point.
// Then come phases and then totals, largest change first. Differences that are not failures are
// last.
std::vector<Told> by_size(const GateComparison& comparison) {
  std::vector<Told> all;
  each_difference(comparison, [&](const Compared& compared, const Difference& difference) {
    all.push_back({&compared, &difference});
  });
  const auto key = [](const Told& told) {
    const auto& [kind, level, phase, metric, before, after, why, hidden_by] = *told.difference;
    const bool sized = kind == Kind::words || kind == Kind::phase_gone || kind == Kind::phase_new;
    const int rank = told.point->accepted || !hidden_by.empty() ? 3
                     : !sized                                   ? 0
                     : phase.empty()                            ? 2
                                                                : 1;
    return std::pair(rank, sized ? -std::abs(after - before) : 0);
  };
  std::ranges::stable_sort(all, {}, key);
  return all;
}

// Returns the command that accepts the failing points into the baseline. Empty if no point may be
// accepted. `between` separates its options.
std::string accept_command(const GateComparison& comparison,
                           const std::vector<const Compared*>& points,
                           std::string_view between = " \\\n  ") {
  std::string accepts;
  for (const Compared* point : points) {
    const std::string name = to_string(point->point);
    if (point->fails() && point->now && over_budget(*point->now).empty() &&
        printable(name) == name) {
      accepts += fmt::format("{}--accept {}", between, shell_word(name));
    }
  }
  return comparison.accept_with.empty() || accepts.empty()
             ? ""
             : fmt::format("{}{}{}--reason 'WHY'", comparison.accept_with, accepts, between);
}

std::string text_table(const GateComparison& comparison) {
  std::string text = fmt::format("{}\nagainst {}: {}\n", printable(comparison.now),
                                 printable(comparison.before), verdict(comparison));
  const std::vector<const Compared*> points = changed_points(comparison);
  if (points.empty()) {
    return text;
  }
  Table totals;
  totals.add({"total words", "baseline", "now", "change", "share"});
  for (std::size_t k = 0; k < std::min(points.size(), kMostLines); ++k) {
    std::vector<std::string> cells = total_cells(*points[k]);
    cells.insert(cells.begin(), to_string(points[k]->point));
    totals.add(std::move(cells));
  }
  text += "\n" + totals.text();
  if (points.size() > kMostLines) {
    text += fmt::format("and {} more\n", points.size() - kMostLines);
  }

  Table table;
  table.add({"point", "phase", "metric", "baseline", "now", "change", "share"});
  const std::vector<Told> all = by_size(comparison);
  for (std::size_t k = 0; k < std::min(all.size(), kMostLines); ++k) {
    const auto& [point, difference] = all[k];
    std::vector<std::string> cells = difference_cells(*difference);
    const bool again = k > 0 && point == all[k - 1].point;
    cells.insert(cells.begin(), again ? "" : to_string(point->point));
    table.add(std::move(cells), note_of(*point, *difference));
  }
  text += "\n" + table.text();
  if (all.size() > kMostLines) {
    text += fmt::format("and {} more (--format json has all)\n", all.size() - kMostLines);
  }
  const std::string command = accept_command(comparison, points);
  return text + (command.empty() ? "" : "\nto accept: " + command + "\n");
}

// Returns the cells of a difference for programs.
Cells difference_cells(const Compared& compared, const Difference& difference) {
  const auto& [kind, level, phase, metric, before, after, why, hidden_by] = difference;
  const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  Cells cells = {{in_json_and_csv("kernel"), compared.point.subject},
                 {in_json("arguments"), arguments_json(compared.point.arguments)},
                 {in_csv("arguments"), to_string(compared.point.arguments)},
                 {in_json_and_csv("kind"), name_of(kind)},
                 {in_json_and_csv("phase"), or_null(phase)}};
  if (level != 0) {
    cells.push_back({in_json("level"), static_cast<Index>(level)});
  }
  const bool words = kind == Kind::words || kind == Kind::over_budget;
  const bool of_metric = words || kind == Kind::budget_gone || kind == Kind::budget_raised;
  if (compared.accepted) {
    cells.push_back({in_json("accepted"), compared.accepted->reason});
  }
  return joined(std::move(cells), {{{"", of_metric ? "metric" : "", "metric"}, metric},
                                   {{"", words ? "before" : "", "before"}, before},
                                   {{"", words ? "after" : "", "after"}, after},
                                   {in_json_and_csv("hidden_by"), or_null(hidden_by)},
                                   {in_csv("why"), why},
                                   {in_json("text"), to_words(difference)}});
}

std::string json_text(const GateComparison& comparison) {
  Json found = Json::array();
  each_difference(comparison, [&](const Compared& compared, const Difference& difference) {
    found.push_back(json_of(difference_cells(compared, difference)));
  });
  Json json = {{"schema", kComparisonSchema},
               {"before", comparison.before},
               {"now", comparison.now},
               {"how", to_string(comparison.how)}};
  if (!comparison.part.is_whole()) {
    json["part"] = to_string(comparison.part);
  }
  json.update({{"points", comparison.points.size()}, {"different", comparison.failing()}});
  if (const std::size_t accepted = comparison.accepted(); accepted != 0) {
    json["accepted"] = accepted;
  }
  json.update({{"hidden", comparison.hidden()},
               {"same", comparison.failing() == 0},
               {"differences", std::move(found)}});
  return json.document(Json::BadText::replaced);
}

// Writes CSV. Adds a column of levels if an inner level differs (empty for M itself), and a column
// of reasons if any point is accepted.
std::string csv_text(const GateComparison& comparison) {
  const bool accepted = comparison.accepted() != 0;
  bool levels = false;
  each_difference(comparison, [&](const Compared&, const Difference& difference) {
    levels = levels || difference.level != 0;
  });
  const auto cells_of = [&](const Compared& compared, const Difference& difference) {
    Cells cells = difference_cells(compared, difference);
    if (levels) {
      cells.push_back({in_csv("level"), difference.level == 0
                                            ? absent()
                                            : CellValue(static_cast<Index>(difference.level))});
    }
    if (accepted) {
      cells.push_back({in_csv("accepted"),
                       compared.accepted ? CellValue(compared.accepted->reason) : absent()});
    }
    return cells;
  };
  std::string text = csv_head(cells_of({}, {}));
  each_difference(comparison, [&](const Compared& compared, const Difference& difference) {
    text += csv_line(cells_of(compared, difference));
  });
  return text;
}

std::string markdown_cell(const std::string& text) {
  std::string safe;
  for (const char c : printable(text)) {
    if (std::string_view("\\|`*_<&[").find(c) != std::string_view::npos) {
      safe += '\\';
    }
    safe += c;
  }
  return safe;
}

std::string markdown_text(const GateComparison& comparison) {
  std::string text = fmt::format("### redblue: {}\n\n{} against {}\n", verdict(comparison),
                                 markdown_cell(comparison.now), markdown_cell(comparison.before));
  const std::vector<const Compared*> points = changed_points(comparison);
  if (points.empty()) {
    return text;
  }
  const auto add_row = [&](const Compared& compared, std::vector<std::string> cells) {
    cells.insert(cells.begin(), to_string(compared.point));
    for (const std::string& cell : cells) {
      text += "| " + markdown_cell(cell) + " ";
    }
    text += "|\n";
  };
  text += "\n| total words | baseline | now | change | share |\n|---|---:|---:|---:|---:|\n";
  for (const Compared* point : points) {
    add_row(*point, total_cells(*point));
  }
  text +=
      "\n| point | phase | metric | baseline | now | change | share | |\n"
      "|---|---|---|---:|---:|---:|---:|---|\n";
  for (const auto& [point, difference] : by_size(comparison)) {
    std::vector<std::string> cells = difference_cells(*difference);
    cells.push_back(note_of(*point, *difference));
    add_row(*point, std::move(cells));
  }
  const std::string command = accept_command(comparison, points);
  return text + (command.empty() ? "" : "\nTo accept:\n\n```sh\n" + command + "\n```\n");
}

// Escapes the value or a property of a GitHub workflow command.
std::string escaped_command(const std::string& text, bool property) {
  const std::map<char, std::string> codes = {
      {'%', "%25"}, {'\r', "%0D"}, {'\n', "%0A"}, {':', "%3A"}, {',', "%2C"}};
  std::string safe;
  for (const char c : text) {
    const auto code = codes.find(c);
    safe += code == codes.end() || (!property && (c == ':' || c == ',')) ? std::string(1, c)
                                                                         : code->second;
  }
  return safe;
}

// Writes an annotation for each point that differs: an error, or a notice if nothing fails.
std::string github_text(const GateComparison& comparison) {
  std::string text;
  for (const Compared& compared : comparison.points) {
    if (compared.differences.empty()) {
      continue;
    }
    std::string words = told_of(compared);
    if (const std::string command = accept_command(comparison, {&compared}, " ");
        !command.empty()) {
      words += "\nto accept: " + command;
    }
    const std::string place =
        compared.line == 0
            ? ""
            : fmt::format("file={},line={},", escaped_command(compared.file, true), compared.line);
    text += fmt::format("::{} {}title={}::{}\n", compared.fails() ? "error" : "notice", place,
                        escaped_command("redblue: " + printable(to_string(compared.point)), true),
                        escaped_command(words, false));
  }
  return text + fmt::format("redblue: {}\n", verdict(comparison));
}

std::string junit_text(const GateComparison& comparison) {
  std::map<std::string, std::vector<const Compared*>> suites;
  for (const Compared& compared : comparison.points) {
    suites[compared.point.subject].push_back(&compared);
  }
  std::string text = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuites name=\"redblue\" tests=\"{}\" failures=\"{}\" errors=\"0\">\n",
      comparison.points.size(), comparison.failing());
  for (const auto& [name, points] : suites) {
    text += fmt::format(
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"0\">\n",
        html_text(printable(name)), points.size(),
        std::ranges::count_if(points, [](const Compared* point) { return point->fails(); }));
    for (const Compared* point : points) {
      const std::string head =
          fmt::format("    <testcase classname=\"{}\" name=\"{}\"", html_text(printable(name)),
                      html_text(printable(to_string(point->point.arguments))));
      const std::string words = told_of(*point) + "\n";
      if (point->differences.empty()) {
        text += head + "/>\n";
      } else if (point->fails()) {
        text += fmt::format("{}>\n      <failure message=\"{}\">{}</failure>\n    </testcase>\n",
                            head, html_text(words.substr(0, words.find('\n'))), html_text(words));
      } else {
        text += fmt::format("{}>\n      <system-out>{}</system-out>\n    </testcase>\n", head,
                            html_text(words));
      }
    }
    text += "  </testsuite>\n";
  }
  return text + "</testsuites>\n";
}

// Calls `item` with each point that fits now and its total.
template <class Item>
void each_total(const GateComparison& comparison, const Item& item) {
  for (const Compared& compared : comparison.points) {
    if (compared.now && compared.now->fits) {
      item(compared, compared.now->counts.total);
    }
  }
}

std::string smaller_is_better_text(const GateComparison& comparison) {
  Json entries = Json::array();
  each_total(comparison, [&](const Compared& compared, const PhaseCounts& total) {
    const std::string name = to_string(compared.point);
    Json moved = {{"name", name + ": moved"}, {"unit", "words"}, {"value", words_of(total.io)}};
    if (compared.accepted) {
      moved["extra"] = "accepted: " + compared.accepted->reason;
    }
    entries.push_back(std::move(moved));
    entries.push_back({{"name", name + ": peak"}, {"unit", "words"}, {"value", total.peak}});
  });
  return entries.document();
}

std::string bmf_text(const GateComparison& comparison) {
  Json benchmarks = Json::object();
  each_total(comparison, [&](const Compared& compared, const PhaseCounts& total) {
    benchmarks[to_string(compared.point)] = {{"reads", {{"value", total.io.reads}}},
                                             {"writes", {{"value", total.io.writes}}},
                                             {"peak", {{"value", total.peak}}}};
  });
  return benchmarks.document();
}

}  // namespace

const std::vector<ComparisonForm>& comparison_forms() {
  static const std::vector<ComparisonForm> forms = {
      {"table", text_table},
      {"json", json_text},
      {"csv", csv_text},
      {"markdown", markdown_text},
      {"github", github_text},
      {"junit", junit_text},
      {"customSmallerIsBetter", smaller_is_better_text},
      {"bmf", bmf_text}};
  return forms;
}

std::string verdict(const GateComparison& comparison) {
  const std::size_t failing = comparison.failing();
  const auto hidden = static_cast<Index>(comparison.hidden());
  const auto all = std::ssize(comparison.points);
  std::string text = failing != 0
                         ? fmt::format("DIFFERENT, {} of {}", failing, counted(all, "point"))
                     : all == 0 ? "same, it has no points"
                     : all == 1 ? "same, the only point"
                                : fmt::format("same, all {} points", all);
  if (!comparison.part.is_whole()) {
    text = fmt::format("part {}: {}", to_string(comparison.part), text);
  }
  if (const std::size_t accepted = comparison.accepted(); accepted != 0) {
    text += fmt::format("; {} accepted", counted(static_cast<Index>(accepted), "point"));
  }
  if (hidden != 0) {
    text += fmt::format("; {} hidden by tolerances", counted(hidden, "difference"));
  }
  return text;
}

}  // namespace redblue
