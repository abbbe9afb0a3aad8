#pragma once
// The report of `redblue replay`: what caches of some sizes move for the accesses of a trace.

#include <string>
#include <vector>

#include "runtime/replay/replay.hpp"

namespace redblue {

struct ReplayReport {
  Replayed replayed;
  std::vector<Index> at;  // the sizes M that are shown, rising
};

// Powers of two below the number of words, and that number.
std::vector<Index> sizes_shown(Index words);

std::string to_table(const ReplayReport& report);
std::string to_json(const ReplayReport& report);
std::string to_csv(const ReplayReport& report);

}  // namespace redblue
