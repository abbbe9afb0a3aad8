#include "runtime/report/symbolic_report.hpp"

#include <array>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/report/context.hpp"
#include "runtime/report/word_width.hpp"
#include "runtime/theory/bounds.hpp"

namespace redblue {
namespace {

using Texts = std::vector<std::string>;

constexpr std::string_view kMissing = "no polynomial was found";

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
  std::optional<Texts> terms;  // a peak is a single term
};
std::vector<Line> lines_of(const SymbolicPhase& phase, const FormulaWriter& writer) {
  const auto moved = [&](const std::optional<Polynomial>& of) -> std::optional<Texts> {
    if (!of) {
      return std::nullopt;
    }
    return of->empty() ? Texts{"0"} : writer.terms(*of);
  };
  return {{"reads", moved(phase.reads)},
          {"writes", moved(phase.writes)},
          {"peak", phase.peak ? std::optional(Texts{writer.largest(*phase.peak)}) : std::nullopt}};
}

std::vector<SymbolicPhase> with_total(const SymbolicFormula& formula) {
  std::vector<SymbolicPhase> all = formula.phases;
  all.push_back(formula.total);
  return all;
}

constexpr std::string_view kOnlyTheseBlocks = "plans that have these blocks and no others";

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

std::string lengths(const FormulaCase& of) {
  const Sizes& sizes = of.sizes();
  return fmt::format("n = {} queries, m = {} keys, d = {}{}", sizes[0], sizes[1], sizes[2],
                     of.is_length(3) ? fmt::format(", dv = {}", sizes[3]) : "");
}

// Returns the sizes that give the blocks and the assumptions.
std::string sizes_of_plan(const SymbolicReport& report) {
  return fmt::format("{}, M = {}{}", lengths(report.formula.of), report.plan.M,
                     report.plan.blocks.begin() == report.plan.blocks.end()
                         ? ""
                         : ": " + blocks_text(report.plan.blocks));
}
std::string_view whose_sizes(const SymbolicReport& report) {
  return report.is_example ? "example sizes" : "sizes";
}

// Returns the share of the leading terms in the plan's words.
double leading_part(const SymbolicReport& report, const std::vector<LeadingTerm>& leading) {
  const Sizes& sizes = report.formula.of.sizes();
  double sum = 0;
  for (const LeadingTerm& term : leading) {
    double words = static_cast<double>(term.coefficient);
    for (const std::size_t factor : term.factors) {
      words *= static_cast<double>(sizes[factor]);
    }
    for (const std::size_t divisor : term.divisors) {
      words /= static_cast<double>(sizes[divisor]);
    }
    sum += words;
  }
  const PhaseCost all = total(report.plan.phases);
  return sum / static_cast<double>((all.reads + all.writes).value());
}

// Returns the block as a formula in M.
std::string about(const FormulaWriter& writer, const BlockOfM& block) {
  return fmt::format("{} {} {}", writer.quantity(block.block), writer.about(),
                     writer.block_of_M(block));
}

constexpr std::array kNotations = {std::pair("text", Notation::text),
                                   std::pair("latex", Notation::latex),
                                   std::pair("sympy", Notation::sympy)};

Json notations_json(const SymbolicReport& report, const auto& write) {
  Json json = Json::object();
  for (const auto& [name, notation] : kNotations) {
    json[name] = write(FormulaWriter(report.formula.of, notation));
  }
  return json;
}

Json phase_json(const SymbolicReport& report, const SymbolicPhase& phase) {
  Json json = {{"path", phase.path}};
  for (const auto& [name, notation] : kNotations) {
    const FormulaWriter writer(report.formula.of, notation);
    for (const Line& line : lines_of(phase, writer)) {
      if (line.terms) {
        json[line.name][name] = writer.sum(*line.terms);
      } else {
        json[line.name] = nullptr;
      }
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
std::optional<Leading> leading_of(const SymbolicReport& report) {
  const auto terms = leading_terms(report.formula);
  return terms ? std::optional(Leading{*terms, block_of_M(report.formula, *terms, report.plan.M)})
               : std::nullopt;
}
std::string sum_of(const FormulaWriter& writer, const Leading& leading) {
  return writer.sum(writer.terms(leading.terms));
}
std::string sum_in_M(const FormulaWriter& writer, const Leading& leading) {
  return writer.sum(writer.terms(leading.terms, *leading.block));
}

void add_leading(Description& of, const SymbolicReport& report) {
  const std::optional<Leading> leading = leading_of(report);
  const bool in_M = leading && leading->block;
  const auto notations = [&](bool there, const auto& write) {
    return there ? notations_json(report, write) : Json();
  };
  of.fact("leading", notations(leading.has_value(), [&](const FormulaWriter& writer) {
            return sum_of(writer, *leading);
          }));
  of.fact("leading_in_M",
          notations(in_M, [&](const FormulaWriter& writer) { return sum_in_M(writer, *leading); }));
  of.fact("leading_in_M_with", notations(in_M, [&](const FormulaWriter& writer) {
            return about(writer, *leading->block);
          }));
  if (!leading) {
    return;
  }
  const FormulaWriter writer(report.formula.of, Notation::text);
  of.say("for n and m large, words: {}", sum_of(writer, *leading));
  if (in_M) {
    of.say("  with {}: {}", about(writer, *leading->block), sum_in_M(writer, *leading));
  }
  of.say("  {:.1f}% of the exact words at these sizes", 100 * leading_part(report, leading->terms));
}

std::vector<Cells> phase_rows(const SymbolicReport& report, const SymbolicPhase& phase,
                              const Texts& where) {
  const FormulaWriter writer(report.formula.of, Notation::text);
  const FormulaWriter sympy(report.formula.of, Notation::sympy);
  const auto cell = [](const FormulaWriter& by, const Line& line) {
    return line.terms ? CellValue(by.sum(*line.terms)) : CellValue(nullptr);
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
  SymbolicReport report = {.plan = plan,
                           .formula = symbolic_formula(find_kernel(plan.kernel), plan),
                           .M_from = counted.M_from};
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
  const FormulaWriter writer(report.formula.of, Notation::text);
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
  for (const SymbolicPhase& phase : report.formula.phases) {
    phases.push_back(phase_json(report, phase));
  }
  of.fact("phases", std::move(phases));
  for (const SymbolicPhase& phase : with_total(report.formula)) {
    of.say("\n{}", phase.path);
    for (const Line& line : lines_of(phase, writer)) {
      of.say("  {:<6}  {}", line.name,
             line.terms ? wrapped(*line.terms, " ", "\n          ", 90) : std::string(kMissing));
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
  const FormulaWriter writer(report.formula.of, Notation::latex);
  Texts equations;
  for (const SymbolicPhase& phase : with_total(report.formula)) {
    for (const Line& line : lines_of(phase, writer)) {
      equations.push_back(fmt::format("\\mathrm{{{}}}_{{\\mathrm{{{}}}}} &= {}", line.name,
                                      latex_name(phase.path),
                                      line.terms ? wrapped(*line.terms, " ", " \\\\\n&\\quad ", 140)
                                                 : fmt::format("\\text{{{}}}", kMissing)));
    }
  }
  std::string text = fmt::format(
      "% {}: words; needs \\usepackage{{amsmath}}\n\\begin{{align*}}\n{}\n\\end{{align*}}\n",
      spelled(report.plan), fmt::join(equations, " \\\\\n"));
  if (const auto leading = leading_of(report)) {
    text += fmt::format("For $n$ and $m$ large: ${}$ words.\n", sum_of(writer, *leading));
    if (leading->block) {
      text += fmt::format("With ${}$: ${}$.\n", about(writer, *leading->block),
                          sum_in_M(writer, *leading));
    }
  }
  const Texts where = assumptions(report, writer);
  if (!where.empty()) {
    text +=
        fmt::format("Where ${}$,\nof {}.\n", wrapped(where, "$, $", "$,\n$", 80), kOnlyTheseBlocks);
  }
  return text + fmt::format("% {}: {}\n", whose_sizes(report), sizes_of_plan(report));
}

std::string to_sympy(const SymbolicReport& report) {
  const FormulaCase& of = report.formula.of;
  const FormulaWriter writer(of, Notation::sympy);
  Texts names;
  for (std::size_t which = 0; which < of.quantities().size(); ++which) {
    if (!of.whole(which)) {
      names.push_back(writer.quantity(which));
    }
  }
  names.emplace_back("M");
  const Texts where = assumptions(report, writer);
  std::string text = fmt::format(
      "# {}: words\n{}# of {}\n# {}: {}\nfrom sympy import Max, ceiling, sqrt, symbols\n\n"
      "{} = symbols(\n    \"{}\", integer=True, positive=True)\nphases = {{\n",
      spelled(report.plan),
      where.empty() ? "" : fmt::format("# where {}\n", wrapped(where, ", ", ",\n#   ", 90)),
      kOnlyTheseBlocks, whose_sizes(report), sizes_of_plan(report), fmt::join(names, ", "),
      fmt::join(names, " "));
  const auto dictionary = [&](const SymbolicPhase& phase) {
    std::string entries;
    for (const Line& line : lines_of(phase, writer)) {
      entries += fmt::format(
          "        \"{}\": {},\n", line.name,
          line.terms ? wrapped(*line.terms, " ", "\n        ", 80) : std::string("None"));
    }
    return entries;
  };
  for (const SymbolicPhase& phase : report.formula.phases) {
    text += fmt::format("    \"{}\": {{\n{}    }},\n", phase.path, dictionary(phase));
  }
  text += fmt::format("}}\ntotal = {{\n{}}}\n", dictionary(report.formula.total));
  if (const auto leading = leading_of(report)) {
    text += fmt::format("leading = {}  # for n and m large\n", sum_of(writer, *leading));
    if (leading->block) {
      text += fmt::format("leading_in_M = {}  # with {}\n", sum_in_M(writer, *leading),
                          about(writer, *leading->block));
    }
  }
  return text;
}

}  // namespace redblue
