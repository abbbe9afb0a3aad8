// redblue plot: draws pictures. Each kind of picture is a function that adds its options to its
// subcommand and draws.

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "runtime/replay/replay_report.hpp"
#include "runtime/report/dividing.hpp"
#include "runtime/report/followed_plan.hpp"
#include "runtime/report/kernel_replay.hpp"
#include "runtime/report/scaling.hpp"
#include "runtime/run/resolve.hpp"
#include "runtime/run/run.hpp"
#include "runtime/run/sparse_operands.hpp"
#include "runtime/subjects/kernel_figures.hpp"
#include "runtime/subjects/kernel_subjects.hpp"
#include "runtime/system/input_error.hpp"
#include "runtime/text/sizes.hpp"
#include "runtime/trace/occupancy_picture.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/print.hpp"
#include "tools/gate/picture.hpp"
#include "tools/gate/plot_sweep.hpp"
#include "tools/gate/tabled.hpp"
#include "tools/options/problem.hpp"
#include "tools/options/ranks.hpp"
#include "tools/options/task.hpp"
#include "tools/options/unit.hpp"

namespace redblue {
namespace {

Action occupancy(CLI::App& app) {
  struct Options {
    explicit Options(CLI::App& command) : problem(command, kOperandKeys), picture(command) {}
    ProblemOptions problem;
    PictureOptions picture;
  };
  const auto options = std::make_shared<Options>(app);
  return [options, &app] {
    Request request;
    options->problem.fill(request);
    if (request.threads > 1) {
      throw UsageError(request.said("threads") + ": one fast memory is drawn");
    }
    PictureFile file(options->picture);
    Picture picture;
    const RunHook drawn = [&](Machine& machine, const Plan& plan, const auto& work) {
      const Occupancy occupancy(machine, kOccupancyColumns);
      work();
      occupancy.check();
      picture = occupancy_picture(occupancy, followed_of(plan));
    };
    run(request, Topology(), {.kernel = drawn, .peak_gflops = false});
    file.draw(std::move(picture), app);
    return 0;
  };
}

SweepDrawn of_kernels() {
  return {.tool = {}, .family = &kernel_family()};
}

Action figure1(CLI::App& app) {
  return drawn<
      SliceOptions>(app, of_kernels(), [](const SliceOptions& options, const Sweep& sweep) {
    const Points points = options.points(sweep);
    const Points backward = backward_of(points);
    if (backward.empty() && std::ranges::any_of(points, [](const Swept* swept) {
          return swept->point.subject.starts_with("backward/") && has_sparse_operands(swept->point);
        })) {
      throw InputError(
          "figure1 is of dense operands: of others the bound is of their entries, which a sweep "
          "does not keep; `redblue plot phases` draws these points");
    }
    return figure1_picture(options.slice(backward));
  });
}

Action roofline(CLI::App& app) {
  return drawn<SweepOptions>(app, of_kernels(),
                             [](const SweepOptions& options, const Sweep& sweep) {
                               return roofline_picture(options.points(sweep));
                             });
}

struct DividingAsked {
  explicit DividingAsked(CLI::App& command)
      : table(command, {"n", "m", "d", "in", "make", "seed"}) {}
  TableOptions table;
};

Dividing dividing_of(const DividingAsked& asked) {
  Request request;
  request.kernel = kDividingRows;
  asked.table.fill(request);
  const KernelName kernel = requested_kernel(request);
  const Problem problem = requested_problem(request, kernel, open_inputs(request, kernel)).problem;
  return report_dividing(problem, sparse_sources(request, *kernel.kernel));
}

Action dividing(CLI::App& app) {
  return tabled(app, dividing_of, dividing_picture);
}

struct ReplayAsked {
  explicit ReplayAsked(CLI::App& command) : problem(command, kOperandKeys), unit(command) {}
  ProblemOptions problem;
  UnitOption unit;
};

ReplayReport replay_of(const ReplayAsked& asked) {
  const ReplayUnit unit = asked.unit.get();
  Request request;
  asked.problem.fill(request);
  ReplayReport report{.kernel = accesses_of(request, unit), .unit = unit};
  report.replayed = replay(report.kernel->accesses);
  report.at = sizes_shown(report);
  return report;
}

Action replayed(CLI::App& app) {
  return tabled(app, replay_of, replay_picture);
}

struct ScalingAsked {
  explicit ScalingAsked(CLI::App& command)
      : kernel(command, "kernel", "a kernel that runs on ranks"),
        task(command),
        ranks(command, "largest number of ranks, in powers of two (default: 4096)"),
        runs(command, "--runs",
             "draw reports of `run --format json` on ranks as points, comma-separated", "FILES") {}
  Argument kernel;
  TaskOptions task;
  RanksOption ranks;
  TextOption runs;
};

Scaling scaling_of(const ScalingAsked& asked) {
  const std::string& kernel = asked.kernel.get();
  const KernelName name = kernel_named(kernel);
  check_runs_on_ranks(name, "plot ranks");
  Request request;
  const Problem problem = asked.task.problem_of(kernel, "is drawn on ranks", name, request);
  std::vector<std::string> runs;
  for (const Given& run : asked.runs.items()) {
    runs.push_back(run.text);
  }
  constexpr Index kMost = 4096;
  const Index most = asked.ranks.get().value_or(kMost);
  if (most < 2) {
    throw UsageError(asked.ranks.option().flag() +
                     " 1: one rank has no links; expected at least 2");
  }
  return report_scaling(*name.kernel, problem, request.M, most, runs);
}

Action scaling(CLI::App& app) {
  return tabled(app, scaling_of, scaling_picture);
}

}  // namespace

Action add_plot(CLI::App& app) {
  return add_pictures(
      app, {{"figure1", "words of kernels against M, n or d, as the paper's Figure 1", figure1},
            {"phases", "words of a kernel by phase, against M, n or d",
             [](CLI::App& command) { return plot_phases(command, of_kernels()); }},
            {"levels", "words of a kernel at each level, against the level's M",
             [](CLI::App& command) { return plot_levels(command, of_kernels()); }},
            {"roofline", "a roofline: GF/s against words per flop", roofline},
            {"dividing", "words of sparse kernels against M: tiles or rows resident", dividing},
            {"replay", "words of a kernel against misses of caches: LRU and optimal", replayed},
            {"ranks", "words of one rank against the number of ranks", scaling},
            {"occupancy", "contents of fast memory over a run, by tile", occupancy}});
}

}  // namespace redblue
