#include "tools/gate/own_kernel.hpp"

#include <algorithm>
#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/gate/comparison.hpp"
#include "runtime/text/description.hpp"
#include "runtime/text/sizes.hpp"
#include "tools/cli/frame.hpp"
#include "tools/cli/print.hpp"
#include "tools/gate/gate.hpp"
#include "tools/gate/own_pictures.hpp"
#include "tools/gate/own_point.hpp"

namespace redblue {
namespace {

constexpr int kOwnSchema = 1;

// The counts of a run, the values of the formula, or both.
struct OwnReport {
  Point point;
  std::optional<RunCounts> counted;
  std::optional<std::vector<PhaseCost>> formula;

  // Returns why the kernel does not fit in M by its formula; else empty.
  [[nodiscard]] std::string why_not() const {
    return why_not_in(point.arguments["M"], predicted(*formula));
  }
};

// Returns a row for each phase, and a last row for the total. The rows show the counts of the run,
// or of the formula without a run. If both exist, the formula's values are added.
std::vector<Cells> own_rows(const OwnReport& report) {
  const auto said = report.formula ? std::optional(predicted(*report.formula)) : std::nullopt;
  const RunCounts& shown = report.counted ? *report.counted : *said;
  const bool counted = report.counted.has_value(), both = counted && said;
  std::vector<Cells> rows;
  const auto add = [&](const std::string& name, const PhaseCounts& phase,
                       const PhaseCounts* known) {
    const PhaseCounts formula = known != nullptr ? *known : PhaseCounts();
    const bool whole = &phase == &shown.total;
    const auto of_formula = [&](const char* key) { return in_json(known != nullptr ? key : ""); };
    rows.push_back(
        {{{"phase", whole ? "" : "path", "phase"},
          CellValue(name).shown(name.empty() ? kOutside : name)},
         {"reads", phase.io.reads},
         {"writes", phase.io.writes},
         {in_json(whole ? "io" : ""), phase.io.io()},
         {"peak", phase.peak},
         {in_json(counted ? "flops" : ""), phase.operations.flops},
         {in_json(counted ? "elementwise" : ""), phase.operations.elementwise},
         {of_formula("formula.reads"), formula.io.reads},
         {of_formula("formula.writes"), formula.io.writes},
         {of_formula("formula.peak"), formula.peak},
         {in_table(both ? "formula" : ""), known != nullptr ? Json(formula.io.io()) : Json()},
         {in_table(both ? "difference" : ""), phase.io.io() - formula.io.io()}});
  };
  const auto find = [](const std::vector<PhaseCounts>& phases, const std::string& path) {
    const auto found = std::ranges::find(phases, path, &PhaseCounts::path);
    return found == phases.end() ? nullptr : &*found;
  };
  for (const PhaseCounts& phase : shown.phases) {
    add(phase.path, phase, said ? find(said->phases, phase.path) : nullptr);
  }
  if (both) {
    for (const PhaseCounts& phase : said->phases) {  // phases that only the formula has
      if (find(shown.phases, phase.path) == nullptr) {
        add(phase.path, PhaseCounts{.path = phase.path, .io = {}, .operations = {}}, &phase);
      }
    }
  }
  add("total", shown.total, said ? &said->total : nullptr);
  return rows;
}

Description describe(const OwnReport& report) {
  Description of;
  of.say("{}   (all in words)\n", to_string(report.point));
  of.facts({{in_json("schema"), kOwnSchema}, {in_json_and_csv("kernel"), report.point.subject}});
  for (const auto& [name, value] : report.point.arguments) {
    of.facts({{in_json_and_csv(name), std::get<Index>(value)}});
  }
  of.fact(report.counted ? "" : "fits", report.counted ? Json() : Json(report.why_not().empty()));
  of.table("phases", "total", own_rows(report));
  return of;
}

struct RunOptions {
  explicit RunOptions(CLI::App& command)
      : point(command),
        format(command, "--format", "output format (default: table)", "table|json|csv") {}
  PointOptions point;
  TextOption format;
};

std::vector<Difference> off_formula(const Subject& subject, const Arguments& arguments,
                                    const OwnReport& report) {
  return report.formula && !subject.compares_formula
             ? differences(record(subject, arguments, How::count),
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
    print(describe(report), format);
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
    print(describe(report), format);
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
  registered_kernels().push_back({.subject = subject_of(name, work, sizes), .work = work});
}

Registration& Registration::summary(const std::string& text) {
  registered_kernels()[place_].subject.summary = text;
  return *this;
}

Registration& Registration::formula(const Formula& formula) {
  registered_kernels()[place_].subject.formula = formula;
  return *this;
}

Registration& Registration::nest(const std::string& file) {
  registered_kernels()[place_].nest = file;
  return *this;
}

int own_kernels_command(int argc, char** argv) {
  for (const OwnKernel& kernel : registered_kernels()) {
    const Subject& subject = kernel.subject;
    if (const std::string wrong = wrong_with(subject); !wrong.empty()) {
      say(fmt::format("the kernel '{}': {}", subject.name, wrong));
      return 2;
    }
  }
  std::vector<Subcommand> subcommands = {
      {"list", "list the kernels, their sizes, and which have a formula", add_own_list},
      {"run", "run a kernel and count its words", add_own_run},
      {"count", "count the words that a kernel moves, from its formula", add_own_count}};
  const std::string name = std::filesystem::path(argv[0]).filename().string();
  for (const std::vector<Subcommand>& more : {gate_subcommands(own_kernels), own_pictures(name)}) {
    subcommands.insert(subcommands.end(), more.begin(), more.end());
  }
  return run_command(argc, argv, name,
                     "Counts the words that kernels move between a fast memory of M words and a "
                     "slow memory, and holds them to a baseline.",
                     subcommands);
}

}  // namespace redblue
