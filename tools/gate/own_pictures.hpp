#pragma once
// Sweeps, pictures, reports, traces and replays of a user's kernels.

#include <string>
#include <vector>

#include "tools/cli/frame.hpp"

namespace redblue {

// Of the program of this name.
std::vector<Subcommand> own_pictures(const std::string& program);

}  // namespace redblue
