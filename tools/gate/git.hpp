#pragma once
// What git says of the repository that a file lies in.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runtime/system/subprocess.hpp"

namespace redblue {

// Runs `git -C DIRECTORY WORDS`, of the PATH; an empty directory is the working directory. Nothing
// where there is no git. Throws: std::system_error.
std::optional<Ended> run_git(const std::vector<std::string>& words,
                             const std::filesystem::path& directory);

// The output of such a run that succeeds; nothing for one that fails.
std::optional<std::string> git_says(const std::vector<std::string>& words,
                                    const std::filesystem::path& directory);

std::string first_line(const std::string& text);

}  // namespace redblue
