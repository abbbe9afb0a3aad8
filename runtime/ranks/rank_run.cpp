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
#include "memsim/machine.hpp"
#include "runtime/observe/phase_clock.hpp"
#include "runtime/observe/run_counts.hpp"

namespace redblue {
namespace {

Range without_begin(Range range, Range of) {
  return {range.begin - of.begin, range.end - of.begin};
}

// What a stage of the kernel finds: matrices of the rank's place, or of the rows that it begins
// with.
class StageOperands {
 public:
  StageOperands(const RankPart& part, RankHome& home, bool own_rows) {
    const Problem& problem = part.plan().problem;
    for (const Signature& operand : part.kernel().given(problem)) {
      io_.give(add(home, operand, operand.name, own_rows));
    }
    for (const Signature& result : part.kernel().returned(problem)) {
      io_.take(add(home, result, result.name, own_rows));
    }
    for (const Signature& left : left_for_rows(part)) {
      io_.take(add(home, left, left.name, own_rows));
    }
    for (const Signature& left : left_by_groups(part)) {
      const std::string name = own_rows ? merged_name(left.name) : std::string(left.name);
      io_.take(matrices_.emplace_back(home.as_matrix(name, left.name)));
    }
  }
  [[nodiscard]] const Operands& io() const { return io_; }

 private:
  SlowMatrix& add(RankHome& home, const Signature& matrix, std::string_view name, bool own_rows) {
    return matrices_.emplace_back(own_rows && matrix.rows == &Shape::n ? home.own_as_matrix(name)
                                                                       : home.as_matrix(name));
  }

  std::deque<SlowMatrix> matrices_;
  Operands io_;
};

// The rank at its work: the kernel's stages, with what goes over the links between them.
class Working {
 public:
  Working(const RankPart& part, RankHome& home, Transport& transport)
      : part_(part),
        home_(home),
        transport_(transport),
        machine_(part.plan().M),
        clock_(machine_) {}

  RankRun run() {
    for (const SplitStage& stage : part_.split().stages) {
      if (stage.of_own_rows) {
        if (!left_by_groups(part_).empty()) {
          deal_out_groups();
        }
        if (part_.own_queries().size() > 0) {
          run_stage(stage, part_.of_own_rows());
        }
      } else {
        bring_operands();
        if (part_.computes()) {
          run_stage(stage, part_.of_place());
        }
      }
    }
    if (part_.split().add_partials != nullptr) {
      add_up();
    }
    RunCounts counts = no_counts(cost_of_rank(part_).arena);
    add_counts(machine_, clock_, part_.plan(), 1, counts);
    counts.seconds->total = clock_.total();
    return {std::move(counts), seconds_};
  }

 private:
  using Clock = std::chrono::steady_clock;
  using Messages = std::vector<std::unique_ptr<Fetch>>;

  void finish(Messages& messages) {
    const auto start = Clock::now();
    for (const auto& message : messages) {
      message->finish();
    }
    messages.clear();
    seconds_ += std::chrono::duration<double>(Clock::now() - start).count();
  }

  void run_stage(const SplitStage& stage, const Plan& plan) {
    const Index units = stage.units(plan.problem, plan.blocks);
    if (units == 0) {
      return;
    }
    const StageOperands operands(part_, home_, stage.of_own_rows);
    std::optional<SlowMatrix> partials;
    if (home_.has(kPartials)) {
      partials = home_.as_matrix(kPartials);
    }
    stage.part(machine_, plan, operands.io(), {0, units}, partials ? &*partials : nullptr);
  }

  void bring_operands() {
    Messages messages;
    for (const Signature& operand : part_.kernel().given(part_.plan().problem)) {
      if (operand.rows == &Shape::m) {
        bring_keys(operand.name, messages);
      } else if (operand.rows == &Shape::n && part_.brings(operand.name)) {
        bring_rows(operand.name, messages);
      }
    }
    for (const Signature& left : left_for_rows(part_)) {
      if (part_.brings(left.name)) {
        bring_rows(left.name, messages);
      }
    }
    finish(messages);
  }

  void bring_rows(std::string_view name, Messages& messages) {
    if (!part_.computes()) {
      return;
    }
    for (Index column = 0; column < part_.grid().columns; ++column) {
      if (column != part_.column()) {
        const Index other = part_.rank_of(part_.row(), column);
        const Range theirs = without_begin(part_.own_queries(column), part_.queries());
        messages.push_back(transport_.begin_receive(name, other, home_.rows(name, theirs)));
        messages.push_back(transport_.begin_send(name, other, home_.own(name)));
      }
    }
  }

  void bring_keys(std::string_view name, Messages& messages) {
    for (Index row = 0; row < part_.grid().rows; ++row) {
      if (row == part_.row()) {
        continue;
      }
      const Index other = part_.rank_of(row, part_.column());
      if (part_.computes()) {
        const Range theirs = without_begin(part_.own_keys(row), part_.keys());
        messages.push_back(transport_.begin_receive(name, other, home_.rows(name, theirs)));
      }
      if (part_.row_blocks(row).size() > 0) {
        messages.push_back(transport_.begin_send(name, other, home_.own(name)));
      }
    }
  }

  // What each group left of some rows goes to their owner, one group below the other.
  void deal_out_groups() {
    if (!part_.computes()) {
      return;
    }
    Messages messages;
    for (const Signature& left : left_by_groups(part_)) {
      const std::string merged = merged_name(left.name);
      for (Index column = 0; column < part_.grid().columns; ++column) {
        const Index other = part_.rank_of(part_.row(), column);
        const Index own = part_.own_queries().size();
        const Range theirs = without_begin(part_.own_queries(column), part_.queries());
        const auto left_for_them = [&](Index group) {  // a group of this rank
          const Index first = group * part_.queries().size();
          return home_.rows(left.name, {first + theirs.begin, first + theirs.end});
        };
        const Range groups = part_.groups(column);
        for (Index group = groups.begin; group < groups.end; ++group) {
          const std::span<float> to = home_.rows(merged, {group * own, (group + 1) * own});
          if (column == part_.column()) {
            std::ranges::copy(left_for_them(group - groups.begin), to.begin());
          } else {
            messages.push_back(transport_.begin_receive(left.name, other, to));
          }
        }
        for (Index group = 0; group < part_.groups(part_.column()).size(); ++group) {
          if (column != part_.column()) {
            messages.push_back(transport_.begin_send(left.name, other, left_for_them(group)));
          }
        }
      }
    }
    finish(messages);
  }

  // The running sum comes, grows by the partial sums of this rank, and is sent to the next.
  void add_up() {
    const std::vector<Segment> segments = segments_of(part_.kernel(), part_.plan(), part_.grid());
    const std::span<float> sum = home_.rows(kg.name, {0, home_.about(kg.name).rows});
    for (std::size_t k = 0; k < segments.size(); ++k) {
      if (segments[k].rank != part_.rank()) {
        continue;
      }
      Messages messages;
      if (k > 0) {
        messages.push_back(transport_.begin_receive(kg.name, segments[k - 1].rank, sum));
        finish(messages);
      }
      SlowMatrix g = home_.as_matrix(kg.name);
      const SlowMatrix partials = home_.as_matrix(kPartials);
      part_.split().add_partials(machine_, part_.of_place(), segments[k].units, k > 0, partials, g);
      if (k + 1 < segments.size()) {
        messages.push_back(transport_.begin_send(kg.name, segments[k + 1].rank, sum));
        finish(messages);
      }
    }
  }

  const RankPart& part_;
  RankHome& home_;
  Transport& transport_;
  Machine machine_;
  PhaseClock clock_;
  double seconds_ = 0;
};

}  // namespace

RankHome::RankHome(const RankPart& part) {
  for (HomeMatrix& matrix : home_of(part)) {
    const auto words = static_cast<std::size_t>(std::max<Index>(matrix.rows, 1) * matrix.cols);
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
  Held& its = held(matrix);
  return std::span(its.words).subspan(static_cast<std::size_t>(rows.begin * its.about.cols),
                                      static_cast<std::size_t>(rows.size() * its.about.cols));
}

std::span<float> RankHome::own(std::string_view matrix) {
  return rows(matrix, about(matrix).own);
}

SlowMatrix RankHome::as_matrix(std::string_view matrix, std::string_view called) {
  Held& its = held(matrix);
  return borrow(called.empty() ? its.about.name : std::string(called), its.words.data(),
                std::max<Index>(its.about.rows, 1), its.about.cols)
      .holding(its.about.holds);
}

SlowMatrix RankHome::own_as_matrix(std::string_view matrix) {
  const HomeMatrix& of = about(matrix);
  return borrow(of.name, own(matrix).data(), of.own.size(), of.cols).holding(of.holds);
}

Words RankHome::words() const {
  Words words;
  for (const auto& [_, matrix] : held_) {
    words += Words(matrix.about.rows) * matrix.about.cols;
  }
  return words;
}

RankRun run_rank(const RankPart& part, RankHome& home, Transport& transport) {
  return Working(part, home, transport).run();
}

}  // namespace redblue
