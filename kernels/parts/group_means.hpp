#pragma once
// What groups of keys leave of a row block where neither O nor L is given (GradientSums): U and Z,
// and of each row maximum, sum and mean. These three are merged in the order of groups. With L and
// v of all keys, which come of them, each group's sum is
//
//   W = exp(max_G - L) (U_G + (mean_G - v) Z_G),
//
// so that U and Z of a group are read where they were left. A row that meets no key of a group
// leaves 0, and kNoMaximum.

#include "kernels/kernel.hpp"
#include "kernels/nest.hpp"
#include "kernels/parts/grouped_rows.hpp"
#include "kernels/parts/row_sums.hpp"

namespace redblue {

inline constexpr Signature kPartOfU{"U of groups", &Shape::n, &Shape::d, Holds::sums, true};
inline constexpr Signature kPartOfZ{"Z of groups", &Shape::n, &Shape::d, Holds::sums, true};
inline constexpr Signature kMaxima{"max of groups", &Shape::n, nullptr, Holds::sums, true};
inline constexpr Signature kSums{"sum of groups", &Shape::n, nullptr, Holds::sums, true};
inline constexpr Signature kMeans{"mean of groups", &Shape::n, nullptr, Holds::sums, true};
inline constexpr Signature kPartsOfGroups[] = {kPartOfU, kPartOfZ, kMaxima, kSums, kMeans};

// The blocks of keys that a running mean of q follows, at most; and after them all groups but one.
Index moves_of_mean(const GroupedRows& by);

// The columns of all that a group leaves, and their words; in the caller's phase, at these rows.
inline Words columns_of_group(const Problem& problem) {
  return 2 * Words(problem.shape.d) + 3;
}
inline Words words_of_group(const Problem& problem) {
  return columns_of_group(problem) * problem.sum_words;
}
void leave_group(Machine& machine, const Operands& io, Range at, GradientSums sums);

// In a phase merge: L and v of some row blocks.
void merge_groups(Machine& machine, const GroupedRows& by, const Operands& io, Range units);
PhaseCost merge_groups_cost(const GroupedRows& by, Range units);
void merge_groups_nest(NestWriter& nest, const NestLoop& I, const NestLoop& groups);

// W of one unit, or whatever sum of p_ij A2_j it is, in the caller's phase.
Tile sum_of_group(Machine& machine, const GroupedRows& by, const Operands& io, Index unit);
// Of some units, written nowhere; U and Z with two words of each row.
PhaseCost sum_of_group_cost(std::string path, const GroupedRows& by, Range units);
void sum_of_group_nest(NestWriter& nest, const Problem& problem, const NestLoop& I,
                       const std::string& result);

}  // namespace redblue
