#pragma once
// redblue's kernels as subjects of a gate or a sweep. Parameters, as far as the kernel has them:
//
//   sizes     n, m, d, heads, kv_heads, dv
//   memory    M, inner (levels below M), threads, prefetch, store
//   problem   given (whether O and L are given), sharing, mask, activation
//   options   softmax_scale, wanted, word, sums, objective, multiple, blocks
//   sparse    make, in, seed: sources of operands, for kernels of sparse operands and for auto

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "runtime/gate/baseline.hpp"
#include "runtime/run/run.hpp"
#include "runtime/system/memory.hpp"

namespace redblue {

// Returns a subject for each of all_kernel_names(), then for each of kAuto, in order. Subjects that
// run at the same time need a common `memory`. `memory` and `sparsities` must outlive them.
std::vector<Subject> kernel_subjects(MemoryBudget* memory = nullptr,
                                     Sparsities* sparsities = nullptr,
                                     const std::function<void()>& stop = nullptr);

// Returns a nest as a subject, by its name as a kernel; null for other names. A relative path
// starts at `directory`. Throws: as load_nest_named().
const Subject* nest_subject(const std::string& name, const std::filesystem::path& directory,
                            MemoryBudget* memory, Sparsities* sparsities,
                            const std::function<void()>& stop);

// run_subject() runs a subject, count_subject() applies its formula. Requires (both): complete
// arguments of the kernel. `timed` adds the speed of multiply-adds to the report. If O and L are
// given, the report's forward part does not count as work of the subject. `stop` is called
// regularly, and an exception from it ends the run. Throw: as run() and count().
Report run_subject(const std::string& kernel, const Arguments& arguments, bool timed,
                   MemoryBudget* memory, const std::function<void()>& stop = nullptr,
                   Sparsities* sparsities = nullptr);
bool on_disk(const Arguments& arguments);
Report count_subject(const std::string& kernel, const Arguments& arguments,
                     Sparsities* sparsities = nullptr);
bool given_forward(const Arguments& arguments);
// Parses the argument `inner`. Throws: UsageError for another text.
std::vector<Index> inner_levels(const Value& inner);
// Returns the words of all levels of fast memory, innermost first and M last. Throws: UsageError
// unless each is smaller than the next, or all are equal.
std::vector<Index> levels_of(const Arguments& arguments);
bool shares_keys(const Arguments& arguments);
// Returns the mask of the arguments. Throws: as parse_mask().
Mask mask_of(const Arguments& arguments, const Shape& shape);
Activation activation_of(const Arguments& arguments);
// Returns true if a mask or an operand comes from files.
bool has_files(const Arguments& arguments);
bool has_sparse_operands(const Point& point);

}  // namespace redblue
