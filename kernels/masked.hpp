#pragma once
// Turns kernels into kernels that take masks. The given kernel must ask its problem which keys its
// queries meet. The new kernel works on live queries and keys only, as if there were no others, and
// reads no dead rows. It writes the results of dead rows in a phase `dead`: minus infinity for L, 0
// otherwise.
//
// Queries of irregular masks may be clustered: the kernel takes them in another order, in which
// each block of queries meets fewer keys (Mask::clustered). The plan stores this as a block. In
// some kernels a plan may also keep queries that meet most keys resident while all blocks of the
// others pass. Then no block of queries must pass all keys because of a few queries.

#include <optional>
#include <string_view>

#include "kernels/kernel.hpp"

namespace redblue {

Kernel with_masks(Kernel kernel);
// For a kernel that takes the causal mask only.
Kernel with_causal_mask(Kernel kernel);

// In the plan of a kernel under a mask: the group size for which queries were reordered. Default,
// and for groups of one: their own order. A fitted plan uses it if it saves words.
inline constexpr std::string_view kClustered = "clustered";
inline bool is_clustered(const Blocks& blocks) {
  return blocks.contains(kClustered) && blocks[kClustered] > 1;
}
// In such a plan: the number of resident queries. Default: 0.
inline constexpr std::string_view kStaying = "staying";
// Returns whether all queries are in their own order.
inline bool is_in_order(const Blocks& blocks) {
  return !is_clustered(blocks) && !blocks.contains(kStaying);
}
// Returns the plan of the kernel that works on live queries and keys (Kernel::of_live). Requires:
// at least one live pair.
Plan live_plan(const Plan& plan);
// Returns the name of the block of queries that a kernel works on together. These queries decide
// which keys pass, so clustering them helps. Empty if the plan has no such block.
std::string_view row_block_of(const Blocks& blocks);
inline bool has_row_block(const Blocks& blocks) {
  return !row_block_of(blocks).empty();
}
// dead_rows() returns the rows of a matrix that no live pair needs. write_dead() writes such rows
// of a result: minus infinity for L, otherwise 0. It holds one row at once, which fits in every M.
Ranges dead_rows(const Signature& matrix, const Problem& problem);
void write_dead(Machine& machine, const Signature& result, SlowMatrix& matrix, Range rows);
// Adds the cost of `rows` such rows, in the phase `dead` at the end.
void add_dead_cost(std::vector<PhaseCost>& phases, const Signature& result, const Problem& problem,
                   Index rows);
// Returns the elements of `rows` at these positions.
std::vector<Range> picked(const Ranges& rows, const std::vector<Range>& numbers);

// The words that regroup a pattern, once for many calls. They do not count as words of a call. For
// each grouping of a plan, all pairs are read as rows of keys, and the words that the groups read
// are written.
struct Regrouping {
  Words reads, writes;
};
std::optional<Regrouping> regrouping(const Plan& plan);

}  // namespace redblue
