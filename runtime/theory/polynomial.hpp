#pragma once
// Polynomials with integer coefficients in sizes and in the numbers of blocks that cut a length:
//
//   2 m d ceil(n/Br) - d^2

#include <compare>
#include <cstddef>
#include <optional>
#include <vector>

#include "memsim/range.hpp"

namespace redblue {

// The values of all quantities, indexed by the number of the quantity.
using Sizes = std::vector<Index>;

// A quantity; with `by`, the number of blocks of that size which cut it.
struct Atom {
  std::size_t of = 0;
  std::optional<std::size_t> by = std::nullopt;
  friend auto operator<=>(const Atom&, const Atom&) = default;
};

// A product of atoms. A square lists the same atom twice. Empty: 1.
using Monomial = std::vector<Atom>;

struct Term {
  Index coefficient = 0;
  Monomial factors;
  friend bool operator==(const Term&, const Term&) = default;
};
using Polynomial = std::vector<Term>;  // empty: 0

Index value(const Monomial& of, const Sizes& sizes);
Index value(const Polynomial& of, const Sizes& sizes);
Polynomial operator+(const Polynomial& a, const Polynomial& b);

// A count of words at these sizes.
struct ValueAt {
  Sizes sizes;
  Index words;
};

// Returns a polynomial of the given monomials that has all sampled values, with coefficients below
// 2^20. If several do, it uses the first monomials. Returns nullopt if there is no such polynomial.
// Exact: it is solved modulo a prime, then checked against all values.
std::optional<Polynomial> interpolate(const std::vector<Monomial>& basis,
                                      const std::vector<ValueAt>& samples);

}  // namespace redblue
