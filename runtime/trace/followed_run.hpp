#pragma once
// What traces, pictures and documents say of the run that they follow.

#include <string>
#include <utility>
#include <vector>

#include "memsim/words.hpp"
#include "runtime/text/json.hpp"

namespace redblue {

struct FollowedRun {
  std::string kernel;
  std::vector<std::pair<std::string, Index>> sizes;  // by name, without M
  Index M = 0;
  std::string text;            // all of it, on one line
  Json more = Json::object();  // what a document says besides: the blocks, the mask
};

// "n = 1,000, m = 64"; with `together`, of neighbours that are equal: "n = m = 64".
std::string sizes_text(const FollowedRun& run, bool together = false);
// The kernel, its sizes, and M.
Json followed_json(const FollowedRun& run);

}  // namespace redblue
