#pragma once
// Rows about other attention kernels in the reports of `redblue count`, `plan` and `bounds`. A row
// has the words that a kernel moves with its own tiles, whether the tiles fit in M, and the blocks
// that redblue would plan for the same loops.

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
  std::string missing = {};  // the reason if the row has no words, else empty
  // The same loops with the kernel's own tiles (`counted`) and with planned blocks (`planned`).
  // Both use the M of the request if the tiles fit in it. Otherwise both use the least M for the
  // tiles, which is `too_many` words larger.
  std::optional<Report> counted = {}, planned = {};
  Index too_many = 0;
  std::optional<Index> word_bytes = {};  // bytes of a word, if the request sets it
};

// Returns whether the known schedules can have tiles for this kind of problem.
bool has_tiles(Pass pass);

// Returns a row for each schedule. `asked` is a request for this problem; its kernel is replaced.
// Gradients start from O and L. Requires: has_tiles(pass). Throws: as count().
std::vector<AsRow> as_rows(const Request& asked, const Problem& problem, Pass pass,
                           const std::vector<const KnownSchedule*>& schedules);

// Returns the words moved divided by the lower bound, if the report has a bound.
std::optional<double> over_bound(const Report& report);

Cells as_cells(const AsRow& row);
// Returns the last columns of as_cells(): the M that the tiles need, and the planned blocks with
// their words. Null gives the same columns without values, for the row of a redblue kernel.
Cells tiles_cells(const AsRow* row);
// Returns "attention/rows as pytorch-cpu", or the name of the schedule if the row has no words.
std::string name_of(const AsRow& row);
// Returns lines of text: the source of each kernel's tiles and its planned blocks, or the reason
// why it has no words.
std::string to_words(const std::vector<AsRow>& rows);

}  // namespace redblue
