#pragma once
// Finds a readable formula for a kernel's counts, in n, m, d and the kernel's blocks:
//
//   reads = 2 m d ceil(n/Br) + 4 d^2 ceil(n/Br) - d^2 + 3 n d + n
//
// The only source is Kernel::formula, which gives numbers. The words moved in a phase are a
// polynomial in lengths, block sizes and numbers of blocks. Its coefficients follow from the counts
// at random sizes. There are kFurther more sizes than coefficients, and the polynomial must match
// the count at each size exactly. If one differs, there is no formula. A peak is the largest of
// several polynomials.

#include <string>
#include <vector>

#include "kernels/kernel.hpp"
#include "runtime/theory/formula_case.hpp"
#include "runtime/theory/polynomial.hpp"

namespace redblue {

// The formulas of a phase; nullopt where no formula was found.
struct SymbolicPhase {
  std::string path;
  std::optional<Polynomial> reads, writes;
  std::optional<std::vector<Polynomial>> peak;  // the peak is the largest of these
};
Index value(const std::vector<Polynomial>& peak, const Sizes& sizes);

struct SymbolicFormula {
  FormulaCase of;  // the case, with the conditions of all phases
  std::vector<SymbolicPhase> phases = {};
  SymbolicPhase total = {};
};

// Requires: a dense problem of one head without a mask, and a plan of one level of fast memory.
SymbolicFormula symbolic_formula(const Kernel& kernel, const Plan& plan);

// A term in which each number of blocks is replaced by its length over its block size.
struct LeadingTerm {
  Index coefficient = 0;
  std::vector<std::size_t> factors, divisors;
};
// Returns the words of the whole for large n and m: the terms of highest degree in n and m. Returns
// nullopt if reads or writes are missing.
std::optional<std::vector<LeadingTerm>> leading_terms(const SymbolicFormula& formula);

// The approximate size of the block in the leading terms: M is about `coefficient` times `lengths`
// times the block, or times its square. In the plan, this product is a term of the peak and takes
// most of M. The coefficient is a rounded number, because a plan may leave some of M unused.
struct BlockOfM {
  std::size_t block = 0;
  Index coefficient = 0;
  std::vector<std::size_t> lengths = {};
  bool squared = false;
};
// Returns nullopt if the leading terms have no block or several, or if no term is most of M.
std::optional<BlockOfM> block_of_M(const SymbolicFormula& formula,
                                   const std::vector<LeadingTerm>& leading, Index M);

}  // namespace redblue
