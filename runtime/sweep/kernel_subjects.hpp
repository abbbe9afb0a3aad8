#pragma once
// redblue's kernels as subjects of a gate or a sweep: n, m, d, M, threads, heads, prefetch, where
// the slow store is, of backward whether O and L are given, and whether keys are shared.

#include <functional>
#include <string>
#include <vector>

#include "runtime/gate/subject.hpp"
#include "runtime/run/run.hpp"
#include "runtime/system/memory.hpp"

namespace redblue {

// In the order of kernel_names(), then forward/auto and backward/auto. `memory` is shared by
// runs at the same time and must outlive them.
std::vector<Subject> kernel_subjects(MemoryBudget* memory = nullptr);

// What a subject's run and formula are made of. Requires (both): complete arguments of the kernel.
// `timed`: the report says how fast multiply-adds are beside it. Where O and L are given, the
// report's forward part, if any, is not a part of the work. `stop` is called before each piece of
// work on a disk. Throw: as run() and count().
Report run_subject(const std::string& kernel, const Arguments& arguments, bool timed,
                   MemoryBudget* memory, const std::function<void()>& stop = nullptr);
bool on_disk(const Arguments& arguments);
Report count_subject(const std::string& kernel, const Arguments& arguments);
bool given_forward(const Arguments& arguments);
bool shares_keys(const Arguments& arguments);

}  // namespace redblue
