#pragma once
// Stops an output from overwriting a file that the same command reads.

#include <filesystem>

#include "tools/cli/command.hpp"

namespace redblue {

// Throws: UsageError if `out` and `input` are the same file. Standard streams are not files.
void refuse_input(const Given& out, const std::filesystem::path& input);

}  // namespace redblue
