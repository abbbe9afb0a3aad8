#pragma once
// Builds the words and peaks of phases in the form that recordings have.

#include <string>
#include <utility>
#include <vector>

#include "memsim/phase.hpp"

namespace redblue {

inline PhaseCounts phase_counts(std::string path, Index reads, Index writes, Index peak) {
  return {.path = std::move(path),
          .io = {.reads = reads, .writes = writes},
          .operations = {},
          .peak = peak};
}

// Returns these phases, with their sum as the total.
inline RunCounts run_counts(std::vector<PhaseCounts> phases) {
  RunCounts counts{.phases = std::move(phases), .total = {}};
  for (const PhaseCounts& phase : counts.phases) {
    counts.total += phase;
  }
  return counts;
}

}  // namespace redblue
