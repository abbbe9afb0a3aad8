#pragma once
// The parts that several reports share: the schema, the context (machine and build), and the
// problem.

#include <optional>
#include <string>
#include <vector>

#include "kernels/masked.hpp"
#include "runtime/observe/devices.hpp"
#include "runtime/observe/topology.hpp"
#include "runtime/text/build_context.hpp"
#include "runtime/text/description.hpp"
#include "runtime/text/json.hpp"
#include "runtime/theory/bounds.hpp"
#include "runtime/theory/rates.hpp"

namespace redblue {

// Returns the "context" of a document: the build, and the cache that gave M, if one did.
Json context_json(const std::optional<FastMemoryOrigin>& M_from);

// Begins a report. The text has the title, the caches that gave M and the inner levels, and the
// device. JSON has the schema and the context.
Description begin_report(std::string title, const std::optional<FastMemoryOrigin>& M_from = {},
                         const std::vector<FastMemoryOrigin>& inner_from = {},
                         const std::optional<Device>& device = {});

// Returns "fewest words (objective words)": the goal by which blocks were chosen.
std::string goal_text(Objective objective, double share = kBalancedShare);
// Says why this balanced plan may move more words than usual.
std::string narrow_text(const Plan& narrow);

// Returns the problem as cells for JSON and CSV. If the problem has no `sharing` or `given`, they
// are absent unless `everywhere` is true.
Cells task_cells(const Task& task, bool everywhere = false);
// Returns the JSON members of a problem except its sizes: sparse operands or the mask, the wanted
// results among `results`, and the activation if it is not softmax.
Cells problem_cells(Pass pass, const Problem& problem, const std::vector<Signature>& results,
                    const std::map<std::string, std::string>& sources = {});
Cells problem_cells(const Task& task);

// heads_cells() returns the number of heads. For attention and gradients it adds the number of key
// heads and the width of values. kernel_cells() returns kernel, n, m, d and M: the start of a
// document on one kernel, after schema and context, and of its CSV lines.
Cells heads_cells(Pass pass, const Problem& problem, Index kv_heads);
Cells kernel_cells(const std::string& kernel, const Shape& shape, Index M);

// Return {Br: 64, Bc: 8} and "Br=64 Bc=8". Without blocks the text is "-".
Json blocks_json(const Blocks& blocks);
std::string blocks_text(const Blocks& blocks);
// Returns the mask, also if it is full: {spec, fingerprint, pairs, live_queries, live_keys}
Json mask_json(const Problem& problem);
// Returns the sparse operands: {A1: {stored, from}, ..., S: {stored}, pairs}. `sources` has their
// rules and files by name.
Json sparse_json(Pass pass, const Problem& problem,
                 const std::map<std::string, std::string>& sources = {});
// Returns the names of the wanted results.
Json wanted_json(const std::vector<Signature>& results, const Problem& problem);
// Returns the cost of a word at each level, with its source `from` if that is not empty: "1 / 4 /
// 100 ns (calibrated ...)". Without given costs, a word costs as much as its level has words:
// "8,192 / 262,144".
std::string costs_text(const Memory& memory, const std::string& from);
// Returns the words of each level: "8192/262144".
std::string levels_text(const Memory& memory);
// Returns {words, term, status}.
Json bound_json(const Bound& bound);

// Return the words moved to regroup a sparse pattern for a kernel. This is done once for many
// calls. The words belong to no phase and are not in the total.
Json regrouping_json(const Regrouping& sum);
std::string to_words(const Regrouping& sum);
// Returns {origin, seconds_a_message, seconds_a_word}.
Json links_json(const LinkCosts& links);

// Returns the origin of M on one line: "M is L2*0.5: L2 has 524,288 bytes (hwloc 2.9.0, this
// system)".
std::string to_words(const FastMemoryOrigin& M_from);

}  // namespace redblue
