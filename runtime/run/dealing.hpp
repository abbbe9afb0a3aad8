#pragma once
// Deals units of work to workers as they want them, so that a worker on a busy core does less than
// its share. Each worker owns a share of consecutive units and takes them in order. After its own
// share, it takes the last units of the largest share that is left. Several threads may use one
// dealing.

#include <mutex>
#include <optional>
#include <vector>

#include "memsim/range.hpp"

namespace redblue {

class Dealing {
 public:
  // Each call of next() deals at most `step` units. Requires: step > 0.
  Dealing(std::vector<Range> shares, Index step);

  // Units of one share. Counts of words belong to its owner, whoever does the work. So they do not
  // depend on the time that units take.
  struct Units {
    Range range;
    Index owner;
  };
  // Returns the next units for a worker; empty if all units are dealt.
  std::optional<Units> next(Index worker);
  // Deals no more units.
  void end();

 private:
  std::mutex mutex_;
  std::vector<Range> left_;  // of each share
  Index step_;
};

}  // namespace redblue
