#pragma once
// The functions f and p of scores, for the activation of a problem. A softmax has f = exp(s - L)
// and p = f (q - v). Other activations have f = phi(s) and p = phi'(s) q, and their rows have no L
// and no v. Tiles of L and v are then empty, and their matrices are not accessed.

#include <string>
#include <string_view>

#include "kernels/kernel.hpp"
#include "kernels/problem.hpp"
#include "memsim/tile.hpp"

namespace redblue {

class Machine;

// Reads the rows I of L or v. Returns an empty tile for other activations than softmax.
Tile read_row_values(Machine& machine, const Problem& problem, const Operands& io,
                     std::string_view name, Range I);
// Returns a word of 0 for each row, or an empty tile for other activations.
Tile row_values(Machine& machine, const Problem& problem, std::string_view name, Index rows);

// Turns s into the factor of p: f for a softmax, else s unchanged. `of` are the rows of L that
// belong to s.
void make_factor(const Problem& problem, const View& s, const Tile& L, Range of);
// Computes p from that factor. p may be the same view as the factor or q.
void make_p(const Problem& problem, const ConstView& factor, const ConstView& q, const Tile& v,
            Range of, const View& p);
// The same for scores of all rows.
inline void make_factor(const Problem& problem, const View& s, const Tile& L) {
  make_factor(problem, s, L, {0, s.rows()});
}
inline void make_p(const Problem& problem, const ConstView& factor, const ConstView& q,
                   const Tile& v, const View& p) {
  make_p(problem, factor, q, v, {0, q.rows()}, p);
}

// Returns the text for a nest: the first for a softmax, the second for other activations.
inline std::string_view text_for(const Problem& problem, std::string_view of_softmax,
                                 std::string_view of_others) {
  return problem.normalised() ? of_softmax : of_others;
}

// Returns "p = exp(S - L_I) (Q - v_I)" for scores "S", q "Q" and rows "I", or "p = phi'(S) (Q)".
inline std::string p_text(const Problem& problem, const std::string& s, const std::string& q,
                          const std::string& rows = "I") {
  return problem.normalised() ? "p = exp(" + s + " - L_" + rows + ") (" + q + " - v_" + rows + ")"
                              : "p = phi'(" + s + ") (" + q + ")";
}

}  // namespace redblue
