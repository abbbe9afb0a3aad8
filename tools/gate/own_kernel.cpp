#include "tools/gate/own_kernel.hpp"

#include <algorithm>
#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/gate/comparison.hpp"
#include "runtime/text/cells.hpp"
#include "runtime/text/sizes.hpp"
#include "tools/cli/frame.hpp"
#include "tools/cli/print.hpp"
#include "tools/gate/gate.hpp"
#include "tools/gate/own_pictures.hpp"
#include "tools/gate/own_point.hpp"

namespace redblue {
namespace {

constexpr int kOwnSchema = 1;

// A run, the values of its formula, or both.
struct OwnReport {
  Point point;
  std::optional<RunCounts> counted;
  std::optional<std::vector<PhaseCost>> formula;

  // The reason why the formula does not fit in M; else empty.
  [[nodiscard]] std::string why_not() const {
    return why_not_in(point.arguments["M"], predicted(*formula));
  }
  // Calls `row` for each phase and then the total, with a name, the counts (without a run, those of
  // the formula), and the formula's counts of it.
  template <class Row>
  void each_row(const Row& row) const {
    const std::optional<RunCounts> said =
        formula ? std::optional(predicted(*formula)) : std::nullopt;
    const RunCounts& shown = counted ? *counted : *said;
    for (const PhaseCounts& phase : shown.phases) {
      const auto same = said ? std::ranges::find(said->phases, phase.path, &PhaseCounts::path)
                             : std::vector<PhaseCounts>::const_iterator();
      row(phase.path, phase, said && same != said->phases.end() ? &*same : nullptr);
    }
    if (counted && said) {  // phases of the formula that the run did not enter
      for (const PhaseCounts& phase : said->phases) {
        if (std::ranges::find(shown.phases, phase.path, &PhaseCounts::path) == shown.phases.end()) {
          row(phase.path, PhaseCounts{.path = phase.path, .io = {}, .operations = {}}, &phase);
        }
      }
    }
    row("total", shown.total, said ? &said->total : nullptr);
  }
};

// A row a phase, and last the total, which has no path in JSON and what only it knows.
std::vector<Cells> own_rows(const OwnReport& report) {
  const bool both = report.counted && report.formula;
  std::vector<Cells> rows;
  report.each_row([&](const std::string& name, const PhaseCounts& phase, const PhaseCounts* said) {
    Cells cells = {
        {{"phase", "path", "phase"}, CellValue(name).shown(name.empty() ? kOutside : name)},
        {"reads", phase.io.reads},
        {"writes", phase.io.writes},
        {"peak", phase.peak}};
    if (report.counted) {
      cells.push_back({in_json("flops"), phase.operations.flops});
      cells.push_back({in_json("elementwise"), phase.operations.elementwise});
    }
    if (said != nullptr) {
      cells.push_back({in_json("formula.reads"), said->io.reads});
      cells.push_back({in_json("formula.writes"), said->io.writes});
      cells.push_back({in_json("formula.peak"), said->peak});
    }
    if (both) {
      const Index io = said == nullptr ? 0 : said->io.io();
      cells.push_back({in_table("formula"), said == nullptr ? Json() : Json(io)});
      cells.push_back({in_table("difference"), phase.io.io() - io});
    }
    rows.push_back(std::move(cells));
  });
  return rows;
}

std::string to_table(const OwnReport& report) {
  return fmt::format("{}   (all in words)\n\n{}", to_string(report.point),
                     table_of(own_rows(report)));
}

std::string to_json(const OwnReport& report) {
  Json json = {{"schema", kOwnSchema}, {"kernel", report.point.subject}};
  for (const auto& [name, value] : report.point.arguments) {
    json[name] = std::get<Index>(value);
  }
  if (!report.counted) {
    json["fits"] = report.why_not().empty();
  }
  std::vector<Cells> phases = own_rows(report);
  Cells total = std::move(phases.back());
  phases.pop_back();
  total.front().names.key = "";
  const auto words = [&](std::size_t k) { return total[k].value.json.get<Index>(); };
  total.push_back({in_json("io"), words(1) + words(2)});
  json["phases"] = json_of(phases);
  json["total"] = json_of(total);
  return json.document();
}

std::string to_csv(const OwnReport& report) {
  Cells point = {{in_csv("kernel"), report.point.subject}};
  for (const auto& [name, value] : report.point.arguments) {
    point.push_back({in_csv(name), std::get<Index>(value)});
  }
  return csv_of(rows_of(own_rows(report), [&](const Cells& row) { return joined(point, row); }));
}

struct RunOptions {
  explicit RunOptions(CLI::App& command)
      : point(command), format(command, "--format", "table, json or csv", "table|json|csv") {}
  PointOptions point;
  TextOption format;
};

std::vector<Difference> off_formula(const Subject& subject, const Arguments& arguments,
                                    const OwnReport& report) {
  return report.formula ? differences(record(subject, arguments, How::count),
                                      recorded(report.point, *report.counted), {})
                        : std::vector<Difference>();
}

Action add_own_run(CLI::App& app) {
  const auto options = std::make_shared<RunOptions>(app);
  return [options] {
    const auto point = options->point.get();
    const Subject* const subject = point.subject;  // clang 14 does not capture structured bindings
    const Arguments& arguments = point.arguments;
    const Format format = parse_format(options->format);
    OwnReport report{{subject->name, arguments}, std::nullopt, std::nullopt};
    naming(report.point, [&] {
      report.counted = subject->run(arguments);
      if (subject->formula) {
        report.formula = subject->formula(arguments);
      }
    });
    print(report, format);
    const std::vector<Difference> off = off_formula(*subject, arguments, report);
    if (!off.empty()) {
      say(fmt::format("{}: from its formula to its run, {}: one of the two is wrong",
                      to_string(report.point), to_words(off.front())));
      return 1;
    }
    return 0;
  };
}

Action add_own_count(CLI::App& app) {
  const auto options = std::make_shared<RunOptions>(app);
  return [options] {
    const auto point = options->point.get();
    const Subject* const subject = point.subject;
    const Arguments& arguments = point.arguments;
    const Format format = parse_format(options->format);
    if (!subject->formula) {
      throw UsageError(subject->name + " has no formula: run it");
    }
    OwnReport report{{subject->name, arguments}, std::nullopt, std::nullopt};
    naming(report.point, [&] { report.formula = subject->formula(arguments); });
    print(report, format);
    if (const std::string why = report.why_not(); !why.empty()) {
      say(fmt::format("{}: {}: take a larger M", to_string(report.point), why));
      return 1;
    }
    return 0;
  };
}

Action add_own_list(CLI::App&) {
  return [] {
    std::string text =
        fmt::format("{:<28} {:<16} {:<8} {}\n", "kernel", "sizes", "formula", "summary");
    for (const Subject& subject : own_kernels()) {
      std::vector<std::string> sizes;
      for (const Parameter& parameter : subject.parameters) {
        sizes.push_back(parameter.name);
      }
      text += fmt::format("{:<28} {:<16} {:<8} {}\n", subject.name,
                          fmt::format("{}", fmt::join(sizes, " ")), subject.formula ? "yes" : "no",
                          subject.summary);
    }
    print(printable_lines(text));
    return 0;
  };
}

}  // namespace

Registration::Registration(const std::string& name, const Work& work,
                           const std::vector<std::string>& sizes)
    : place_(registered_kernels().size()) {
  registered_kernels().push_back({subject_of(name, work, sizes), work});
}

Registration& Registration::summary(const std::string& text) {
  registered_kernels()[place_].subject.summary = text;
  return *this;
}

Registration& Registration::formula(const Formula& formula) {
  registered_kernels()[place_].subject.formula = formula;
  return *this;
}

int own_kernels_command(int argc, char** argv) {
  for (const auto& [subject, work] : registered_kernels()) {
    if (const std::string wrong = wrong_with(subject); !wrong.empty()) {
      say(fmt::format("the kernel '{}': {}", subject.name, wrong));
      return 2;
    }
  }
  std::vector<Subcommand> subcommands = {
      {"list", "the kernels, their sizes, and which have a formula", add_own_list},
      {"run", "run a kernel, counted", add_own_run},
      {"count", "the words that a kernel will move, from its formula", add_own_count}};
  const std::string name = std::filesystem::path(argv[0]).filename().string();
  for (const std::vector<Subcommand>& more : {gate_subcommands(own_kernels), own_pictures(name)}) {
    subcommands.insert(subcommands.end(), more.begin(), more.end());
  }
  return run_command(argc, argv, name,
                     "Counts the words that kernels move between a fast memory of M words and a "
                     "slow store, and holds them to a baseline.",
                     subcommands);
}

}  // namespace redblue
