#pragma once
// Schedules of other attention kernels, with the tiles that their sources choose: each is a kernel
// here with the same loops, and blocks by the shape. They are JSON files in
// runtime/report/schedules.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernels/kernel.hpp"
#include "runtime/text/known_file.hpp"

namespace redblue {

struct KnownSchedule {
  // For shapes of at least and at most so much, under a causal mask or not, where it says so.
  struct Tiles {
    Index least_n = 1, most_d = 0;  // 0: of any width
    std::optional<bool> causal = {};
    Blocks blocks = {};
  };
  struct OfPass {
    const Kernel* kernel = nullptr;  // with its loops
    std::string source = {};
    std::vector<Tiles> tiles = {};  // the first that is for a problem is its
    // Null where none is.
    [[nodiscard]] const Tiles* for_problem(const Problem& problem) const;
  };
  std::string name, title;
  std::vector<OfPass> passes = {};
  std::map<Pass, std::string> missing = {};  // why it has no such pass here
  [[nodiscard]] const OfPass* of(Pass pass) const;
};

// In the order of their names.
const std::vector<KnownSchedule>& known_schedules();

// Their files, as this program was built with them.
const std::vector<KnownFile>& known_schedule_files();

}  // namespace redblue
