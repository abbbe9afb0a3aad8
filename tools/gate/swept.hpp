#pragma once
// The directory of a sweep.

#include <filesystem>
#include <string>

#include "runtime/sweep/sweep.hpp"

namespace redblue {

// Its files.
inline constexpr const char* kPointsFile = "points.jsonl";  // the points done so far
inline constexpr const char* kTableFile = "sweep.csv";
inline constexpr const char* kDocumentFile = "sweep.json";

// The program that sweeps and draws: redblue, or the command of a user's own kernels.
struct SweepTool {
  std::string name = "redblue";
  bool own = false;
};

// The document that its `sweep` left there. Throws: InputError, also for kernels that are not the
// tool's; std::runtime_error if there is none yet.
Sweep read_sweep(const std::filesystem::path& directory, const SweepTool& tool);

// Says what a sweep left in its directory, and names the first of its points that cannot run.
void say_swept(const Sweep& sweep, const std::filesystem::path& directory);

}  // namespace redblue
