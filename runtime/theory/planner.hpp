#pragma once
// The choice of a kernel: every kernel that solves a task and fits, with its plan, fewest words
// first. Words are exact integers, so that the order is the same on every machine. Or least time
// first, by the rates of one machine.

#include <optional>
#include <string_view>
#include <vector>

#include "kernels/kernel.hpp"
#include "runtime/theory/bounds.hpp"
#include "runtime/theory/rates.hpp"

namespace redblue {

struct Choice {
  Plan plan;
  // The plan that makes O and L, if the kernel takes them and the task has none: the first choice
  // of the forward kernels.
  std::optional<Plan> forward;
  Words words;                         // of both passes and all heads
  Bound bound = {};                    // the largest proven one for algorithms of the kernel's kind
  std::optional<double> seconds = {};  // likewise, one after the other; if there are rates
};

Words flops(const Choice& choice);  // of both passes and one head

// The order of the choices.
struct Goal {
  const Rates* rates = nullptr;  // least time by these; null: fewest words
  // Workers share the kernel; the forward pass runs on one.
  Index workers = 1;
  // If the task shares keys: only kernels, the forward one too, that read them once.
  bool shared_only = false;
};

// The choices, best first. A kernel that reads the keys for values is a choice only if the task has
// them as one matrix, and one that takes no masks only without one. A kernel that takes O and L
// counts, from nothing, with the kernel that makes them. Of equal words, fewer flops come first.
// For least time plans have the blocks of least time, with which rates are measured. Empty if
// nothing fits. No plan prefetches, whatever the task's memory says. Throws: ShapeMismatch for
// extents below 1; CountOverflow if the words of all kernels that fit pass 63 bits.
std::vector<Choice> choices(const Task& task, const Goal& goal = {});

// The task of a kernel with this problem: its results, what it is given, what it reads as one.
Task task_of(const Kernel& kernel, const Problem& problem, Index M);

// The properties of a kernel that lower bounds may assume.
Schedule schedule_of(const Kernel& kernel, Sharing sharing);

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
// Null where it is not one of these.
const AutoName* find_auto(std::string_view name);

}  // namespace redblue
