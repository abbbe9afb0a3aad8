#pragma once
// Polynomials with integer coefficients in the sizes of a nest, and in rounded quotients of them:
//
//   2 m d ceil(n/Br) - d^2

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "kernels/nests/text_nest.hpp"

namespace redblue {

using AtomId = std::size_t;
using Monomial = std::vector<AtomId>;          // sorted; a square lists its atom twice; empty: 1
using Polynomial = std::map<Monomial, Index>;  // without coefficients of 0; empty: 0

Polynomial number(Index value);
Polynomial operator+(const Polynomial& a, const Polynomial& b);
Polynomial operator-(const Polynomial& a, const Polynomial& b);
Polynomial operator*(const Polynomial& a, const Polynomial& b);
// Returns the number if the polynomial is one.
std::optional<Index> as_number(const Polynomial& of);

// A size, or a function of two polynomials. `rest` is the last of the blocks of b that cut a:
// a - b (ceil(a/b) - 1).
struct Atom {
  enum class Kind : std::uint8_t { symbol, ceil, floor, rest, min, max };
  Kind kind = Kind::symbol;
  SymbolId symbol = kNoSymbol;
  Polynomial a, b;
  friend bool operator==(const Atom&, const Atom&) = default;
};

// The atoms of a formula. The first ones are the symbols of the nest, with the same numbers.
class Atoms {
 public:
  explicit Atoms(std::size_t symbols = 0);

  [[nodiscard]] const Atom& operator[](AtomId atom) const { return all_[atom]; }
  [[nodiscard]] static Polynomial symbol(SymbolId symbol) { return {{{symbol}, 1}}; }
  // Returns a function of two polynomials, simplified where both are numbers or equal.
  Polynomial function(Atom::Kind kind, const Polynomial& a, const Polynomial& b);

  [[nodiscard]] Index value(const Polynomial& of, const std::vector<Index>& symbols) const;
  // Returns whether last blocks are in it.
  [[nodiscard]] bool has_rest(const Polynomial& of) const;
  // Returns a polynomial without last blocks that is at least as large. Returns nullopt if it may
  // fall with the size of a last block. `function` returns a function of two such polynomials.
  using Function =
      std::function<Polynomial(Atom::Kind kind, const Polynomial& a, const Polynomial& b)>;
  std::optional<Polynomial> without_rest(const Polynomial& of, const Function& function);
  // Returns the same polynomial with each last block written as a formula.
  Polynomial expanded(const Polynomial& of);
  // Adds the symbols in it, also those inside functions.
  void find_symbols(const Polynomial& of, std::set<SymbolId>& found) const;

 private:
  using Replace = std::function<std::optional<Polynomial>(AtomId)>;
  std::optional<Polynomial> replaced(const Polynomial& of, const Replace& replace) const;

  std::vector<Atom> all_;
};

}  // namespace redblue
