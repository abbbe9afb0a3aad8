#pragma once
// Computes the words that caches of every size move for the same accesses. The caches are LRU and
// the ideal cache with the fewest reads (OPT). They get no hints from the kernel.

#include <string>
#include <vector>

#include "runtime/replay/accesses.hpp"

namespace redblue {

// The reads of the same caches in one phase.
struct PhaseReads {
  std::string phase;
  std::vector<Index> lru, opt;  // for each M, as in Replayed
};

// The words moved by a cache of M words, for each M from 1 to the number of words. A larger cache
// moves as many as the last one.
//
// A unit of several words is touched as a whole, so the counts for an M below the widest unit have
// no meaning. Other caches may hold a part of a unit; they then read the rest.
struct Replayed {
  Index accesses = 0, units = 0;
  Index widest = 1;  // words of the widest unit
  Index words = 0;   // words of all units
  std::vector<Index> lru_reads, lru_writes;
  std::vector<Index> opt_reads;
  // Write-backs of the cache that evicts the word with the farthest next use. It has the fewest
  // reads. Another cache may have fewer writes, or fewer words in total.
  std::vector<Index> belady_writes;
  // In the order in which phases begin, without phases in which even a cache of one word reads no
  // words.
  std::vector<PhaseReads> phases = {};

  // Returns the index in these vectors for a cache of M words. Requires: M >= 1.
  [[nodiscard]] std::size_t at(Index M) const;
};

// Replays the accesses. At the end, units that were written and are not dead are written back.
// Requires: at least one access.
Replayed replay(const Accesses& accesses);

}  // namespace redblue
