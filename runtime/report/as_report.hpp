#pragma once
// The report of `redblue count --as`: the words moved by the schedules of other projects, and the
// redblue kernel that moves the fewest words.

#include <vector>

#include "runtime/report/as_rows.hpp"
#include "runtime/run/run.hpp"
#include "runtime/text/description.hpp"

namespace redblue {

struct AsReport {
  Pass pass;
  std::vector<AsRow> rows = {};
  Report best;  // the redblue kernel that moves the fewest words
};

// Counts the nests of the projects, and finds the best redblue kernel. `asked` names no kernel.
// Gradients start from O and L. Requires: has_nests(pass). Throws: as count().
AsReport report_as(const Request& asked, Pass pass, const std::vector<const Project*>& projects);

Description describe(const AsReport& report);

// Lists the nests of projects, with the blocks that have a size in them.
Description describe(const std::vector<Project>& projects);

}  // namespace redblue
