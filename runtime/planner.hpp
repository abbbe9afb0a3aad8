#pragma once
// Which kernel to run: every kernel that solves a task and fits, with its plan, fewest words
// first. Words are exact integers, so the order is the same on every machine.

#include <optional>
#include <string_view>
#include <vector>

#include "kernels/kernel.hpp"
#include "runtime/bounds.hpp"

namespace redblue {

struct Choice {
  Plan plan;
  // Who makes O and L, where the kernel takes them and the task has none: the forward kernel of
  // fewest words.
  std::optional<Plan> forward;
  Words words;  // of both
};

// Like is compared with like: a kernel that has A2 for A3 only where they are one matrix; one that
// takes O and L, from nothing, with those who make them. Of equal words, fewer flops come first.
// Empty where nothing fits, or nothing counts within 63 bits. Throws: ShapeMismatch for extents
// below 1.
std::vector<Choice> choices(const Task& task);

// The task of a kernel in this size: what it returns, what it is given, what it reads as one.
Task task_of(const Kernel& kernel, const Shape& shape, Index M);

// Names that stand for the first choice.
inline constexpr std::string_view kAuto[] = {"forward/auto", "backward/auto"};

}  // namespace redblue
