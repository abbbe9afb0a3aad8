#include "runtime/ranks/rank_run.hpp"

#include <algorithm>
#include <chrono>
#include <deque>
#include <limits>
#include <optional>
#include <utility>

#include "kernels/attention.hpp"
#include "kernels/kernel.hpp"
#include "kernels/masked.hpp"
#include "memsim/machine.hpp"
#include "runtime/observe/run_counts.hpp"
#include "runtime/ranks/home_messages.hpp"
#include "runtime/ranks/ring_run.hpp"
#include "runtime/ranks/transfers.hpp"
#include "runtime/trace/phase_clock.hpp"

namespace redblue {
namespace {

// The operands of a stage: matrices of the rank's place or of the rank's own rows.
class StageOperands {
 public:
  // `ring` has the streaming rows; null if no rows stream.
  StageOperands(const RankPart& part, RankHome& home, const SplitStage& stage, RingRun* ring)
      : ring_(ring), keys_stay_(part.of().keys_stay(stage)) {
    const Problem& problem = part.plan().problem;
    for (const Signature& operand : part.of().kernel().given(problem)) {
      io_.give(add(home, operand, stage));
    }
    for (const Signature& result : part.of().kernel().returned(problem)) {
      io_.take(add(home, result, stage));
    }
    for (const Split::Copies& left : part.split().left_of(problem, part.plan().blocks)) {
      io_.take(is_among(stage.merges, left.matrix.name)
                   ? matrices_.emplace_back(
                         home.as_matrix(merged_name(left.matrix.name), left.matrix.name))
               : part.of().brings(left.matrix.name)
                   ? add(home, left.matrix, stage)
                   : matrices_.emplace_back(home.as_matrix(left.matrix.name)));
    }
  }
  [[nodiscard]] const Operands& io() const { return io_; }

 private:
  SlowMatrix& add(RankHome& home, const Signature& matrix, const SplitStage& stage) {
    if (ring_ != nullptr && ring_->passes(matrix.name)) {
      return matrices_.emplace_back(ring_->as_matrix(matrix.name));
    }
    const bool own = (stage.of == StageRows::own_queries && of_queries(matrix)) ||
                     ((stage.of == StageRows::own_keys || keys_stay_) && of_keys(matrix));
    return matrices_.emplace_back(own ? home.own_as_matrix(matrix.name)
                                      : home.as_matrix(matrix.name));
  }

  RingRun* ring_;
  bool keys_stay_;
  std::deque<SlowMatrix> matrices_;
  Operands io_;
};

// Runs the stages of the kernel on one rank, and the exchanges over links between them.
class Working {
 public:
  Working(const RankPart& part, RankHome& home, Transport& transport, const RankSteps* steps,
          const std::function<void()>& before_each_move)
      : part_(part),
        home_(home),
        transport_(transport),
        steps_(steps),
        machine_(part.plan().M),
        clock_(machine_) {
    machine_.before_each_move(before_each_move);
  }

  RankRun run() {
    home_.begin(Purpose::kernel);
    const std::vector<SplitStage>& stages = part_.split().stages;
    for (std::size_t k = 0; k < stages.size(); ++k) {
      const auto stage = static_cast<Index>(k);
      if (steps_ == nullptr || stage >= steps_->exchanges) {
        begin(transfers_before(part_, k));
        merge_own(stages[k]);
        if (steps_ != nullptr) {
          finish_all();
          steps_->exchanged(stage + 1);
        }
      }
      if (const auto pass = ring_pass(part_.of(), stages[k])) {
        run_in_ring(stages[k], *pass);
      } else if (part_.works_on(stages[k])) {
        run_stage(stages[k]);
      }
      finish_all();
    }
    add_up();
    write_what_is_dead();
    return {so_far(), seconds_, buffered_};
  }

 private:
  using Clock = std::chrono::steady_clock;

  void begin(const std::vector<RankTransfer>& transfers) {
    std::vector<HomeMessage> all;
    for (const RankTransfer& transfer : transfers) {
      const bool comes = transfer.to == part_.rank();
      const std::string& matrix = comes ? transfer.becomes : transfer.matrix;
      const Range rows = comes ? transfer.received : transfer.sent;
      if (comes) {
        home_.note(matrix, rows);
      }
      all.push_back({.phase = transfer.matrix,
                     .from = transfer.from,
                     .to = transfer.to,
                     .home = &home_,
                     .matrix = matrix,
                     .rows = home_.here(matrix, rows),
                     .order = transfer.order,
                     .group = transfer.group});
    }
    messages_.emplace(transport_, std::move(all));
  }

  // Waits for the messages that key groups up to `group` need.
  void finish_up_to(Index group) {
    if (messages_) {
      const auto start = Clock::now();
      messages_->finish_up_to(group);
      seconds_ += seconds_since(start);
    }
  }
  void finish_all() {
    if (messages_) {
      const auto start = Clock::now();
      messages_->finish();
      seconds_ += seconds_since(start);
      buffered_ = std::max(buffered_, messages_->buffered());
      messages_.reset();
    }
  }
  static double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  // Runs the units of a stage, key group by key group. The messages of the next group arrive in the
  // meantime.
  void run_stage(const SplitStage& stage) {
    const Plan& plan = part_.plan_of(stage);
    const Index units = stage.units(plan.problem, plan.blocks);
    const Index groups = stage.of == StageRows::place ? key_groups_of(plan) : 1;
    const Index before = std::exchange(units_, units_ + units);
    const Index done = steps_ != nullptr ? std::max<Index>(steps_->units - before, 0) : 0;
    const StageOperands operands(part_, home_, stage, nullptr);
    std::optional<SlowMatrix> partials;
    if (home_.has(kPartials)) {
      partials = home_.as_matrix(kPartials);
    }
    for (Index group = 0; group < groups; ++group) {
      finish_up_to(group + 1 < groups ? group : std::numeric_limits<Index>::max());
      for (Index unit = std::max(units * group / groups, done); unit < units * (group + 1) / groups;
           ++unit) {
        stage.part(machine_, plan, operands.io(), {unit, unit + 1},
                   partials ? &*partials : nullptr);
        if (steps_ != nullptr) {
          steps_->worked(before + unit + 1, so_far());
        }
        if (messages_) {
          messages_->progress();
        }
      }
    }
  }

  // Runs one unit in each lap. All rows stream past all ranks, even past a rank that has no unit
  // left.
  void run_in_ring(const SplitStage& stage, const RingPass& pass) {
    RingRun ring(part_.of(), pass, home_, transport_);
    const StageOperands operands(part_, home_, stage, &ring);
    const Plan& plan = part_.plan_of(stage);
    const Index units = part_.works_on(stage) ? stage.units(plan.problem, plan.blocks) : Index{0};
    std::optional<SlowMatrix> partials;
    if (home_.has(kPartials)) {
      partials = home_.as_matrix(kPartials);
    }
    for (Index lap = 0; lap < pass.laps; ++lap) {
      ring.begin_lap();
      if (lap < units) {
        stage.part(machine_, plan, operands.io(), {lap, lap + 1}, partials ? &*partials : nullptr);
      }
      ring.end_lap();
    }
    seconds_ += ring.seconds();
  }

  RunCounts so_far() {
    if (formula_.empty()) {
      formula_ = cost_of_rank(part_).arena;
    }
    RunCounts counts = no_counts(formula_);
    add_counts(machine_, clock_, part_.plan(), 1, counts);
    counts.seconds->total = clock_.total();
    if (steps_ != nullptr && steps_->before) {
      add_counts(*steps_->before, counts);
    }
    return counts;
  }

  // Copies the partial results of this rank's groups to the place where other ranks send theirs.
  void merge_own(const SplitStage& stage) {
    for (const std::string_view name : stage.merges) {
      if (!home_.has(name)) {
        continue;
      }
      const bool of_queries = stage.of == StageRows::own_queries;
      const Range own = of_queries ? part_.own_queries() : part_.own_keys();
      const Index rows = of_queries ? part_.queries() : part_.keys();
      const std::vector<Index>& groups =
          of_queries ? part_.of().key_groups(part_.column()) : part_.of().query_groups(part_.row());
      home_.begin(Purpose::links);
      for (std::size_t k = 0; k < groups.size() && part_.computes(); ++k) {
        const Index first = static_cast<Index>(k) * rows;
        const Range merged = {groups[k] * own.size(), (groups[k] + 1) * own.size()};
        home_.copy(merged_name(name), merged.begin, home_, name,
                   {first + own.begin, first + own.end});
        home_.note(merged_name(name), merged);
      }
      home_.begin(Purpose::kernel);
    }
  }

  // Receives the running sum, adds the partial sums of this rank, and sends it to the next rank.
  void add_up() {
    const std::vector<RankTransfer> transfers = transfers_of_sum(part_);
    auto next = transfers.begin();
    const std::vector<Segment>& segments = part_.of().segments();
    for (std::size_t k = 0; k < segments.size(); ++k) {
      if (segments[k].rank != part_.rank()) {
        continue;
      }
      if (k > 0) {
        begin({*next++});
        finish_all();
      }
      SlowMatrix g = home_.as_matrix(kg.name);
      const SlowMatrix partials = home_.as_matrix(kPartials);
      part_.split().add_partials(machine_, part_.plan_of_place(), segments[k].units, k > 0,
                                 partials, g);
      if (k + 1 < segments.size()) {
        begin({*next++});
        finish_all();
      }
    }
  }

  void write_what_is_dead() {
    std::optional<Phase> phase;
    for (const Signature& result : part_.of().kernel().returned(part_.plan().problem)) {
      const std::string name = dead_name(result.name);
      if (home_.has(name)) {
        if (!phase) {
          phase.emplace(machine_, "dead");
        }
        SlowMatrix dead = home_.as_matrix(name);
        write_dead(machine_, result, dead, {0, dead.rows()});
      }
    }
  }

  const RankPart& part_;
  RankHome& home_;
  Transport& transport_;
  const RankSteps* steps_;
  std::vector<PhaseCost> formula_;
  Machine machine_;
  PhaseClock clock_;
  std::optional<HomeMessages> messages_;
  Index units_ = 0;  // in the stages so far
  Index buffered_ = 0;
  double seconds_ = 0;
};

}  // namespace

RankRun run_rank(const RankPart& part, RankHome& home, Transport& transport, const RankSteps* steps,
                 const std::function<void()>& before_each_move) {
  require(part.plan().problem.sum_words == 1, "sums of ranks are one word");
  return Working(part, home, transport, steps, before_each_move).run();
}

}  // namespace redblue
