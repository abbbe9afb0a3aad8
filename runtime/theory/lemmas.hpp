#pragma once
// The lemmas of docs/theory/bounds.md, and of ranks.md, on which lower bounds rest, in numbers.

#include "memsim/words.hpp"

namespace redblue {

using Real = long double;

inline Real real(Index words) {
  return static_cast<Real>(words);
}

// Throws (both): CountOverflow.
Index rounded_down(Real words);
// gain - cost, rounded down. The gain is lowered by more than all its roundings.
Index below(Real gain, Real cost);

// Lemma 1: the events of a run with `work` products, of which H available words allow kappa
// (H/3)^(3/2). If `per_creation` is not 0, phases are so long that their average event brings at
// most d / per_creation products.
struct Products {
  Real work;
  Real kappa = 1;
  Real per_creation = 0;

  [[nodiscard]] Real events(Index M, Index d) const;
};

// Lemmas 7 and 8: the events of the backward pass in any order, sums made once. `work` products are
// those of s, q, and p A2 or A1^T p. kappa is 1, and sqrt(3/2) where keys are shared. Folds into g
// pay for the sums that they use up: a word of S or R made within a phase takes d words of X there,
// which are few, so that A1 and A2 do not serve scores and folds at once. For phases of M + T
// <= 8.2 d^2.
Real events_beside_folds(Real work, Real kappa, Index M, Index d);

// Lemmas 5 and 9: events where keys are shared, so that a word of them serves two kinds of
// products. In a phase that makes all kinds of a pair, a meeting, the words of the pair, too, serve
// one kind more. Each making of a score meets once at most: with a charge of lambda sqrt(M + T)
// products for each meeting, kappa falls from sqrt(1 + share) to 1 as lambda grows. The best lambda
// is taken.
struct SharedKeys {
  Real pairs;
  Real kinds;          // of products: s, q, and p A2 or A1^T p; or s and e h
  Real share;          // meetings for each word of pairs at most
  bool folds = false;  // into g pay for the sums that they use up; M + T <= 7.1 d^2

  [[nodiscard]] Real events(Index M, Index d) const;
};

// Lemma 2: the moves of a run with `pairs` pairs, of which H available words form H^2 / share; and
// the same where that is H^2 / (D d^2).
Real moves_of_pairs(Real pairs, Real share, Index M);
inline Real moves_of_pairs(Real pairs, Real D, Index M, Index d) {
  return moves_of_pairs(pairs, D * real(d) * real(d), M);
}

// Lemma 3 of docs/theory/ranks.md: R rows and C columns, of so many words each, make R C pairs
// whole.
struct Rectangles {
  Real rows, columns;  // the most there are
  Real row, column;    // words of each

  // The fewest words for so many pairs. Concave: a square root while both sides may grow, then
  // linear, all rows being there, or all columns.
  [[nodiscard]] Real words(Real pairs) const;
  // The most pairs of so many words. Convex.
  [[nodiscard]] Real pairs(Real words) const;
  // The events of a rank that is charged with so many pairs, has `first` words of rows and columns
  // at the start, and at most `most` words at a time. Of a pair that crosses into a phase one word
  // is there at its start, or is an event.
  [[nodiscard]] Real events(Real pairs, Real first, Real most) const;
};

}  // namespace redblue
