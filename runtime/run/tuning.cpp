#include "runtime/run/tuning.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "kernels/attention.hpp"
#include "runtime/observe/fma_peak.hpp"
#include "runtime/run/inputs.hpp"
#include "runtime/run/operand_home.hpp"

namespace redblue {
namespace {

// Shares worth a trial. Fewer would miss the best M by more than the noise of the times.
std::vector<CachePart> tried_parts(const Topology& topology, Index threads) {
  constexpr Index kEnough = Index{4} << 20;
  std::vector<CachePart> parts;
  Index largest_so_far = 0;
  const auto words = [&](const CachePart& part) {
    const auto found = fast_memory(topology, part, static_cast<std::size_t>(threads));
    return found ? found->words : 0;
  };
  const auto add = [&](CacheLevel level, std::initializer_list<double> shares) {
    for (const double share : shares) {
      const CachePart part{level, share};
      if (const Index M = words(part); M > largest_so_far && M <= kEnough) {
        parts.push_back(part);
        largest_so_far = M;
      }
    }
  };
  add(CacheLevel::L1, {0.5, 0.75});
  add(CacheLevel::L2, {0.25, 0.375, 0.5, 0.75});
  add(CacheLevel::L3, {0.0078125, 0.015625, 0.03125, 0.0625, 0.125, 0.25});
  return parts;
}

std::string part_name(const CachePart& part) {
  return fmt::format("{}*{}", to_string(part.level), part.share);
}

bool same_run(const Trial& trial, const Plan& plan) {
  return trial.plan.kernel == plan.kernel && trial.plan.blocks == plan.blocks &&
         trial.plan.problem.sharing == plan.problem.sharing;
}

}  // namespace

double Trial::least() const {
  return *std::ranges::min_element(seconds);
}

double Trial::middle() const {
  return median(seconds);
}

Tuning::Tuning(Task task, Index threads, const Topology& topology, const Rates& rates)
    : task_(std::move(task)), threads_(threads), topology_(topology), rates_(rates) {
  task_.known = Known::O_and_L;
  const std::vector<CachePart> parts = tried_parts(topology, threads);
  if (parts.empty()) {
    throw std::runtime_error(
        fmt::format("the caches of this machine are not known: {}",
                    topology.unavailable.empty() ? topology.source : topology.unavailable));
  }
  for (const CachePart& part : parts) {
    plan_in(part);
  }
  if (trials_.empty()) {
    throw FastMemoryTooSmall(
        fmt::format("no kernel of {} fits in a cache of this machine", to_string(task_.pass)));
  }
  std::ranges::stable_sort(trials_, {}, &Trial::predicted);
}

// Leaves out a plan that equals the plan in a smaller M.
void Tuning::plan_in(const CachePart& part) {
  Task task = task_;
  task.memory = fast_memory(topology_, part, static_cast<std::size_t>(threads_))->words;
  const bool shared = threads_ > 1 && task.heads == 1;
  const Goal goal{.objective = Objective::time,
                  .rates = &rates_,
                  .workers = shared ? threads_ : std::min(threads_, task.heads),
                  .shared_only = true,
                  .admits = [shared](const Kernel& kernel) {
                    return !shared || kernel.schedule.split.has_value();
                  }};
  for (Choice& choice : choices(task, goal)) {
    if (std::ranges::any_of(trials_,
                            [&](const Trial& trial) { return same_run(trial, choice.plan); })) {
      continue;
    }
    const bool needs_forward = find_kernel(choice.plan.kernel).needs_forward();
    const auto forward = needs_forward ? forward_in(part) : std::nullopt;
    if (needs_forward && !forward) {
      continue;
    }
    trials_.push_back({.part = part,
                       .plan = std::move(choice.plan),
                       .team = {.workers = threads_, .heads = task.heads},
                       .predicted = *choice.seconds,
                       .forward = forward});
  }
}

// Returns the place of the forward pass in this part of a cache, or nullopt if none fits.
std::optional<std::size_t> Tuning::forward_in(const CachePart& part) {
  Task task = task_;
  task.memory = fast_memory(topology_, part, static_cast<std::size_t>(threads_))->words;
  std::vector<Choice> found = choices(
      forward_task(task), {.objective = Objective::time, .rates = &rates_, .shared_only = true});
  if (found.empty()) {
    return std::nullopt;
  }
  Choice& choice = found.front();
  const auto known = std::ranges::find_if(
      forwards_, [&](const Trial& trial) { return same_run(trial, choice.plan); });
  if (known != forwards_.end()) {
    return static_cast<std::size_t>(known - forwards_.begin());
  }
  const Team team = team_for(find_kernel(choice.plan.kernel), threads_, task_.heads);
  forwards_.push_back(
      {.part = part,
       .plan = std::move(choice.plan),
       .team = team,
       .predicted = *choice.seconds / (task_.heads == 1 ? static_cast<double>(team.workers) : 1)});
  return forwards_.size() - 1;
}

void Tuning::make_operands() {
  const Problem& problem = task_.problem;
  const Problem one = problem.one_head();
  for (const Trial& trial : trials_) {
    for (const Signature& operand : given_of(trial.plan)) {
      const std::string name(operand.name);
      if (made_by_forward(operand.name) || operands_.contains(name)) {
        continue;
      }
      const Problem filled = find_kernel(trial.plan.kernel).with_inputs(one);
      const Index heads = heads_of(operand, problem, task_.heads);
      std::vector<float>& words = operands_[name];
      words = buffer_for(operand, one.shape, heads);
      const std::size_t of_head = words_of(operand, one.shape);
      for (Index head = 0; head < heads; ++head) {
        fill_input(operand.name, filled, kDefaultSeed + static_cast<std::uint64_t>(head), 1, 0,
                   operand.rows_of(one.shape),
                   std::span(words).subspan(static_cast<std::size_t>(head) * of_head, of_head));
      }
    }
  }
}

void Tuning::time(Trial& trial, const Show& show, std::string_view place) {
  show(fmt::format("{}: {} in {}", place, spelled(trial.plan), part_name(trial.part)));
  const Kernel& kernel = find_kernel(trial.plan.kernel);
  Part part(trial.plan, trial.team);
  Buffers results = result_buffers(kernel, trial.plan.problem, trial.team.heads);
  run_in_memory(part, views_of(operands_), viewed_results(results), topology_);
  trial.seconds.push_back(part.counted->seconds->total);
  if (!is_backward(kernel.pass) && is_backward(task_.pass)) {
    operands_.merge(results);  // the first forward pass makes O and L for all
  }
}

// A kernel that was timed in another M is off by the same factor here. Other kernels are off as
// the best one.
double Tuning::estimate(const Trial& trial) const {
  if (trial.timed()) {
    return trial.least();
  }
  double factor = std::numeric_limits<double>::infinity(), least = factor, of_best = 1;
  for (const Trial& other : trials_) {
    if (!other.timed()) {
      continue;
    }
    const double off = other.least() / other.predicted;
    if (spelled(other.plan) == spelled(trial.plan)) {
      factor = std::min(factor, off);
    }
    if (other.least() < least) {
      least = other.least();
      of_best = off;
    }
  }
  return trial.predicted * (std::isinf(factor) ? of_best : factor);
}

double Tuning::estimate_from_scratch(const Trial& trial) const {
  const Trial* const forward = forward_of(trial);
  return estimate(trial) + (forward == nullptr ? 0 : estimate(*forward));
}

bool Tuning::is_near(const Trial& trial, double factor) const {
  double alone = std::numeric_limits<double>::infinity(), scratch = alone;
  for (const Trial& other : trials_) {
    if (other.timed()) {
      alone = std::min(alone, estimate(other));
      scratch = std::min(scratch, estimate_from_scratch(other));
    }
  }
  return estimate(trial) <= factor * alone || estimate_from_scratch(trial) <= factor * scratch;
}

void Tuning::run(double seconds, const Show& show) {
  constexpr double kTooSlow = 2, kNear = 1.5;
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                   std::chrono::duration<double>(seconds));
  make_operands();
  for (; rounds_ < kRounds && (rounds_ == 0 || Clock::now() < end); ++rounds_) {
    const bool first = rounds_ == 0;
    const std::string place = fmt::format("round {} of {}", rounds_ + 1, kRounds);
    std::vector<bool> forward_ran(forwards_.size());
    for (Trial& trial : trials_) {
      if ((!first && !trial.timed()) || !is_near(trial, first ? kTooSlow : kNear)) {
        continue;
      }
      if (trial.forward && !forward_ran[*trial.forward]) {
        time(forwards_[*trial.forward], show, place);
        forward_ran[*trial.forward] = true;
      }
      time(trial, show, place);
    }
    peaks_.push_back(fma_peak(threads_, topology_));
  }
}

double Tuning::from_scratch(const Trial& trial) const {
  const Trial* const forward = forward_of(trial);
  return trial.middle() + (forward == nullptr ? 0 : forward->middle());
}

double Tuning::of_peak(const Trial& trial) const {
  const auto heads = static_cast<double>(trial.team.heads);
  const auto flops = static_cast<double>(total(trial.plan.phases).flops.value()) * heads;
  return 1e-9 * flops / trial.middle() / median(peaks_);
}

Words Tuning::bytes() const {
  Words most;
  for (const auto* const trials : {&trials_, &forwards_}) {
    for (const Trial& trial : *trials) {
      Report report;
      report.kernel = Part(trial.plan, trial.team);
      Words words;
      for (const auto& matrices :
           {given_of(trial.plan), find_kernel(trial.plan.kernel).returned(trial.plan.problem)}) {
        for (const Signature& matrix : matrices) {
          words += Words(matrix.rows_of(trial.plan.problem.shape)) *
                   matrix.cols_of(trial.plan.problem.shape);
        }
      }
      most = std::max(most, 4 * words * trial.team.heads + working_bytes(report));
    }
  }
  return most;
}

}  // namespace redblue
