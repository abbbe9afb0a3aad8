#pragma once
// The directory of a sweep.

#include <filesystem>

#include "runtime/sweep/sweep.hpp"

namespace redblue {

// The files of it.
inline constexpr const char* kPointsFile = "points.jsonl";  // what is done so far
inline constexpr const char* kTableFile = "sweep.csv";
inline constexpr const char* kDocumentFile = "sweep.json";

// What `redblue sweep` left there. Throws: InputError; std::runtime_error where it is not done.
Sweep read_sweep(const std::filesystem::path& directory);

}  // namespace redblue
