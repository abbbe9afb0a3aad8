#pragma once
// What caches of every size move for the same accesses, where nobody says what to read and write:
// LRU, and the ideal cache of fewest reads (OPT).

#include <string>
#include <vector>

#include "runtime/replay/accesses.hpp"

namespace redblue {

// The reads of one phase, by the same cache as the others.
struct PhaseReads {
  std::string phase;
  std::vector<Index> lru, opt;  // as of Replayed
};

// Of a cache of M words, M from 1 to the number of words; a larger one moves what the last does.
// A unit of several words is touched as a whole: caches of fewer words than the widest unit are
// none. Others may hold a part of a unit, and then read the rest.
struct Replayed {
  Index accesses = 0, units = 0;
  Index widest = 1;  // words of a unit
  Index words = 0;   // of all units
  std::vector<Index> lru_reads, lru_writes;
  std::vector<Index> opt_reads;
  // Write-backs where the word of farthest next use is evicted, which has fewest reads: fewer
  // writes, and fewer words, may be possible.
  std::vector<Index> belady_writes;
  // In the order in which phases begin, without those that touch nothing.
  std::vector<PhaseReads> phases = {};

  // The place in these of a cache of M words. Requires: M >= 1.
  [[nodiscard]] std::size_t at(Index M) const;
};

// A unit that is written and not dead in the end is written back. Requires: accesses.
Replayed replay(const Accesses& accesses);

}  // namespace redblue
