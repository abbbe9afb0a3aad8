#pragma once
// The closed form of a kernel as a formula that can be read, in n, m, d and the kernel's blocks:
//
//   reads = 2 m d ceil(n/Br) + 4 d^2 ceil(n/Br) - d^2 + 3 n d + n
//
// There is one source. Kernel::formula gives numbers, and formulas are found from these: what a
// phase moves is a polynomial in lengths, block sizes and numbers of blocks, and its coefficients
// follow from its values at as many sizes, drawn at random. Values at further sizes are held
// against it, to the word: there are more of them than coefficients by kFurther, and where one
// differs there is no formula. A peak is the largest of several such.

#include <string>
#include <vector>

#include "kernels/kernel.hpp"
#include "runtime/theory/formula_case.hpp"
#include "runtime/theory/polynomial.hpp"

namespace redblue {

// Nothing where no such formula was found.
struct SymbolicPhase {
  std::string path;
  std::optional<Polynomial> reads, writes;
  std::optional<std::vector<Polynomial>> peak;  // the largest of these
};
Index value(const std::vector<Polynomial>& peak, const Sizes& sizes);

struct SymbolicFormula {
  FormulaCase of;  // with the conditions of all phases
  std::vector<SymbolicPhase> phases = {};
  SymbolicPhase total = {};
};

// Requires: a dense problem of one head without a mask, and a plan of one level of fast memory.
SymbolicFormula symbolic_formula(const Kernel& kernel, const Plan& plan);

// A term of which the numbers of blocks are lengths over block sizes.
struct LeadingTerm {
  Index coefficient = 0;
  std::vector<std::size_t> factors, divisors;
};
// The words of the whole, where n and m are large: of all terms those of the highest degree in
// these. Nothing where reads or writes are missing.
std::optional<std::vector<LeadingTerm>> leading_terms(const SymbolicFormula& formula);

// How large the block of the leading terms is about: M is a coefficient times lengths times the
// block, or its square. Of these most of M are, in the plan, a term of the peak; the coefficient is
// that of the plan, a whole number, for a plan may leave some of M.
struct BlockOfM {
  std::size_t block = 0;
  Index coefficient = 0;
  std::vector<std::size_t> lengths = {};
  bool squared = false;
};
// Nothing where several blocks are in the leading terms, or none, or no term is most of M.
std::optional<BlockOfM> block_of_M(const SymbolicFormula& formula,
                                   const std::vector<LeadingTerm>& leading, Index M);

}  // namespace redblue
