// redblue plan: which kernel moves the fewest words, and how near the others come.

#include <memory>

#include "runtime/plan_report.hpp"
#include "tools/command.hpp"
#include "tools/print.hpp"
#include "tools/task_options.hpp"

namespace redblue {

Action add_plan(CLI::App& app) {
  struct Options {
    explicit Options(CLI::App& command)
        : task(command), format(command, "--format", "table, json or csv", "FORMAT") {}
    TaskOptions task;
    TextOption format;
  };
  const auto options = std::make_shared<Options>(app);
  return [options] {
    Request request;
    const Task task = options->task.task(request);
    const Format format = parse_format(options->format);
    PlanReport report = report_plan(task);
    report.M_from = request.M_from;
    print(format == Format::table  ? to_table(report)
          : format == Format::json ? to_json(report)
                                   : to_csv(report));
    return 0;
  };
}

}  // namespace redblue
