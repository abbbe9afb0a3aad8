#pragma once
// Numeric forms of the lemmas behind the lower bounds (docs/theory/bounds.md and ranks.md). Both
// pages define events, phases, moves and kappa.

#include "memsim/words.hpp"

namespace redblue {

using Real = long double;

inline Real real(Index words) {
  return static_cast<Real>(words);
}

// Throws (both): CountOverflow.
Index rounded_down(Real words);
// Returns gain - cost, rounded down. The gain is first lowered by more than all its roundings.
Index below(Real gain, Real cost);

// Lemmas 1 and 21: a lower bound on the events of a run with `work` products, if H available words
// allow at most kappa (H/3)^(3/2) products. If `per_creation` is not 0, phases are so long that an
// average event brings at most d / per_creation products.
struct Products {
  Real work;
  Real kappa = 1;
  Real per_creation = 0;

  [[nodiscard]] Real events(Index M, Index d) const;
};

// Lemmas 7 and 8: a lower bound on the events of a backward pass in any order that makes each sum
// once. `work` counts the products of s, q, and p A2 or A1^T p. kappa is 1, or sqrt(3/2) if keys
// are shared. Folds into g pay for the sums that they use up. A word of S or R that is made within
// a phase needs d words of X there. Few such words fit, so A1 and A2 do not serve scores and folds
// at once. Uses phases of M + T <= 8.2 d^2.
Real events_beside_folds(Real work, Real kappa, Index M, Index d);

// Lemmas 5 and 9: a lower bound on events if keys are shared, so that a word of them serves two
// kinds of products. A meeting is a pair for which a phase makes all kinds of products. In a
// meeting the words of the pair itself also serve one more kind. Each making of a score has at most
// one meeting. With a charge of lambda sqrt(M + T) products for each meeting, kappa falls from
// sqrt(1 + share) to 1 as lambda grows. events() takes the best lambda.
struct SharedKeys {
  Real pairs;
  Real kinds;          // kinds of products: s, q, and p A2 or A1^T p; or s and e h
  Real share;          // the most meetings for each word of pairs
  bool folds = false;  // folds into g pay for sums that they use up; M + T <= 7.1 d^2

  [[nodiscard]] Real events(Index M, Index d) const;
};

// Lemmas 2 and 21: a lower bound on the moves of a run with `pairs` pairs, if H available words
// form at most H^2 / share pairs. In the second overload they form at most H^2 / (D d^2) pairs.
Real moves_of_pairs(Real pairs, Real share, Real M);
inline Real moves_of_pairs(Real pairs, Real D, Index M, Index d) {
  return moves_of_pairs(pairs, D * real(d) * real(d), real(M));
}

// Lemma 20: a lower bound on the moves of a run with `pairs` pairs of sources, if each of them
// takes `share` couples of words. A couple is counted once, when its later word comes, times the
// units of that word. `cut` is the most units that a phase counts of a word that came across its
// first border.
Real moves_of_couples(Real pairs, Real share, Real M, Real cut);

// Lemma 3 of docs/theory/ranks.md: R rows and C columns make R C whole pairs.
struct Rectangles {
  Real rows, columns;  // the most rows and columns
  Real row, column;    // words in one row and in one column

  // Returns the fewest words for this many pairs. Concave: a square root while both sides can grow,
  // then linear once all rows or all columns are present.
  [[nodiscard]] Real words(Real pairs) const;
  // Returns the most pairs for this many words. Convex.
  [[nodiscard]] Real pairs(Real words) const;
  // Returns a lower bound on the events of a rank that is charged with `pairs` pairs. The rank has
  // `first` words of rows and columns at the start, and never more than `most` words. If a pair
  // crosses into a phase, one of its words is present at the start of the phase or is an event.
  [[nodiscard]] Real events(Real pairs, Real first, Real most) const;
};

}  // namespace redblue
