// redblue count: the words that a kernel moves, from its formulas and without a run. --symbolic
// prints the formulas. --as counts the schedules of other projects.

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
#include "runtime/text/sizes.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/print.hpp"
#include "tools/options/as.hpp"
#include "tools/options/machine.hpp"
#include "tools/options/problem.hpp"

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

// Sets example sizes for the formulas of a regime. Blocks are smaller than the lengths that they
// divide. n and m differ, because some kernels have a different formula for n = m.
void fill_example(Request& request, Regime regime) {
  request.n = 8192;
  request.m = 10000;
  request.d = regime == Regime::small ? 2048 : 64;
  request.M = regime == Regime::small ? 1 << 20 : 1 << 16;
}
// M for kernels without blocks, which have one formula for all M.
constexpr Index kAnyM = Index{1} << 50;

std::optional<Regime> regime_of(const TextOption& option) {
  const auto given = option.get();
  if (!given) {
    return std::nullopt;
  }
  if (given->text != "small" && given->text != "large") {
    throw UsageError(fmt::format("{} '{}': expected small or large", given->from, given->text));
  }
  return given->text == "small" ? Regime::small : Regime::large;
}

// Returns the formulas of a request without sizes.
SymbolicReport report_example(Request& request, const std::optional<Regime>& regime,
                              const TextOption& option) {
  fill_example(request, regime.value_or(Regime::large));
  request.M = regime ? request.M : kAnyM;
  try {
    const Report counted = count(request);
    const Blocks& blocks = counted.kernel.plan.blocks;
    if (!regime && blocks.begin() != blocks.end()) {
      throw UsageError(fmt::format(
          "--symbolic: formulas of {} are others for small caches (M < d^2) than for large ones: "
          "give {} small, {} large, or --n, --d and --M",
          request.kernel, option.flag(), option.flag()));
    }
    SymbolicReport report = report_symbolic(counted);
    report.is_example = true;
    return report;
  } catch (const FastMemoryTooSmall& error) {
    throw UsageError(
        fmt::format("{} {}, with example sizes: {}; give --n, --d and --M in its place",
                    option.flag(), regime ? option.get()->text : "", error.what()));
  }
}

// Returns the formulas of the plan if sizes are given, else the formulas of a regime.
SymbolicReport symbolic_of(Request& request, bool has_M, const TextOption& option) {
  const std::optional<Regime> regime = regime_of(option);
  const bool has_sizes =
      has_M || request.n || request.m || request.d || request.dv || !request.in.empty();
  if (!has_sizes) {
    return report_example(request, regime, option);
  }
  if (regime) {
    throw UsageError(fmt::format("{} {}: sizes have a regime: give the sizes or the regime alone",
                                 option.flag(), option.get()->text));
  }
  if (!has_M) {
    throw UsageError(
        "--M is missing: formulas are those of a plan: give --n, --d and --M, or no size and "
        "--regime small or large");
  }
  return report_symbolic(count(request));
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
        : problem(command, {"heads", "kv_heads", "word", "sums", "word_costs", "in", "make", "seed",
                            "grid", "ranks", "ring"}),
          as(command, "count"),
          pass(command, "--problem", "problem of --as (default: attention)", "attention|gradients"),
          symbolic(command, "--symbolic",
                   "print formulas in n, m, d and block sizes instead of numbers"),
          regime(command, "--regime",
                 "regime of --symbolic: small (M < d^2) or large (d^2 <= M <= n d)", "small|large"),
          format(command, "--format",
                 "output format; latex and sympy need --symbolic (default: table)",
                 "table|json|csv|latex|sympy") {}
    ProblemOptions problem;
    AsOption as;
    TextOption pass;
    Switch symbolic;
    TextOption regime;
    TextOption format;
  };
  const auto options = std::make_shared<Options>(app);
  return [options] {
    const auto symbolic = options->symbolic.from();
    const Format format = symbolic ? Format::table : parse_format(options->format);
    Request request;
    const auto regime = options->regime.get();
    const Settings settings = options->problem.settings();
    const bool has_M = settings.first_of({"M", "device"}).has_value();
    request.M = !symbolic || has_M ? 0 : kAnyM;
    if (regime && !symbolic) {
      throw UsageError(fmt::format("{} '{}': only with --symbolic", regime->from, regime->text));
    }
    const auto as = options->as.get();
    request.objective = symbolic || as ? Objective::words : Objective::balanced;
    if (as && symbolic) {
      throw UsageError(
          fmt::format("{}: {} {} counts numbers: give one of its nests as the kernel, as "
                      "nest:flash-attention-2-forward (redblue list --as)",
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
      if (const auto blocks = settings.first_of({"blocks"})) {
        throw UsageError(fmt::format("{} '{}': {} {} has its tiles", blocks->from, blocks->text,
                                     as->from, as->text));
      }
      options->problem.fill_problem(request);
    }
    if (symbolic) {
      print_formulas(symbolic_of(request, has_M, options->regime), options->format);
      return 0;
    }
    if (!as) {
      Report report = count(request);
      if (request.device) {
        report.calibration = calibration_if_any();
      }
      print(report, format);
      return 0;
    }
    const Pass pass = pass_of(options->pass);
    print(report_as(request, pass, options->as.asked(request, pass)), format);
    return 0;
  };
}

}  // namespace redblue
