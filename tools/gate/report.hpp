#pragma once
// The report command: a sweep as one HTML page.

#include <cstddef>
#include <functional>
#include <vector>

#include "runtime/sweep/sweep.hpp"
#include "runtime/text/gnuplot.hpp"
#include "tools/cli/command.hpp"
#include "tools/gate/swept.hpp"

namespace redblue {

// Makes the figures of a sweep. Figures by phase show at most `phases` subjects.
using FiguresOf = std::function<std::vector<Picture>(const Sweep& sweep, std::size_t phases)>;

Action add_report_of(CLI::App& app, const SweepTool& tool, FiguresOf figures_of);

}  // namespace redblue
