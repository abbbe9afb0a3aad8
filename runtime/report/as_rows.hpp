#pragma once
// What schedules of other attention kernels move with their tiles, whether these fit in M, and
// which blocks would move less: rows of the reports of `redblue count`, `plan` and `bounds`.

#include <optional>
#include <string>
#include <vector>

#include "runtime/report/known_schedules.hpp"
#include "runtime/run/run.hpp"
#include "runtime/text/cells.hpp"

namespace redblue {

struct AsRow {
  const KnownSchedule* schedule;
  Pass pass;
  std::string missing = {};  // why it has no words
  // With its tiles, and the same loops with the blocks of a plan: in the M that is asked for, or
  // in the least that its tiles take where these are so many words more.
  std::optional<Report> counted = {}, planned = {};
  Index too_many = 0;
  std::optional<Index> word_bytes = {};  // of the request
};

// Whether other kernels have tiles for such problems.
bool has_tiles(Pass pass);

// A row for each schedule. `asked` is a request for this problem, whose kernel is replaced; O and L
// are given to gradients. Requires: has_tiles(pass). Throws: as count().
std::vector<AsRow> as_rows(const Request& asked, const Problem& problem, Pass pass,
                           const std::vector<const KnownSchedule*>& schedules);

// The words of a count over its bound, if it has one.
std::optional<double> over_bound(const Report& report);

Cells as_cells(const AsRow& row);
// Of these, what the tiles take and what a plan moves in their place. Null: of a row for a kernel
// here, which has none of it.
Cells tiles_cells(const AsRow* row);
// "attention/rows as pytorch-cpu"; without words the schedule's name alone.
std::string name_of(const AsRow& row);
// Where tiles are from, and which blocks a plan has; or why there are no words. Whole lines.
std::string to_words(const std::vector<AsRow>& rows);

}  // namespace redblue
