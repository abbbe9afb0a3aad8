#pragma once
// The report of `redblue count --as`: schedules of other attention kernels with their tiles, and
// the kernel here of fewest words.

#include <vector>

#include "runtime/report/as_rows.hpp"
#include "runtime/text/description.hpp"

namespace redblue {

struct AsReport {
  Pass pass;
  std::vector<AsRow> rows = {};
  Report best;  // of all kernels here
};

// `asked` is a request without a kernel, on which O and L are given to gradients. Requires:
// has_tiles(pass). Throws: as count().
AsReport report_as(const Request& asked, Pass pass,
                   const std::vector<const KnownSchedule*>& schedules);

Description describe(const AsReport& report);

// The schedules that are known.
Description describe(const std::vector<KnownSchedule>& schedules);

}  // namespace redblue
