#pragma once
// Formulas in the notations that people read, and programs do.

#include <string>
#include <string_view>
#include <vector>

#include "runtime/theory/symbolic.hpp"

namespace redblue {

enum class Notation { text, latex, sympy };

// Of the quantities of a case.
class FormulaWriter {
 public:
  FormulaWriter(const FormulaCase& of, Notation notation) : of_(of), notation_(notation) {}

  // n, B_{r}, S_rows
  [[nodiscard]] std::string quantity(std::size_t which) const;
  // Its terms, of the highest degree first, each with its sign, the first without a plus.
  [[nodiscard]] std::vector<std::string> terms(const Polynomial& of) const;
  [[nodiscard]] std::vector<std::string> terms(const std::vector<LeadingTerm>& of) const;
  // With the block as M has room for, which is M.
  [[nodiscard]] std::string block_of_M(const BlockOfM& block) const;
  [[nodiscard]] std::vector<std::string> terms(const std::vector<LeadingTerm>& of,
                                               const BlockOfM& block) const;
  [[nodiscard]] std::string sum(const std::vector<std::string>& terms) const;
  // The largest of them.
  [[nodiscard]] std::string largest(const std::vector<Polynomial>& of) const;
  [[nodiscard]] std::string condition(const Condition& condition) const;
  [[nodiscard]] std::string equal(std::size_t block, std::size_t length) const;

 private:
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
