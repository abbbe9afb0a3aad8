// redblue count: the words that a kernel will move, from its formulas, at once; or, with --as,
// those of schedules of other attention kernels, with their tiles.

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/report/as_report.hpp"
#include "runtime/report/run_report.hpp"
#include "runtime/run/run.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/print.hpp"
#include "tools/cli/sizes.hpp"
#include "tools/options/problem.hpp"
#include "tools/options/ranks.hpp"

namespace redblue {
namespace {

std::vector<const KnownSchedule*> schedules_of(const Given& as) {
  std::vector<const KnownSchedule*> found;
  std::vector<std::string> names;
  for (const KnownSchedule& schedule : known_schedules()) {
    names.push_back(schedule.name);
    if (as.text == schedule.name || as.text == "all") {
      found.push_back(&schedule);
    }
  }
  if (found.empty()) {
    throw UsageError(
        fmt::format("{} '{}': expected {} or all", as.from, as.text, fmt::join(names, ", ")));
  }
  return found;
}

Pass pass_of(const TextOption& option) {
  const auto given = option.get();
  for (const Pass pass : {Pass::attention, Pass::gradients}) {
    if (!given || given->text == to_string(pass)) {
      return pass;
    }
  }
  throw UsageError(
      fmt::format("{} '{}': expected attention or gradients", given->from, given->text));
}

}  // namespace

Action add_count(CLI::App& app) {
  struct Options {
    explicit Options(CLI::App& command)
        : problem(command),
          word_costs(command),
          heads(command),
          inputs(command),
          ranks(command),
          as(command, "--as",
             "in place of a kernel: the tiles of another attention kernel, a name of `redblue list "
             "--as`; or all: of each",
             "NAME"),
          pass(command, "--problem", "of --as: attention or gradients; attention", "PASS"),
          format(command, "--format", "table, json or csv", "FORMAT") {}
    ProblemOptions problem;
    WordCostsOption word_costs;
    HeadsOption heads;
    PatternOptions inputs;
    RanksOptions ranks;
    TextOption as, pass, format;
  };
  const auto options = std::make_shared<Options>(app);
  return [options] {
    const Format format = parse_format(options->format);
    Request request;
    const auto as = options->as.get();
    if (!as) {
      if (const auto pass = options->pass.get()) {
        throw UsageError(fmt::format("{} '{}': a kernel has one problem; it is of {}", pass->from,
                                     pass->text, options->as.flag()));
      }
      options->problem.fill(request);
    } else {
      if (const auto kernel = options->problem.kernel()) {
        throw UsageError(fmt::format("{}: {} {} names the schedule", *kernel, as->from, as->text));
      }
      if (const auto blocks = options->problem.blocks().get()) {
        throw UsageError(fmt::format("{} '{}': {} {} has its tiles", blocks->from, blocks->text,
                                     as->from, as->text));
      }
      options->problem.fill_problem(request);
    }
    options->word_costs.fill(request);
    options->heads.fill(request);
    options->inputs.fill(request);
    options->ranks.fill(request);
    if (!as) {
      print(count(request), format);
      return 0;
    }
    if (!request.inner.empty() || request.on_ranks || request.prefetch > 1) {
      throw UsageError(fmt::format(
          "{} {}: tiles are of one level of fast memory of one machine, without a prefetch",
          as->from, as->text));
    }
    print(report_as(request, pass_of(options->pass), schedules_of(*as)), format);
    return 0;
  };
}

}  // namespace redblue
