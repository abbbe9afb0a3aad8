#pragma once
// What becomes of scores, as the problem's activation has it: f = exp(s - L) and p = f (q - v) of a
// softmax; of another f = phi(s) and p = phi'(s) q, of which no row has an L or a v. Tiles of these
// are then empty, and their matrices are never looked at.

#include <string>
#include <string_view>

#include "kernels/kernel.hpp"
#include "kernels/problem.hpp"
#include "memsim/tile.hpp"

namespace redblue {

class Machine;

// A word of that operand for each of these rows, where rows have it.
Tile read_of_rows(Machine& machine, const Problem& problem, const Operands& io,
                  std::string_view name, Range I);
// So many words of 0.
Tile of_rows(Machine& machine, const Problem& problem, std::string_view name, Index rows);

// f where s was; and what p is made of, f of a softmax, else s as it is. The scores are those of
// the rows `of` of L.
void make_f(const Problem& problem, const View& s, const Tile& L, Range of);
void make_factor(const Problem& problem, const View& s, const Tile& L, Range of);
// p of that factor; p may be the factor or q.
void make_p(const Problem& problem, const ConstView& factor, const ConstView& q, const Tile& v,
            Range of, const View& p);
// The same where the scores are of all rows.
inline void make_f(const Problem& problem, const View& s, const Tile& L) {
  make_f(problem, s, L, {0, s.rows()});
}
inline void make_factor(const Problem& problem, const View& s, const Tile& L) {
  make_factor(problem, s, L, {0, s.rows()});
}
inline void make_p(const Problem& problem, const ConstView& factor, const ConstView& q,
                   const Tile& v, const View& p) {
  make_p(problem, factor, q, v, {0, q.rows()}, p);
}

// The texts of a nest: that of a softmax, or of another activation.
inline std::string_view text_for(const Problem& problem, std::string_view of_softmax,
                                 std::string_view of_others) {
  return problem.normalised() ? of_softmax : of_others;
}

// "p = exp(S - L_I) (Q - v_I)" of such scores and q, or "p = phi'(S) (Q)".
inline std::string p_text(const Problem& problem, const std::string& s, const std::string& q,
                          const std::string& rows = "I") {
  return problem.normalised() ? "p = exp(" + s + " - L_" + rows + ") (" + q + " - v_" + rows + ")"
                              : "p = phi'(" + s + ") (" + q + ")";
}

}  // namespace redblue
