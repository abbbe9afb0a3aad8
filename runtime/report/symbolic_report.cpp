#include "runtime/report/symbolic_report.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kernels/nests/nest_kernel.hpp"
#include "runtime/report/context.hpp"
#include "runtime/report/nest_report.hpp"
#include "runtime/report/word_width.hpp"
#include "runtime/theory/bounds.hpp"

namespace redblue {
namespace {

using Texts = std::vector<std::string>;

// Joins pieces into lines of similar length.
std::string wrapped(const Texts& pieces, std::string_view between, std::string_view line_break,
                    std::size_t width) {
  std::string text;
  std::size_t column = 0;
  for (std::size_t k = 0; k < pieces.size(); ++k) {
    const bool full = k > 0 && column + pieces[k].size() > width;
    text += k == 0 ? "" : full ? line_break : between;
    text += pieces[k];
    column = (full ? 0 : column + between.size()) + pieces[k].size();
  }
  return text;
}

// A metric of a phase.
struct Line {
  std::string_view name;
  Texts terms;  // pieces of the formula, with blanks between them
};
std::vector<Line> lines_of(const PhaseFormula& phase, const FormulaWriter& writer) {
  const auto moved = [&](const Polynomial& of) {
    return of.empty() ? Texts{"0"} : writer.terms(of);
  };
  return {{"reads", moved(phase.reads)},
          {"writes", moved(phase.writes)},
          {"peak", writer.largest(phase.peak)}};
}

std::vector<PhaseFormula> with_total(const NestFormula& formula) {
  std::vector<PhaseFormula> all = formula.phases;
  all.push_back(formula.total);
  return all;
}

constexpr std::string_view kOnlyTheseBlocks = "plans with exactly these blocks";

std::string_view to_string(Regime regime) {
  switch (regime) {
    case Regime::small:
      return "small";
    case Regime::large:
      return "large";
    case Regime::beyond:
      return "beyond";
  }
  return "";
}

// Returns the assumptions of the formulas: regime, blocks, order of sizes.
Texts assumptions(const SymbolicReport& report, const FormulaWriter& writer) {
  Texts all = report.regime ? writer.regime(*report.regime) : Texts();
  const Texts conditions = writer.conditions();
  all.insert(all.end(), conditions.begin(), conditions.end());
  return all;
}

std::string lengths(const Shape& shape) {
  return fmt::format("n = {} queries, m = {} keys, d = {}{}", shape.n, shape.m, shape.d,
                     shape.dv != shape.d ? fmt::format(", dv = {}", shape.dv) : "");
}

// Returns the sizes that give the blocks and the assumptions.
std::string sizes_of_plan(const SymbolicReport& report) {
  return fmt::format("{}, M = {}{}", lengths(report.plan.problem.shape), report.plan.M,
                     report.plan.blocks.begin() == report.plan.blocks.end()
                         ? ""
                         : ": " + blocks_text(report.plan.blocks));
}
std::string_view whose_sizes(const SymbolicReport& report) {
  return report.is_example ? "example sizes" : "sizes";
}

// Returns the share of the leading terms in the plan's words.
double leading_part(const SymbolicReport& report, const std::vector<LeadingTerm>& leading) {
  const std::vector<Index>& sizes = report.formula.sizes;
  double sum = 0;
  for (const LeadingTerm& term : leading) {
    double words = static_cast<double>(term.coefficient) / static_cast<double>(term.divisor);
    for (const SymbolId factor : term.factors) {
      words *= static_cast<double>(sizes[factor]);
    }
    for (const SymbolId divisor : term.divisors) {
      words /= static_cast<double>(sizes[divisor]);
    }
    sum += words;
  }
  const PhaseCost all = total(report.plan.phases);
  return sum / static_cast<double>((all.reads + all.writes).value());
}

// Returns the block as a formula in M.
std::string about(const FormulaWriter& writer, const BlockOfM& block) {
  return fmt::format("{} {} {}", writer.symbol(block.block), writer.about(),
                     writer.block_of_M(block));
}

constexpr std::array kNotations = {std::pair("text", Notation::text),
                                   std::pair("latex", Notation::latex),
                                   std::pair("sympy", Notation::sympy)};

Json notations_json(const SymbolicReport& report, const auto& write) {
  Json json = Json::object();
  for (const auto& [name, notation] : kNotations) {
    json[name] = write(FormulaWriter(report.formula, notation));
  }
  return json;
}

Json phase_json(const SymbolicReport& report, const PhaseFormula& phase) {
  Json json = {{"path", phase.path}};
  for (const auto& [name, notation] : kNotations) {
    const FormulaWriter writer(report.formula, notation);
    for (const Line& line : lines_of(phase, writer)) {
      json[line.name][name] = writer.sum(line.terms);
    }
  }
  return json;
}

// The terms that dominate for large n and m. `block` is set if the kernel has a block that the
// terms can express by M.
struct Leading {
  std::vector<LeadingTerm> terms;
  std::optional<BlockOfM> block;
};
Leading leading_of(const SymbolicReport& report) {
  const std::vector<LeadingTerm> terms = leading_terms(report.formula);
  return {terms, block_of_M(report.formula, terms, report.plan.M)};
}
std::string sum_of(const FormulaWriter& writer, const Leading& leading) {
  return writer.sum(writer.terms(leading.terms));
}
std::string sum_in_M(const FormulaWriter& writer, const Leading& leading) {
  return writer.sum(writer.terms(leading.terms, *leading.block));
}

void add_leading(Description& of, const SymbolicReport& report) {
  const Leading leading = leading_of(report);
  const bool in_M = leading.block.has_value();
  const auto if_in_M = [&](const auto& write) {
    return in_M ? notations_json(report, write) : Json();
  };
  of.fact("leading", notations_json(report, [&](const FormulaWriter& writer) {
            return sum_of(writer, leading);
          }));
  of.fact("leading_in_M",
          if_in_M([&](const FormulaWriter& writer) { return sum_in_M(writer, leading); }));
  of.fact("leading_in_M_with",
          if_in_M([&](const FormulaWriter& writer) { return about(writer, *leading.block); }));
  const FormulaWriter writer(report.formula, Notation::text);
  of.say("for n and m large, words: {}", sum_of(writer, leading));
  if (in_M) {
    of.say("  with {}: {}", about(writer, *leading.block), sum_in_M(writer, leading));
  }
  of.say("  {:.1f}% of the exact words at these sizes", 100 * leading_part(report, leading.terms));
}

std::vector<Cells> phase_rows(const SymbolicReport& report, const PhaseFormula& phase,
                              const Texts& where) {
  const FormulaWriter writer(report.formula, Notation::text);
  const FormulaWriter sympy(report.formula, Notation::sympy);
  const auto cell = [](const FormulaWriter& by, const Line& line) {
    return CellValue(by.sum(line.terms));
  };
  const std::vector<Line> programs = lines_of(phase, sympy);
  std::size_t k = 0;
  return rows_of(lines_of(phase, writer), [&](const Line& line) -> Cells {
    return {{in_csv("kernel"), spelled(report.plan)},
            {in_csv("path"), phase.path},
            {in_csv("metric"), line.name},
            {in_csv("formula"), cell(writer, line)},
            {in_csv("sympy"), cell(sympy, programs[k++])},
            {in_csv("where"), fmt::format("{}", fmt::join(where, ", "))},
            {in_csv("sizes"), report.is_example ? "example" : "given"},
            {in_csv("n"), report.plan.problem.shape.n},
            {in_csv("m"), report.plan.problem.shape.m},
            {in_csv("d"), report.plan.problem.shape.d},
            {in_csv("M"), report.plan.M},
            {in_csv("blocks"), blocks_text(report.plan.blocks)}};
  });
}

// Returns the formula of the plan's nest. A nest that describes only some plans of its kernel has
// other words for the rest.
NestFormula formula_of(const Plan& plan) {
  const auto refuse = [&] {
    throw UsageError(fmt::format(
        "--symbolic: formulas follow from nests, and no nest describes this plan of {}: give other "
        "options or blocks, or leave out --symbolic",
        spelled(plan)));
  };
  const Kernel* nest = &find_kernel(plan.kernel);
  if (!nest->is_nest) {
    try {
      nest = &load_nest("nest of " + plan.kernel, nest_text(plan), plan.kernel + ".nest");
    } catch (const UsageError&) {
      refuse();
    }
  }
  NestFormula formula = redblue::formula_of(*nest, plan);
  const auto value = [&](const Polynomial& of) {
    return Words(formula.atoms.value(of, formula.sizes));
  };
  const bool is = std::ranges::equal(
      formula.phases, plan.phases, [&](const PhaseFormula& phase, const PhaseCost& counted) {
        return phase.path == counted.path && value(phase.reads) == counted.reads &&
               value(phase.writes) == counted.writes &&
               Words(peak(formula, phase, formula.sizes)) == counted.peak;
      });
  if (!is) {
    refuse();
  }
  return formula;
}

}  // namespace

SymbolicReport report_symbolic(const Report& counted) {
  const Plan& plan = counted.kernel.plan;
  const auto refuse = [&](std::string_view what) {
    throw UsageError(fmt::format("--symbolic: {}", what));
  };
  if (!plan.problem.sparsity.dense()) {
    refuse(fmt::format("words of {} depend on where entries are: there is no formula in lengths",
                       plan.kernel));
  }
  if (!plan.problem.mask.full()) {
    refuse("words under a mask depend on which pairs live: leave --mask out");
  }
  if (!plan.inner.empty() || counted.kernel.team.workers > 1 || counted.kernel.team.heads > 1 ||
      plan.problem.stacked > 1 || counted.kernel.ranks) {
    refuse(
        "formulas are of one head, on one machine of one level: leave --heads, --threads, "
        "--ranks and --grid out, and give one --M");
  }
  SymbolicReport report = {.plan = plan, .formula = formula_of(plan), .M_from = counted.M_from};
  if (plan.blocks.begin() != plan.blocks.end()) {
    const Shape& shape = plan.problem.shape;
    report.regime = Words(plan.M) < dividing_point(shape)       ? Regime::small
                    : Words(plan.M) <= Words(shape.n) * shape.d ? Regime::large
                                                                : Regime::beyond;
  }
  return report;
}

Description describe(const SymbolicReport& report) {
  const Plan& plan = report.plan;
  const Shape& shape = plan.problem.shape;
  const FormulaWriter writer(report.formula, Notation::text);
  const Texts where = assumptions(report, writer);
  Description of = begin_report(
      fmt::format("{}: reads, writes and peak, {}", spelled(plan), in_words(plan.problem)));
  of.facts({{in_json("context"), context_json(report.M_from)},
            {in_json("kernel"), spelled(plan)},
            {in_json("n"), shape.n},
            {in_json("m"), shape.m},
            {in_json("d"), shape.d},
            {in_json(shape.dv != shape.d ? "dv" : ""), shape.dv},
            {in_json("M"), plan.M},
            {in_json("sizes"), report.is_example ? "example" : "given"},
            {in_json("regime"), report.regime ? Json(to_string(*report.regime)) : Json()},
            {in_json("blocks"), blocks_json(plan.blocks)},
            {in_json("total"), phase_json(report, report.formula.total)},
            {in_json("where"), where}});
  of.facts(only_in_json(width_cells(plan.problem)));
  Json phases = Json::array();
  for (const PhaseFormula& phase : report.formula.phases) {
    phases.push_back(phase_json(report, phase));
  }
  of.fact("phases", std::move(phases));
  for (const PhaseFormula& phase : with_total(report.formula)) {
    of.say("\n{}", phase.path);
    for (const Line& line : lines_of(phase, writer)) {
      of.say("  {:<6}  {}", line.name, wrapped(line.terms, " ", "\n          ", 90));
    }
    of.table("", phase_rows(report, phase, where));
  }
  of.say("\nceil(n/B): the blocks of B that n is cut into; peak <= M; of {}{}", kOnlyTheseBlocks,
         where.empty() ? "" : "\nwhere " + wrapped(where, ", ", ",\n      ", 90));
  add_leading(of, report);
  of.say("{}: {}", whose_sizes(report), sizes_of_plan(report));
  return of;
}

std::string to_latex(const SymbolicReport& report) {
  const FormulaWriter writer(report.formula, Notation::latex);
  Texts equations;
  for (const PhaseFormula& phase : with_total(report.formula)) {
    for (const Line& line : lines_of(phase, writer)) {
      equations.push_back(fmt::format("\\mathrm{{{}}}_{{\\mathrm{{{}}}}} &= {}", line.name,
                                      latex_name(phase.path),
                                      wrapped(line.terms, " ", " \\\\\n&\\quad ", 140)));
    }
  }
  std::string text = fmt::format(
      "% {}: words; needs \\usepackage{{amsmath}}\n\\begin{{align*}}\n{}\n\\end{{align*}}\n",
      spelled(report.plan), fmt::join(equations, " \\\\\n"));
  const Leading leading = leading_of(report);
  text += fmt::format("For $n$ and $m$ large: ${}$ words.\n", sum_of(writer, leading));
  if (leading.block) {
    text +=
        fmt::format("With ${}$: ${}$.\n", about(writer, *leading.block), sum_in_M(writer, leading));
  }
  const Texts where = assumptions(report, writer);
  if (!where.empty()) {
    text +=
        fmt::format("Where ${}$,\nof {}.\n", wrapped(where, "$, $", "$,\n$", 80), kOnlyTheseBlocks);
  }
  return text + fmt::format("% {}: {}\n", whose_sizes(report), sizes_of_plan(report));
}

std::string to_sympy(const SymbolicReport& report) {
  const NestFormula& of = report.formula;
  const FormulaWriter writer(of, Notation::sympy);
  Texts names = {"n", "m", "d"};
  for (const SymbolId symbol : of.free) {
    if (symbol > kExtentD && symbol != kFastWords) {
      names.push_back(writer.symbol(symbol));
    }
  }
  names.emplace_back("M");
  const Texts where = assumptions(report, writer);
  std::string text = fmt::format(
      "# {}: words\n{}# of {}\n# {}: {}\nfrom sympy import Max, Min, ceiling, floor, sqrt, "
      "symbols\n\n"
      "{} = symbols(\n    \"{}\", integer=True, positive=True)\nphases = {{\n",
      spelled(report.plan),
      where.empty() ? "" : fmt::format("# where {}\n", wrapped(where, ", ", ",\n#   ", 90)),
      kOnlyTheseBlocks, whose_sizes(report), sizes_of_plan(report), fmt::join(names, ", "),
      fmt::join(names, " "));
  const auto dictionary = [&](const PhaseFormula& phase) {
    std::string entries;
    for (const Line& line : lines_of(phase, writer)) {
      entries += fmt::format("        \"{}\": {},\n", line.name,
                             wrapped(line.terms, " ", "\n        ", 80));
    }
    return entries;
  };
  for (const PhaseFormula& phase : report.formula.phases) {
    text += fmt::format("    \"{}\": {{\n{}    }},\n", phase.path, dictionary(phase));
  }
  text += fmt::format("}}\ntotal = {{\n{}}}\n", dictionary(report.formula.total));
  const Leading leading = leading_of(report);
  text += fmt::format("leading = {}  # for n and m large\n", sum_of(writer, leading));
  if (leading.block) {
    text += fmt::format("leading_in_M = {}  # with {}\n", sum_in_M(writer, leading),
                        about(writer, *leading.block));
  }
  return text;
}

}  // namespace redblue
