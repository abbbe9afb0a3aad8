#pragma once
// Extracts the words from a report of ranks.

#include "tests/support/json.hpp"

namespace redblue {

// Returns the words of all ranks, without the times of the run.
inline Json words_of_ranks(const Json& report) {
  Json all = {{"grid", report["grid"]}, {"path", report["path"]}};
  for (Json rank : report["ranks"]) {
    if (rank.contains("formula")) {
      rank.erase("formula");
      rank["arena"].erase("seconds");
      rank["arena"].erase("seconds_in_links");
    }
    all["ranks"].push_back(rank);
  }
  return all;
}

}  // namespace redblue
