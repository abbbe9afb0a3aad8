#include "runtime/theory/planner.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "kernels/balanced.hpp"
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

Memory without_prefetch(const Memory& memory) {
  Memory same = memory;
  same.prefetch = 1;
  return same;
}

// Returns all levels, without bounds.
std::vector<LevelChoice> levels_of(const Choice& choice, const Task& task) {
  std::vector<LevelChoice> levels;
  for (std::size_t level = 0; level < task.memory.levels(); ++level) {
    PhaseCost all = total_of_level(choice.plan, level);
    if (choice.forward) {
      const PhaseCost before = total_of_level(*choice.forward, level);
      all.reads += before.reads;
      all.writes += before.writes;
      all.peak = std::max(all.peak, before.peak);
    }
    levels.push_back({.M = task.memory.words(level),
                      .reads = all.reads * task.heads,
                      .writes = all.writes * task.heads,
                      .peak = all.peak});
  }
  return levels;
}

bool overflows(const Choice& choice) {
  return choice.words.overflowed() ||
         std::ranges::any_of(choice.levels,
                             [](const LevelChoice& level) { return level.words().overflowed(); });
}

// Returns the time that the words of one head take in several levels.
double seconds_of_words(const Plan& plan, const Task& task, const Rates& rates) {
  Memory priced = task.memory;
  priced.word_costs = word_nanoseconds(rates, task.memory);
  return 1e-9 * weighted_words(plan, priced);
}

// Returns the time of one head. Nullopt if there are several levels and the cost of their words is
// unknown.
std::optional<double> seconds(const Choice& choice, const Task& task, const Goal& goal) {
  const bool has_levels = !task.memory.inner.empty();
  if (has_levels && goal.rates->words.empty()) {
    return std::nullopt;
  }
  const auto of = [&](const Plan& plan) {
    if (has_levels) {
      return seconds_of_words(plan, task, *goal.rates);
    }
    // The rates were measured with blocks of least time.
    const double usual = seconds(plan, *goal.rates);
    return goal.objective == Objective::balanced ? usual * narrowness(plan.blocks) : usual;
  };
  const auto workers = static_cast<double>(goal.workers);
  const double own = of(choice.plan) / workers;
  if (!choice.forward) {
    return own;
  }
  const bool splits = find_kernel(choice.forward->kernel).schedule.split.has_value();
  return of(*choice.forward) / (splits ? workers : 1) + own;
}

// Returns the words by which choices are compared.
double measured(const Choice& choice, const Task& task) {
  if (choice.levels.empty()) {
    return static_cast<double>(choice.words.value());
  }
  std::vector<Words> moved;
  for (const LevelChoice& level : choice.levels) {
    moved.push_back(level.words());
  }
  return task.memory.weighted(moved);
}

void count_words(Choice& choice, const Task& task) {
  choice.words =
      (choice.forward ? io(choice.plan) + io(*choice.forward) : io(choice.plan)) * task.heads;
  if (!task.memory.inner.empty()) {
    choice.levels = levels_of(choice, task);
  }
}

// Sets the bounds, and the time by the goal's rates.
void judge(Choice& choice, const std::vector<std::vector<Bound>>& bounds, const Task& task,
           const Goal& goal) {
  const Kernel& kernel = find_kernel(choice.plan.kernel);
  if (const Wanted own_results = kernel.own_results();
      !own_results.all() && task.problem.wanted != own_results) {
    Task own = task;
    own.problem.wanted = own_results;
    judge(choice, bounds_of_levels(own), own, goal);
    return;
  }
  if (goal.rates != nullptr) {
    if (const auto of_head = seconds(choice, task, goal)) {
      choice.seconds = static_cast<double>(task.heads) * *of_head;
    }
  }
  const Schedule schedule = schedule_of(choice.plan);
  choice.bound = largest(bounds.back(), schedule);
  refuse_below(choice.bound, choice.plan, choice.words);
  if (!choice.levels.empty()) {
    for (std::size_t level = 0; level < choice.levels.size(); ++level) {
      choice.levels[level].bound = largest(bounds[level], schedule);
    }
    choice.weighted = measured(choice, task);
    choice.weighted_bound = weighted_bound(task.memory, bounds, schedule);
  }
}

// The choices among kernels of sparse operands or of dense ones, as the task has them.
struct Found {
  std::vector<Choice> choices;
  bool overflowed = false;  // the words of a kernel that fits pass 63 bits
};

void sort(std::vector<Choice>& choices) {
  std::ranges::stable_sort(choices, [](const Choice& a, const Choice& b) {
    if (a.seconds != b.seconds) {
      return a.seconds < b.seconds;
    }
    if (a.weighted != b.weighted) {
      return a.weighted < b.weighted;
    }
    return a.words != b.words ? a.words < b.words : flops(a) < flops(b);
  });
}

Found choices_of_kind(const Task& task, const Goal& goal);

// Returns the plan that makes O and L for the kernels that take them. It does not depend on the
// number of workers, so the bits of O and L do not, either.
std::optional<Plan> forward_of(const Task& task, const Goal& goal, bool& overflowed) {
  if (!is_backward(task.pass) || task.known != Known::nothing || !task.problem.normalised()) {
    return std::nullopt;
  }
  Found makers = choices_of_kind(
      forward_task(task),
      {.objective = goal.objective, .rates = goal.rates, .shared_only = goal.shared_only});
  overflowed = overflowed || (makers.choices.empty() && makers.overflowed);
  if (makers.choices.empty()) {
    return std::nullopt;  // kernels that do not take O and L may still fit
  }
  sort(makers.choices);
  return makers.choices.front().plan;
}

bool solves_in_one_level(const KernelName& name, const Task& task, const Goal& goal) {
  const Kernel& kernel = *name.kernel;
  const Problem& problem = task.problem;
  return kernel.pass == task.pass && (goal.only.empty() || name.text() == goal.only) &&
         (!goal.admits || goal.admits(kernel)) && kernel.takes_sparse != problem.sparsity.dense() &&
         name.sharing <= problem.sharing &&
         (!goal.shared_only || name.sharing == problem.sharing) && kernel.takes(problem.mask) &&
         kernel.takes(problem.activation) && kernel.can_return(with_sharing(problem, name.sharing));
}

bool solves(const KernelName& name, const Task& task, const Goal& goal) {
  return solves_in_one_level(name, task, goal) &&
         (task.memory.inner.empty() || name.kernel->has_levels());
}

// Returns the names of registered kernels, and then the nests of the task.
std::vector<KernelName> names_for(const Task& task) {
  std::vector<KernelName> names = all_kernel_names_of(task.pass);
  for (const Kernel* nest : task.nests) {
    names.push_back({nest});
  }
  return names;
}

Found choices_of_kind(const Task& task, const Goal& goal) {
  Found found;
  const std::optional<Plan> forward = forward_of(task, goal, found.overflowed);
  for (const KernelName& name : names_for(task)) {
    const Kernel& kernel = *name.kernel;
    const bool needs_forward =
        kernel.needs_forward(task.problem.activation) && task.known == Known::nothing;
    if (!solves(name, task, goal) || (needs_forward && !forward)) {
      continue;
    }
    try {
      Choice choice{.plan = kernel.plan(with_sharing(task.problem, name.sharing),
                                        without_prefetch(task.memory), goal.objective),
                    .forward = needs_forward ? forward : std::nullopt,
                    .words = 0};
      count_words(choice, task);
      if (overflows(choice)) {  // the next kernel may move fewer
        found.overflowed = true;
        continue;
      }
      found.choices.push_back(std::move(choice));
    } catch (const FastMemoryTooSmall&) {  // the next kernel may fit
    } catch (const CountOverflow&) {  // this kernel does not fit either: its least M passes 63 bits
    }
  }
  if (!found.choices.empty()) {
    const std::vector<std::vector<Bound>> bounds = bounds_of_levels(task);
    for (Choice& choice : found.choices) {
      judge(choice, bounds, task, goal);
    }
  }
  return found;
}

LeastMemory least_of_kind(const Task& task, const Goal& goal) {
  const bool forward = is_backward(task.pass) && task.known == Known::nothing;
  Index makes = 0;
  if (forward && task.problem.normalised()) {
    const Goal of_forward{.shared_only = goal.shared_only, .densified = false};
    makes = least_of_kind(forward_task(task), of_forward).M;
  }
  LeastMemory least;
  for (const KernelName& name : names_for(task)) {
    if (!solves(name, task, goal)) {
      continue;
    }
    const Kernel& kernel = *name.kernel;
    const bool needs = forward && kernel.needs_forward(task.problem.activation);
    try {
      const Index own = kernel.least_M(with_sharing(task.problem, name.sharing),
                                       task.memory.prefetch, task.memory.multiple);
      if (const Index M = std::max(own, needs ? makes : 0); M < least.M) {
        least = {M, name.text()};
      }
    } catch (const CountOverflow&) {  // its least M passes 63 bits
    }
  }
  return least;
}

bool needs_mask(const Sparsity& sparsity) {
  return !sparsity.dense() && !sparsity.of_product() && !sparsity.all_pairs();
}

bool has_too_many_pairs(const Sparsity& sparsity) {
  return needs_mask(sparsity) && sparsity.pairs() > Words(kMostMaskedPairs);
}

// Returns a bound which shows that no kernel on densified operands moves as few words as the best
// of `sparse`. It is computed only if plans would be slow.
std::optional<Bound> bound_above(const std::vector<Choice>& sparse, const Task& task,
                                 const Task& dense, const Goal& goal) {
  const Sparsity& sparsity = task.problem.sparsity;
  if (goal.densified_in_any_case || goal.objective == Objective::time || sparse.empty() ||
      !needs_mask(sparsity) || sparsity.pairs() <= Words(kMostPlannedPairs)) {
    return std::nullopt;
  }
  const Bound bound = largest(lower_bounds(dense));
  return Words(bound.words) > std::ranges::min(sparse, {}, &Choice::words).words
             ? std::optional(bound)
             : std::nullopt;
}

}  // namespace

bool densifies(const Task& task) {
  const Sparsity& sparsity = task.problem.sparsity;
  return !sparsity.dense() && task.pass != Pass::logsumexp && !has_too_many_pairs(sparsity);
}

Task forward_task(const Task& task) {
  Task before = task;
  before.pass = forward_of(task.pass);
  before.memory.prefetch = 1;
  before.problem = task.problem.wanting_all();
  if (before.problem.sharing == Sharing::self) {  // kernels of O and L read queries apart
    before.problem.sharing = Sharing::kv;
  }
  return before;
}

Task densified(const Task& task) {
  Task dense = task;
  dense.problem = task.problem.densified();
  return dense;
}

namespace {

std::vector<Choice> choices_of_one_aim(const Task& task, const Goal& goal,
                                       std::optional<LeftOut>* left_out) {
  Found found = choices_of_kind(task, goal);
  const std::optional<Task> dense =
      goal.densified && densifies(task) ? std::optional(densified(task)) : std::nullopt;
  const std::optional<Bound> above =
      dense ? bound_above(found.choices, task, *dense, goal) : std::nullopt;
  if (dense && !above) {
    Found more = choices_of_kind(*dense, goal);
    found.overflowed = found.overflowed || more.overflowed;
    for (Choice& choice : more.choices) {
      choice.densified = true;
      found.choices.push_back(std::move(choice));
    }
  } else if (left_out != nullptr && goal.densified && task.pass != Pass::logsumexp &&
             !task.problem.sparsity.dense()) {
    *left_out = {task.problem.sparsity.pairs(), above};
  }
  if (found.choices.empty() && found.overflowed) {
    throw CountOverflow(
        "the words of every kernel that fits pass 63 bits: the sizes are too large");
  }
  sort(found.choices);
  return std::move(found.choices);
}

// Makes choices of fewest words faster, within the words that they may move in addition.
class Balance {
 public:
  // `share`: the words that are allowed, divided by the fewest. Requires: at least one choice of
  // fewest words.
  Balance(const Task& task, const Goal& goal, const std::vector<Choice>& fewest, double share)
      : task_(task), goal_(goal), share_(share) {
    double least = measured(fewest.front(), task);
    for (const Choice& choice : fewest) {
      least = std::min(least, measured(choice, task));
    }
    most_ = share * least;
  }

  [[nodiscard]] bool near(const Choice& choice) const { return measured(choice, task_) <= most_; }

  // Requires: near(choice). It still holds afterwards.
  void make_faster(Choice& choice) {
    OfKind& of = of_kind(choice.densified);
    const auto words_of = [&](const Plan& plan) {
      Choice alone{.plan = plan, .forward = std::nullopt, .words = 0};
      count_words(alone, of.task);
      return measured(alone, of.task);
    };
    const double before = choice.forward ? words_of(*forward_of(of)) : 0;
    const double share = (most_ - before) / words_of(choice.plan);
    if (share >= 1) {
      const Memory memory = without_prefetch(task_.memory);
      const Problem& problem = choice.plan.problem;
      const Kernel& kernel = find_kernel(choice.plan.kernel);
      Choice faster = choice;
      faster.plan =
          kernel.plan(problem, memory, kernel.blocks(problem, memory, Objective::balanced, share));
      faster.forward = choice.forward ? of.forward : std::nullopt;
      count_words(faster, of.task);
      choice = near(faster) ? faster : choice;  // the share is rounded
    }
    choice.share = share_;
    judge(choice, of.bounds, of.task, goal_);
  }

 private:
  struct OfKind {  // sparse operands as they are, or densified
    Task task;
    std::vector<std::vector<Bound>> bounds;
    std::optional<Plan> forward = {};
  };

  OfKind& of_kind(bool dense) {
    std::optional<OfKind>& of = dense ? dense_ : own_;
    if (!of) {
      of = OfKind{.task = dense ? densified(task_) : task_, .bounds = {}};
      of->bounds = bounds_of_levels(of->task);
    }
    return *of;
  }
  const std::optional<Plan>& forward_of(OfKind& of) const {
    if (!of.forward) {
      of.forward = choices(forward_task(of.task), {.objective = Objective::balanced,
                                                   .rates = goal_.rates,
                                                   .shared_only = goal_.shared_only,
                                                   .densified = false,
                                                   .widens = false})
                       .front()
                       .plan;
    }
    return of.forward;
  }

  const Task& task_;
  const Goal& goal_;
  double share_, most_ = 0;
  std::optional<OfKind> own_ = {}, dense_ = {};
};

// Puts the choices within `share` of the fewest words first, the fastest first.
std::vector<Choice> balanced(const Task& task, const Goal& goal, std::vector<Choice> fewest,
                             double share) {
  Balance balance(task, goal, fewest, share);
  // clang 14 cannot compile the std::ranges version.
  const auto others = std::stable_partition(
      fewest.begin(), fewest.end(), [&](const Choice& choice) { return balance.near(choice); });
  std::for_each(fewest.begin(), others, [&](Choice& choice) { balance.make_faster(choice); });
  std::ranges::stable_sort(fewest.begin(), others, {}, &Choice::seconds);
  return fewest;
}

// Shares that are tried where kBalancedShare leaves narrow blocks.
constexpr double kWiderShares[] = {1.2, 1.6, 2.4, 4.0};

// Whether blocks are so narrow that they take more than twice the time of usual blocks, which the
// problem has.
bool is_narrow(const Choice& choice) {
  constexpr Index kWide = 48;
  const Shape live = choice.plan.problem.live_part().shape;
  return std::min(live.n, live.m) >= kWide && narrowness(choice.plan.blocks) > 2;
}

}  // namespace

std::vector<Choice> choices(const Task& task, const Goal& goal, std::optional<LeftOut>* left_out) {
  if (goal.objective != Objective::balanced) {
    return choices_of_one_aim(task, goal, left_out);
  }
  Goal words = goal;
  words.objective = Objective::words;
  words.rates = nullptr;
  std::vector<Choice> found = choices_of_one_aim(task, words, left_out);
  if (found.empty()) {
    return found;
  }
  std::vector<Choice> fastest = balanced(task, goal, found, kBalancedShare);
  if (!goal.widens || !task.memory.inner.empty() || !is_narrow(fastest.front())) {
    return fastest;
  }
  for (const double share : kWiderShares) {
    std::vector<Choice> wider = balanced(task, goal, found, share);
    if (!is_narrow(wider.front()) && wider.front().seconds < fastest.front().seconds) {
      wider.front().narrow = std::move(fastest.front().plan);
      return wider;
    }
  }
  return fastest;  // also if all blocks in this M are narrow
}

std::vector<std::string> kernels_of_one_level(const Task& task) {
  std::vector<std::string> names;
  for (const KernelName& name : all_kernel_names_of(task.pass)) {
    if (solves_in_one_level(name, task, {}) && !name.kernel->has_levels()) {
      names.push_back(name.text());
    }
  }
  return names;
}

FastMemoryTooSmall no_levels_fit(const Task& task, const Goal& goal) {
  for (const KernelName& name : all_kernel_names_of(task.pass)) {
    if (!solves(name, task, goal)) {
      continue;
    }
    try {
      static_cast<void>(name.kernel->plan(with_sharing(task.problem, name.sharing),
                                          without_prefetch(task.memory)));
    } catch (const FastMemoryTooSmall& error) {
      return error;
    }
  }
  if (is_backward(task.pass) && task.known == Known::nothing) {
    return no_levels_fit(forward_task(task), {});
  }
  return FastMemoryTooSmall(fmt::format(
      "no kernel of {} that works in several levels of fast memory takes this problem: give one M",
      to_string(task.pass)));
}

LeastMemory least_memory(const Task& task, const Goal& goal) {
  LeastMemory least = least_of_kind(task, goal);
  if (goal.densified && densifies(task)) {
    LeastMemory dense = least_of_kind(densified(task), goal);
    if (dense.M < least.M) {
      least = std::move(dense);
      least.densified = true;
    }
  }
  return least;
}

const AutoName* find_auto(std::string_view name) {
  const auto* const found = std::ranges::find(kAuto, name, &AutoName::name);
  return found == std::end(kAuto) ? nullptr : found;
}

Words flops(const Choice& choice) {
  const Words own = total(choice.plan.phases).flops;
  return choice.forward ? own + total(choice.forward->phases).flops : own;
}

Schedule schedule_of(const Kernel& kernel, Sharing sharing, const Blocks& blocks) {
  const bool folds_groups = kernel.numerics.groups_fold && key_groups_of(blocks) > 1;
  return {
      .order = kernel.numerics.folds_partial_sums || folds_groups ? Order::any : Order::two_step,
      .recomputes = kernel.numerics.recomputes,
      .sharing = sharing};
}

void refuse_below(const Bound& bound, const Plan& plan, Words words) {
  if (find_kernel(plan.kernel).is_nest && words < Words(bound.words)) {
    throw std::invalid_argument(fmt::format(
        "{} moves {} words, fewer than the lower bound of {}: its loops leave out a part of the "
        "problem {}{}",
        plan.kernel, words.value(), bound.words, to_string(plan.pass),
        bound.order == Order::two_step || !bound.recomputation
            ? ", or the header two-step or once does not hold"
            : ""));
  }
}

Task task_of(const Kernel& kernel, const Problem& problem, Index M) {
  return {
      .pass = kernel.pass,
      .problem = problem,
      .memory = M,
      .known = kernel.needs_forward(problem.activation) ? Known::O_and_L : Known::nothing,
      .compulsory = kernel.compulsory ? std::optional(kernel.compulsory(problem)) : std::nullopt};
}

}  // namespace redblue
