// redblue bounds: how few words a problem can move, and how near our kernels come.

#include "runtime/bounds_report.hpp"
#include "tools/command.hpp"
#include "tools/task_options.hpp"

namespace redblue {

Action add_bounds(CLI::App& app) {
  return add_task_report(app, report_bounds);
}

}  // namespace redblue
