#pragma once
// The choice of a kernel: every kernel that solves a task and fits, with its plan, fewest words
// first. Words are exact integers, so that the order is the same on every machine. Or least time
// first, by the rates of one machine.

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

// The words that a choice moves at a level of fast memory, in both passes and all heads, and the
// larger peak.
struct LevelChoice {
  Index M = 0;
  Words reads, writes, peak;
  Bound bound = {};  // as that of the choice, in a fast memory of M words

  [[nodiscard]] Words words() const { return reads + writes; }
};

struct Choice {
  Plan plan;
  // The plan that makes O and L, if the kernel takes them and the task has none: the first choice
  // of the forward kernels.
  std::optional<Plan> forward;
  Words words;                         // of both passes and all heads
  Bound bound = {};                    // the largest proven one for algorithms of the kernel's kind
  bool densified = false;              // both passes take the task's sparse operands as dense ones
  std::optional<double> seconds = {};  // likewise, one after the other; if there are rates
  // Of several levels: each, from the innermost out, the machine's last; the sum of their words at
  // the costs of these (Memory::weighted), and that of their bounds. Else none.
  std::vector<LevelChoice> levels = {};
  std::optional<double> weighted = {}, weighted_bound = {};
};

Words flops(const Choice& choice);  // of both passes and one head

// The order of the choices.
struct Goal {
  Objective objective = Objective::words;
  const Rates* rates = nullptr;  // by which a time is estimated; for other objectives than words
  // Workers share the kernel; the forward pass runs on one.
  Index workers = 1;
  // If the task shares keys: only kernels, the forward one too, that read them once.
  bool shared_only = false;
  // Of sparse operands: kernels of dense operands, too, on densified(task).
  bool densified = true;
  // And those of them that cannot come first, however long their plans take.
  bool densified_in_any_case = false;
  // A spelling of one kernel; empty: all kernels. `admits` leaves other kernels out.
  std::string_view only = {};
  std::function<bool(const Kernel&)> admits = nullptr;
};

// A mask of single pairs takes a planner microseconds and about a hundred bytes a pair. Of more
// live pairs than the first none is made. Of more than the second, kernels on densified operands
// are left out where their lower bound says that they move more words than a kernel of sparse
// operands.
inline constexpr Index kMostMaskedPairs = Index{1} << 24;
inline constexpr Index kMostPlannedPairs = Index{1} << 20;

// Why the kernels on densified operands are left out.
struct LeftOut {
  Words pairs;                 // live ones
  std::optional<Bound> bound;  // on what they move; without: there are too many pairs
};

// Whether kernels of dense operands solve this task of sparse ones, too: not where a mask would
// have too many pairs, nor for L alone, which none returns.
bool densifies(const Task& task);
// That task with dense operands, as Problem::densified() has it. Makes the mask anew.
Task densified(const Task& task);

// The choices, best first. A kernel that reads the keys for values is a choice only if the task has
// them as one matrix, and one that takes no masks only without one. A kernel that takes O and L
// counts, from nothing, with the kernel that makes them. Of equal words, fewer flops come first.
// For least time plans have the blocks of least time, with which rates are measured. Balanced, the
// choices that move at most 5% above the fewest words come first, the fastest one in front, with
// blocks that are balanced; the others follow with the fewest words. Empty if nothing fits. No plan
// prefetches, whatever the task's memory says. Throws: ShapeMismatch for extents below 1;
// CountOverflow if the words of all kernels that fit pass 63 bits.
//
// With inner levels the choices are the kernels that work in levels, the least weighted sum first.
// Their seconds count words alone, at the cost that the rates give a word at each level. Rates
// without these costs give no seconds.
//
// With sparse operands a choice may be densified: a kernel of dense operands. It and the kernel
// that makes O and L for it have the words and bounds of densified(task). Sets `left_out` if such
// kernels are left out because there are too many pairs.
std::vector<Choice> choices(const Task& task, const Goal& goal = {},
                            std::optional<LeftOut>* left_out = nullptr);

// The kernels that would solve a task with inner levels, had it one level of fast memory.
std::vector<std::string> kernels_of_one_level(const Task& task);
// The exception for a task with inner levels in which no kernel fits, by the first kernel that
// would solve it. Requires: no choices for this goal.
FastMemoryTooSmall no_levels_fit(const Task& task, const Goal& goal);

// The kernel that solves the task in the least M, whatever M the task has, with the kernel that
// makes O and L for it: of the kernels that the goal admits. Without a name where none does in an M
// of 63 bits.
struct LeastMemory {
  Index M = std::numeric_limits<Index>::max();
  std::string kernel = {};
  bool densified = false;
};
LeastMemory least_memory(const Task& task, const Goal& goal = {});
// The task of the forward pass that makes O and L for this one.
Task forward_task(const Task& task);

// The task of a kernel with this problem: its results, what it is given, what it reads as one.
Task task_of(const Kernel& kernel, const Problem& problem, Index M);

// The properties of a kernel that lower bounds may assume.
Schedule schedule_of(const Kernel& kernel, Sharing sharing, const Blocks& blocks = {});
inline Schedule schedule_of(const Plan& plan) {
  return schedule_of(find_kernel(plan.kernel), plan.problem.sharing, plan.blocks);
}

// Names of the first choice.
struct AutoName {
  std::string_view name;
  Pass pass;
};
inline constexpr AutoName kAuto[] = {
    {"forward/auto", Pass::forward},     {"backward/auto", Pass::backward},
    {"attention/auto", Pass::attention}, {"gradients/auto", Pass::gradients},
    {"layer/auto", Pass::layer},         {"logsumexp/auto", Pass::logsumexp},
    {"linear/auto", Pass::linear},       {"linear-gradient/auto", Pass::linear_gradient}};
// "forward/auto, backward/auto, ... or linear-gradient/auto", for help.
std::string auto_names();
// Null where it is not one of these.
const AutoName* find_auto(std::string_view name);

}  // namespace redblue
