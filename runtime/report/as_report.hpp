#pragma once
// The report of `redblue count --as`: schedules of other attention kernels with their tiles, and
// the kernel here of fewest words.

#include <string>
#include <vector>

#include "runtime/report/as_rows.hpp"
#include "runtime/text/json.hpp"

namespace redblue {

struct AsReport {
  Pass pass;
  std::vector<AsRow> rows;
  Report best;  // of all kernels here
};

// `asked` is a request without a kernel, on which O and L are given to gradients. Requires:
// has_tiles(pass). Throws: as count().
AsReport report_as(const Request& asked, Pass pass,
                   const std::vector<const KnownSchedule*>& schedules);

std::string to_table(const AsReport& report);
std::string to_json(const AsReport& report);
std::string to_csv(const AsReport& report);

// The schedules that are known.
std::string list_table(const std::vector<KnownSchedule>& schedules);
Json list_json(const std::vector<KnownSchedule>& schedules);
std::string list_csv(const std::vector<KnownSchedule>& schedules);

}  // namespace redblue
