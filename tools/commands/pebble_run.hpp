#pragma once
// redblue pebble run.

#include "tools/cli/command.hpp"

namespace redblue {

Action pebble_run(CLI::App& app);

}  // namespace redblue
