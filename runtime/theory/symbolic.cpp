#include "runtime/theory/symbolic.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <numeric>
#include <utility>

namespace redblue {
namespace {

using Terms = std::vector<LeadingTerm>;

bool is_n_or_m(SymbolId symbol) {
  return symbol == kExtentN || symbol == kExtentM;
}
std::ptrdiff_t degree(const LeadingTerm& term) {
  return std::ranges::count_if(term.factors, is_n_or_m) -
         std::ranges::count_if(term.divisors, is_n_or_m);
}

void add(Terms& all, LeadingTerm term) {
  for (auto factor = term.factors.begin(); factor != term.factors.end();) {
    const auto below = std::ranges::find(term.divisors, *factor);
    if (below == term.divisors.end()) {
      ++factor;
    } else {
      term.divisors.erase(below);
      factor = term.factors.erase(factor);
    }
  }
  std::ranges::sort(term.factors);
  std::ranges::sort(term.divisors);
  const Index common = std::gcd(term.coefficient, term.divisor);
  term.coefficient /= common;
  term.divisor /= common;
  const auto same = std::ranges::find_if(all, [&](const LeadingTerm& other) {
    return other.factors == term.factors && other.divisors == term.divisors &&
           other.divisor == term.divisor;
  });
  if (same == all.end()) {
    all.push_back(std::move(term));
  } else {
    same->coefficient += term.coefficient;
  }
}

Terms product(const Terms& a, const Terms& b) {
  Terms all;
  for (const LeadingTerm& x : a) {
    for (const LeadingTerm& y : b) {
      LeadingTerm both = x;
      both.coefficient *= y.coefficient;
      both.divisor *= y.divisor;
      std::ranges::copy(y.factors, std::back_inserter(both.factors));
      std::ranges::copy(y.divisors, std::back_inserter(both.divisors));
      add(all, std::move(both));
    }
  }
  return all;
}

// Returns the terms of highest degree in n and m.
Terms highest(Terms all) {
  std::erase_if(all, [](const LeadingTerm& term) { return term.coefficient == 0; });
  std::ptrdiff_t most = -1;
  for (const LeadingTerm& term : all) {
    most = std::max(most, degree(term));
  }
  std::erase_if(all, [&](const LeadingTerm& term) { return degree(term) < most; });
  std::ranges::stable_sort(all, std::ranges::greater(),
                           [](const LeadingTerm& term) { return term.factors.size(); });
  return all;
}

// Writes a polynomial without rounding.
class Smooth {
 public:
  explicit Smooth(const NestFormula& formula) : formula_(formula) {}

  [[nodiscard]] Terms terms(const Polynomial& of) const {
    Terms all;
    for (const auto& [monomial, coefficient] : of) {
      Terms term = {{.coefficient = coefficient, .factors = {}, .divisors = {}}};
      for (const AtomId id : monomial) {
        term = product(term, of_atom(formula_.atoms[id]));
      }
      for (LeadingTerm& one : term) {
        add(all, std::move(one));
      }
    }
    return all;
  }

 private:
  [[nodiscard]] Terms of_atom(const Atom& atom) const {
    switch (atom.kind) {
      case Atom::Kind::symbol:
        return {{.coefficient = 1, .factors = {atom.symbol}, .divisors = {}}};
      case Atom::Kind::ceil:
      case Atom::Kind::floor:
        return product(terms(atom.a), inverse(atom.b));
      case Atom::Kind::rest:
        return terms(atom.b);
      case Atom::Kind::min:
      case Atom::Kind::max:
        break;
    }
    const auto value = [&](const Polynomial& of) {
      return formula_.atoms.value(of, formula_.sizes);
    };
    return terms((value(atom.a) < value(atom.b)) == (atom.kind == Atom::Kind::min) ? atom.a
                                                                                   : atom.b);
  }
  // Requires: one term. The largest one stands for several.
  [[nodiscard]] Terms inverse(const Polynomial& of) const {
    LeadingTerm one = highest(terms(of)).front();
    std::swap(one.coefficient, one.divisor);
    std::swap(one.factors, one.divisors);
    return {one};
  }

  const NestFormula& formula_;
};

}  // namespace

std::vector<LeadingTerm> leading_terms(const NestFormula& formula) {
  return highest(Smooth(formula).terms(formula.total.reads + formula.total.writes));
}

std::optional<BlockOfM> block_of_M(const NestFormula& formula,
                                   const std::vector<LeadingTerm>& leading, Index M) {
  std::vector<SymbolId> divisors;
  for (const LeadingTerm& term : leading) {
    divisors.insert(divisors.end(), term.divisors.begin(), term.divisors.end());
    if (term.divisors.size() > 1 || term.divisor != 1) {
      return std::nullopt;
    }
  }
  if (divisors.empty() || std::ranges::count(divisors, divisors[0]) != std::ssize(divisors)) {
    return std::nullopt;
  }
  const SymbolId block = divisors[0];
  for (const Polynomial& polynomial : formula.total.peak) {
    for (const auto& [monomial, coefficient] : polynomial) {
      const auto is_block = [&](AtomId atom) { return atom == block; };
      const auto is_other = [&](AtomId atom) { return atom != block && atom >= kExtents; };
      const Index words = formula.atoms.value({{monomial, coefficient}}, formula.sizes);
      if (2 * words > M && std::ranges::any_of(monomial, is_block) &&
          std::ranges::none_of(monomial, is_other)) {
        BlockOfM found{.block = block};
        std::ranges::remove_copy_if(monomial, std::back_inserter(found.lengths), is_block);
        found.squared = std::ranges::count_if(monomial, is_block) == 2;
        const double all = static_cast<double>(M) / static_cast<double>(words / coefficient);
        found.coefficient = std::llround(all);
        constexpr double kAbout = 0.15;
        return std::abs(all / static_cast<double>(found.coefficient) - 1) < kAbout
                   ? std::optional(found)
                   : std::nullopt;
      }
    }
  }
  return std::nullopt;
}

}  // namespace redblue
