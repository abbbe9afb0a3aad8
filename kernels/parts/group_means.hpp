#pragma once
// The partial results of groups of keys for a row block, if neither O nor L is given
// (GradientSums). They are U and Z, and the maximum, sum and mean of each row. A merge of the
// maxima, sums and means, in the order of the groups, gives L and v of all keys. The sum of each
// group is then
//
//   W = exp(max_G - L) (U_G + (mean_G - v) Z_G),
//
// so U and Z of a group are read from the place where the group left them. A row that meets no key
// of a group leaves sums of 0 and the maximum kNoMaximum.

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

// The most times that the mean of q moves: once for each block of keys in a group, then once for
// each group after the first.
Index moves_of_mean(const GroupedRows& by);

// The columns of all partial results of a group, and their words for each row. leave_group() writes
// them at the rows `at`, in the phase of the caller.
inline Words columns_of_group(const Problem& problem) {
  return 2 * Words(problem.shape.d) + 3;
}
inline Words words_of_group(const Problem& problem) {
  return columns_of_group(problem) * problem.sum_words;
}
void leave_group(Machine& machine, const Operands& io, Range at, GradientSums sums);

// merge_groups() computes L and v of some row blocks, in a phase merge.
void merge_groups(Machine& machine, const GroupedRows& by, const Operands& io, Range units);
PhaseCost merge_groups_cost(const GroupedRows& by, Range units);
void merge_groups_nest(NestWriter& nest, const NestLoop& I, const NestLoop& groups);

// Returns W of one unit, or another sum of p_ij A2_j, in the phase of the caller.
Tile sum_of_group(Machine& machine, const GroupedRows& by, const Operands& io, Index unit);
// The cost for some units, without writing the sum. The peak has U and Z, and two more words for
// each row.
PhaseCost sum_of_group_cost(std::string path, const GroupedRows& by, Range units);
void sum_of_group_nest(NestWriter& nest, const Problem& problem, const NestLoop& I,
                       const std::string& result);

}  // namespace redblue
