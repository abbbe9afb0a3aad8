#pragma once
// The subcommands of a gate, for any subjects: record, check and diff.

#include <vector>

#include "runtime/gate/subject.hpp"
#include "tools/cli/frame.hpp"

namespace redblue {

// Requires: the subjects outlive the command.
std::vector<Subcommand> gate_subcommands(const std::vector<Subject>& subjects);

}  // namespace redblue
