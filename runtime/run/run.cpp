#include "runtime/run/run.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "memsim/machine.hpp"
#include "runtime/observe/fma_peak.hpp"
#include "runtime/run/operand_home.hpp"
#include "runtime/run/resolve.hpp"
#include "runtime/system/memory.hpp"
#include "runtime/theory/planner.hpp"

namespace redblue {
namespace {

void run_part(OperandHome& home, Part& part, const RunHook& hook, const Topology& topology,
              const Observers& observers, const std::function<void()>& stop) {
  const auto run = [&](const RunHook& on_each) {
    const bool asked = stop && !part.ranks;  // ranks call `stop` themselves
    home.run(part, asked ? asking(on_each, stop) : on_each);
  };
  if (observers.progress != nullptr) {
    observers.progress->during(part, run);
  } else {
    run(hook);
  }
  if (observers.peak_gflops) {
    part.peak_gflops = fma_peak(part.team.workers, topology);
  }
  home.check(part);
}

// Returns whether each phase read, wrote and held the words of its formula.
bool counts_equal_formula(const Part& part) {
  const std::vector<PhaseCounts>& counted = part.counted->phases;
  return std::ranges::all_of(part.formula, [&](const PhaseCost& formula) {
    const auto found = std::ranges::find(counted, formula.path, &PhaseCounts::path);
    const PhaseCounts phase = found == counted.end() ? PhaseCounts{} : *found;
    return Words(phase.io.reads) == formula.reads && Words(phase.io.writes) == formula.writes &&
           Words(phase.peak) == formula.peak;
  });
}

Verdict verified(const OperandHome& home, const Report& report, const Observers& observers,
                 const std::function<void()>& stop) {
  Verdict verdict;
  if (find_kernel(report.kernel.plan.kernel).is_nest) {
    verdict.of_counts = true;
    verdict.ok = counts_equal_formula(report.kernel);
    return verdict;
  }
  const auto check = [&](const Progress::Step& show) {
    verdict = home.verify(report, [&](double done) {
      if (stop) {
        stop();
      }
      show(done);
    });
  };
  if (observers.progress != nullptr) {
    observers.progress->during_check(check);
  } else {
    check([](double) {});
  }
  return verdict;
}

}  // namespace

Report count(const Request& request) {
  const KernelName asked = requested_kernel(request);
  const Readers readers = open_inputs(request, asked);
  return resolve(request, requested_problem(request, asked, readers), readers.contains("O"));
}

Report run(const Request& request, const Topology& topology, const Observers& observers) {
  const KernelName asked = requested_kernel(request);
  const bool hooked = observers.kernel || observers.forward;
  if (hooked && request.threads > 1) {
    throw UsageError(fmt::format("{} {}: a run is measured on one thread", request.said("threads"),
                                 request.threads));
  }
  if (request.printed_blocks) {
    throw UsageError(request.said("blocks") + " printed: these may not fit in M: count only");
  }
  check_sum_width(request);           // before a store is made
  std::optional<MemoryClaim> memory;  // outlives the matrices, which are in `home`
  const std::unique_ptr<OperandHome> home = request.on_ranks ? ranks_home(request)
                                            : request.store  ? store_home(request, asked)
                                                             : memory_home(request, topology);

  const Readers readers = open_inputs(request, asked);
  static_cast<void>(requested_activation(request, *asked.kernel));
  check_outputs(request, asked, requested_results(request, asked));
  const std::vector<FoundOperand> found = home->find(readers);
  const RequestedProblem problem = requested_problem(request, asked, readers, found);
  home->accept(problem);
  if (hooked && problem.heads.value_or(1) > 1) {
    throw InputError(fmt::format("{}: {} heads, but a run is measured on one", request.said("in"),
                                 *problem.heads));
  }
  const bool has_forward =
      readers.contains("O") || std::ranges::find(found, "O", &FoundOperand::name) != found.end();
  Report report = resolve(request, problem, has_forward);
  set_origins(report, request, readers, found);
  const auto [bytes, remedy] = home->memory_needed(report);
  const std::string chosen = spelled(report.kernel.plan);
  memory.emplace(request.memory, bytes,
                 find_auto(request.kernel) == nullptr
                     ? chosen
                     : fmt::format("{} ({})", request.kernel, chosen),
                 remedy);
  home->clear();
  // Opens outputs before the work, so that an output that cannot be written fails early.
  Writers writers = open_outputs(request, find_kernel(report.kernel.plan.kernel), problem);

  home->bring(report, readers);
  if (report.forward && !report.forward->counted) {
    run_part(*home, *report.forward, observers.forward, topology, observers, request.stop);
    home->take(*report.forward);
  }
  run_part(*home, report.kernel, observers.kernel, topology, observers, request.stop);
  if (request.verify) {
    report.error = verified(*home, report, observers, request.stop);
  }
  if (!report.error || report.error->ok) {
    home->hand_over(writers);
  }
  home->finish(report);
  return report;
}

}  // namespace redblue
