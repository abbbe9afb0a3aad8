#pragma once
// Describes a run in traces, pictures and documents.

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
  std::string text;            // the whole description on one line
  Json more = Json::object();  // other members of a document: blocks, mask
};

// Returns "n = 1,000, m = 64". With `together`, adjacent equal sizes are joined: "n = m = 64".
std::string sizes_text(const FollowedRun& run, bool together = false);
// Returns the kernel, its sizes, and M.
Json followed_json(const FollowedRun& run);

}  // namespace redblue
