#pragma once
// A kernel's run, as its own schedule has it and as caches would.

#include <string>
#include <string_view>

#include "runtime/replay/accesses.hpp"
#include "runtime/run/run.hpp"

namespace redblue {

// What a cache finds or lacks as a whole: a word, or a piece of at most d words of a row, as the
// kernel's blocks cut it (run_accesses.hpp).
enum class ReplayUnit { word, row };
std::string_view to_string(ReplayUnit unit);

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
KernelAccesses accesses_of(const Request& request, ReplayUnit unit = ReplayUnit::word);

}  // namespace redblue
