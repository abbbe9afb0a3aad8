#pragma once
// logsumexp of sparse A1, X and A2 in a small fast memory: tiles of r x c scores stay, and of their
// rows of S = A1 X and of their keys the entries in common columns pass.
//
// For that both are regrouped: S in blocks of r rows, A2 in blocks of c keys, each block column by
// column: a header (k, how many), then pairs (row, value). From CSR that takes
//
//   2 entries + rows + blocks   words read, and 2 entries + 2 groups written;
//   3 r + 1                     words of M: of each row its next entry, that one's column, its end.
//
// A tile is live where its blocks have a column in common; which are, is given, as runs of keys
// are (kernels/sparse/rows.hpp): in one word, where the block of keys begins. It reads that, the
// 2 (kS + kA) words of both blocks' headers, and of a common column both groups, in two words an
// entry: the smaller group stays, and the other passes beside it. Peak of a tile:
//
//   2 r + r c + 5 + 2 max_k min(nS_k, nA_k) + 2

#include <vector>

#include "kernels/kernel.hpp"
#include "kernels/sparse/csr.hpp"
#include "kernels/sparsity.hpp"

namespace redblue {

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

// The phases S, prepare and core. In blocks, beside those of the product S: r and c.
std::vector<PhaseCost> sparse_tiles_cost(const Problem& problem, const Blocks& blocks);
Blocks fit_sparse_tiles(const Problem& problem, Index M);

}  // namespace redblue
