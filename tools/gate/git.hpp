#pragma once
// Asks git about the repository of a file.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runtime/system/subprocess.hpp"

namespace redblue {

// Runs `git -C DIRECTORY WORDS`; an empty directory means the working directory. Returns no value
// without git on the PATH. Throws: std::system_error.
std::optional<Ended> run_git(const std::vector<std::string>& words,
                             const std::filesystem::path& directory);

// Returns the output of a git command; nothing if it fails.
std::optional<std::string> git_says(const std::vector<std::string>& words,
                                    const std::filesystem::path& directory);

std::string first_line(const std::string& text);

}  // namespace redblue
