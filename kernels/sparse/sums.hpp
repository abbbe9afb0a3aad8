#pragma once
// The sums that a chunk of rows keeps while keys stream, and two ways to add to them. add_pairs()
// handles one key after the other, pair by pair. add_groups() handles several keys together, with a
// tile of their scores with the chunk.

#include <optional>

#include "kernels/kernel.hpp"
#include "kernels/sparse/csr.hpp"
#include "kernels/sparse/rows.hpp"
#include "memsim/machine.hpp"
#include "memsim/tile.hpp"

namespace redblue {

// For a softmax: the maximum and the sum of exponentials of each row, and Z = e A3. For another
// activation: Z = f A3.
struct SparseSums {
  SparseSums(Machine& machine, const SparseRows& by, Index rows);
  Tile maximum, sum, Z;
};

// G, and L and v for a softmax, and W = p A2. W is row-major for add_pairs(), and transposed for
// add_groups() until it returns.
struct SparseGradients {
  SparseGradients(Machine& machine, const SparseRows& by, const Operands& io, Range I, Tile G,
                  Tile v);
  Tile G, v, L, W;
};

// X, if it stays for all chunks, and its entries by columns.
struct StayingMatrix {
  CsrEntries x;
  std::optional<ByColumns> columns;
};

// A chunk of rows of S or A1, with its entries.
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
// Afterwards W is row-major, and the other tiles are deleted.
void add_groups(Machine& machine, const SparseChunk& chunk, SparseGradients& sums);

}  // namespace redblue
