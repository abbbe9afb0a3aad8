#pragma once
// The intermediates of the sparse tile kernels in slow memory. One is a sparse matrix in blocks of
// rows, each block stored column by column: a header (column, number of entries), then pairs (row,
// value). Regrouping from CSR takes
//
//   2 entries + rows + blocks   words read, and 2 entries + 2 groups words written;
//   3 r + 1                     words of M: per row its next entry, the entry's column, its end.
//
// The other is the scores of live pairs (StoredScores in kernels/sparse/tile_counts.hpp).

#include <optional>
#include <string>
#include <vector>

#include "kernels/problem.hpp"
#include "kernels/sparse/csr.hpp"
#include "kernels/sparsity.hpp"

namespace redblue {

class Workspace;

// One block of rows of a regrouped matrix.
struct RowGroups {
  struct Group {
    Index column;
    Range entries;  // in the order of the regrouped matrix
  };
  RowGroups(const BlockPattern& of, Range rows);

  Range rows;
  std::vector<Group> groups;
  Range entries;
  std::vector<Index> row_of;  // for each entry its row, counted from the first of `rows`
};

// Regroups one block of rows after the other. Each step takes the entries with the smallest
// remaining column. The phase is `prepare`.
void regroup(Machine& machine, const SlowCsr& from, Index block, SlowMatrix& to);

// Returns the live pairs of some queries as entries (query, key).
BlockPattern pairs_of(const Sparsity& of, Range queries);
// Returns an n x m matrix that stores one word for each live pair, or no matrix if no pair is live.
std::optional<SlowMatrix> stored_scores(Workspace& workspace, std::string name,
                                        const Problem& problem);

}  // namespace redblue
