#include "runtime/theory/lemmas.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "memsim/errors.hpp"

namespace redblue {
namespace {

// Returns the largest f(T) over lengths T of a phase. Any length gives a bound. These lengths, 16
// to the octave, are the same for all M. So if f falls with M for each T, the maximum falls with M,
// too. Near the best length a bound is flat. f is at most 0 for lengths above `last`.
template <class F>
Real over_lengths(F f, Real last = 0x1p63L) {
  static const auto lengths = [] {
    std::array<Real, std::size_t{62} * 16> made{};
    for (std::size_t i = 0; i < made.size(); ++i) {
      made[i] = std::floor(std::exp2(static_cast<Real>(i) / 16));
    }
    return made;
  }();
  Real best = 0;
  for (const Real T : lengths) {
    if (T > last) {
      break;
    }
    best = std::max(best, f(T));
  }
  return best;
}

// Returns the most products of a kind that these words allow, if each product needs three words.
Real most(Real words) {
  return words / 3 * std::sqrt(words / 3);
}

// Lemma 21: returns a lower bound on events if one phase of words_of(1) words, or `phases` phases
// of words_of(phases) words each, have just enough words for a run. Each phase after the first
// finds M words. The bound is concave in the number of phases. It is largest near `best`, unless at
// most `last` phases are allowed.
template <class F>
Real over_phases(F words_of, Real best, Real last, Real M) {
  Real most = words_of(1);
  for (const Real near : {best, best + 1}) {
    const Real phases = std::floor(std::min(near, last));
    if (phases > 1) {
      // One word less in each phase makes up for rounding words_of() down.
      most = std::max(most, phases * words_of(phases) - (phases - 1) * M - phases);
    }
  }
  return most;
}

// The side, rows or columns, that runs out first as rectangles grow.
struct Side {
  Real most;         // the most rows, or the most columns
  Real each, other;  // words in a row or column of this side, and of the other side
};
Side side_that_ends(const Rectangles& of) {
  return of.row * of.rows <= of.column * of.columns ? Side{of.rows, of.row, of.column}
                                                    : Side{of.columns, of.column, of.row};
}

}  // namespace

Index rounded_down(Real words) {
  if (words >= 0x1p63L) {
    throw CountOverflow("a bound does not fit 63 bits: the sizes are too large");
  }
  return words > 0 ? static_cast<Index>(words) : 0;
}

Index below(Real gain, Real cost) {
  return rounded_down(gain * (1 - 0x1p-50L) - cost);
}

Real Products::events(Index M, Index d) const {
  const Real of_run = work / kappa;
  const Real longest = 3 * std::pow(of_run, 2.0L / 3);
  const Real events = over_lengths(
      [&](Real T) {
        const Real each = most(real(M) + T);
        return T * real(d) < per_creation * each ? 0 : T * (of_run - most(T)) / each;
      },
      longest + 1);
  if (per_creation > 0) {
    return events;
  }
  const auto words = [&](Real phases) { return longest / std::pow(phases, 2.0L / 3); };
  const Real best = of_run / most(3 * (real(M) + 1));
  return std::max(events, over_phases(words, best, best + 1, real(M)));
}

Real events_beside_folds(Real work, Real kappa, Index M, Index d) {
  return over_lengths([&](Real T) {
    const Real each = most(real(M) + T);
    const Real theta = each / (T * real(d));
    if (real(M) + T > 8.2L * real(d) * real(d) || 3 * theta * theta > 2 ||
        (kappa > 1 && 2 * theta * theta > 1)) {
      return Real{0};
    }
    const Real with_folds = 2 * theta * theta <= 1 ? kappa : 1 / std::sqrt(2 * (1 - theta * theta));
    return T * (work / with_folds - most(T)) / each;
  });
}

Real SharedKeys::events(Index M, Index d) const {
  // From this lambda on, kappa is 1.
  const Real last = share < 1 ? 0.2976L : 0.3029L;
  constexpr int kSteps = 12;
  Real best = 0;
  for (int step = 0; step <= kSteps; ++step) {
    const Real lambda = last * step / kSteps;
    // With c = q^2, the term sqrt((1 + share) c) (1 - c) / 2 - lambda share c is largest at this q.
    const Real root = std::sqrt(1 + share), b = 2 * lambda * share / root;
    const Real q = (std::sqrt(3 + b * b) - b) / 3;
    const Real meeting = std::sqrt(27.0L) * (root * q * (1 - q * q) / 2 - lambda * share * q * q);
    const Real kappa = std::max<Real>(1, meeting);
    best = std::max(best, over_lengths([&](Real T) {
                      const Real H = real(M) + T, each = most(H), charge = lambda * std::sqrt(H);
                      const bool too_long = folds && (H > 7.1L * real(d) * real(d) ||
                                                      T * real(d) < std::sqrt(2.0L) * kappa * each);
                      if (too_long || T * real(d) < kappa * each + share * charge * T) {
                        return Real{0};
                      }
                      return T * ((kinds * real(d) - charge) * pairs / kappa - most(T)) / each;
                    }));
  }
  return best;
}

Real moves_of_pairs(Real pairs, Real share, Real M) {
  const auto formed = [each = 1 / share](Real words) { return words * words * each; };
  const Real longest = std::sqrt(pairs * share);
  const Real moves = over_lengths(
      [&](Real T) {
        const Real most = std::max({2 * formed(M + T), 2 * (formed(T) + M), formed(M) + T, M + T});
        return 2 * T * (pairs - formed(T)) / most;
      },
      longest + 1);
  // With more phases, pairs that cross into a phase would cost less than pairs made in it.
  const Real least = std::max(share, (share + M) / 2);  // words of a phase
  const auto words = [&](Real phases) { return longest / std::sqrt(phases); };
  const Real best = pairs * share / (4 * (M + 1) * (M + 1));
  return std::max(moves, over_phases(words, best, pairs * share / (least * least), M));
}

Real moves_of_couples(Real pairs, Real share, Real M, Real cut) {
  const auto formed = [each = 1 / share](Real there, Real units) {
    return (there * units + units * units / 2) * each;
  };
  return over_lengths(
      [&](Real T) {
        const Real most = std::max({2 * formed(M, T + cut), 2 * (formed(0, T + cut) + M),
                                    formed(M, cut) + T, formed(0, cut) + M + T});
        return 2 * T * (pairs - formed(0, T)) / most;
      },
      std::sqrt(2 * std::max<Real>(pairs, 0) * share) + 1);
}

Real Rectangles::words(Real pairs) const {
  const auto [most, each, other] = side_that_ends(*this);
  return pairs * other <= each * most * most ? 2 * std::sqrt(each * other * pairs)
                                             : each * most + other * pairs / most;
}

Real Rectangles::pairs(Real words) const {
  const auto [most, each, other] = side_that_ends(*this);
  return words <= 2 * each * most ? words * words / (4 * each * other)
                                  : most * (words - each * most) / other;
}

Real Rectangles::events(Real pairs, Real first, Real most) const {
  const auto whole = [&](Real words) { return this->pairs(words); };
  return over_lengths([&](Real T) {
    const Real of_first = std::max(whole(first + T), whole(first) + T);
    const Real of_phase = std::max({whole(most + T), whole(T) + most, whole(most) + T, most + T});
    return T * (pairs - of_first) / of_phase;
  });
}

}  // namespace redblue
