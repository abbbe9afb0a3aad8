#pragma once
// One name a file, whether it is there or not: for who must not write over what it reads.

#include <filesystem>

namespace redblue {

// Throws: std::filesystem::filesystem_error.
inline std::filesystem::path resolved(const std::filesystem::path& path) {
  return std::filesystem::weakly_canonical(std::filesystem::absolute(path));
}

}  // namespace redblue
