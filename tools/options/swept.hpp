#pragma once
// The directory of a sweep.

#include <filesystem>

#include "runtime/sweep/sweep.hpp"

namespace redblue {

// Its files.
inline constexpr const char* kPointsFile = "points.jsonl";  // the points done so far
inline constexpr const char* kTableFile = "sweep.csv";
inline constexpr const char* kDocumentFile = "sweep.json";

// The document that `redblue sweep` left there. Throws: InputError; std::runtime_error if there is
// none yet.
Sweep read_sweep(const std::filesystem::path& directory);

// Says what a sweep left in its directory, and names the first of its points that cannot run.
void say_swept(const Sweep& sweep, const std::filesystem::path& directory);

}  // namespace redblue
