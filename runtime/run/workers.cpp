#include "runtime/run/workers.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>

#include "kernels/fit.hpp"
#include "memsim/host_access.hpp"
#include "memsim/workspace.hpp"
#include "runtime/observe/run_counts.hpp"
#include "runtime/run/dealing.hpp"
#include "runtime/trace/phase_clock.hpp"

namespace redblue {
namespace {

bool splits(const Kernel& kernel, const Team& team) {
  return team.heads == 1 && team.workers > 1 && kernel.schedule.split.has_value();
}

// Returns the units of one worker. Workers get equally many units, or under a mask equally many
// flops.
Range units_of(const SplitStage& stage, const Plan& plan, Index worker, Index workers) {
  const Index units = stage.units(plan.problem, plan.blocks);
  if (plan.problem.mask.full() || units == 0) {
    return share_of(units, worker, workers);
  }
  const auto flops_before = [&](Index unit) {
    const PhaseCost cost = total(stage.part_cost(plan.problem, plan.blocks, {0, unit}, false));
    return static_cast<double>(cost.flops.value());
  };
  const double all = flops_before(units);
  if (all == 0) {  // these units only add up words of other units
    return share_of(units, worker, workers);
  }
  // Returns the first unit of worker `of`: earlier units have the flops of the workers before it.
  const auto first = [&](Index of) {
    const double share = all * static_cast<double>(of) / static_cast<double>(workers);
    return of == workers
               ? units
               : largest(units, [&](Index unit) { return flops_before(unit - 1) < share; });
  };
  return {worker == 0 ? 0 : first(worker), first(worker + 1)};
}

// Returns the number of units that write partial sums of g: the units of the last stage.
Index units_that_sum(const Kernel& kernel, const Plan& plan) {
  const SplitStage& last = kernel.schedule.split->stages.back();
  return std::max<Index>(last.units(plan.problem, plan.blocks), 1);  // 1 if no pair is live
}

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Copies the rows that stages have left for each other after `units` units. put_left() copies them
// back.
std::vector<float> left_words(const Split& split, const Plan& plan, Index units,
                              std::span<const SlowMatrix> left) {
  std::vector<float> all;
  auto matrix = left.begin();
  for (const Split::Copies& its : split.left_of(plan.problem, plan.blocks, units)) {
    std::vector<float> words(static_cast<std::size_t>(its.rows * matrix->cols()));
    if (its.rows > 0) {
      HostAccess::get(*matrix, {0, its.rows}, words);
    }
    all.insert(all.end(), words.begin(), words.end());
    ++matrix;
  }
  return all;
}

void put_left(const Split& split, const Plan& plan, Index units, std::span<SlowMatrix> left,
              const std::vector<float>& words) {
  std::span<const float> from(words);
  auto matrix = left.begin();
  for (const Split::Copies& its : split.left_of(plan.problem, plan.blocks, units)) {
    const auto size = static_cast<std::size_t>(its.rows * matrix->cols());
    if (size > 0) {
      HostAccess::put(*matrix, {0, its.rows}, from.first(size));
      from = from.subspan(size);
    }
    ++matrix;
  }
}

// One worker. Each is constructed on its own thread, so that its memory is near its core.
struct Worker {
  Worker(const Plan& plan, Unwritten unwritten)
      : machine(plan.M, inner_levels(plan)), clock(machine), workspace(unwritten) {
    machine.weigh(Holds::sums, plan.problem.sum_words);
  }
  Machine machine;
  PhaseClock clock;
  RamWorkspace workspace;
};

// An inner level. Empty: the machine's own level.
using MaybeLevel = std::optional<std::size_t>;

const std::vector<PhaseCost>& phases_of(const Plan& plan, MaybeLevel level) {
  return level ? plan.inner[*level].phases : plan.phases;
}

std::vector<PhaseCost> cost_of_worker(const Kernel& kernel, const Plan& plan, const Team& team,
                                      Index worker, MaybeLevel level) {
  std::vector<PhaseCost> phases;
  if (!splits(kernel, team)) {
    for (const PhaseCost& phase : phases_of(plan, level)) {
      phases.push_back(times(phase, share_of(team.heads, worker, team.workers).size()));
    }
    return phases;
  }
  const Split& split = *kernel.schedule.split;
  const bool sums = split.reduce != nullptr;
  for (const SplitStage& stage : split.stages) {
    if (const Range units = units_of(stage, plan, worker, team.workers); units.size() > 0) {
      add_costs(phases, level ? stage.level_cost(plan.problem, plan.blocks, units, sums, *level)
                              : stage.part_cost(plan.problem, plan.blocks, units, sums));
    }
  }
  const Range rows = share_of(plan.problem.shape.d, worker, team.workers);
  if (sums && rows.size() > 0) {
    add_costs(phases, level ? split.reduce_level_cost(plan.problem, plan.blocks, rows, *level)
                            : split.reduce_cost(plan.problem, plan.blocks, rows));
  }
  return phases;
}

std::vector<PhaseCost> cost_of_team(const Kernel& kernel, const Plan& plan, const Team& team,
                                    MaybeLevel level) {
  std::vector<PhaseCost> sums;
  for (const PhaseCost& phase : phases_of(plan, level)) {  // fixes the order of phases
    sums.push_back({.path = phase.path, .reads = 0, .writes = 0, .peak = 0, .flops = 0});
  }
  for (Index worker = 0; worker < team.workers; ++worker) {
    add_costs(sums, cost_of_worker(kernel, plan, team, worker, level));
  }
  return sums;
}

}  // namespace

Team team_for(const Kernel& kernel, Index workers, Index heads) {
  return {.workers = heads > 1 || kernel.schedule.split ? workers : 1, .heads = heads};
}

std::vector<PhaseCost> cost_of_worker(const Kernel& kernel, const Plan& plan, const Team& team,
                                      Index worker) {
  return cost_of_worker(kernel, plan, team, worker, std::nullopt);
}

std::vector<PhaseCost> cost_of_team(const Kernel& kernel, const Plan& plan, const Team& team) {
  return cost_of_team(kernel, plan, team, std::nullopt);
}

std::vector<LevelPlan> levels_of_team(const Kernel& kernel, const Plan& plan, const Team& team) {
  std::vector<LevelPlan> levels;
  for (std::size_t level = 0; level < plan.inner.size(); ++level) {
    levels.push_back({plan.inner[level].M, cost_of_team(kernel, plan, team, level)});
  }
  return levels;
}

Words largest_io(const Kernel& kernel, const Plan& plan, const Team& team) {
  Words largest;
  for (Index worker = 0; worker < team.workers; ++worker) {
    const PhaseCost all = total(cost_of_worker(kernel, plan, team, worker));
    largest = std::max(largest, all.reads + all.writes);
  }
  return largest;
}

Words partials_of(const Kernel& kernel, const Plan& plan, const Team& team) {
  if (!splits(kernel, team) || kernel.schedule.split->reduce == nullptr) {
    return 0;
  }
  return Words(units_that_sum(kernel, plan)) * plan.problem.shape.d * plan.problem.shape.d;
}

namespace {

// Returns the shares of all workers.
template <class ShareOf>
Dealing dealing(Index workers, Index step, const ShareOf& share_of_worker) {
  std::vector<Range> shares;
  for (Index worker = 0; worker < workers; ++worker) {
    shares.push_back(share_of_worker(worker));
  }
  return {std::move(shares), step};
}

// Returns how many units of a stage are dealt together. Units that share tiles are dealt as whole
// shares, since their words depend on the neighbouring units.
Index units_dealt(const SplitStage& stage, const Plan& plan, Index workers) {
  constexpr Index kOfEach = 32;  // a worker takes units about so many times
  const Index units = stage.units(plan.problem, plan.blocks);
  return std::max<Index>(stage.at_once.empty() ? units / (kOfEach * workers) : units, 1);
}

// The workers of a team while they run.
class TeamAtWork {
 public:
  TeamAtWork(const Plan& plan, const Team& team, const Topology& topology, const RunHook& hook)
      : plan_(plan),
        team_(team),
        topology_(topology),
        hook_(hook),
        workers_(static_cast<std::size_t>(team.workers)),
        moved_(static_cast<std::size_t>(team.workers)) {}

  // Calls code(worker, units) until all units are dealt.
  template <class Code>
  void deal(Dealing units_left, const Code& code) {
    unpinned_ = in_parallel(team_.workers, topology_, [&](Index number) {
      std::optional<Dealing::Units> units = units_left.next(number);
      if (!units) {
        return;
      }
      std::unique_ptr<Worker>& own = workers_[static_cast<std::size_t>(number)];
      if (own == nullptr) {
        own = std::make_unique<Worker>(plan_, team_.unwritten);
      }
      const auto work = [&] {
        for (; units; units = units_left.next(number)) {
          const Index before = total(own->machine.phases()).io.io();
          try {
            code(*own, units->range);
          } catch (...) {
            units_left.end();  // the others need not do the work of a run that failed
            throw;
          }
          moved_[static_cast<std::size_t>(units->owner)] +=
              total(own->machine.phases()).io.io() - before;
        }
      };
      if (hook_) {
        hook_(own->machine, plan_, work);
      } else {
        work();
      }
    });
  }
  [[nodiscard]] const std::string& unpinned() const { return unpinned_; }

  void add_counts_to(RunCounts& counts) const {
    for (const auto& worker : workers_) {
      if (worker != nullptr) {  // null: the worker had no work
        add_counts(worker->machine, worker->clock, plan_, team_.workers, counts);
      }
    }
    Index most = 0;
    for (const auto& moved : moved_) {
      most = std::max(most, moved.load());
    }
    counts.largest = most;
  }

 private:
  const Plan& plan_;
  const Team& team_;
  const Topology& topology_;
  const RunHook& hook_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::atomic<Index>> moved_;  // words of the units that each worker owns
  std::string unpinned_;
};

}  // namespace

TeamRun run_on_team(const Kernel& kernel, const Plan& plan, const Team& team,
                    const std::vector<Operands>& heads, const Topology& topology,
                    const RunHook& hook) {
  const auto start = Clock::now();
  TeamRun run{.counts = no_counts(cost_of_team(kernel, plan, team), plan.inner.size()),
              .unpinned = {}};
  TeamAtWork at_work(plan, team, topology, hook);
  if (splits(kernel, team)) {
    kernel.check(plan, heads.front());
    const Split& split = *kernel.schedule.split;
    RamWorkspace workspace(team.unwritten);
    std::optional<SlowMatrix> partials;
    if (split.reduce != nullptr) {
      partials = workspace
                     .matrix("partial g", units_that_sum(kernel, plan) * plan.problem.shape.d,
                             plan.problem.shape.d)
                     .holding(Holds::sums);
    }
    std::vector<SlowMatrix> left = left_matrices(split, plan, workspace, workspace);
    const Operands io = with(heads.front(), left);
    for (const SplitStage& stage : split.stages) {
      at_work.deal(
          dealing(team.workers, units_dealt(stage, plan, team.workers),
                  [&](Index worker) { return units_of(stage, plan, worker, team.workers); }),
          [&](Worker& own, Range units) {
            stage.part(own.machine, plan, io, units, partials ? &*partials : nullptr);
          });
    }
    if (partials) {
      const Index d = plan.problem.shape.d;
      at_work.deal(
          dealing(team.workers, d, [&](Index worker) { return share_of(d, worker, team.workers); }),
          [&](Worker& own, Range rows) {
            split.reduce(own.machine, plan, rows, *partials, heads.front().out("g"));
          });
    }
  } else {
    at_work.deal(dealing(team.workers, 1,
                         [&](Index worker) { return share_of(team.heads, worker, team.workers); }),
                 [&](Worker& own, Range its) {
                   for (Index head = its.begin; head < its.end; ++head) {
                     kernel.run(own.machine, plan, heads[static_cast<std::size_t>(head)],
                                own.workspace);
                   }
                 });
  }
  run.unpinned = at_work.unpinned();
  run.counts.seconds->total = seconds_since(start);
  at_work.add_counts_to(run.counts);
  return run;
}

RunCounts run_alone(const Kernel& kernel, const Plan& plan, const Operands& io,
                    Workspace& workspace, const RunHook& hook, const Steps& steps) {
  const auto start = Clock::now();
  Machine machine(plan.M, inner_levels(plan));
  machine.weigh(Holds::sums, plan.problem.sum_words);
  const PhaseClock clock(machine);
  // The counts so far, `before` included.
  const auto so_far = [&] {
    RunCounts counts = no_counts(cost_of_team(kernel, plan, {}), plan.inner.size());
    add_counts(machine, clock, plan, 1, counts);
    counts.seconds->total = seconds_since(start);
    if (steps.before) {
      add_counts(*steps.before, counts);
    }
    return counts;
  };
  const auto work = [&] {
    if (!steps.after && !steps.before) {
      kernel.run(machine, plan, io, workspace);
      return;
    }
    kernel.check(plan, io);
    const Split& split = *kernel.schedule.split;
    std::vector<SlowMatrix> left =
        left_matrices(split, plan, workspace, steps.as_results ? *steps.as_results : workspace);
    // Matrices that are not kept like results.
    const std::span<SlowMatrix> noted =
        std::span(left).first(left.size() - split.left_as_results.size());
    put_left(split, plan, steps.first, noted, steps.left);
    const Operands all = with(io, left);
    Index first = 0;  // number of the stage's first unit
    for (const SplitStage& stage : split.stages) {
      const Index units = stage.units(plan.problem, plan.blocks);
      const Index step = stage.at_once.empty() ? 1 : std::max<Index>(units, 1);
      for (Index unit = std::max<Index>(steps.first - first, 0); unit < units; unit += step) {
        stage.part(machine, plan, all, {unit, unit + step}, nullptr);
        if (steps.after) {
          const Index done = first + unit + step;
          steps.after(done, so_far(), left_words(split, plan, done, noted));
        }
      }
      first += units;
    }
  };
  if (hook) {
    hook(machine, plan, work);
  } else {
    work();
  }
  return so_far();
}

RunHook asking(RunHook hook, std::function<void()> stop) {
  return [hook = std::move(hook), stop = std::move(stop)](Machine& machine, const Plan& plan,
                                                          const std::function<void()>& work) {
    machine.before_each_move(stop);
    if (hook) {
      hook(machine, plan, work);
    } else {
      work();
    }
  };
}

}  // namespace redblue
