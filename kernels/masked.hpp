#pragma once
// Kernels under masks. A kernel that asks its problem which keys its queries meet becomes one that
// takes every mask. It works on live queries and keys alone, as if there were no others: dead ones
// are not read. Their results are written in a phase `dead`: 0, and minus infinity for L.
//
// Queries of irregular masks may be clustered: the kernel works on them in another order, in which
// a block of them meets fewer keys (Mask::clustered). The order is a block of the plan. So is the
// number of queries that stay through all blocks of the others, in a kernel that lets them: those
// that meet most keys, so that no block of queries passes all keys for them.

#include <optional>
#include <string_view>

#include "kernels/kernel.hpp"

namespace redblue {

Kernel with_masks(Kernel kernel);
// One that takes the causal mask alone.
Kernel with_causal_mask(Kernel kernel);

// In the plan of a kernel under a mask: the queries of a group for which their order was made. In a
// plan without it, and for groups of one, they are in their own. Fitted where fewer words move so.
inline constexpr std::string_view kClustered = "clustered";
inline bool is_clustered(const Blocks& blocks) {
  return blocks.contains(kClustered) && blocks[kClustered] > 1;
}
// And the queries that stay. In a plan without it none do.
inline constexpr std::string_view kStaying = "staying";
// Whether all queries are in their own order.
inline bool is_in_order(const Blocks& blocks) {
  return !is_clustered(blocks) && !blocks.contains(kStaying);
}
// What the kernel of live queries and keys works on (Kernel::of_live). Requires: some pair lives.
Plan live_plan(const Plan& plan);
// The name of the block of queries that a kernel works on together, which decide which keys pass,
// so that its rows may be clustered; empty where there is none.
std::string_view row_block_of(const Blocks& blocks);
inline bool has_row_block(const Blocks& blocks) {
  return !row_block_of(blocks).empty();
}
// The rows of a matrix that no pair needs; and those of a result are written, of L as minus
// infinity, else as 0, a row at a time: there is room for one in every M.
Ranges dead_rows(const Signature& matrix, const Problem& problem);
void write_dead(Machine& machine, const Signature& result, SlowMatrix& matrix, Range rows);
// So many of them, in the phase `dead` at the end.
void add_dead_cost(std::vector<PhaseCost>& phases, const Signature& result, const Problem& problem,
                   Index rows);
// The rows of some numbers among those of `rows`, which are in their order.
std::vector<Range> picked(const Ranges& rows, const std::vector<Range>& numbers);

// A pattern is regrouped once for many calls, which does not count among their words: for each
// grouping of a plan all pairs are read, as rows of keys, and what the groups read is written.
struct Regrouping {
  Words reads, writes;
};
std::optional<Regrouping> regrouping(const Plan& plan);

}  // namespace redblue
