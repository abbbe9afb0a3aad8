#pragma once
// Schedules of other attention kernels, with the tiles that their sources choose. Each names a
// redblue kernel with the same loops, and its blocks for each shape. They are JSON files in
// runtime/report/schedules.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernels/kernel.hpp"
#include "runtime/text/known_file.hpp"

namespace redblue {

struct KnownSchedule {
  // Tiles for shapes with n >= least_n and d <= most_d. If `causal` is set, they are only for
  // causal masks (true) or only for other masks (false).
  struct Tiles {
    Index least_n = 1, most_d = 0;  // 0: any width
    std::optional<bool> causal = {};
    Blocks blocks = {};
  };
  struct OfPass {
    const Kernel* kernel = nullptr;  // the redblue kernel with the same loops
    std::string source = {};
    std::vector<Tiles> tiles = {};  // the first match for a problem counts
    // Returns the tiles for a problem, or null if none match.
    [[nodiscard]] const Tiles* for_problem(const Problem& problem) const;
  };
  std::string name, title;
  std::vector<OfPass> passes = {};
  std::map<Pass, std::string> missing = {};  // the reason if a pass is missing
  [[nodiscard]] const OfPass* of(Pass pass) const;
};

// Returns all known schedules, sorted by name.
const std::vector<KnownSchedule>& known_schedules();

// Returns the files of the schedules, as compiled into this program.
const std::vector<KnownFile>& known_schedule_files();

}  // namespace redblue
