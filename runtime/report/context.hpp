#pragma once
// The parts that several reports share: the schema, the context of the machine and the build, the
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

// The document's "context": the build, and the cache that M was derived from, if any.
Json context_json(const std::optional<FastMemoryOrigin>& M_from);

// The beginning of a report: its first line, the caches and the device that M and inner levels are
// parts of; in JSON the schema and the context.
Description begin_report(std::string title, const std::optional<FastMemoryOrigin>& M_from = {},
                         const std::vector<FastMemoryOrigin>& inner_from = {},
                         const std::optional<Device>& device = {});

// The problem, without a title for tables. `sharing` and `given` are absent where the problem has
// none; with `everywhere` they are always there.
Cells task_cells(const Task& task, bool everywhere = false);
// What JSON has of a problem beside its sizes: sparse operands or the mask, the results that are
// wanted of `results`, and the activation where it is not softmax.
Cells problem_cells(Pass pass, const Problem& problem, const std::vector<Signature>& results,
                    const std::map<std::string, std::string>& sources = {});
Cells problem_cells(const Task& task);

// The beginning of a document on one kernel, without its schema and context, and of a line of CSV:
// kernel, n, m, d, M.
// How many heads there are; and of attention and gradients how many of keys, and the width of
// values.
Cells heads_cells(Pass pass, const Problem& problem, Index kv_heads);
Cells kernel_cells(const std::string& kernel, const Shape& shape, Index M);

// {Br: 64, Bc: 8}; and "Br=64 Bc=8", of none "-".
Json blocks_json(const Blocks& blocks);
std::string blocks_text(const Blocks& blocks);
// The mask of a problem, of all pairs too: {spec, fingerprint, pairs, live_queries, live_keys}
Json mask_json(const Problem& problem);
// Of sparse operands: {A1: {stored, from}, ..., S: {stored}, pairs}. `sources` are the
// rules and files by name, as a report has them.
Json sparse_json(Pass pass, const Problem& problem,
                 const std::map<std::string, std::string>& sources = {});
// The names of the results that are wanted.
Json wanted_json(const std::vector<Signature>& results, const Problem& problem);
// "1 / 4 / 100 ns (calibrated ...)": what a word costs at each level, and where that is `from`;
// "8,192 / 262,144", as many as these have words.
std::string costs_text(const Memory& memory, const std::string& from);
// "8192/262144": the words of each level.
std::string levels_text(const Memory& memory);
// {words, term, status}
Json bound_json(const Bound& bound);

// What regrouping a pattern for a kernel moves, once for many calls: of no phase, nor of a total.
Json regrouping_json(const Regrouping& sum);
std::string to_words(const Regrouping& sum);
// {origin, seconds_a_message, seconds_a_word}
Json links_json(const LinkCosts& links);
// All caches of a topology, L1 first.
Json caches_json(const Topology& topology);

// "M is L2*0.5: L2 has 524,288 bytes (hwloc 2.9.0, this system)", on one line.
std::string to_words(const FastMemoryOrigin& M_from);

}  // namespace redblue
