// redblue report: a sweep of redblue's kernels as one HTML page.

#include "tools/gate/report.hpp"

#include "runtime/subjects/kernel_figures.hpp"

namespace redblue {

Action add_report(CLI::App& app) {
  return add_report_of(app, SweepTool(), figures_of);
}

}  // namespace redblue
