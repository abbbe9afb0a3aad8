#include "runtime/report/notation.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace redblue {
namespace {

// Splits "S.rows", the block `rows` of the phase S, at its last point.
std::pair<std::string_view, std::string_view> split_name(std::string_view name) {
  const std::size_t point = name.rfind('.');
  return point == std::string_view::npos ? std::pair<std::string_view, std::string_view>("", name)
                                         : std::pair(name.substr(0, point), name.substr(point + 1));
}

std::string latex_block(std::string_view name) {
  const auto [phase, block] = split_name(name);
  const bool letters = block.size() == 2 && block[0] == 'B';
  const std::string letter = letters             ? "B"
                             : block.size() == 1 ? std::string(block)
                                                 : fmt::format("\\mathit{{{}}}", block);
  std::string index = letters ? std::string(1, block[1]) : "";
  if (!phase.empty()) {
    index += fmt::format("{}\\mathrm{{{}}}", index.empty() ? "" : ",", phase);
  }
  return index.empty() ? letter : fmt::format("{}_{{{}}}", letter, index);
}

// Joins equal factors into one power.
std::vector<std::string> powers(const std::vector<std::string>& factors, Notation notation) {
  std::vector<std::string> all;
  for (std::size_t k = 0; k < factors.size();) {
    std::size_t end = k;
    while (end < factors.size() && factors[end] == factors[k]) {
      ++end;
    }
    const std::size_t power = end - k;
    all.push_back(power == 1                    ? factors[k]
                  : notation == Notation::sympy ? fmt::format("{}**{}", factors[k], power)
                  : notation == Notation::latex ? fmt::format("{{{}}}^{{{}}}", factors[k], power)
                                                : fmt::format("{}^{}", factors[k], power));
    k = end;
  }
  return all;
}

}  // namespace

std::string latex_name(std::string_view name) {
  std::string text;
  for (const char letter : name) {
    text += letter == '_' ? "\\_" : std::string(1, letter);
  }
  return text;
}

std::string FormulaWriter::symbol(SymbolId symbol) const {
  std::string name = of_.names[symbol];
  if (notation_ == Notation::latex && symbol >= kExtents) {
    return latex_block(name);
  }
  if (notation_ == Notation::latex && symbol == kExtentDv) {
    return "d_{v}";
  }
  if (notation_ == Notation::sympy) {
    std::ranges::replace_if(
        name, [](char letter) { return letter == '.' || letter == ' '; }, '_');
  }
  return name;
}

std::string FormulaWriter::quotient(const Polynomial& a, const Polynomial& b) const {
  const auto above = sum(terms(a)), below = sum(terms(b));
  if (notation_ == Notation::latex) {
    return fmt::format("\\tfrac{{{}}}{{{}}}", above, below);
  }
  const auto in_brackets = [](const std::string& text, std::string_view apart) {
    return text.find_first_of(apart) == std::string::npos ? text : fmt::format("({})", text);
  };
  return fmt::format("{}/{}", in_brackets(above, a.size() > 1 ? " " : ""),
                     in_brackets(below, " *"));
}

std::string FormulaWriter::atom(AtomId id) const {
  const Atom& atom = of_.atoms[id];
  const bool latex = notation_ == Notation::latex, sympy = notation_ == Notation::sympy;
  switch (atom.kind) {
    case Atom::Kind::symbol:
      return symbol(atom.symbol);
    case Atom::Kind::ceil:
      return latex ? fmt::format("\\left\\lceil {} \\right\\rceil", quotient(atom.a, atom.b))
                   : fmt::format("{}({})", sympy ? "ceiling" : "ceil", quotient(atom.a, atom.b));
    case Atom::Kind::floor:
      return latex ? fmt::format("\\left\\lfloor {} \\right\\rfloor", quotient(atom.a, atom.b))
                   : fmt::format("floor({})", quotient(atom.a, atom.b));
    case Atom::Kind::rest:  // formulas write it out
      break;
    case Atom::Kind::min:
      return fmt::format("{}({}, {}{}",
                         latex   ? "\\min\\left"
                         : sympy ? "Min"
                                 : "min",
                         sum(terms(atom.a)), sum(terms(atom.b)), latex ? "\\right)" : ")");
    case Atom::Kind::max:
      return fmt::format("{}({}, {}{}",
                         latex   ? "\\max\\left"
                         : sympy ? "Max"
                                 : "max",
                         sum(terms(atom.a)), sum(terms(atom.b)), latex ? "\\right)" : ")");
  }
  return "";
}

std::string FormulaWriter::product(Index coefficient, const std::vector<std::string>& factors,
                                   const std::vector<std::string>& divisors) const {
  std::vector<std::string> all = powers(factors, notation_);
  const Index number = std::abs(coefficient);
  if (number != 1 || all.empty()) {
    all.insert(all.begin(), fmt::format("{}", number));
  }
  const std::string_view times = notation_ == Notation::sympy   ? "*"
                                 : notation_ == Notation::latex ? "\\,"
                                                                : " ";
  const std::string above = fmt::format("{}", fmt::join(all, times));
  if (divisors.empty()) {
    return above;
  }
  const std::string below = fmt::format("{}", fmt::join(powers(divisors, notation_), times));
  return notation_ == Notation::latex ? fmt::format("\\frac{{{}}}{{{}}}", above, below)
         : below.find_first_of(" *") == std::string::npos ? fmt::format("{}/{}", above, below)
                                                          : fmt::format("{}/({})", above, below);
}

std::vector<std::string> FormulaWriter::terms(const Polynomial& of) const {
  std::vector<std::pair<Monomial, Index>> sorted(of.begin(), of.end());
  // Positive terms come first among those of one degree.
  std::ranges::stable_sort(sorted, std::ranges::greater(), [](const auto& term) {
    return std::pair(term.first.size(), term.second > 0);
  });
  const auto positive =
      std::ranges::find_if(sorted, [](const auto& term) { return term.second > 0; });
  if (positive != sorted.end()) {
    std::rotate(sorted.begin(), positive, positive + 1);
  }
  std::vector<std::string> all;
  for (const auto& [monomial, coefficient] : sorted) {
    std::vector<std::string> factors;
    for (const bool counted : {false, true}) {
      for (const AtomId factor : monomial) {
        if ((of_.atoms[factor].kind != Atom::Kind::symbol) == counted) {
          factors.push_back(atom(factor));
        }
      }
    }
    all.push_back((coefficient < 0 ? "- "
                   : all.empty()   ? ""
                                   : "+ ") +
                  product(coefficient, factors, {}));
  }
  return all;
}

std::vector<std::string> FormulaWriter::names(const std::vector<SymbolId>& which) const {
  std::vector<std::string> all;
  for (const SymbolId one : which) {
    all.push_back(symbol(one));
  }
  return all;
}

std::vector<std::string> FormulaWriter::terms(const std::vector<LeadingTerm>& of) const {
  std::vector<std::string> all;
  for (const LeadingTerm& term : of) {
    std::vector<std::string> divisors = names(term.divisors);
    if (term.divisor != 1) {
      divisors.insert(divisors.begin(), fmt::format("{}", term.divisor));
    }
    all.push_back((term.coefficient < 0 ? "- "
                   : all.empty()        ? ""
                                        : "+ ") +
                  product(term.coefficient, names(term.factors), divisors));
  }
  return all;
}

std::string FormulaWriter::root(const std::string& of) const {
  return notation_ == Notation::latex ? fmt::format("\\sqrt{{{}}}", of)
                                      : fmt::format("sqrt({})", of);
}

std::string FormulaWriter::block_of_M(const BlockOfM& block) const {
  if (block.squared) {
    return root(fmt::format("M/{}", block.coefficient));
  }
  const std::vector<std::string> below = names(block.lengths);
  return product(1, {"M"}, {product(block.coefficient, below, {})});
}

std::vector<std::string> FormulaWriter::terms(const std::vector<LeadingTerm>& of,
                                              const BlockOfM& block) const {
  const auto side = static_cast<Index>(std::llround(std::sqrt(block.coefficient)));
  const bool whole = side * side == block.coefficient;
  std::vector<std::string> all;
  for (const LeadingTerm& term : of) {
    Index coefficient = term.coefficient;
    std::vector<SymbolId> lengths = term.factors;
    std::vector<std::string> roots, below;
    if (!term.divisors.empty() && block.squared) {
      coefficient *= whole ? side : 1;
      (whole ? below : roots).push_back(root(whole ? "M" : fmt::format("{}/M", block.coefficient)));
    } else if (!term.divisors.empty()) {
      coefficient *= block.coefficient;
      lengths.insert(lengths.end(), block.lengths.begin(), block.lengths.end());
      below.emplace_back("M");
    }
    std::ranges::sort(lengths);
    std::vector<std::string> factors = names(lengths);
    factors.insert(factors.end(), roots.begin(), roots.end());
    all.push_back((coefficient < 0 ? "- "
                   : all.empty()   ? ""
                                   : "+ ") +
                  product(coefficient, factors, below));
  }
  return all;
}

std::string FormulaWriter::sum(const std::vector<std::string>& terms) const {
  return terms.empty() ? "0" : fmt::format("{}", fmt::join(terms, " "));
}

std::vector<std::string> FormulaWriter::largest(const std::vector<Polynomial>& of) const {
  std::vector<std::string> all;
  for (const Polynomial& one : of) {
    all.push_back(sum(terms(one)));
  }
  if (all.size() == 1) {
    return all;
  }
  if (notation_ == Notation::latex) {
    return {fmt::format("\\max\\left({}\\right)", fmt::join(all, ",\\; "))};
  }
  all.front().insert(0, notation_ == Notation::sympy ? "Max(" : "max(");
  for (std::string& one : all) {
    one += &one == &all.back() ? ")" : ",";
  }
  return all;
}

std::string FormulaWriter::condition(const SizeCondition& condition) const {
  const bool latex = notation_ == Notation::latex;
  const std::string left = sum(terms(condition.left)), right = sum(terms(condition.right));
  if (condition.is == Comparison::equal) {
    return fmt::format("{} = {}", left, right);
  }
  const bool strict = condition.is == Comparison::less;
  if (const auto number = as_number(condition.left)) {
    return fmt::format("{} {} {}", right, latex ? "\\ge" : ">=", *number + (strict ? 1 : 0));
  }
  if (const auto number = as_number(condition.right)) {
    return fmt::format("{} {} {}", left, latex ? "\\le" : "<=", *number - (strict ? 1 : 0));
  }
  return fmt::format("{} {} {}", left, strict ? "<" : latex ? "\\le" : "<=", right);
}

std::vector<std::string> FormulaWriter::regime(Regime regime) const {
  const std::string square = powers({"d", "d"}, notation_)[0];
  const std::string whole = product(1, {"n", "d"}, {});
  const std::string_view at_most = notation_ == Notation::latex ? "\\le" : "<=";
  switch (regime) {
    case Regime::small:
      return {fmt::format("M < {}", square)};
    case Regime::large:
      return {fmt::format("{} {} M", square, at_most), fmt::format("M {} {}", at_most, whole)};
    case Regime::beyond:
      return {fmt::format("{} {} M", square, at_most), fmt::format("{} < M", whole)};
  }
  return {};
}

std::vector<std::string> FormulaWriter::conditions() const {
  std::vector<std::string> all;
  for (const auto& [block, extent] : of_.whole) {
    all.push_back(fmt::format("{} = {}", symbol(block), symbol(extent)));
  }
  // "At least 3" and "at most 3" become "= 3".
  const auto bound = [](const SizeCondition& one, bool least) -> std::optional<Index> {
    const auto number = as_number(least ? one.left : one.right);
    const Index strict = one.is == Comparison::less ? 1 : 0;
    return number ? std::optional(*number + (least ? strict : -strict)) : std::nullopt;
  };
  const auto has_other = [&](const SizeCondition& one, bool least) {
    return std::ranges::any_of(of_.conditions, [&](const SizeCondition& other) {
      return bound(one, least) && bound(other, !least) == bound(one, least) &&
             (least ? one.right == other.left : one.left == other.right);
    });
  };
  for (const SizeCondition& one : of_.conditions) {
    if (has_other(one, true)) {
      all.push_back(fmt::format("{} = {}", sum(terms(one.right)), *bound(one, true)));
    } else if (!has_other(one, false)) {
      all.push_back(condition(one));
    }
  }
  return all;
}

}  // namespace redblue
