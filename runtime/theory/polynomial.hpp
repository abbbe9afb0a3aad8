#pragma once
// Polynomials with integer coefficients in sizes, and in how many blocks cut a length:
//
//   2 m d ceil(n/Br) - d^2

#include <compare>
#include <cstddef>
#include <optional>
#include <vector>

#include "memsim/range.hpp"

namespace redblue {

// The values of quantities, each by its number.
using Sizes = std::vector<Index>;

// A quantity, or the number of blocks of another size that cut it.
struct Atom {
  std::size_t of = 0;
  std::optional<std::size_t> by = std::nullopt;
  friend auto operator<=>(const Atom&, const Atom&) = default;
};

// A product of atoms, a square being the same twice. Empty: 1.
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

// A count at these sizes.
struct ValueAt {
  Sizes sizes;
  Index words;
};

// The polynomial of these monomials that has all of these values, of coefficients below 2^20; of
// several the one of the first monomials. Nothing where there is none. Exact: it is solved modulo a
// prime, and said only where it has the values.
std::optional<Polynomial> interpolate(const std::vector<Monomial>& basis,
                                      const std::vector<ValueAt>& samples);

}  // namespace redblue
