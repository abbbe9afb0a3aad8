#pragma once
// The report of `redblue count --as`: the words moved by the schedules and tiles of other attention
// kernels, and the redblue kernel that moves the fewest words.

#include <vector>

#include "runtime/report/as_rows.hpp"
#include "runtime/text/description.hpp"

namespace redblue {

struct AsReport {
  Pass pass;
  std::vector<AsRow> rows = {};
  Report best;  // the redblue kernel that moves the fewest words
};

// Counts the schedules, and finds the best redblue kernel. `asked` names no kernel. Gradients start
// from O and L. Requires: has_tiles(pass). Throws: as count().
AsReport report_as(const Request& asked, Pass pass,
                   const std::vector<const KnownSchedule*>& schedules);

Description describe(const AsReport& report);

// Lists the known schedules.
Description describe(const std::vector<KnownSchedule>& schedules);

}  // namespace redblue
