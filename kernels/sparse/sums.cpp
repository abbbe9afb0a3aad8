#include "kernels/sparse/sums.hpp"

#include <utility>

#include "kernels/arithmetic/arithmetic.hpp"

namespace redblue {

SparseSums::SparseSums(Machine& machine, const SparseRows& by, Index rows)
    : maximum(by.softmax ? machine.initialize("maximum", rows, 1, kNoMaximum) : Tile()),
      sum(by.softmax ? machine.initialize("sum", rows) : Tile()),
      Z(by.dense ? machine.initialize("Z", rows, by.d) : Tile()) {}

SparseGradients::SparseGradients(Machine& machine, const SparseRows& by, const Operands& io,
                                 Range I, Tile its_G, Tile its_v)
    : G(std::move(its_G)),
      v(std::move(its_v)),
      L(by.softmax ? machine.read(io.in("L").row_block(I)) : Tile()),
      W(by.together > 0 ? machine.initialize("W", by.d, I.size())
                        : machine.initialize("W", G.words())) {}

}  // namespace redblue
