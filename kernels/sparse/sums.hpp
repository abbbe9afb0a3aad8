#pragma once
// What a chunk of rows keeps while keys pass, and the two ways in which these do: pair by pair, of
// one key at a time; or some keys together, whose scores with the chunk are a tile.

#include <optional>

#include "kernels/kernel.hpp"
#include "kernels/sparse/csr.hpp"
#include "kernels/sparse/rows.hpp"
#include "memsim/machine.hpp"
#include "memsim/tile.hpp"

namespace redblue {

// Of a softmax the maximum and the sum of exponentials of each row; and Z = e A3, or Z = f A3 of
// another activation.
struct SparseSums {
  SparseSums(Machine& machine, const SparseRows& by, Index rows);
  Tile maximum, sum, Z;
};

// G, and L and v of a softmax; and W = p A2: row after row where pairs pass, else transposed.
struct SparseGradients {
  SparseGradients(Machine& machine, const SparseRows& by, const Operands& io, Range I, Tile G,
                  Tile v);
  Tile G, v, L, W;
};

// X, if it stays beside chunks; and its entries column by column.
struct StayingMatrix {
  CsrEntries x;
  std::optional<ByColumns> columns;
};

// A chunk of rows, of S or of A1, with its entries.
struct SparseChunk {
  const SparseRows& by;
  const Operands& io;
  const StayingMatrix& beside;
  Range I;
  const CsrEntries& rows;
};

void add_pairs(Machine& machine, const SparseChunk& chunk, SparseSums& sums);
void add_pairs(Machine& machine, const SparseChunk& chunk, SparseGradients& sums);
void add_groups(Machine& machine, const SparseChunk& chunk, SparseSums& sums);
// W is row after row then, and nothing is left of the others.
void add_groups(Machine& machine, const SparseChunk& chunk, SparseGradients& sums);

}  // namespace redblue
