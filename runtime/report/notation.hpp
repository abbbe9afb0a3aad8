#pragma once
// Formulas in the notations that people read, and programs do.

#include <string>
#include <string_view>
#include <vector>

#include "runtime/theory/symbolic.hpp"

namespace redblue {

enum class Notation { text, latex, sympy };

// Fast memory of less than the paper's d^2 words; of as many or more, and at most n d; of more.
enum class Regime { small, large, beyond };

// Of the quantities of a case.
class FormulaWriter {
 public:
  FormulaWriter(const FormulaCase& of, Notation notation) : of_(of), notation_(notation) {}

  // n, B_{r}, S_rows
  [[nodiscard]] std::string quantity(std::size_t which) const;
  // Its terms, of the highest degree first, each with its sign, the first without a plus.
  [[nodiscard]] std::vector<std::string> terms(const Polynomial& of) const;
  [[nodiscard]] std::vector<std::string> terms(const std::vector<LeadingTerm>& of) const;
  // "about", between a block and what M has room for.
  [[nodiscard]] std::string_view about() const {
    return notation_ == Notation::latex ? "\\approx" : "about";
  }
  // With the block as M has room for, which is M.
  [[nodiscard]] std::string block_of_M(const BlockOfM& block) const;
  [[nodiscard]] std::vector<std::string> terms(const std::vector<LeadingTerm>& of,
                                               const BlockOfM& block) const;
  [[nodiscard]] std::string sum(const std::vector<std::string>& terms) const;
  // The largest of them.
  [[nodiscard]] std::string largest(const std::vector<Polynomial>& of) const;
  // How M is to d^2, and to n d where it is no less than d^2.
  [[nodiscard]] std::vector<std::string> regime(Regime regime) const;
  // All conditions of the case.
  [[nodiscard]] std::vector<std::string> conditions() const;

 private:
  [[nodiscard]] std::string condition(const Condition& condition) const;
  [[nodiscard]] std::string product(Index coefficient, const std::vector<std::string>& factors,
                                    const std::vector<std::string>& divisors) const;
  [[nodiscard]] std::string atom(const Atom& of) const;
  [[nodiscard]] std::vector<std::string> names(const std::vector<std::size_t>& which) const;
  [[nodiscard]] std::string root(const std::string& of) const;

  const FormulaCase& of_;
  Notation notation_;
};

// The name of a phase in LaTeX, or of a block.
std::string latex_name(std::string_view name);

}  // namespace redblue
