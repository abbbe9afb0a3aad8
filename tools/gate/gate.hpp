#pragma once
// The subcommands of a gate, for any subjects: record, check and diff.

#include <functional>
#include <vector>

#include "runtime/gate/subject.hpp"
#include "tools/cli/frame.hpp"

namespace redblue {

// Subjects take a while to make: they are asked for only when a subcommand runs that needs them.
std::vector<Subcommand> gate_subcommands(const std::function<std::vector<Subject>()>& subjects);

}  // namespace redblue
