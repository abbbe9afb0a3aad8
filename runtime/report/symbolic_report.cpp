#include "runtime/report/symbolic_report.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/report/context.hpp"
#include "runtime/report/word_width.hpp"
#include "runtime/text/cells.hpp"
#include "runtime/theory/bounds.hpp"

namespace redblue {
namespace {

using Texts = std::vector<std::string>;

constexpr std::string_view kMissing = "no polynomial was found";

// Pieces on lines of about so many letters.
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
  std::optional<Texts> terms;  // of a peak one, which is whole
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

// The assumptions of the formulas: regime, blocks, order of sizes.
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

// The sizes that the blocks and the assumptions are of.
std::string sizes_of_plan(const SymbolicReport& report) {
  return fmt::format("{}, M = {}{}", lengths(report.formula.of), report.plan.M,
                     report.plan.blocks.begin() == report.plan.blocks.end()
                         ? ""
                         : ": " + blocks_text(report.plan.blocks));
}
std::string_view whose_sizes(const SymbolicReport& report) {
  return report.is_example ? "example sizes" : "sizes";
}

// Of the words of the plan, those of the leading terms.
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

// What a leading term takes for a block.
std::string about(const FormulaWriter& writer, const BlockOfM& block) {
  return fmt::format("{} {} {}", writer.quantity(block.block), writer.about(),
                     writer.block_of_M(block));
}

Json notations_json(const SymbolicReport& report, const auto& write) {
  Json json = Json::object();
  for (const auto& [name, notation] : {std::pair("text", Notation::text),
                                       {"latex", Notation::latex},
                                       {"sympy", Notation::sympy}}) {
    json[name] = write(FormulaWriter(report.formula.of, notation));
  }
  return json;
}

Json phase_json(const SymbolicReport& report, const SymbolicPhase& phase) {
  Json json = {{"path", phase.path}};
  const auto put = [&](const char* name, const auto& of, const auto& write) {
    json[name] =
        of ? notations_json(report, [&](const FormulaWriter& writer) { return write(writer, *of); })
           : Json();
  };
  const auto sum = [](const FormulaWriter& writer, const Polynomial& of) {
    return writer.sum(writer.terms(of));
  };
  put("reads", phase.reads, sum);
  put("writes", phase.writes, sum);
  put("peak", phase.peak,
      [](const FormulaWriter& writer, const auto& of) { return writer.largest(of); });
  return json;
}

}  // namespace

SymbolicReport report_symbolic(const Report& counted) {
  const Plan& plan = counted.kernel.plan;
  const auto refuse = [&](std::string_view what) {
    throw RequestError(fmt::format("--symbolic: {}", what));
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
                           .M_from = counted.M_from,
                           .regime = std::nullopt};
  if (plan.blocks.begin() != plan.blocks.end()) {
    const Shape& shape = plan.problem.shape;
    report.regime = Words(plan.M) < dividing_point(shape)       ? Regime::small
                    : Words(plan.M) <= Words(shape.n) * shape.d ? Regime::large
                                                                : Regime::beyond;
  }
  return report;
}

std::string to_table(const SymbolicReport& report) {
  const FormulaWriter writer(report.formula.of, Notation::text);
  std::string text = fmt::format("{}: reads, writes and peak, {}\n", spelled(report.plan),
                                 in_words(report.plan.problem));
  for (const SymbolicPhase& phase : with_total(report.formula)) {
    text += fmt::format("\n{}\n", phase.path);
    for (const Line& line : lines_of(phase, writer)) {
      text += fmt::format(
          "  {:<6}  {}\n", line.name,
          line.terms ? wrapped(*line.terms, " ", "\n          ", 90) : std::string(kMissing));
    }
  }
  const Texts where = assumptions(report, writer);
  text += fmt::format("\nceil(n/B): the blocks of B that n is cut into; peak <= M; of {}{}\n",
                      kOnlyTheseBlocks,
                      where.empty() ? "" : "\nwhere " + wrapped(where, ", ", ",\n      ", 90));
  if (const auto leading = leading_terms(report.formula)) {
    text += fmt::format("for n and m large, words: {}\n", writer.sum(writer.terms(*leading)));
    if (const auto block = block_of_M(report.formula, *leading, report.plan.M)) {
      text += fmt::format("  with {}: {}\n", about(writer, *block),
                          writer.sum(writer.terms(*leading, *block)));
    }
    text +=
        fmt::format("  {:.1f}% of those of these sizes\n", 100 * leading_part(report, *leading));
  }
  text += fmt::format("{}: {}\n", whose_sizes(report), sizes_of_plan(report));
  return text;
}

std::string to_json(const SymbolicReport& report) {
  const Plan& plan = report.plan;
  const Shape& shape = plan.problem.shape;
  Json json = {{"schema", kSchema},
               {"context", context_json(report.M_from)},
               {"kernel", spelled(plan)},
               {"n", shape.n},
               {"m", shape.m},
               {"d", shape.d}};
  if (shape.dv != shape.d) {
    json["dv"] = shape.dv;
  }
  json["M"] = plan.M;
  json["sizes"] = report.is_example ? "example" : "given";
  json["regime"] = report.regime ? Json(to_string(*report.regime)) : Json();
  json.update(json_of(width_cells(plan.problem)));
  json["blocks"] = blocks_json(plan.blocks);
  Json phases = Json::array();
  for (const SymbolicPhase& phase : report.formula.phases) {
    phases.push_back(phase_json(report, phase));
  }
  json["phases"] = phases;
  json["total"] = phase_json(report, report.formula.total);
  const auto leading = leading_terms(report.formula);
  const auto block =
      leading ? block_of_M(report.formula, *leading, plan.M) : std::optional<BlockOfM>();
  json["leading"] = nullptr;
  json["leading_in_M"] = nullptr;
  json["leading_in_M_with"] = nullptr;
  if (leading) {
    json["leading"] = notations_json(
        report, [&](const FormulaWriter& writer) { return writer.sum(writer.terms(*leading)); });
  }
  if (block) {
    json["leading_in_M"] = notations_json(report, [&](const FormulaWriter& writer) {
      return writer.sum(writer.terms(*leading, *block));
    });
    json["leading_in_M_with"] =
        notations_json(report, [&](const FormulaWriter& writer) { return about(writer, *block); });
  }
  json["where"] = assumptions(report, FormulaWriter(report.formula.of, Notation::text));
  return json.document();
}

std::string to_csv(const SymbolicReport& report) {
  const FormulaWriter writer(report.formula.of, Notation::text);
  const FormulaWriter sympy(report.formula.of, Notation::sympy);
  const std::string where = fmt::format("{}", fmt::join(assumptions(report, writer), ", "));
  std::vector<Cells> rows;
  for (const SymbolicPhase& phase : with_total(report.formula)) {
    const std::vector<Line> lines = lines_of(phase, writer);
    const std::vector<Line> programs = lines_of(phase, sympy);
    for (std::size_t k = 0; k < lines.size(); ++k) {
      const auto cell = [](const FormulaWriter& by, const Line& line) {
        return line.terms ? CellValue(by.sum(*line.terms)) : CellValue(nullptr);
      };
      rows.push_back({{"kernel", spelled(report.plan)},
                      {"path", phase.path},
                      {"metric", lines[k].name},
                      {"formula", cell(writer, lines[k])},
                      {"sympy", cell(sympy, programs[k])},
                      {"where", where},
                      {"sizes", report.is_example ? "example" : "given"},
                      {"n", report.plan.problem.shape.n},
                      {"m", report.plan.problem.shape.m},
                      {"d", report.plan.problem.shape.d},
                      {"M", report.plan.M},
                      {"blocks", blocks_text(report.plan.blocks)}});
    }
  }
  return csv_of(rows);
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
  if (const auto leading = leading_terms(report.formula)) {
    text += fmt::format("For $n$ and $m$ large: ${}$ words.\n", writer.sum(writer.terms(*leading)));
    if (const auto block = block_of_M(report.formula, *leading, report.plan.M)) {
      text += fmt::format("With ${}$: ${}$.\n", about(writer, *block),
                          writer.sum(writer.terms(*leading, *block)));
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
  if (const auto leading = leading_terms(report.formula)) {
    text += fmt::format("leading = {}  # for n and m large\n", writer.sum(writer.terms(*leading)));
    if (const auto block = block_of_M(report.formula, *leading, report.plan.M)) {
      text += fmt::format("leading_in_M = {}  # with {}\n",
                          writer.sum(writer.terms(*leading, *block)), about(writer, *block));
    }
  }
  return text;
}

}  // namespace redblue
