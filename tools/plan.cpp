// redblue plan: which kernel moves the fewest words, and how near the others come.

#include "runtime/plan_report.hpp"
#include "tools/command.hpp"
#include "tools/task_options.hpp"

namespace redblue {

Action add_plan(CLI::App& app) {
  return add_task_report(app, report_plan);
}

}  // namespace redblue
