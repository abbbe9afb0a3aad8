#pragma once
// What tiles keep in the slow store. Sparse matrices in blocks of rows, each block column by
// column: a header (k, how many), then pairs (row, value). From CSR that takes
//
//   2 entries + rows + blocks   words read, and 2 entries + 2 groups written;
//   3 r + 1                     words of M: of each row its next entry, that one's column, its end.
//
// And scores, of live pairs alone (StoredScores in kernels/sparse/tile_counts.hpp).

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
  std::vector<Index> row_of;  // each entry's, from the first of `rows`
};

// A block of rows after the other; of each the entries with the least column that is left. In a
// phase `prepare`.
void regroup(Machine& machine, const SlowCsr& from, Index block, SlowMatrix& to);

// The live pairs of some queries as entries: (query, key).
BlockPattern pairs_of(const Sparsity& of, Range queries);
// n x m, with room for a word for each live pair; nothing where there is none.
std::optional<SlowMatrix> stored_scores(Workspace& workspace, std::string name,
                                        const Problem& problem);

}  // namespace redblue
