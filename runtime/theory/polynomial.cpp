#include "runtime/theory/polynomial.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "memsim/words.hpp"

namespace redblue {
namespace {

// Numbers modulo 2^31 - 1. Their products fit 64 bits.
using Residue = std::uint64_t;
constexpr Residue kPrime = 2147483647;
constexpr Index kLargestCoefficient = Index{1} << 20;

Residue residue(Index value) {
  const Index rest = value % static_cast<Index>(kPrime);
  return static_cast<Residue>(rest < 0 ? rest + static_cast<Index>(kPrime) : rest);
}

// Returns 1 / a by Fermat: a^(p - 2).
Residue inverse(Residue a) {
  Residue result = 1;
  for (Residue exponent = kPrime - 2; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) {
      result = result * a % kPrime;
    }
    a = a * a % kPrime;
  }
  return result;
}

using ResidueRows = std::vector<std::vector<Residue>>;

void subtract(std::vector<Residue>& from, const std::vector<Residue>& row, std::size_t begin) {
  const Residue factor = kPrime - from[begin];
  for (std::size_t c = begin; c < row.size(); ++c) {
    from[c] = (from[c] + factor * row[c]) % kPrime;
  }
}

// Gauss-Jordan elimination. Returns the columns that have a pivot.
std::vector<std::size_t> eliminate(ResidueRows& rows, std::size_t columns) {
  std::vector<std::size_t> pivots;
  for (std::size_t c = 0; c < columns && pivots.size() < rows.size(); ++c) {
    const auto top = rows.begin() + static_cast<std::ptrdiff_t>(pivots.size());
    const auto pivot = std::find_if(top, rows.end(), [&](const auto& row) { return row[c] != 0; });
    if (pivot == rows.end()) {
      continue;
    }
    std::swap(*top, *pivot);
    const Residue unit = inverse((*top)[c]);
    for (std::size_t k = c; k <= columns; ++k) {
      (*top)[k] = (*top)[k] * unit % kPrime;
    }
    for (auto row = rows.begin(); row != rows.end(); ++row) {
      if (row != top && (*row)[c] != 0) {
        subtract(*row, *top, c);
      }
    }
    pivots.push_back(c);
  }
  return pivots;
}

}  // namespace

Index value(const Monomial& of, const Sizes& sizes) {
  Index product = 1;
  for (const Atom& atom : of) {
    product *= atom.by ? ceil_div(sizes[atom.of], sizes[*atom.by]) : sizes[atom.of];
  }
  return product;
}

Index value(const Polynomial& of, const Sizes& sizes) {
  Index sum = 0;
  for (const Term& term : of) {
    sum += term.coefficient * value(term.factors, sizes);
  }
  return sum;
}

Polynomial operator+(const Polynomial& a, const Polynomial& b) {
  Polynomial sum = a;
  for (const Term& term : b) {
    const auto same = std::ranges::find(sum, term.factors, &Term::factors);
    if (same == sum.end()) {
      sum.push_back(term);
    } else {
      same->coefficient += term.coefficient;
    }
  }
  std::erase_if(sum, [](const Term& term) { return term.coefficient == 0; });
  return sum;
}

std::optional<Polynomial> interpolate(const std::vector<Monomial>& basis,
                                      const std::vector<ValueAt>& samples) {
  const std::size_t columns = basis.size();
  ResidueRows rows;
  for (const ValueAt& sample : samples) {
    std::vector<Residue>& row = rows.emplace_back();
    for (const Monomial& monomial : basis) {
      row.push_back(residue(value(monomial, sample.sizes)));
    }
    row.push_back(residue(sample.words));
  }
  const std::vector<std::size_t> pivots = eliminate(rows, columns);
  Polynomial found;
  for (std::size_t r = 0; r < pivots.size(); ++r) {
    const Residue solution = rows[r][columns];
    const Index coefficient = solution > kPrime / 2
                                  ? static_cast<Index>(solution) - static_cast<Index>(kPrime)
                                  : static_cast<Index>(solution);
    if (std::abs(coefficient) >= kLargestCoefficient) {
      return std::nullopt;
    }
    if (coefficient != 0) {
      found.push_back({.coefficient = coefficient, .factors = basis[pivots[r]]});
    }
  }
  const bool all = std::ranges::all_of(
      samples, [&](const ValueAt& sample) { return value(found, sample.sizes) == sample.words; });
  return all ? std::optional(std::move(found)) : std::nullopt;
}

}  // namespace redblue
