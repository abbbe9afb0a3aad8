// redblue count: the words that a kernel will move, from its formulas, at once; or these formulas,
// with --symbolic; or, with --as, words of other attention kernels with their tiles.

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/report/as_report.hpp"
#include "runtime/report/run_report.hpp"
#include "runtime/report/symbolic_report.hpp"
#include "runtime/run/run.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/print.hpp"
#include "tools/cli/sizes.hpp"
#include "tools/options/as.hpp"
#include "tools/options/problem.hpp"
#include "tools/options/ranks.hpp"

namespace redblue {
namespace {

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

// What a formula is of where sizes are left out: blocks that are smaller than the lengths that they
// cut. n and m differ, for some kernels have another formula where they are equal.
void fill_sizes_of_formula(Request& request) {
  const bool equal = request.n.has_value() && !request.m;
  request.n = request.n.value_or(8192);
  request.m = request.m.value_or(equal ? *request.n : 10000);
  request.d = request.d.value_or(64);
}

// In so many words where M is left out, or in any number, where a kernel has no blocks.
constexpr Index kFormulaM = 1 << 16, kAnyM = Index{1} << 50;
SymbolicReport symbolic_of(Request& request, bool M_is_given) {
  fill_sizes_of_formula(request);
  try {
    return report_symbolic(count(request));
  } catch (const FastMemoryTooSmall&) {
    if (M_is_given) {
      throw;
    }
    request.M = kAnyM;
    return report_symbolic(count(request));
  }
}

void print_formulas(const SymbolicReport& report, const TextOption& option) {
  const auto given = option.get();
  const std::string form = given ? given->text : "table";
  if (form == "latex" || form == "sympy") {
    print(form == "latex" ? to_latex(report) : to_sympy(report));
  } else if (form == "table" || form == "json" || form == "csv") {
    print(report, parse_format(option));
  } else {
    throw UsageError(fmt::format("{} '{}': expected table, json, csv, latex or sympy", given->from,
                                 given->text));
  }
}

}  // namespace

Action add_count(CLI::App& app) {
  struct Options {
    explicit Options(CLI::App& command)
        : problem(command),
          word(command),
          word_costs(command),
          heads(command),
          inputs(command),
          ranks(command),
          as(command, "in place of a kernel"),
          pass(command, "--problem", "of --as: attention or gradients; attention",
               "attention|gradients"),
          symbolic(
              command, "--symbolic",
              "in place of words: their formulas in n, m, d and blocks, for blocks as those of "
              "the plan; sizes may be left out"),
          format(command, "--format", "table, json or csv; with --symbolic also latex or sympy",
                 "table|json|csv|latex|sympy") {}
    ProblemOptions problem;
    WordOption word;
    WordCostsOption word_costs;
    HeadsOption heads;
    PatternOptions inputs;
    RanksOptions ranks;
    AsOption as;
    TextOption pass;
    Switch symbolic;
    TextOption format;
  };
  const auto options = std::make_shared<Options>(app);
  return [options] {
    const auto symbolic = options->symbolic.from();
    const Format format = symbolic ? Format::table : parse_format(options->format);
    Request request;
    request.M = symbolic && !options->problem.has_M() ? kFormulaM : 0;
    options->word.fill(request);
    const auto as = options->as.get();
    if (as && symbolic) {
      throw UsageError(fmt::format("{}: {} {} has tiles of a size: give the kernel of its loops",
                                   *symbolic, as->from, as->text));
    }
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
    if (symbolic) {
      print_formulas(symbolic_of(request, options->problem.has_M()), options->format);
      return 0;
    }
    if (!as) {
      print(count(request), format);
      return 0;
    }
    const Pass pass = pass_of(options->pass);
    print(report_as(request, pass, options->as.schedules(request, pass)), format);
    return 0;
  };
}

}  // namespace redblue
