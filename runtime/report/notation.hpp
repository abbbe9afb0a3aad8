#pragma once
// Writes formulas as plain text, as LaTeX and as SymPy programs.

#include <string>
#include <string_view>
#include <vector>

#include "runtime/theory/symbolic.hpp"

namespace redblue {

enum class Notation { text, latex, sympy };

// The size of M: M < d^2 (small), d^2 <= M <= n d (large), n d < M (beyond).
enum class Regime { small, large, beyond };

// Writes formulas in the symbols of a formula. Keeps a reference to the formula.
class FormulaWriter {
 public:
  FormulaWriter(const NestFormula& of, Notation notation) : of_(of), notation_(notation) {}

  // Returns the name of a symbol: n, B_{r}, S_rows.
  [[nodiscard]] std::string symbol(SymbolId symbol) const;
  // Returns the terms from the highest degree down, each with its sign. The first has no plus.
  [[nodiscard]] std::vector<std::string> terms(const Polynomial& of) const;
  [[nodiscard]] std::vector<std::string> terms(const std::vector<LeadingTerm>& of) const;
  // Returns "about" or its sign, for "Br about M/(4 d)".
  [[nodiscard]] std::string_view about() const {
    return notation_ == Notation::latex ? "\\approx" : "about";
  }
  // block_of_M() returns the largest block that fits in M, as a formula in M. The next terms()
  // writes the terms in M, with this formula for the block.
  [[nodiscard]] std::string block_of_M(const BlockOfM& block) const;
  [[nodiscard]] std::vector<std::string> terms(const std::vector<LeadingTerm>& of,
                                               const BlockOfM& block) const;
  [[nodiscard]] std::string sum(const std::vector<std::string>& terms) const;
  // Returns the maximum of the polynomials, in pieces with blanks between them.
  [[nodiscard]] std::vector<std::string> largest(const std::vector<Polynomial>& of) const;
  // Returns the conditions on M for a regime.
  [[nodiscard]] std::vector<std::string> regime(Regime regime) const;
  // Returns all conditions of the formula.
  [[nodiscard]] std::vector<std::string> conditions() const;

 private:
  [[nodiscard]] std::string condition(const SizeCondition& condition) const;
  // Returns "a/b", with brackets around sums.
  [[nodiscard]] std::string quotient(const Polynomial& a, const Polynomial& b) const;
  [[nodiscard]] std::string product(Index coefficient, const std::vector<std::string>& factors,
                                    const std::vector<std::string>& divisors) const;
  [[nodiscard]] std::string atom(AtomId id) const;
  [[nodiscard]] std::vector<std::string> names(const std::vector<SymbolId>& which) const;
  [[nodiscard]] std::string root(const std::string& of) const;

  const NestFormula& of_;
  Notation notation_;
};

// Returns the name of a phase or a block in LaTeX.
std::string latex_name(std::string_view name);

}  // namespace redblue
