// redblue plan: ranks all kernels for a problem, by words or by time.
//   --cache: the better of the paper's two algorithms, for each device.
//   --loops: the loop nest of one kernel.
//   --ranks: the grids of a number of ranks, for one kernel.

#include <cctype>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "runtime/report/device_report.hpp"
#include "runtime/report/grid_plan_report.hpp"
#include "runtime/report/nest_report.hpp"
#include "runtime/report/plan_report.hpp"
#include "runtime/run/resolve.hpp"
#include "runtime/text/sizes.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/print.hpp"
#include "tools/options/as.hpp"
#include "tools/options/machine.hpp"
#include "tools/options/problem.hpp"
#include "tools/options/ranks.hpp"
#include "tools/options/task.hpp"

namespace redblue {
namespace {

constexpr Index kQueries = 4096;  // default of --n with --cache

// Adds each level of a device.
void add_levels(const Device& device, std::vector<PlannedMemory>& memories) {
  for (const DeviceLevel& level : device.levels) {
    memories.push_back({.name = device.levels.size() == 1
                                    ? device.name
                                    : fmt::format("{} {}", device.name, level.name),
                        .bytes = level.bytes,
                        .source = device.source_of(level)});
  }
}

// Reads sizes and devices. "all" means every known device.
std::vector<PlannedMemory> memories_of(const TextOption& option) {
  std::vector<PlannedMemory> found;
  for (const Given& given : option.items()) {
    const std::string& text = given.text;
    if (text == "all") {
      for (const Device& device : devices()) {
        add_levels(device, found);
      }
    } else if (const auto device = find_device(given, machine_at_hand())) {
      add_levels(*device, found);
    } else if (!text.empty() && std::isalpha(static_cast<unsigned char>(text.front())) != 0) {
      throw UsageError(
          fmt::format("{}: no device is called '{}': expected {}, all, or bytes as "
                      "192KiB",
                      given.from, text, expected_devices()));
    } else {
      found.push_back({.name = text,
                       .bytes = parse_bytes(text, given.from),
                       .source = "given by " + given.from});
    }
  }
  return found;
}

void refuse_levels(const Request& request, const std::string& what) {
  if (!request.inner.empty()) {
    throw UsageError(
        fmt::format("{}: {} of one level of fast memory: give one size", request.said("M"), what));
  }
}

// Requires: the option is given.
NestReport loops_of(const TextOption& option, const TaskOptions& task, const Request& plan) {
  const KernelName name = kernel_named(option.get()->text);
  Request request;
  const Problem problem = task.problem_of(option.flag(), "shows the loops", name, request);
  refuse_levels(request, option.flag() + " shows the loops");
  if (problem.sum_words > 1) {
    throw UsageError(fmt::format("{}: lines of loops have words of one width: leave {} out",
                                 option.flag(), request.said("sums")));
  }
  request.multiple = plan.multiple;
  NestReport report = report_nest(
      name.kernel->plan(problem, request.memory_of_plan(), plan.objective), plan.objective);
  report.M_from = request.M_from;
  return report;
}

// Returns a plan of all kernels that solve a task, or of the kernel `only`.
PlanReport plan_of(Task task, const Request& request, const Request& plan,
                   std::string_view only = {}) {
  task.memory.multiple = plan.multiple;
  std::optional<Rates> rates;
  if (plan.objective != Objective::words) {
    rates = plan.objective == Objective::time ? machine_rates() : plan.rates;
  }
  PlanReport report = report_plan(task, plan.objective, rates, only, request.threads);
  report.M_from = request.M_from;
  report.inner_from = request.inner_from;
  report.word_costs_from = request.word_costs_from;
  report.device = request.device;
  report.calibration = calibration_if_any();
  return report;
}

PlanReport plan_of_kernel(const std::string& kernel, const TaskOptions& options,
                          const Request& plan) {
  const KernelName name = kernel_named(kernel);
  Request request;
  request.kernel = name.text();
  const Problem problem = options.problem_of(kernel, "is planned", name, request);
  if (request.inner.empty()) {
    throw UsageError(
        fmt::format("{}: plan takes a kernel only with --ranks or several levels, as {} 8K,256K; "
                    "for one size of "
                    "M, give --loops {}",
                    kernel, request.said("M"), kernel));
  }
  request.multiple = plan.multiple;
  check_levels(request, *name.kernel);
  Task task = task_of(*name.kernel, problem, request.M);
  task.memory = request.memory_of_plan();
  return plan_of(task, request, plan, spelled(name.kernel->name, problem.sharing));
}

// Returns the rates of this machine. Link costs from the command line replace the measured costs.
Rates rates_with_links(const std::optional<LinkCosts>& links) {
  Rates rates = machine_rates();
  if (links) {
    rates.links = links;
  }
  if (!rates.links) {
    throw UsageError(fmt::format(
        "--objective time: how long messages between ranks take is not known: give --link-costs, "
        "or run `redblue calibrate`"));
  }
  return rates;
}

GridPlanReport grids_of(const std::string& kernel, const RanksToPlanOptions& on,
                        const TaskOptions& task, const Request& plan) {
  if (plan.objective == Objective::balanced || plan.multiple > 1) {
    throw UsageError(
        fmt::format("{}: a plan on ranks is of the fewest words or of the least time, "
                    "and of blocks of any size",
                    plan.said(plan.multiple > 1 ? "multiple" : "objective")));
  }
  const bool by_time = plan.objective == Objective::time;
  const KernelName name = kernel_named(kernel);
  check_runs_on_ranks(name, on.given()->from);
  const auto links = on.link_costs(by_time);
  Request request;
  const Problem problem = task.problem_of(kernel, "is planned on ranks", name, request);
  refuse_levels(request, kernel + " is planned on ranks");
  if (problem.stacked > 1) {
    throw UsageError(request.said("heads") + ": ranks share out heads first: a plan is of one");
  }
  GridPlanReport report =
      report_grids({.kernel = name.kernel,
                    .problem = problem,
                    .M = request.M,
                    .ranks = *on.ranks(),
                    .ring = on.ring(),
                    .home = on.home(),
                    .rates = by_time ? std::optional(rates_with_links(links)) : std::nullopt,
                    .said_home = on.said_home()});
  report.M_from = request.M_from;
  return report;
}

// Throws: UsageError if --as is given with another report. It applies to a plan of all kernels
// only.
void refuse_beside_all(const Given& as, const std::string& other) {
  if (!other.empty()) {
    throw UsageError(fmt::format("{} {}: it is beside a plan of all kernels: leave out {}", as.from,
                                 as.text, other));
  }
}

Option objective_of_plans() {
  Option objective = option("objective");
  objective.text =
      "words: fewest words; balanced: least time with at most 5% more words than the fewest, or "
      "more if such blocks are narrow; time: "
      "least time (default: words)";
  return objective;
}

struct PlanOptions {
  explicit PlanOptions(CLI::App& command)
      : kernel(
            command, "KERNEL",
            "plan only this kernel, with --ranks or with several levels in --M; for one size of M, "
            "use --loops KERNEL"),
        task(command, {"threads"}),
        ranks(command),
        objective(command, {"objective", "multiple"}, {objective_of_plans()}),
        cache(command, "--cache",
              fmt::format("compare the paper's two algorithms with the best backward kernel, for "
                          "each of these caches: sizes (192KiB), devices ({}), or all; "
                          "comma-separated; --n is then {} by default",
                          expected_devices(), kQueries),
              "CACHES"),
        loops(command, "--loops", "print the loop nest of this kernel, with the words of each line",
              "KERNEL"),
        as(command, "compare with"),
        format(command, "--format",
               "output format; nest: with --loops, print the loops in the format that --nest reads "
               "(default: table)",
               "table|json|csv|nest") {}
  OptionalArgument kernel;
  TaskOptions task;
  RanksToPlanOptions ranks;
  TableOptions objective;
  TextOption cache, loops;
  AsOption as;
  TextOption format;
};

}  // namespace

Action add_plan(CLI::App& app) {
  const auto options = std::make_shared<PlanOptions>(app);
  return [options] {
    const auto form = options->format.get();
    const bool as_nest = form && form->text == "nest";
    const Format format = as_nest ? Format::table : parse_format(options->format);
    if (as_nest && !options->loops.get()) {
      throw UsageError(fmt::format("{} nest: only with {}", form->from, options->loops.flag()));
    }
    Request plan;
    options->objective.fill(plan);
    const auto kernel = options->kernel.get();
    const auto on_ranks = options->ranks.given();
    if (const auto as = options->as.get()) {
      refuse_beside_all(*as, kernel                            ? *kernel
                             : on_ranks                        ? on_ranks->from
                             : options->loops.get()            ? options->loops.flag()
                             : !options->cache.items().empty() ? options->cache.flag()
                                                               : "");
    }
    if (kernel && options->ranks.ranks()) {
      for (const TextOption* other : {&options->loops, &options->cache}) {
        if (other->get()) {
          throw UsageError(
              fmt::format("{}: {} asks about one machine", on_ranks->from, other->flag()));
        }
      }
      print(grids_of(*kernel, options->ranks, options->task, plan), format);
      return 0;
    }
    if (kernel) {
      for (const TextOption* other : {&options->loops, &options->cache}) {
        if (other->get()) {
          throw UsageError(fmt::format("{}: leave it out with {}", *kernel, other->flag()));
        }
      }
      print(plan_of_kernel(*kernel, options->task, plan), format);
      return 0;
    }
    if (on_ranks) {
      throw UsageError(fmt::format(
          "{}{}: expected a KERNEL and --ranks, for example "
          "backward/rows --ranks 8",
          on_ranks->from, on_ranks->text.empty() ? "" : fmt::format(" '{}'", on_ranks->text)));
    }
    if (options->loops.get()) {
      if (const auto cache = options->cache.get()) {
        throw UsageError(fmt::format("{} '{}': {} asks about one M; give one of the two",
                                     cache->from, cache->text, options->loops.flag()));
      }
      const NestReport report = loops_of(options->loops, options->task, plan);
      if (as_nest) {
        print(nest_text(report.plan));
      } else {
        print(report, format);
      }
      return 0;
    }
    if (const std::vector<PlannedMemory> asked = memories_of(options->cache); !asked.empty()) {
      if (plan.objective != Objective::words || plan.multiple > 1) {
        throw UsageError(fmt::format(
            "{}: --cache compares the fewest words: leave it out",
            plan.multiple > 1 ? plan.said("multiple")
                              : fmt::format("--objective {}", to_string(plan.objective))));
      }
      print(report_devices(asked, options->task.tasks_of_widths(kQueries, options->cache)), format);
      return 0;
    }
    Request request;
    const Task task = options->task.task(request);
    request.multiple = plan.multiple;
    check_pass_has_levels(request, task.pass);
    std::vector<AsRow> as = options->as.rows(request, task);
    PlanReport report = plan_of(task, request, plan);
    report.as = std::move(as);
    print(report, format);
    return 0;
  };
}

}  // namespace redblue
