#include "runtime/ranks/rank_run.hpp"

#include <algorithm>
#include <chrono>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "kernels/attention.hpp"
#include "kernels/kernel.hpp"
#include "kernels/masked.hpp"
#include "memsim/machine.hpp"
#include "runtime/observe/phase_clock.hpp"
#include "runtime/observe/run_counts.hpp"
#include "runtime/ranks/noted_rows.hpp"
#include "runtime/ranks/transfers.hpp"

namespace redblue {
namespace {

// What a stage of the kernel finds: matrices of the rank's place, or of the rows that it begins
// with.
class StageOperands {
 public:
  StageOperands(const RankPart& part, RankHome& home, const SplitStage& stage) {
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
    const bool own = (stage.of == StageRows::own_queries && of_queries(matrix)) ||
                     (stage.of == StageRows::own_keys && of_keys(matrix));
    return matrices_.emplace_back(own ? home.own_as_matrix(matrix.name)
                                      : home.as_matrix(matrix.name));
  }

  std::deque<SlowMatrix> matrices_;
  Operands io_;
};

// The rank at its work: the kernel's stages, with what goes over the links between them.
class Working {
 public:
  Working(const RankPart& part, RankHome& home, Transport& transport, const RankSteps* steps)
      : part_(part),
        home_(home),
        transport_(transport),
        steps_(steps),
        machine_(part.plan().M),
        clock_(machine_) {}

  RankRun run() {
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
      if (part_.works_on(stages[k].of) && (steps_ == nullptr || stage >= steps_->stage)) {
        run_stage(stages[k], stage);
      }
      finish_all();
    }
    add_up();
    write_what_is_dead();
    return {so_far(), seconds_};
  }

 private:
  using Clock = std::chrono::steady_clock;

  void begin(const std::vector<RankTransfer>& transfers) {
    for (const RankTransfer& transfer : transfers) {
      if (transfer.to == part_.rank()) {
        arriving_.push_back({transfer.group, transport_.begin_receive(
                                                 transfer.matrix, transfer.from,
                                                 home_.rows(transfer.becomes, transfer.received))});
        home_.note(transfer.becomes, transfer.received);
      } else {
        leaving_.push_back(transport_.begin_send(transfer.matrix, transfer.to,
                                                 home_.rows(transfer.matrix, transfer.sent)));
      }
    }
  }

  // Waits for what groups of keys need, up to one of them.
  void finish_up_to(Index group) {
    const auto start = Clock::now();
    for (auto& [of, message] : arriving_) {
      if (message && of <= group) {
        message->finish();
        message.reset();
      }
    }
    seconds_ += seconds_since(start);
  }
  void finish_all() {
    finish_up_to(std::numeric_limits<Index>::max());
    arriving_.clear();
    const auto start = Clock::now();
    for (const auto& message : leaving_) {
      message->finish();
    }
    leaving_.clear();
    seconds_ += seconds_since(start);
  }
  static double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  // The units of the place come group by group: while one group of keys is worked with, those of
  // the next are on their way.
  void run_stage(const SplitStage& stage, Index number) {
    const Plan& plan = part_.plan_of(stage.of);
    const Index units = stage.units(plan.problem, plan.blocks);
    const Index groups = stage.of == StageRows::place ? key_groups_of(plan) : 1;
    const Index done = steps_ != nullptr && number == steps_->stage ? steps_->units : 0;
    const StageOperands operands(part_, home_, stage);
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
          steps_->worked(number, unit + 1, so_far());
        }
        transport_.progress();
      }
    }
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

  // What this rank's own groups left of its own rows, beside what the others send.
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
      for (std::size_t k = 0; k < groups.size() && part_.computes(); ++k) {
        const Index first = static_cast<Index>(k) * rows;
        std::ranges::copy(
            home_.rows(name, {first + own.begin, first + own.end}),
            home_.rows(merged_name(name), {groups[k] * own.size(), (groups[k] + 1) * own.size()})
                .begin());
        home_.note(merged_name(name), {groups[k] * own.size(), (groups[k] + 1) * own.size()});
      }
    }
  }

  // The running sum comes, grows by the partial sums of this rank, and is sent to the next.
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
      part_.split().add_partials(machine_, part_.plan_of(StageRows::place), segments[k].units,
                                 k > 0, partials, g);
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
  struct Arriving {
    Index group;
    std::unique_ptr<Fetch> message;
  };
  std::vector<Arriving> arriving_;
  std::vector<std::unique_ptr<Fetch>> leaving_;
  double seconds_ = 0;
};

}  // namespace

RankHome::RankHome(const RankPart& part) {
  for (HomeMatrix& matrix : home_of(part)) {
    const auto words =
        static_cast<std::size_t>(std::max<Index>(matrix.words().value(), matrix.cols));
    std::string name = matrix.name;
    held_.emplace(std::move(name),
                  Held{std::move(matrix),
                       std::vector<float>(words, std::numeric_limits<float>::quiet_NaN())});
  }
}

RankHome::Held& RankHome::held(std::string_view matrix) {
  return held_.find(matrix)->second;
}

const HomeMatrix& RankHome::about(std::string_view matrix) const {
  return held_.find(matrix)->second.about;
}

std::span<float> RankHome::rows(std::string_view matrix, Range rows) {
  if (rows.size() == 0) {
    return {};
  }
  Held& its = held(matrix);
  const Index first = NumbersWithin(its.about.there).below(rows.begin);
  return std::span(its.words).subspan(static_cast<std::size_t>(first * its.about.cols),
                                      static_cast<std::size_t>(rows.size() * its.about.cols));
}

std::span<float> RankHome::own(std::string_view matrix) {
  return rows(matrix, about(matrix).own);
}

SlowMatrix RankHome::as_matrix(std::string_view matrix, std::string_view called) {
  Held& its = held(matrix);
  const HomeMatrix& about = its.about;
  std::unique_ptr<Backing> words;
  if (about.words() == Words(about.rows) * about.cols) {
    words = std::make_unique<BorrowedBacking>(its.words.data(), about.cols);
  } else {
    words = std::make_unique<SpreadRows>(its.words.data(), about.cols, about.there);
  }
  return for_kernel(its, std::string(called.empty() ? std::string_view(about.name) : called),
                    {0, about.rows}, std::move(words));
}

SlowMatrix RankHome::own_as_matrix(std::string_view matrix) {
  Held& its = held(matrix);
  return for_kernel(its, its.about.name, its.about.own,
                    std::make_unique<BorrowedBacking>(own(matrix).data(), its.about.cols));
}

SlowMatrix RankHome::for_kernel(Held& its, std::string name, Range rows,
                                std::unique_ptr<Backing> words) {
  if (noting_) {
    words = std::make_unique<NotedRows>(std::move(words), [&its, rows](Range written) {
      its.note({rows.begin + written.begin, rows.begin + written.end});
    });
  }
  return SlowMatrix(std::move(name), std::max<Index>(rows.size(), 1), its.about.cols,
                    std::move(words))
      .holding(its.about.holds);
}

void RankHome::Held::note(Range rows) {
  const NumbersWithin lying(about.there);
  changed.push_back({lying.below(rows.begin), lying.below(rows.end)});
}

void RankHome::note(std::string_view matrix, Range rows) {
  if (noting_) {
    held(matrix).note(rows);
  }
}

std::map<std::string, Ranges> RankHome::take_changes() {
  std::map<std::string, Ranges> all;
  for (auto& [name, matrix] : held_) {
    if (matrix.changed.empty()) {
      continue;
    }
    Ranges changed = std::exchange(matrix.changed, {});
    std::ranges::sort(changed, {}, &Range::begin);
    Ranges& apart = all[name];
    for (const Range rows : changed) {
      if (!apart.empty() && rows.begin <= apart.back().end) {
        apart.back().end = std::max(apart.back().end, rows.end);
      } else {
        apart.push_back(rows);
      }
    }
  }
  return all;
}

std::vector<std::string> RankHome::names() const {
  std::vector<std::string> all;
  for (const auto& [name, _] : held_) {
    all.push_back(name);
  }
  return all;
}

Index RankHome::lying_rows(std::string_view matrix) const {
  return size_of(about(matrix).there);
}

std::span<float> RankHome::lying(std::string_view matrix, Range rows) {
  Held& its = held(matrix);
  return std::span(its.words).subspan(static_cast<std::size_t>(rows.begin * its.about.cols),
                                      static_cast<std::size_t>(rows.size() * its.about.cols));
}

Words RankHome::words() const {
  Words words;
  for (const auto& [_, matrix] : held_) {
    words += matrix.about.words();
  }
  return words;
}

RankRun run_rank(const RankPart& part, RankHome& home, Transport& transport,
                 const RankSteps* steps) {
  return Working(part, home, transport, steps).run();
}

}  // namespace redblue
