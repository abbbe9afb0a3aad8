#pragma once
// A kernel's run, as its own schedule has it and as caches would.

#include <string>

#include "runtime/replay/accesses.hpp"
#include "runtime/run/run.hpp"

namespace redblue {

struct KernelAccesses {
  Report report;  // of the run
  PhaseCounts moved;
  std::vector<PhaseCounts> phases;
  Accesses accesses;

  // The largest lower bound that holds for the kernel with a fast memory of M words; 0 without one.
  [[nodiscard]] Index bound(Index M) const;
};

// Runs the kernel, on inputs from a seed, for what it touches. Throws: as run(); RequestError for
// several threads or heads, and where operations are not told; InputError for too many accesses.
KernelAccesses accesses_of(const Request& request);

}  // namespace redblue
