// redblue run: a counted run of a kernel on inputs from files or from a seed.

#include "runtime/run/run.hpp"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "runtime/report/run_report.hpp"
#include "runtime/run/rank_resumption.hpp"
#include "runtime/system/whole_file.hpp"
#include "tools/cli/caller.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/interruption.hpp"
#include "tools/cli/print.hpp"
#include "tools/options/machine.hpp"
#include "tools/options/problem.hpp"
#include "tools/options/simd.hpp"

namespace redblue {
namespace {

// Runs the request. A terminal, or the calling program, shows a progress line.
Report run_shown(const Request& request, const Topology& topology) {
  if (const Caller* const its = caller(); its != nullptr && its->show && !request.on_ranks) {
    const Progress progress(its->show);
    return run(request, topology, {.progress = &progress});
  }
  StatusLine status;
  if (!status.visible() || request.on_ranks) {
    return run(request, topology);
  }
  const Progress progress([&](std::string_view line) { status.show(line); });
  return run(request, topology, {.progress = &progress});
}

// Returns the number of runs. Throws: UsageError.
Index runs_of(const TextOption& option, const Request& request) {
  const auto given = option.get();
  if (!given) {
    return 1;
  }
  if (request.store || request.on_ranks) {
    throw UsageError(
        fmt::format("{}: runs in a store or on ranks are not repeated: leave it out", given->from));
  }
  return parse_size(given->text, given->from);
}

double seconds_of(const Report& report) {
  const double own = report.kernel.counted->seconds->total;
  return report.forward ? own + report.forward->counted->seconds->total : own;
}

// Repeats the run for its times, after the reported run. Repeated runs skip verification and output
// files.
void repeat(Request request, const Topology& topology, Index runs, Report& report) {
  request.verify = false;
  request.out.clear();
  if (!request.mask.empty()) {  // this mask remembers the sums that the next plans need
    request.mask_of_caller = report.kernel.plan.problem.one_head().mask;
  }
  if (runs > 1) {
    report.repeated.push_back(seconds_of(report));
  }
  for (Index k = 1; k < runs; ++k) {
    report.repeated.push_back(seconds_of(run(request, topology)));
  }
}

struct KernelRunOptions {
  explicit KernelRunOptions(CLI::App& command)
      : problem(command,
                {"heads",   "kv_heads", "word",   "sums",   "word_costs", "in",     "make",
                 "seed",    "scale",    "out",    "verify", "store",      "engine", "direct",
                 "granule", "keep",     "resume", "grid",   "ranks",      "ring",   "patience"}),
        repeat(command, "--repeat",
               "run several times, and show the median time and the spread (default: 1)", "NUMBER",
               to_string(OptionGroup::run)),
        simd(command),
        format(command, "--format", "output format (default: table)", "table|json|csv") {}
  ProblemOptions problem;
  TextOption repeat;
  SimdOption simd;
  TextOption format;
};

}  // namespace

Action add_run(CLI::App& app, Transport* transport, Arrays* arrays) {
  const auto options = std::make_shared<KernelRunOptions>(app);
  return [options, transport, arrays] {
    Request request;
    request.arrays = arrays;
    const bool has_arrays = arrays != nullptr && !arrays->in.empty();
    request.objective = has_arrays ? Objective::time : Objective::balanced;
    if (transport != nullptr) {
      OnRanks& on = request.on_ranks.emplace();
      on.said = "mpirun";
      on.transport = transport;
    }
    options->problem.fill(request);
    if (request.store && transport == nullptr) {
      request.store->options.before_each = stop_if_asked();
    }
    if (request.store && request.on_ranks && transport != nullptr) {
      // mpirun ends all ranks by a signal, so the folders must be removed then.
      request.on_ranks->stored = [folder = folder_of_rank(request, transport->rank()),
                                  directory = request.store->directory] {
        remove_folders_when_ended({folder, directory});
      };
    }
    const Format format = parse_format(options->format);
    options->simd.apply();
    const bool first = transport == nullptr || transport->rank() == 0;
    if (request.on_ranks) {
      request.on_ranks->collect = request.verify || !request.out.empty() || arrays != nullptr;
      if (!first) {
        request.out.clear();
      }
    }

    // A single thread is not pinned and needs no topology.
    const Topology topology = request.threads > 1 ? machine_topology() : Topology();
    const Index runs = runs_of(options->repeat, request);
    Report report = first ? run_shown(request, topology) : run(request, topology);
    repeat(request, topology, runs, report);
    if (!first) {  // only the first rank reports
      return 0;
    }
    report.calibration = calibration_if_any();
    print(report, format, beside(std::ranges::any_of(request.out, [](const auto& out) {
            return is_standard_output(out.second);
          })));
    const bool given_O =
        request.in.contains("O") || (arrays != nullptr && arrays->in.contains("O"));
    if (given_O && std::ranges::find(report.given, "O") == report.given.end()) {
      say(fmt::format("O and L are not used: {} makes its own", spelled(report.kernel.plan)));
    }
    // CSV cannot hold the verdict; a bad verdict is reported in any format.
    constexpr double kUsual = 1e-3;
    if (report.error) {
      const Verdict& error = *report.error;
      if (format == Format::csv || !error.ok || !(error.given_off.value_or(0) <= kUsual)) {
        say(to_words(error));
      }
      return error.ok ? 0 : 1;
    }
    return 0;
  };
}

}  // namespace redblue
