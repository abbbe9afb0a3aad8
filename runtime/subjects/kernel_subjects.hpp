#pragma once
// redblue's kernels as subjects of a gate or a sweep. Their parameters: n, m, d, M, of some
// `inner`, the levels of fast memory below M, threads, heads, of attention and gradients those of
// keys, prefetch, the place of the slow store, for backward, gradients and layer whether O and L
// are given, the sharing, mask and activation; of kernels of sparse operands, and of auto that may
// choose them, what makes these: rules, files and a seed.

#include <functional>
#include <string>
#include <vector>

#include "runtime/gate/baseline.hpp"
#include "runtime/run/run.hpp"
#include "runtime/system/memory.hpp"

namespace redblue {

// In the order of all_kernel_names(), then those of kAuto. Subjects that run at the
// same time need a common `memory`; it and `sparsities` must outlive them.
std::vector<Subject> kernel_subjects(MemoryBudget* memory = nullptr,
                                     Sparsities* sparsities = nullptr,
                                     const std::function<void()>& stop = nullptr);

// The run and the formula of a subject. Requires (both): complete arguments of the kernel. `timed`
// adds the speed of multiply-adds to the report. If O and L are given, the report's forward part
// does not belong to the work. `stop` is called now and then; what it throws ends the run. Throw:
// as run() and count().
Report run_subject(const std::string& kernel, const Arguments& arguments, bool timed,
                   MemoryBudget* memory, const std::function<void()>& stop = nullptr,
                   Sparsities* sparsities = nullptr);
bool on_disk(const Arguments& arguments);
Report count_subject(const std::string& kernel, const Arguments& arguments,
                     Sparsities* sparsities = nullptr);
bool given_forward(const Arguments& arguments);
// The words that the argument `inner` names. Throws: UsageError for another text.
std::vector<Index> inner_levels(const Value& inner);
// The words of all levels of fast memory, from the innermost out: M is the last. Throws:
// UsageError unless each is smaller than the next, or all are equal.
std::vector<Index> levels_of(const Arguments& arguments);
bool shares_keys(const Arguments& arguments);
// The mask of these arguments. Throws: as parse_mask().
Mask mask_of(const Arguments& arguments, const Shape& shape);
Activation activation_of(const Arguments& arguments);
// Whether files say which pairs live, or have operands.
bool has_files(const Arguments& arguments);
bool has_sparse_operands(const Point& point);

}  // namespace redblue
