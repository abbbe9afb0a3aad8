#pragma once
// Runs a nest as docs/nests.md describes it: each pass of each loop, one after the other, with a
// list of the living tiles. It shares only the parsed nest with kernels/nests/count.hpp.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernels/nests/count.hpp"
#include "kernels/nests/text_nest.hpp"
#include "tests/support/random_masks.hpp"

namespace redblue {

struct InterpretedPhase {
  Index reads = 0, writes = 0, peak = 0, flops = 0;

  friend bool operator==(const InterpretedPhase&, const InterpretedPhase&) = default;
};
using InterpretedPhases = std::map<std::string, InterpretedPhase>;  // by path

// Returns the words of phases that move, hold or compute something. Empty if the run has more than
// `most_steps` statements, a loop has blocks that are not positive, or a condition asks under a
// mask for some rows of a piece of what a block meets. `live`: the pairs of sizes.mask, null for
// full(). `overran`: whether a tile is larger than its matrix, which the page does not rule out.
std::optional<InterpretedPhases> interpret(const TextNest& nest, const NestSizes& sizes,
                                           const PairTable* live, Index most_steps,
                                           bool* overran = nullptr);

// Return the reads and writes, and the largest peak.
Index words_of(const InterpretedPhases& phases);
Index peak_of(const InterpretedPhases& phases);

}  // namespace redblue
