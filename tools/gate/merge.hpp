#pragma once
// merge: the parts of a suite that several machines did, as one.

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

// Says which points are missing. Throws: std::runtime_error unless they may be and others are
// there.
void say_missing(const std::string& missing, bool any_there, const MergeOptions& options);

// The recordings of `record --part`, as a baseline. Returns the exit code.
int merge_recordings(const MergeOptions& options);
// Of either: directories of `sweep --part`, or recordings.
Action add_merge(CLI::App& app);

}  // namespace redblue
