// redblue bounds: lower bounds on the words of a problem, and the distance of our kernels to them.

#include <memory>

#include "runtime/report/bounds_report.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/print.hpp"
#include "tools/options/task.hpp"

namespace redblue {

Action add_bounds(CLI::App& app) {
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
    BoundReport report = report_bounds(task);
    report.M_from = request.M_from;
    print(report, format);
    return 0;
  };
}

}  // namespace redblue
