#include "kernels/nests/polynomial.hpp"

#include <algorithm>
#include <iterator>

#include "memsim/errors.hpp"
#include "memsim/range.hpp"

namespace redblue {
namespace {

void add(Polynomial& to, const Monomial& monomial, Index coefficient) {
  const auto at = to.try_emplace(monomial, 0).first;
  if (__builtin_add_overflow(at->second, coefficient, &at->second)) {
    throw CountOverflow("a coefficient of the formula exceeds 63 bits");
  }
  if (at->second == 0) {
    to.erase(at);
  }
}

Index product(Index a, Index b) {
  Index both = 0;
  if (__builtin_mul_overflow(a, b, &both)) {
    throw CountOverflow("a number in the formula exceeds 63 bits");
  }
  return both;
}

}  // namespace

Polynomial number(Index value) {
  return value == 0 ? Polynomial() : Polynomial{{{}, value}};
}

Polynomial operator+(const Polynomial& a, const Polynomial& b) {
  Polynomial sum = a;
  for (const auto& [monomial, coefficient] : b) {
    add(sum, monomial, coefficient);
  }
  return sum;
}

Polynomial operator-(const Polynomial& a, const Polynomial& b) {
  return a + number(-1) * b;
}

Polynomial operator*(const Polynomial& a, const Polynomial& b) {
  Polynomial all;
  for (const auto& [left, x] : a) {
    for (const auto& [right, y] : b) {
      Monomial both;
      std::ranges::merge(left, right, std::back_inserter(both));
      add(all, both, product(x, y));
    }
  }
  return all;
}

std::optional<Index> as_number(const Polynomial& of) {
  if (of.empty()) {
    return 0;
  }
  return of.size() == 1 && of.begin()->first.empty() ? std::optional(of.begin()->second)
                                                     : std::nullopt;
}

Atoms::Atoms(std::size_t symbols) {
  for (SymbolId symbol = 0; symbol < symbols; ++symbol) {
    all_.push_back({.symbol = symbol, .a = {}, .b = {}});
  }
}

namespace {

Index value_of(Atom::Kind kind, Index a, Index b) {
  const bool divides = kind != Atom::Kind::min && kind != Atom::Kind::max;
  require(!divides || (b > 0 && a >= 0),
          "a size divides numbers that are not negative, and not by 0");
  switch (kind) {
    case Atom::Kind::ceil:
      return ceil_div(a, b);
    case Atom::Kind::floor:
      return a / b;
    case Atom::Kind::rest:
      return a - b * (ceil_div(a, b) - 1);
    case Atom::Kind::min:
      return std::min(a, b);
    case Atom::Kind::max:
    case Atom::Kind::symbol:
      break;
  }
  return std::max(a, b);
}

}  // namespace

Polynomial Atoms::function(Atom::Kind kind, const Polynomial& a, const Polynomial& b) {
  const std::optional<Index> x = as_number(a), y = as_number(b);
  if (x && y) {
    return number(value_of(kind, *x, *y));
  }
  const bool counts = kind == Atom::Kind::ceil || kind == Atom::Kind::floor;
  if (a == b) {
    return counts ? number(1) : a;
  }
  if (y == Index{1} && (counts || kind == Atom::Kind::rest)) {
    return counts ? a : b;
  }
  const Atom atom{.kind = kind, .a = a, .b = b};
  const auto found = std::ranges::find(all_, atom);
  const auto id = static_cast<AtomId>(found - all_.begin());
  if (found == all_.end()) {
    all_.push_back(atom);
  }
  return {{{id}, 1}};
}

Index Atoms::value(const Polynomial& of, const std::vector<Index>& symbols) const {
  Index sum = 0;
  for (const auto& [monomial, coefficient] : of) {
    Index words = coefficient;
    for (const AtomId id : monomial) {
      const Atom& atom = all_[id];
      words =
          product(words, atom.kind == Atom::Kind::symbol
                             ? symbols[atom.symbol]
                             : value_of(atom.kind, value(atom.a, symbols), value(atom.b, symbols)));
    }
    if (__builtin_add_overflow(sum, words, &sum)) {
      throw CountOverflow("the value of a formula exceeds 63 bits");
    }
  }
  return sum;
}

bool Atoms::has_rest(const Polynomial& of) const {
  return std::ranges::any_of(of, [&](const auto& term) {
    return std::ranges::any_of(term.first, [&](AtomId id) {
      return all_[id].kind == Atom::Kind::rest || has_rest(all_[id].a) || has_rest(all_[id].b);
    });
  });
}

std::optional<Polynomial> Atoms::replaced(const Polynomial& of, const Replace& replace) const {
  Polynomial all;
  for (const auto& [monomial, coefficient] : of) {
    Polynomial term = number(coefficient);
    for (const AtomId id : monomial) {
      const std::optional<Polynomial> its = replace(id);
      if (!its) {
        return std::nullopt;
      }
      term = term * *its;
    }
    all = all + term;
  }
  return all;
}

std::optional<Polynomial> Atoms::without_rest(const Polynomial& of, const Function& function) {
  for (const auto& [monomial, coefficient] : of) {
    if (coefficient < 0 && has_rest({{monomial, 1}})) {
      return std::nullopt;
    }
  }
  return replaced(of, [&](AtomId id) -> std::optional<Polynomial> {
    const Atom atom = all_[id];
    if (!has_rest({{{id}, 1}})) {
      return Polynomial{{{id}, 1}};
    }
    if (atom.kind == Atom::Kind::rest) {
      return without_rest(atom.b, function);
    }
    const bool divides = atom.kind == Atom::Kind::ceil || atom.kind == Atom::Kind::floor;
    const auto a = without_rest(atom.a, function), b = without_rest(atom.b, function);
    if (!a || !b || (divides && has_rest(atom.b))) {
      return std::nullopt;
    }
    return function(atom.kind, *a, *b);
  });
}

Polynomial Atoms::expanded(const Polynomial& of) {
  return *replaced(of, [&](AtomId id) -> std::optional<Polynomial> {
    const Atom atom = all_[id];
    if (atom.kind == Atom::Kind::symbol) {
      return Polynomial{{{id}, 1}};
    }
    const Polynomial a = expanded(atom.a), b = expanded(atom.b);
    if (atom.kind == Atom::Kind::rest) {
      return a - b * (function(Atom::Kind::ceil, a, b) - number(1));
    }
    return function(atom.kind, a, b);
  });
}

void Atoms::find_symbols(const Polynomial& of, std::set<SymbolId>& found) const {
  for (const auto& [monomial, coefficient] : of) {
    for (const AtomId id : monomial) {
      if (all_[id].kind == Atom::Kind::symbol) {
        found.insert(all_[id].symbol);
      } else {
        find_symbols(all_[id].a, found);
        find_symbols(all_[id].b, found);
      }
    }
  }
}

}  // namespace redblue
