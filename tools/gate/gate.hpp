#pragma once
// The subcommands record, check and diff of a gate, for any subjects.

#include <functional>
#include <vector>

#include "runtime/gate/subject.hpp"
#include "tools/cli/frame.hpp"

namespace redblue {

// Returns the subcommands. `subjects` is slow, so only a subcommand that needs it calls it.
std::vector<Subcommand> gate_subcommands(const std::function<std::vector<Subject>()>& subjects);

}  // namespace redblue
