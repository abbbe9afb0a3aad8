#pragma once
// Reads the directory that a sweep wrote.

#include <filesystem>
#include <string>

#include "runtime/sweep/sweep.hpp"

namespace redblue {

// The files in the directory.
inline constexpr const char* kPointsFile = "points.jsonl";  // journal of the finished points
inline constexpr const char* kTableFile = "sweep.csv";
inline constexpr const char* kDocumentFile = "sweep.json";

// The program that sweeps and draws: redblue, or a command of a user's kernels.
struct SweepTool {
  std::string name = "redblue";
  bool own = false;
};

// Returns the document that the tool's `sweep` left in the directory. Throws: InputError, also if
// another tool made it; std::runtime_error if it does not exist yet or has no points.
Sweep read_sweep(const std::filesystem::path& directory, const SweepTool& tool);

// Reports the files that a sweep left in its directory, and the first point that cannot run.
void say_swept(const Sweep& sweep, const std::filesystem::path& directory);

}  // namespace redblue
