#include "runtime/report/notation.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
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

std::string FormulaWriter::quantity(std::size_t which) const {
  std::string name = of_.quantities()[which].name;
  if (notation_ == Notation::latex && !of_.is_length(which)) {
    return latex_block(name);
  }
  if (notation_ == Notation::latex && name == "dv") {
    return "d_{v}";
  }
  if (notation_ == Notation::sympy) {
    std::ranges::replace_if(
        name, [](char letter) { return letter == '.' || letter == ' '; }, '_');
  }
  return name;
}

std::string FormulaWriter::atom(const Atom& of) const {
  const std::string length = quantity(of.of);
  if (!of.by) {
    return length;
  }
  const std::string block = quantity(*of.by);
  return notation_ == Notation::latex
             ? fmt::format("\\left\\lceil \\tfrac{{{}}}{{{}}} \\right\\rceil", length, block)
         : notation_ == Notation::sympy ? fmt::format("ceiling({}/{})", length, block)
                                        : fmt::format("ceil({}/{})", length, block);
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
  Polynomial sorted = of;
  std::ranges::stable_sort(sorted, std::ranges::greater(),
                           [](const Term& term) { return term.factors.size(); });
  std::vector<std::string> all;
  for (const Term& term : sorted) {
    std::vector<std::string> factors;
    for (const bool counted : {false, true}) {
      for (const Atom& factor : term.factors) {
        if (factor.by.has_value() == counted) {
          factors.push_back(atom(factor));
        }
      }
    }
    all.push_back((term.coefficient < 0 ? "- "
                   : all.empty()        ? ""
                                        : "+ ") +
                  product(term.coefficient, factors, {}));
  }
  return all;
}

std::vector<std::string> FormulaWriter::names(const std::vector<std::size_t>& which) const {
  std::vector<std::string> all;
  for (const std::size_t one : which) {
    all.push_back(quantity(one));
  }
  return all;
}

std::vector<std::string> FormulaWriter::terms(const std::vector<LeadingTerm>& of) const {
  std::vector<std::string> all;
  for (const LeadingTerm& term : of) {
    all.push_back((term.coefficient < 0 ? "- "
                   : all.empty()        ? ""
                                        : "+ ") +
                  product(term.coefficient, names(term.factors), names(term.divisors)));
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
    std::vector<std::size_t> lengths = term.factors;
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

std::string FormulaWriter::largest(const std::vector<Polynomial>& of) const {
  std::vector<std::string> all;
  for (const Polynomial& one : of) {
    all.push_back(sum(terms(one)));
  }
  if (all.size() == 1) {
    return all[0];
  }
  return notation_ == Notation::latex
             ? fmt::format("\\max\\left({}\\right)", fmt::join(all, ",\\; "))
             : fmt::format("{}({})", notation_ == Notation::sympy ? "Max" : "max",
                           fmt::join(all, ", "));
}

std::string FormulaWriter::condition(const Condition& condition) const {
  const std::string of = quantity(condition.of);
  const std::string than = quantity(condition.than);
  const bool latex = notation_ == Notation::latex;
  const std::string_view at_most = latex ? "\\le" : "<=";
  const std::string_view at_least = latex ? "\\ge" : ">=";
  const auto times = [](Index number, const std::string& what) {
    return number == 1 ? what : fmt::format("{} {}", number, what);
  };
  switch (condition.is) {
    case Condition::Is::equal:
      return fmt::format("{} = {}", of, than);
    case Condition::Is::less:
      return fmt::format("{} < {}", of, than);
    case Condition::Is::at_most:
      return fmt::format("{} {} {}", of, at_most, than);
    case Condition::Is::at_most_quarters:
      return condition.number == 2
                 ? fmt::format("2 {} {} {}", of, at_most, than)
                 : fmt::format("4 {} {} {}", of, at_most, times(condition.number, than));
    case Condition::Is::sum_at_most:
      return fmt::format("{} + {} {} {}", of, quantity(condition.with), at_most, than);
    case Condition::Is::sum_at_least:
      return fmt::format("{} + {} {} {}", of, quantity(condition.with), at_least, than);
    case Condition::Is::at_least:
      return fmt::format("{} {} {}", of, at_least, condition.number);
    case Condition::Is::at_most_number:
      return fmt::format("{} {} {}", of, at_most, condition.number);
  }
  return "";
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
  for (std::size_t block = 0; block < of_.quantities().size(); ++block) {
    if (const auto length = of_.whole(block)) {
      all.push_back(fmt::format("{} = {}", quantity(block), quantity(*length)));
    }
  }
  for (const auto& [name, size] : of_.fixed()) {
    all.push_back(fmt::format("{} = {}", name, size));
  }
  // "At least 3" and "at most 3" become "= 3".
  const auto has = [&](Condition condition, Condition::Is is) {
    condition.is = is;
    return std::ranges::count(of_.conditions(), condition) > 0;
  };
  for (const Condition& one : of_.conditions()) {
    if (one.is == Condition::Is::at_least && has(one, Condition::Is::at_most_number)) {
      all.push_back(fmt::format("{} = {}", quantity(one.of), one.number));
    } else if (one.is != Condition::Is::at_most_number || !has(one, Condition::Is::at_least)) {
      all.push_back(condition(one));
    }
  }
  return all;
}

}  // namespace redblue
