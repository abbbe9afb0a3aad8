#pragma once
// Derives the formulas of a nest: the words of each phase and its peak, as polynomials in extents
// and block sizes. It walks the nest as kernels/nests/count.hpp does, with polynomials for numbers.
// Where the walk depends on how two sizes compare, the given sizes decide, and the comparison
// becomes a condition of the formula.

#include <string>
#include <vector>

#include "kernels/nests/count.hpp"
#include "kernels/nests/polynomial.hpp"

namespace redblue {

// left < right, left <= right or left == right.
struct SizeCondition {
  Polynomial left;
  Comparison is = Comparison::less;
  Polynomial right;
  friend bool operator==(const SizeCondition&, const SizeCondition&) = default;
};

struct PhaseFormula {
  std::string path;
  Polynomial reads = {}, writes = {};
  std::vector<Polynomial> peak = {};  // the peak is the largest of these
};

struct NestFormula {
  Atoms atoms;
  std::vector<std::string> names;  // of symbols
  std::vector<Index> sizes;        // of symbols, as given
  std::vector<SymbolId> free;      // symbols in the formulas or in the conditions
  // Blocks with the size of the extent that they cut. The formulas name the extent instead.
  std::vector<std::pair<SymbolId, SymbolId>> whole;
  std::vector<SizeCondition> conditions;
  std::vector<PhaseFormula> phases;
  PhaseFormula total;
};

// Formulas name the blocks of `sizes`. Other blocks are replaced by their sizes in the file. If dv
// equals d, both are d. Requires: no mask. Throws: NestError as count() does.
NestFormula formula(const TextNest& nest, const NestSizes& sizes);

// Returns whether the formula holds for these sizes of symbols.
bool holds(const NestFormula& formula, const std::vector<Index>& sizes);
Index peak(const NestFormula& formula, const PhaseFormula& phase, const std::vector<Index>& sizes);

}  // namespace redblue
