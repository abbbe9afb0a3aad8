#pragma once
// The options that say what is to be computed, by whatever kernel: shared by the subcommands that
// bound and plan.

#include <memory>

#include <CLI/CLI.hpp>

#include "runtime/bounds.hpp"
#include "tools/command.hpp"
#include "tools/print.hpp"
#include "tools/problem_options.hpp"

namespace redblue {

class TaskOptions {
 public:
  explicit TaskOptions(CLI::App& app);
  // The request gets where M came from. Throws: UsageError.
  [[nodiscard]] Task task(Request& request) const;

 private:
  ShapeOptions shape_;
  FastMemoryOption M_;
  TextOption problem_, sharing_, given_;
};

// The action of a subcommand that has a report on a task to print.
template <class Report>
Action add_task_report(CLI::App& app, Report (*report_on)(const Task& task)) {
  struct Options {
    explicit Options(CLI::App& command)
        : task(command), format(command, "--format", "table, json or csv", "FORMAT") {}
    TaskOptions task;
    TextOption format;
  };
  const auto options = std::make_shared<Options>(app);
  return [options, report_on] {
    Request request;
    const Task task = options->task.task(request);
    const Format format = parse_format(options->format);
    Report report = report_on(task);
    report.M_from = request.M_from;
    print(report, format);
    return 0;
  };
}

}  // namespace redblue
