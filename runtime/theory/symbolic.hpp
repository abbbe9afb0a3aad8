#pragma once
// Shortens the formulas of a kernel (kernels/nests/formula.hpp): the terms that dominate for large
// n and m, and the same terms in M.

#include <optional>
#include <vector>

#include "kernels/nests/formula.hpp"

namespace redblue {

// A term in which each number of blocks is replaced by its length over its block size.
struct LeadingTerm {
  Index coefficient = 0;
  std::vector<SymbolId> factors, divisors;
  Index divisor = 1;
};
// Returns the words of the whole for large n and m: the terms of highest degree in n and m.
std::vector<LeadingTerm> leading_terms(const NestFormula& formula);

// The approximate size of the block in the leading terms: M is about `coefficient` times `lengths`
// times the block, or times its square. In the plan, this product is a term of the peak and takes
// most of M. The coefficient is a rounded number, because a plan may leave some of M unused.
struct BlockOfM {
  SymbolId block = 0;
  Index coefficient = 0;
  std::vector<SymbolId> lengths = {};
  bool squared = false;
};
// Returns nullopt if the leading terms have no block or several, or if no term is most of M.
std::optional<BlockOfM> block_of_M(const NestFormula& formula,
                                   const std::vector<LeadingTerm>& leading, Index M);

}  // namespace redblue
