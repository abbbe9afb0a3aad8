// redblue bounds: lower bounds for a problem, and the ratio of each kernel to them.

#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "runtime/report/bounds_report.hpp"
#include "runtime/text/sizes.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/print.hpp"
#include "tools/options/as.hpp"
#include "tools/options/task.hpp"

namespace redblue {

Action add_bounds(CLI::App& app) {
  struct Options {
    explicit Options(CLI::App& command)
        : task(command),
          partition(command, "--partition", "add bounds from partitions of the graph (Lemma E.6)"),
          as(command, "compare with"),
          format(command, "--format", "output format (default: table)", "table|json|csv") {}
    TaskOptions task;
    Switch partition;
    AsOption as;
    TextOption format;
  };
  const auto options = std::make_shared<Options>(app);
  return [options] {
    Request request;
    const Task task = options->task.task(request);
    const Format format = parse_format(options->format);
    const auto partition = options->partition.from();
    if (const std::string why = no_partitions(task); partition && !why.empty()) {
      throw UsageError(fmt::format("{}: a bound by partitions is proven {}", *partition, why));
    }
    if (partition && !request.inner.empty()) {
      throw UsageError(
          fmt::format("{}: partitions are of one level of fast memory: give {} one size",
                      *partition, request.said("M")));
    }
    std::vector<AsRow> as = options->as.rows(request, task);
    if (!task.nests.empty() && !request.inner.empty()) {
      throw UsageError(fmt::format(
          "--nest: nests are of one level of fast memory: give {} one size", request.said("M")));
    }
    for (const Kernel* nest : task.nests) {
      as.push_back(as_row(*nest, task));
    }
    BoundReport report = report_bounds(task);
    report.as = std::move(as);
    report.M_from = request.M_from;
    report.inner_from = request.inner_from;
    report.word_costs_from = request.word_costs_from;
    report.device = request.device;
    if (partition) {
      report.partitions = partitions(task);
    }
    print(report, format);
    return 0;
  };
}

}  // namespace redblue
