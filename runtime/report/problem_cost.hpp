#pragma once
// The cost of an attention call, by formulas: its arithmetic, the words that it cannot avoid, and
// the words that a kernel moves in a fast memory of M words.

#include <string>

#include "runtime/theory/planner.hpp"
#include "runtime/theory/work.hpp"

namespace redblue {

// The words of inputs and results, each moved once. Rows without a live pair are not read.
struct OperandWords {
  Words compulsory;  // no algorithm moves fewer
  // The same, with O and L, which kernels of gradients may read or compute again.
  Words all;
};
// Requires: attention or gradients.
OperandWords operand_words(const Task& task);

struct CountedTiles {
  Choice choice;
  Bound bound;         // for every algorithm, with M words
  Index too_many = 0;  // words beyond M that the tiles need
};
// Returns the words of the plan that moves the fewest; or of `tiles`: a project with nests, a nest
// or a kernel, by name. Throws: FastMemoryTooSmall if no kernel fits; UsageError for other names,
// for a project without a nest for this size, and for several levels of fast memory.
CountedTiles counted_tiles(const Task& task, const std::string& tiles);

}  // namespace redblue
