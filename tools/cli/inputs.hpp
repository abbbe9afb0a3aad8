#pragma once
// An output that would replace a file that the same command reads.

#include <filesystem>

#include "tools/cli/command.hpp"

namespace redblue {

// Throws: UsageError if `out` is this input; standard input and output are no files.
void refuse_input(const Given& out, const std::filesystem::path& input);

}  // namespace redblue
