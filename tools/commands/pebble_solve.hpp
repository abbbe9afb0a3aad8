#pragma once
// redblue pebble solve.

#include "tools/cli/command.hpp"

namespace redblue {

Action pebble_solve(CLI::App& app);

}  // namespace redblue
