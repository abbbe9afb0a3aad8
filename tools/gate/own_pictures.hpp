#pragma once
// Subcommands on a user's kernels: sweep, report, plot, trace and replay.

#include <string>
#include <vector>

#include "tools/cli/frame.hpp"

namespace redblue {

// Returns the subcommands for the program with this name.
std::vector<Subcommand> own_pictures(const std::string& program);

}  // namespace redblue
