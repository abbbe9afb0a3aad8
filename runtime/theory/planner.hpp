#pragma once
// Which kernel to run: every kernel that solves a task and fits, with its plan, fewest words
// first. Words are exact integers, so the order is the same on every machine. Or least time first,
// by the rates of one.

#include <optional>
#include <string_view>
#include <vector>

#include "kernels/kernel.hpp"
#include "runtime/theory/bounds.hpp"
#include "runtime/theory/rates.hpp"

namespace redblue {

struct Choice {
  Plan plan;
  // Who makes O and L, where the kernel takes them and the task has none: the forward kernel that
  // comes first.
  std::optional<Plan> forward;
  Words words;                         // of both
  Bound bound = {};                    // the largest proven one of algorithms of the kernel's kind
  std::optional<double> seconds = {};  // of both, one after the other; where there are rates
};

Words flops(const Choice& choice);  // of both

// What comes first.
struct Goal {
  const Rates* rates = nullptr;  // least time by these; null: fewest words
  // That share the kernel; who makes O and L is alone.
  Index workers = 1;
  // Where the task shares keys: only kernels that read them once, the forward one, too.
  bool shared_only = false;
};

// Like is compared with like: a kernel that has A2 for A3 only where they are one matrix; one that
// takes O and L, from nothing, with those who make them. Of equal words, fewer flops come first.
// For least time plans have the blocks of least time: it is with these that rates are measured.
// Empty where nothing fits. Throws: ShapeMismatch for extents below 1; CountOverflow where the
// words of all that fit pass 63 bits.
std::vector<Choice> choices(const Task& task, const Goal& goal = {});

// The task of a kernel with this problem: what it returns, what it is given, what it reads as one.
Task task_of(const Kernel& kernel, const Problem& problem, Index M);

// What lower bounds may take for granted of it: no kernel makes a sum twice.
Schedule schedule_of(const Kernel& kernel, Sharing sharing);

// Names that stand for the first choice.
inline constexpr std::string_view kAuto[] = {"forward/auto", "backward/auto"};

}  // namespace redblue
