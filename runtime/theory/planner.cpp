#include "runtime/theory/planner.hpp"

#include <algorithm>

#include "memsim/errors.hpp"

namespace redblue {
namespace {

Words io(const Plan& plan) {
  const PhaseCost all = total(plan.phases);
  return all.reads + all.writes;
}

Problem with_sharing(Problem problem, Sharing sharing) {
  problem.sharing = sharing;
  return problem;
}

// Of one head.
double seconds(const Choice& choice, const Goal& goal) {
  const double own = seconds(choice.plan, *goal.rates) / static_cast<double>(goal.workers);
  return choice.forward ? seconds(*choice.forward, *goal.rates) + own : own;
}

}  // namespace

std::vector<Choice> choices(const Task& task, const Goal& goal) {
  bool overflowed = false;
  std::optional<Plan> forward;
  if (is_backward(task.pass) && task.known == Known::nothing && task.problem.normalised()) {
    Task before = task;
    before.pass = forward_of(task.pass);
    before.problem = task.problem.wanting_all();
    try {
      const std::vector<Choice> makers =
          choices(before, {.rates = goal.rates, .shared_only = goal.shared_only});
      if (!makers.empty()) {
        forward = makers.front().plan;
      }
    } catch (const CountOverflow&) {  // a kernel without a forward pass may move fewer
      overflowed = true;
    }
  }
  std::vector<Choice> found;
  for (const auto& [named, sharing, _] : all_kernel_names()) {
    const Kernel& kernel = *named;
    const bool needs_forward =
        kernel.needs_forward(task.problem.activation) && task.known == Known::nothing;
    if (kernel.pass != task.pass || kernel.takes_sparse == task.problem.sparsity.dense() ||
        (needs_forward && !forward) ||
        (sharing != Sharing::none && task.problem.sharing == Sharing::none) ||
        (goal.shared_only && sharing != task.problem.sharing) || !kernel.takes(task.problem.mask) ||
        !kernel.takes(task.problem.activation) || !kernel.can_return(task.problem)) {
      continue;
    }
    try {
      Choice choice{.plan = kernel.plan(with_sharing(task.problem, sharing), task.memory.M,
                                        goal.rates == nullptr ? Objective::words : Objective::time),
                    .forward = needs_forward ? forward : std::nullopt,
                    .words = 0};
      choice.words =
          (needs_forward ? io(choice.plan) + io(*forward) : io(choice.plan)) * task.heads;
      if (choice.words.overflowed()) {  // the next kernel may move fewer
        overflowed = true;
        continue;
      }
      found.push_back(std::move(choice));
    } catch (const FastMemoryTooSmall&) {  // the next kernel may fit
    } catch (const CountOverflow&) {       // nor does this one fit: its least M passes 63 bits
    }
  }
  if (found.empty() && overflowed) {
    throw CountOverflow(
        "the words of every kernel that fits pass 63 bits: the sizes are too large");
  }
  if (!found.empty()) {
    const std::vector<Bound> bounds = lower_bounds(task);
    for (Choice& choice : found) {
      if (goal.rates != nullptr) {
        choice.seconds = static_cast<double>(task.heads) * seconds(choice, goal);
      }
      choice.bound =
          largest(bounds, schedule_of(find_kernel(choice.plan.kernel), task.problem.sharing));
    }
  }
  std::ranges::stable_sort(found, [](const Choice& a, const Choice& b) {
    if (a.seconds != b.seconds) {
      return a.seconds < b.seconds;
    }
    return a.words != b.words ? a.words < b.words : flops(a) < flops(b);
  });
  return found;
}

const AutoName* find_auto(std::string_view name) {
  const auto* const found = std::ranges::find(kAuto, name, &AutoName::name);
  return found == std::end(kAuto) ? nullptr : found;
}

Words flops(const Choice& choice) {
  const Words own = total(choice.plan.phases).flops;
  return choice.forward ? own + total(choice.forward->phases).flops : own;
}

Schedule schedule_of(const Kernel& kernel, Sharing sharing) {
  return {.order = kernel.numerics.folds_partial_sums ? Order::any : Order::two_step,
          .recomputes = kernel.numerics.recomputes,
          .sharing = sharing};
}

Task task_of(const Kernel& kernel, const Problem& problem, Index M) {
  return {.pass = kernel.pass,
          .problem = problem,
          .memory = M,
          .known = kernel.needs_forward(problem.activation) ? Known::O_and_L : Known::nothing};
}

}  // namespace redblue
