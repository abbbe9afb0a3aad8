#include "runtime/sweep/html_report.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include "runtime/text/html.hpp"
#include "runtime/text/table.hpp"

namespace redblue {
namespace {

constexpr const char* kNothing = "\u2013";

// Returns "8,192 / 65,536" for "8192,65536".
std::string inner_text(const Value& value) {
  std::string text;
  std::istringstream levels(to_string(value));
  for (std::string words; std::getline(levels, words, ',');) {
    Index number = 0;
    const auto [end, error] = std::from_chars(words.data(), words.data() + words.size(), number);
    text += (text.empty() ? "" : " / ") + (error == std::errc() ? grouped(number) : words);
  }
  return text;
}

std::string argument(const Swept& swept, const std::string& name) {
  if (!swept.point.arguments.contains(name)) {
    return kNothing;
  }
  const Value& value = swept.point.arguments.value(name);
  const Index* size = std::get_if<Index>(&value);
  return size != nullptr ? grouped(*size) : name == kInner ? inner_text(value) : to_string(value);
}

// The arguments that tables must name, and the arguments that one sentence names for all points.
struct Varying {
  std::vector<std::string> names;
  std::vector<std::string> everywhere;
};

Varying varying(const Sweep& sweep) {
  Varying found;
  for (const std::string& name : argument_names(sweep)) {
    const auto equal = [&](const std::string& other) {
      return std::ranges::all_of(sweep.points, [&](const Swept& swept) {
        return argument(swept, name) == argument(swept, other);
      });
    };
    const std::string first = argument(sweep.points.front(), name);
    const auto twin = std::ranges::find_if(found.names, equal);
    if (std::ranges::all_of(sweep.points,
                            [&](const Swept& swept) { return argument(swept, name) == first; })) {
      found.everywhere.push_back(name + " = " + first);
    } else if (twin != found.names.end()) {
      found.everywhere.push_back(name + " = " + *twin);
    } else {
      found.names.push_back(name);
    }
  }
  return found;
}

// Returns a unique name of a point: "backward/small, n = 1,024, M = 4,096".
std::string name_of(const Swept& swept, const Varying& varying) {
  std::string text = swept.point.subject;
  for (const std::string& name : varying.names) {
    text += ", " + name + " = " + argument(swept, name);
  }
  return text;
}

struct Tallied {
  const char* what;
  Index (*count)(const SweptPhase& phase);
  Index (*formula)(const Predicted& formula);
};
constexpr std::array kTallied = {
    Tallied{"words read", [](const SweptPhase& phase) { return phase.counts.io.reads; },
            [](const Predicted& formula) { return formula.io.reads; }},
    Tallied{"words written", [](const SweptPhase& phase) { return phase.counts.io.writes; },
            [](const Predicted& formula) { return formula.io.writes; }},
    Tallied{"words of peak", [](const SweptPhase& phase) { return phase.counts.peak; },
            [](const Predicted& formula) { return formula.peak; }}};

std::string with_sign(Index number) {
  return (number > 0 ? "+" : "") + grouped(number);
}

// Returns a sentence for each count that differs from its formula.
std::vector<std::string> differences(const Swept& swept) {
  std::vector<std::string> found;
  const auto compare = [&](const SweptPhase& phase, const std::string& level) {
    for (const Tallied& one : kTallied) {
      const Index count = one.count(phase);
      const Index formula = phase.formula ? one.formula(*phase.formula) : count;
      if (count != formula) {
        found.push_back(fmt::format("{}{}: {} {}, by the formula {} ({})", level,
                                    phase.counts.path.empty() ? "in all" : phase.counts.path,
                                    grouped(count), one.what, grouped(formula),
                                    with_sign(count - formula)));
      }
    }
  };
  const auto compare_all = [&](const SweptLevel& level, const std::string& name) {
    for (const SweptPhase& phase : level.phases) {
      compare(phase, name);
    }
    compare(level.total, name);
  };
  compare_all(swept.levels().back(), "");
  for (std::size_t level = 0; level < swept.inner.size(); ++level) {
    compare_all(swept.inner[level], fmt::format("level {}, ", level + 1));
  }
  return found;
}

std::string number(Index count) {
  return html_cell(count == 0 ? kNothing : grouped(count));
}

// Returns the cells for words read, words written, their sum, and the peak.
std::string counts(const SweptPhase& phase) {
  const auto compared = [&](const Tallied& one) {
    const Index count = one.count(phase);
    const Index formula = phase.formula ? one.formula(*phase.formula) : count;
    return count == formula ? html_cell(grouped(count))
                            : fmt::format("<td class=\"differs\">{}<small>formula {}</small></td>",
                                          grouped(count), grouped(formula));
  };
  return compared(kTallied[0]) + compared(kTallied[1]) + html_cell(grouped(phase.counts.io.io())) +
         compared(kTallied[2]);
}

// Returns a cell with the peak as a share of M.
std::string part_of_M(Index M, Index peak) {
  return html_cell(fmt::format("{:.3f}", static_cast<double>(peak) / static_cast<double>(M)));
}

std::string over_the_bound(Index words, const std::optional<Index>& bound) {
  return html_cell(bound && *bound > 0 ? fmt::format("{:.3f}", static_cast<double>(words) /
                                                                   static_cast<double>(*bound))
                                       : kNothing);
}

bool timed(const Sweep& sweep) {
  return std::ranges::any_of(sweep.points,
                             [](const Swept& swept) { return !!swept.total.seconds; });
}

// Points of a user's own kernels have no speed, because no machine limit was measured for them.
bool has_speed(const Sweep& sweep) {
  return std::ranges::any_of(sweep.points, [](const Swept& swept) { return !!swept.speed; });
}

bool on_several_machines(const Sweep& sweep) {
  return std::ranges::any_of(sweep.points, [](const Swept& swept) { return !!swept.processor; });
}

// The optional columns of a table of points.
struct Columns {
  bool bound, time, speed, processor;
};

std::string seconds(const std::optional<double>& time) {
  return html_cell(time ? fmt::format("{:.6f}", *time) : kNothing);
}

std::string speeds(const Swept& swept) {
  if (!swept.speed) {
    return html_cell(kNothing) + html_cell(kNothing);
  }
  const auto& [gflops, peak, rate] = *swept.speed;
  return html_cell(fmt::format("{:.2f}", gflops)) +
         html_cell(peak > 0 ? fmt::format("{:.1f}", 100 * gflops / peak) : kNothing);
}

std::string point_row(const Swept& swept, std::size_t k, const Varying& varying,
                      const Columns& columns) {
  std::string html = fmt::format("<tr id=\"point-{}\"{}><th scope=\"row\">", k,
                                 swept.fits ? "" : " class=\"unfit\"");
  const std::string subject = html_text(swept.point.subject);
  html += swept.fits ? fmt::format("<a href=\"#phases-{}\">{}</a>", k, subject) : subject;
  if (swept.fits && swept.kernel != swept.point.subject) {
    html += fmt::format(" ({})", html_text(swept.kernel));
  }
  html += "</th>";
  for (const std::string& name : varying.names) {
    html += html_cell(argument(swept, name));
  }
  if (!swept.fits) {
    const std::string why = swept.failed
                                ? "cannot run: " + swept.why
                                : fmt::format("does not fit in M = {} words", argument(swept, "M"));
    return html + fmt::format("<td class=\"text\" colspan=\"{}\">{}</td></tr>\n",
                              5 + (columns.bound ? 1 : 0) + (columns.time ? 1 : 0) +
                                  (columns.speed ? 2 : 0) + (columns.processor ? 1 : 0),
                              html_text(why));
  }
  html += counts(swept.total) + part_of_M(swept.size("M"), swept.total.counts.peak);
  html += columns.bound ? over_the_bound(swept.total.counts.io.io(), swept.bound) : "";
  html += columns.time ? seconds(swept.total.seconds) : "";
  html += columns.speed ? speeds(swept) : "";
  html += columns.processor ? html_cell(swept.processor.value_or(kNothing)) : "";
  return html + "</tr>\n";
}

std::string points(const Sweep& sweep, const Varying& varying) {
  const Columns columns{.bound = sweep.program.empty(),
                        .time = timed(sweep),
                        .speed = has_speed(sweep),
                        .processor = on_several_machines(sweep)};
  std::vector<std::string> names = {"kernel"};
  for (const std::string& name : varying.names) {
    names.push_back(name == "M" ? "M, words" : name == kInner ? "levels below, words" : name);
  }
  for (const char* name :
       {"words read", "words written", "words in\u00a0all", "peak, words", "peak/M"}) {
    names.emplace_back(name);
  }
  if (columns.bound) {
    names.emplace_back("over the\u00a0bound");
  }
  if (columns.time) {
    names.emplace_back("seconds");
  }
  if (columns.speed) {
    names.insert(names.end(), {"GF/s", "%\u00a0of FMA\u00a0peak"});
  }
  if (columns.processor) {
    names.emplace_back("processor");
  }
  std::string rows = "<tbody>\n";
  for (std::size_t k = 0; k < sweep.points.size(); ++k) {
    if (k > 0 && sweep.points[k].point.subject != sweep.points[k - 1].point.subject) {
      rows += "</tbody>\n<tbody>\n";
    }
    rows += point_row(sweep.points[k], k + 1, varying, columns);
  }
  std::string note = "<p class=\"faint\">";
  if (!varying.everywhere.empty()) {
    note += html_text(fmt::format("Everywhere {}. ", fmt::join(varying.everywhere, ", ")));
  }
  note += columns.bound
              ? "Over the bound: words in all over the largest proven lower bound for "
                "algorithms of its kind."
              : "What these kernels compute is not known, and so there is no lower bound.";
  note += "</p>\n";
  return note + html_table("The points; a name leads to its phases", names, rows + "</tbody>\n");
}

bool has_levels(const Sweep& sweep) {
  return std::ranges::any_of(sweep.points, [](const Swept& swept) { return !swept.inner.empty(); });
}

// Writes a row for each level of each point with several levels, innermost first.
std::string levels(const Sweep& sweep, const Varying& varying) {
  std::vector<std::string> names = {"kernel"};
  for (const std::string& name : varying.names) {
    if (name != "M" && name != kInner) {
      names.push_back(name);
    }
  }
  for (const char* name : {"level", "M, words", "words read", "words written", "words in\u00a0all",
                           "peak, words", "peak/M", "lower bound, words", "over the\u00a0bound"}) {
    names.emplace_back(name);
  }
  std::string rows;
  for (std::size_t k = 0; k < sweep.points.size(); ++k) {
    const Swept& swept = sweep.points[k];
    if (swept.inner.empty()) {
      continue;
    }
    rows += "<tbody>\n";
    std::size_t number = 0;
    for (const SweptLevel& level : swept.levels()) {
      rows += fmt::format("<tr><th scope=\"row\"><a href=\"#phases-{}\">{}</a></th>", k + 1,
                          html_text(swept.point.subject));
      for (const std::string& name : varying.names) {
        if (name != "M" && name != kInner) {
          rows += html_cell(argument(swept, name));
        }
      }
      rows += html_cell(std::to_string(++number)) + html_cell(grouped(level.M)) +
              counts(level.total) + part_of_M(level.M, level.total.counts.peak) +
              html_cell(level.bound ? grouped(*level.bound) : kNothing) +
              over_the_bound(level.total.counts.io.io(), level.bound) + "</tr>\n";
    }
    rows += "</tbody>\n";
  }
  return "<p class=\"faint\">A word of level 1, the innermost, moved between it and level 2, and "
         "one of the last level between it and slow memory. All levels up to one are together a "
         "fast memory of its M words, for which the bound holds.</p>\n" +
         html_table("The levels of fast memory; a name leads to its phases", names, rows);
}

// Writes the phases at an inner level. Their operations are the same as at M, shown above.
std::string level_phases(const SweptLevel& level, std::size_t number) {
  const auto row = [&](const SweptPhase& phase) {
    return fmt::format("<tr><th scope=\"row\">{}</th>",
                       phase.counts.path.empty() ? "in all" : html_text(phase.counts.path)) +
           counts(phase) + part_of_M(level.M, phase.counts.peak) + "</tr>\n";
  };
  std::string rows;
  for (const SweptPhase& phase : level.phases) {
    rows += row(phase);
  }
  return html_table(
      fmt::format("The same at level {}, M = {} words", number, grouped(level.M)),
      {"phase", "words read", "words written", "words in\u00a0all", "peak, words", "peak/M"},
      "<tbody>\n" + rows + "</tbody>\n<tfoot>\n" + row(level.total) + "</tfoot>\n");
}

std::string phases(const Swept& swept, std::size_t k, const Varying& varying) {
  std::vector<std::string> names = {
      "phase",       "words read", "words written", "words in\u00a0all",
      "peak, words", "peak/M",     "flops",         "other operations"};
  if (swept.total.seconds) {
    names.emplace_back("seconds");
  }
  const auto row = [&](const SweptPhase& phase) {
    return fmt::format("<tr><th scope=\"row\">{}</th>",
                       phase.counts.path.empty() ? "in all" : html_text(phase.counts.path)) +
           counts(phase) + part_of_M(swept.size("M"), phase.counts.peak) +
           number(phase.counts.operations.flops) + number(phase.counts.operations.elementwise) +
           (swept.total.seconds ? seconds(phase.seconds) : "") + "</tr>\n";
  };
  std::string rows;
  for (const SweptPhase& phase : swept.phases) {
    rows += row(phase);
  }
  const std::string name = name_of(swept, varying);
  std::string caption = fmt::format("The phases of {}", name);
  if (!swept.blocks.empty()) {
    caption += "; blocks " + swept.blocks;
  }
  std::string tables = html_table(
      caption, names, "<tbody>\n" + rows + "</tbody>\n<tfoot>\n" + row(swept.total) + "</tfoot>\n");
  for (std::size_t level = 0; level < swept.inner.size(); ++level) {
    tables += level_phases(swept.inner[level], level + 1);
  }
  return fmt::format("<details><summary>{}</summary>\n<div id=\"phases-{}\">\n{}</div></details>\n",
                     html_text(name), k, tables);
}

// Reports the agreement of counts and formulas, the most important result of a sweep.
std::string verdict(const Sweep& sweep, const Varying& varying) {
  const auto failed = std::ranges::count(sweep.points, true, &Swept::failed);
  const auto unfit = std::ranges::count(sweep.points, false, &Swept::fits) - failed;
  const auto fitting = std::ssize(sweep.points) - unfit - failed;
  const auto held = std::ranges::count_if(
      sweep.points, [](const Swept& swept) { return swept.fits && swept.total.formula; });
  std::string list;
  Index wrong = 0;
  for (std::size_t k = 0; k < sweep.points.size(); ++k) {
    const Swept& swept = sweep.points[k];
    const std::vector<std::string> found = differences(swept);
    if (!found.empty()) {
      ++wrong;
      list += fmt::format("<li><a href=\"#point-{}\">{}</a>: {}</li>\n", k + 1,
                          html_text(name_of(swept, varying)),
                          html_text(fmt::format("{}", fmt::join(found, "; "))));
    }
  }
  std::string html;
  if (wrong > 0) {
    html = fmt::format(
        "<div class=\"loud\"><strong>Formula and count differ at {} of {}.</strong>\n"
        "<ul>\n{}</ul></div>\n",
        grouped(wrong), counted(held, "point"), list);
  } else if (sweep.how == "count") {
    html = "<p>Nothing ran: all words are those of the formulas.</p>\n";
  } else if (held > 0) {
    html = fmt::format(
        "<p class=\"good\">Formula and count agree: at {}, every phase read, wrote "
        "and held what its formula says, to the word.</p>\n",
        held == 1 ? "1 point" : "each of " + counted(held, "point"));
  }
  if (const auto without = fitting - held; without > 0) {
    html += fmt::format("<p>{} no formula: what {} is as the runs counted it.</p>\n",
                        counted(without, "point") + (without == 1 ? " has" : " have"),
                        without == 1 ? "it moves" : "they move");
  }
  if (!sweep.missing.empty()) {
    html += fmt::format(
        "<div class=\"loud\"><strong>{} of the suite's {} missing</strong>: no part that was "
        "merged "
        "has them.</div>\n",
        grouped(std::ssize(sweep.missing)),
        counted(std::ssize(sweep.missing) + std::ssize(sweep.points), "point") +
            (sweep.missing.size() == 1 ? " is" : " are"));
  }
  if (failed > 0) {
    html += fmt::format(
        "<div class=\"loud\"><strong>{} of {} points cannot run</strong>; the table says which, "
        "and "
        "why.</div>\n",
        grouped(failed), grouped(std::ssize(sweep.points)));
  }
  if (unfit > 0) {
    html += fmt::format(
        "<p><strong>{} of {} {} not fit</strong> in the fast memory they were given, and "
        "moved nothing; the table says which.</p>\n",
        grouped(unfit), counted(std::ssize(sweep.points), "point"), unfit == 1 ? "does" : "do");
  }
  return html;
}

std::string section(const char* id, const char* title, const std::string& content) {
  return fmt::format("<section id=\"{}\">\n<h2>{}</h2>\n{}</section>\n", id, title, content);
}

std::string title_of(const Sweep& sweep) {
  std::vector<std::string> subjects;
  for (const Swept& swept : sweep.points) {
    if (std::ranges::find(subjects, swept.point.subject) == subjects.end()) {
      subjects.push_back(swept.point.subject);
    }
  }
  return subjects.size() <= 3 ? fmt::format("Words moved by {}", fmt::join(subjects, ", "))
                              : fmt::format("Words moved by {} kernels", subjects.size());
}

// Writes a figure that scrolls by itself. Scaled to a phone, its text would be too small to read.
std::string figure(const ReportFigure& figure) {
  return fmt::format(
      "<figure><figcaption>{2}</figcaption>\n<div class=\"scroll\" role=\"region\" tabindex=\"0\" "
      "aria-label=\"{0}\"><img alt=\"{0}: the numbers are in the tables\" src=\"{1}\"></div>"
      "</figure>\n",
      html_text(figure.title), svg_address(figure.svg), html_powers(figure.title));
}

}  // namespace

std::string to_html(const Sweep& sweep, const std::vector<ReportFigure>& figures) {
  const Varying names = varying(sweep);
  const std::string title = title_of(sweep);
  std::string body = fmt::format(
      "<header>\n<h1>{}</h1>\n<p>redblue counts every word (a float32) that a kernel moves between "
      "a fast memory of M words and a slow memory. Here {} {} of {}a suite, {}.{}</p>\n",
      html_text(title), sweep.points.size() == 1 ? "is" : "are",
      counted(std::ssize(sweep.points), "point"),
      sweep.part.is_whole() ? "" : fmt::format("part {} of ", to_string(sweep.part)),
      sweep.how == "time"  ? "run, counted and timed"
      : sweep.how == "run" ? "run and counted"
                           : "counted by their formulas",
      sweep.how == "count" || !sweep.program.empty()
          ? ""
          : fmt::format(" All operands are from seed {}.", kSweepSeed));
  std::string drawn;
  for (const ReportFigure& one : figures) {
    drawn += figure(one);
  }
  std::string folded;
  for (std::size_t k = 0; k < sweep.points.size(); ++k) {
    if (sweep.points[k].fits) {
      folded += phases(sweep.points[k], k + 1, names);
    }
  }
  std::string facts;
  for (const auto& [name, value] : sweep.context) {
    facts += fmt::format("<dt>{}</dt><dd>{}</dd>\n", html_text(name), html_text(value));
  }
  body += fmt::format(
      "<nav aria-label=\"This page\">{}<a href=\"#points\">Points</a> {}<a href=\"#phases\">Phases"
      "</a> <a href=\"#machine\">Build and machine</a> <a href=\"#suite\">Suite</a></nav>\n"
      "</header>\n<main>\n{}",
      drawn.empty() ? "" : "<a href=\"#figures\">Figures</a> ",
      has_levels(sweep) ? "<a href=\"#levels\">Levels</a> " : "", verdict(sweep, names));
  if (!drawn.empty()) {
    body += section("figures", "Figures", drawn);
  }
  body += section("points", "Points", points(sweep, names));
  if (has_levels(sweep)) {
    body += section("levels", "Levels of fast memory", levels(sweep, names));
  }
  body += section("phases", "Phases", folded);
  body += section("machine", "Build and machine", "<dl>\n" + facts + "</dl>\n");
  body += section("suite", "Suite",
                  "<details><summary>The suite's text</summary>\n<pre tabindex=\"0\">" +
                      html_text(sweep.suite) + "</pre></details>\n");
  return html_page("redblue: " + title, body + "</main>\n");
}

}  // namespace redblue
