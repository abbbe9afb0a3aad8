#pragma once
// The report of `redblue count --as`: what schedules of other attention kernels move with their
// tiles, whether these fit in M, and which blocks would move less.

#include <optional>
#include <string>
#include <vector>

#include "runtime/report/known_schedules.hpp"
#include "runtime/run/run.hpp"
#include "runtime/text/json.hpp"

namespace redblue {

struct AsReport {
  struct Row {
    const KnownSchedule* schedule;
    std::string missing = {};  // why it has no words
    // With its tiles, and the same loops with the blocks of a plan: in the M that is asked for, or
    // in the least that its tiles take where these are so many words more.
    std::optional<Report> counted = {}, planned = {};
    Index too_many = 0;
  };
  Pass pass;
  std::vector<Row> rows;
  Report best;  // of all kernels here
};

// `asked` is a request without a kernel, on which O and L are given to gradients. Throws: as
// count().
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
