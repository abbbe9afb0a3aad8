#pragma once
// Chooses a kernel: finds every kernel that solves a task and fits, with its plan. The choice with
// the fewest words comes first, or the one with the least time by the rates of one machine. Words
// are exact integers, so their order is the same on every machine.

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/kernel.hpp"
#include "runtime/theory/bounds.hpp"
#include "runtime/theory/rates.hpp"

namespace redblue {

// The words moved at one level of fast memory, in both passes and all heads, and the larger of the
// two peaks.
struct LevelChoice {
  Index M = 0;
  Words reads, writes, peak;
  Bound bound = {};  // the choice's bound, for a fast memory of M words

  [[nodiscard]] Words words() const { return reads + writes; }
};

struct Choice {
  Plan plan;
  // The plan that makes O and L, if the kernel takes them and the task does not have them: the
  // first choice among forward kernels.
  std::optional<Plan> forward;
  Words words;             // total of both passes and all heads
  Bound bound = {};        // the largest proven bound for algorithms of the kernel's kind
  bool densified = false;  // both passes take the task's sparse operands as dense ones
  std::optional<double> seconds = {};  // total of both passes and all heads; set if there are rates
  // Balanced plans: the words of all passes are at most this times the fewest. If it is above
  // kBalancedShare, `narrow` is the plan that would come first within that share.
  double share = kBalancedShare;
  std::optional<Plan> narrow = {};
  // Set if there are several levels. `levels` goes from the innermost level out and ends with the
  // machine's last level. `weighted` adds up the words of all levels at their costs
  // (Memory::weighted), and `weighted_bound` does the same with the bounds.
  std::vector<LevelChoice> levels = {};
  std::optional<double> weighted = {}, weighted_bound = {};
};

Words flops(const Choice& choice);  // of both passes and one head

// The order of the choices, and the kernels that may be chosen.
struct Goal {
  Objective objective = Objective::words;
  const Rates* rates = nullptr;  // to estimate time; for other objectives than words
  // The number of workers that share the kernel, and the forward pass if its kernel splits.
  Index workers = 1;
  // If the task shares keys: allow only kernels, also for the forward pass, that read them once.
  bool shared_only = false;
  // For sparse operands: also allow kernels of dense operands, on densified(task).
  bool densified = true;
  // Balanced plans may move more words where the blocks of fewer words are narrow.
  bool widens = true;
  // Also plan those kernels that cannot come first, however long their plans take.
  bool densified_in_any_case = false;
  // `only` is the spelling of one kernel, or empty for all kernels. `admits` leaves other kernels
  // out.
  std::string_view only = {};
  std::function<bool(const Kernel&)> admits = nullptr;
};

// Limits on the live pairs of a mask of single pairs. Such a mask takes a planner microseconds and
// about a hundred bytes for each pair. Above kMostMaskedPairs no mask is made. Above
// kMostPlannedPairs, kernels on densified operands are left out if their lower bound says that they
// move more words than a kernel of sparse operands.
inline constexpr Index kMostMaskedPairs = Index{1} << 24;
inline constexpr Index kMostPlannedPairs = Index{1} << 20;

// The reason why kernels on densified operands are left out.
struct LeftOut {
  Words pairs;                 // live pairs
  std::optional<Bound> bound;  // their lower bound; without it there are too many pairs
};

// Returns whether kernels of dense operands can also solve this task of sparse operands. They
// cannot if the mask would have too many pairs, or for L alone, which no such kernel returns.
bool densifies(const Task& task);
// Returns the task with dense operands, as Problem::densified() makes them. Makes the mask anew.
Task densified(const Task& task);

// Returns the choices, best first; empty if no kernel fits. No plan prefetches, whatever the task's
// memory says.
//
//   words      fewest words first; of equal words, fewer flops first
//   time       least time first, with the blocks of least time, with which rates are measured
//   balanced   choices that move at most 5% above the fewest words first, with balanced blocks and
//              the fastest in front; then the others, fewest words first
//
// A kernel that reads keys and values as one matrix is a choice only if the task has them as one. A
// kernel that takes no mask is a choice only without a mask. If a kernel takes O and L and the task
// knows neither, the words of the kernel that makes them count too.
//
// With inner levels, only kernels that work in levels are choices, least weighted sum first. Their
// seconds count words alone, at the cost that the rates give a word at each level. Without these
// costs there are no seconds.
//
// With sparse operands, a choice may be densified: a kernel of dense operands. This kernel and its
// forward kernel have the words and bounds of densified(task). If such kernels are left out,
// `left_out` is set to the reason.
//
// Throws: ShapeMismatch for extents below 1; CountOverflow if the words of all kernels that fit
// exceed 63 bits; std::invalid_argument for a nest below its bound.
std::vector<Choice> choices(const Task& task, const Goal& goal = {},
                            std::optional<LeftOut>* left_out = nullptr);

// Returns the kernels that solve this task in one level of fast memory but not in its inner levels.
std::vector<std::string> kernels_of_one_level(const Task& task);
// Returns the exception for a task with inner levels in which no kernel fits. It comes from the
// first kernel that would solve the task. Requires: no choices for this goal.
FastMemoryTooSmall no_levels_fit(const Task& task, const Goal& goal);

// The least M in which an admitted kernel, and the kernel that makes O and L for it, solve a task.
// It does not depend on the task's M. `kernel` is empty if no M of 63 bits is enough.
struct LeastMemory {
  Index M = std::numeric_limits<Index>::max();
  std::string kernel = {};
  bool densified = false;
};
LeastMemory least_memory(const Task& task, const Goal& goal = {});
// Returns the task of the forward pass that makes O and L for this task.
Task forward_task(const Task& task);

// Throws: std::invalid_argument for a nest that moves fewer words than the bound of its problem.
void refuse_below(const Bound& bound, const Plan& plan, Words words);

// Returns the task that a kernel solves for this problem: its pass, and the forward results it
// needs.
Task task_of(const Kernel& kernel, const Problem& problem, Index M);

// Returns the properties of a kernel that lower bounds may assume.
Schedule schedule_of(const Kernel& kernel, Sharing sharing, const Blocks& blocks = {});
inline Schedule schedule_of(const Plan& plan) {
  return schedule_of(find_kernel(plan.kernel), plan.problem.sharing, plan.blocks);
}

// A name that stands for the first choice of a pass.
struct AutoName {
  std::string_view name;
  Pass pass;
};
inline constexpr AutoName kAuto[] = {
    {"forward/auto", Pass::forward},     {"backward/auto", Pass::backward},
    {"attention/auto", Pass::attention}, {"gradients/auto", Pass::gradients},
    {"layer/auto", Pass::layer},         {"logsumexp/auto", Pass::logsumexp},
    {"linear/auto", Pass::linear},       {"linear-gradient/auto", Pass::linear_gradient}};
// Returns the entry of this name, or null for other names.
const AutoName* find_auto(std::string_view name);

}  // namespace redblue
