#pragma once
// The merge command: joins the parts of a suite that several machines counted.

#include <string>
#include <vector>

#include "tools/cli/command.hpp"

namespace redblue {

struct MergeOptions {
  MergeOptions(CLI::App& app, const std::string& parts_help, const std::string& out_help,
               const std::string& out_type);

  ArgumentList parts;
  TextOption out;
  Switch partial;
};

// Reports missing points. Throws: std::runtime_error if no points are present, or if some are
// missing without --partial.
void say_missing(const std::string& missing, bool any_there, const MergeOptions& options);

// Merges recordings of `record --part` into a baseline. Returns the exit code.
int merge_recordings(const MergeOptions& options);
// Adds `merge` for directories of `sweep --part` and for recordings.
Action add_merge(CLI::App& app);

}  // namespace redblue
