#include "runtime/theory/activation_reference.hpp"

// docs/theory/reference.md derives the bounds evaluated here.

#include <algorithm>
#include <cmath>

#include "runtime/theory/activation_errors.hpp"
#include "runtime/theory/doubles.hpp"
#include "runtime/theory/pair_products.hpp"

namespace redblue {
namespace {

constexpr double kActivationSlack = 1 + 1e-6;  // of this evaluation's own roundings

Doubles of_columns(const Doubles& A) {
  Doubles result(A.cols, A.rows);
  for (Index i = 0; i < A.rows; ++i) {
    for (Index j = 0; j < A.cols; ++j) {
      result[j][i] = A[i][j];
    }
  }
  return result;
}

double square(double x) {
  return x * x;
}

// A sum of terms, word by word, and what its roundings come to. `common` are sizes of errors that
// add up, `squares` those of errors that are independent; `peak` is the largest |sum| so far.
struct Sum {
  Sum() = default;
  Sum(Index rows, Index cols)
      : value(rows, cols),
        bound(rows, cols),
        common(rows, cols),
        squares(rows, cols),
        peak(rows, cols) {}

  void add(Index row, Index k, double term) {
    double& sum = value[row][k];
    sum += term;
    peak[row][k] = std::max(peak[row][k], std::abs(sum));
  }
  // Where terms come in order, in blocks or not, partial sums are differences of two sums so far.
  [[nodiscard]] double expected(std::size_t at, double roundings) const {
    return common.words[at] + std::sqrt(squares.words[at]) +
           2 * rho_independent(roundings) * peak.words[at];
  }

  // `lost`: by underflow.
  [[nodiscard]] Bounded bounded(double roundings, double factor, double lost) const {
    Bounded result;
    for (std::size_t k = 0; k < value.words.size(); ++k) {
      result.value.push_back(factor * value.words[k]);
      result.bound.push_back((std::abs(factor) * bound.words[k] + lost) * kActivationSlack);
      result.expected.push_back(
          std::min(result.bound.back(),
                   (std::abs(factor) * expected(k, roundings) + lost) * kActivationSlack));
    }
    return result;
  }

  Doubles value, bound, common, squares, peak;
};

double largest(const Doubles& A) {
  double most = 0;
  for (const double x : A.words) {
    most = std::max(most, std::abs(x));
  }
  return most;
}

// Of a pair: f and p, and their errors.
struct Pair {
  double f = 0, p = 0;
  PairError df, dp;
};

class ActivationEvaluation {
 public:
  ActivationEvaluation(const AttentionInput& input, const Chains& chains)
      : input_(input),
        n_(input.shape.n),
        m_(input.shape.m),
        d_(input.shape.d),
        dv_(input.shape.dv),
        weighted_(!input.X.empty()),
        backward_(!input.dO.empty()),
        Y_meets_rows_(chains.Y_meets_rows),
        joins_(chains.joins_dK_and_dV),
        scale_(input.scale),
        to_O_(static_cast<double>(m_ + (Y_meets_rows_ ? d_ : 0) + 2)),
        to_g_(std::max(chains.g, static_cast<double>(n_ + m_)) + 2),
        to_dK_(static_cast<double>((joins_ ? 2 : 1) * n_ + 3)),
        A1_(input.A1, n_, d_),
        K_(input.A2, m_, d_),
        dO_(input.dO, backward_ ? n_ : 0, dv_),
        S_(A1_),
        V_(Doubles(input.A3, m_, dv_)) {
    const auto depth = static_cast<double>(d_);
    if (weighted_) {
      const Doubles X(input.X, d_, d_), Y(input.Y, d_, d_);
      S_ = Factor(A1_, X);
      s_ = chains.X_meets_keys ? PairProducts(Factor(A1_), Factor(K_, of_columns(X)), depth)
                               : PairProducts(S_, Factor(K_), depth);
      const Doubles A3 = V_.value;
      V_ = Factor(A3, Y);
      if (backward_) {
        q_ = Y_meets_rows_ ? PairProducts(Factor(dO_, of_columns(Y)), Factor(A3), depth)
                           : PairProducts(Factor(dO_), V_, depth);
      }
    } else {
      s_ = PairProducts(S_, Factor(K_), depth + 1);
      if (backward_) {
        q_ = PairProducts(Factor(dO_), V_, static_cast<double>(dv_));
      }
    }
    lost_s_ =
        kSmallest * 2 * depth * (1 + depth * (largest(A1_) + largest(K_))) * (1 + std::abs(scale_));
    if (backward_) {
      dQ_ = Sum(n_, d_);
      dK_ = Sum(m_, d_);
      dV_ = Sum(m_, dv_);
    }
    if (backward_ && weighted_) {
      g_ = by_rows_ = by_W_ = g_bound_ = Doubles(d_, d_);
      T_ = Sum(m_, d_);
    }
  }

  Reference run() {
    for (Index i = 0; i < n_; ++i) {
      if (input_.stop) {
        input_.stop();
      }
      to_dQ_by_keys_ = rounded_ = Doubles(1, d_);
      const auto keys = [&](Range J) {
        for (Index j = J.begin; j < J.end; ++j) {
          add_pair(i, j);
        }
      };
      if (input_.mask.full()) {
        keys({0, m_});
      } else {
        input_.mask.each_range(i, {0, m_}, keys);
      }
      if (backward_) {
        end_row(i);
      }
    }
    const double words = static_cast<double>(n_ + m_ + d_ + dv_);
    const double sizes = 1 + words * (largest(A1_) + largest(K_) + largest(size_of(S_)) +
                                      largest(size_of(V_)) + largest(dO_) + largest_f_);
    const double lost = kSmallest * words * sizes * sizes * (1 + std::abs(scale_));
    Reference reference;
    reference.O = O_.bounded(to_O_, 1, lost);
    if (backward_) {
      if (weighted_) {
        reference.g = bounded_g(lost);
      }
      reference.dQ = dQ_.bounded(static_cast<double>(m_ + 3), scale_, lost);
      reference.dK = dK_.bounded(to_dK_, scale_, lost);
      reference.dV = dV_.bounded(to_dK_ - 1, 1, lost);
      if (joins_) {
        join_dK_and_dV(reference);
      }
    }
    return reference;
  }

 private:
  static const Doubles& size_of(const Factor& factor) {
    return factor.made() ? factor.size : factor.value;
  }

  [[nodiscard]] Pair pair(Index i, Index j) const {
    const PhiErrors phi = errors_of(input_.activation);
    const double s = scale_ * s_.value(i, j);
    PairError ds = s_.error(i, j);
    for (double* part : {&ds.bound, &ds.by_row, &ds.by_key, &ds.own}) {
      *part *= std::abs(scale_);
    }
    const double ds_known = ds.bound;
    ds.bound += lost_s_;
    const auto [f, slope] = redblue::phi(input_.activation, s);
    const double size = std::abs(slope);
    Pair pair{.f = f, .p = 0, .df = {}, .dp = {}};
    // Taylor, or the steepest slope; relu is straight but at 0.
    const bool jumps = ds_known > 0 && may_jump(input_.activation, s, ds.bound);
    const double moved = jumps ? ds.bound
                               : std::min(phi.lipschitz * ds.bound,
                                          size * ds.bound + phi.curvature * square(ds.bound) / 2);
    pair.df.bound = moved + rho_at_most(phi.value_roundings) * (std::abs(f) + moved) + kSmallest;
    const double explained = ds.by_row + ds.by_key + ds.own;
    const bool expected_to_jump = may_jump(input_.activation, s, explained);
    const double steep = expected_to_jump ? 1 : size;
    pair.df.by_row = steep * ds.by_row;
    pair.df.by_key = steep * ds.by_key;
    pair.df.own = std::hypot(steep * ds.own, rho_independent(phi.value_roundings) * std::abs(f));
    if (!backward_) {
      return pair;
    }
    const double q = std::abs(q_.value(i, j));
    const PairError dq = q_.error(i, j);
    const double dq_bound = dq.bound + kSmallest;
    pair.p = slope * q_.value(i, j);
    const double dslope = jumps ? 1
                                : std::min(phi.curvature * ds.bound, phi.swing) +
                                      rho_at_most(phi.slope_roundings) * phi.slope_size + kSmallest;
    const double made = (size + dslope) * (q + dq_bound);
    pair.dp.bound = size * dq_bound + dslope * (q + dq_bound) + rho_at_most(1) * made;
    const auto bent = [&](double error) { return std::min(phi.curvature * error, phi.swing) * q; };
    pair.dp.by_row = bent(ds.by_row) + size * dq.by_row + (expected_to_jump ? q : 0);
    pair.dp.by_key = bent(ds.by_key) + size * dq.by_key;
    pair.dp.own = std::hypot(
        std::hypot(bent(ds.own), rho_independent(phi.slope_roundings) * phi.slope_size * q),
        std::hypot(size * dq.own, rho_independent(1) * std::abs(pair.p)));
    return pair;
  }

  void add_pair(Index i, Index j) {
    const Pair at = pair(i, j);
    largest_f_ = std::max({largest_f_, std::abs(at.f), std::abs(at.p)});
    add_to_O(i, j, at);
    if (backward_) {
      add_to_W(i, j, at);
      add_to_keys(i, j, at);
    }
  }

  // h_j is off, too. Where Y meets the rows it is not made, and its sums are part of O's.
  void add_to_O(Index i, Index j, const Pair& at) {
    const double size = std::abs(at.f);
    const double f_bound = at.df.bound + rho_at_most(to_O_) * (size + at.df.bound);
    for (Index k = 0; k < dv_; ++k) {
      const double h = std::abs(V_.value[j][k]);
      O_.add(i, k, at.f * V_.value[j][k]);
      if (Y_meets_rows_) {
        O_.bound[i][k] += f_bound * V_.size[j][k];
        O_.common[i][k] += at.df.by_row * h + rho_independent(to_O_) * size * V_.size[j][k];
        O_.squares[i][k] += square((at.df.by_key + at.df.own) * h);
      } else {
        const double dh = V_.bound(j, k);
        O_.bound[i][k] += f_bound * (h + dh) + size * dh;
        O_.common[i][k] += at.df.by_row * h;
        O_.squares[i][k] += square((at.df.by_key + at.df.own) * h + size * V_.expected(j, k));
      }
    }
  }

  // W = p A2, which is dQ but for the scale; and the terms of T = p^T A1.
  void add_to_W(Index i, Index j, const Pair& at) {
    const double P = std::abs(at.p) + at.dp.bound;
    for (Index k = 0; k < d_; ++k) {
      const double key = std::abs(K_[j][k]);
      dQ_.add(i, k, at.p * K_[j][k]);
      dQ_.bound[i][k] += at.dp.bound * key;
      dQ_.common[i][k] += at.dp.by_row * key;
      dQ_.squares[i][k] += square(at.dp.own * key);
      to_dQ_by_keys_[0][k] += square(at.dp.by_key * key);
      rounded_[0][k] += P * key;
    }
    for (Index k = 0; weighted_ && k < d_; ++k) {
      T_.add(j, k, at.p * A1_[i][k]);
      T_.common[j][k] += at.dp.by_key * std::abs(A1_[i][k]);
    }
  }

  // Of a key: dK = p^T S and dV = f^T dO.
  void add_to_keys(Index i, Index j, const Pair& at) {
    const double p = std::abs(at.p);
    const double rounded = at.dp.bound + rho_at_most(to_dK_) * (p + at.dp.bound);
    for (Index k = 0; k < d_; ++k) {
      const double size = std::abs(S_.value[i][k]);
      const double error = S_.bound(i, k);
      dK_.add(j, k, at.p * S_.value[i][k]);
      dK_.bound[j][k] += rounded * (size + error) + p * error;
      dK_.common[j][k] += at.dp.by_key * size;
      dK_.squares[j][k] += square((at.dp.by_row + at.dp.own) * size + p * S_.expected(i, k));
    }
    const double f_bound = at.df.bound + rho_at_most(to_dK_ - 1) * (std::abs(at.f) + at.df.bound);
    for (Index k = 0; k < dv_; ++k) {
      const double size = std::abs(dO_[i][k]);
      dV_.add(j, k, at.f * dO_[i][k]);
      dV_.bound[j][k] += f_bound * size;
      dV_.common[j][k] += at.df.by_key * size;
      dV_.squares[j][k] += square((at.df.by_row + at.df.own) * size);
    }
  }

  // What a row of W adds to g, and the roundings of the sum of that row.
  void end_row(Index i) {
    const double to_W = static_cast<double>(m_);
    for (Index b = 0; weighted_ && b < d_; ++b) {
      const auto at = static_cast<std::size_t>(i * d_ + b);
      const double row = dQ_.expected(at, to_W);
      const double bound = dQ_.bound[i][b] + rho_at_most(to_g_) * rounded_[0][b];
      for (Index a = 0; a < d_; ++a) {
        const double A1 = std::abs(A1_[i][a]);
        g_[a][b] += A1_[i][a] * dQ_.value[i][b];
        g_bound_[a][b] += A1 * bound;
        by_rows_[a][b] += square(A1 * row);
        by_W_[a][b] += A1 * dQ_.peak[i][b];
      }
    }
    for (Index k = 0; k < d_; ++k) {
      dQ_.bound[i][k] += rho_at_most(static_cast<double>(m_ + 3)) * rounded_[0][k];
      dQ_.squares[i][k] += to_dQ_by_keys_[0][k];
    }
  }

  [[nodiscard]] Bounded bounded_g(double lost) const {
    Doubles by_keys(d_, d_), by_T(d_, d_);
    const double to_T = 2 * rho_independent(static_cast<double>(n_));
    for (Index j = 0; j < m_; ++j) {
      for (Index a = 0; a < d_; ++a) {
        const double of_key = T_.common[j][a] + to_T * T_.peak[j][a];
        for (Index b = 0; b < d_; ++b) {
          by_keys[a][b] += square(of_key * K_[j][b]);
          by_T[a][b] += T_.peak[j][a] * std::abs(K_[j][b]);
        }
      }
    }
    Bounded result;
    result.value = g_.words;
    const double to_g = 2 * rho_independent(to_g_);
    for (std::size_t k = 0; k < g_.words.size(); ++k) {
      result.bound.push_back((g_bound_.words[k] + lost) * kActivationSlack);
      const double expected = std::sqrt(by_rows_.words[k]) + std::sqrt(by_keys.words[k]) +
                              to_g * std::max(by_W_.words[k], by_T.words[k]);
      result.expected.push_back(
          std::min(result.bound.back(), (expected + lost) * kActivationSlack));
    }
    return result;
  }

  const AttentionInput& input_;
  Index n_, m_, d_, dv_;
  bool weighted_, backward_, Y_meets_rows_, joins_;
  double scale_;
  double to_O_, to_g_, to_dK_;  // roundings of a term
  Doubles A1_, K_, dO_;
  Factor S_, V_;  // A1 X and A3 Y, where there are weights
  PairProducts s_, q_;
  double lost_s_ = 0;  // of a score by underflow
  double largest_f_ = 0;
  Sum O_{n_, dv_}, dQ_, dK_, dV_;         // the last three, without the scale
  Doubles to_dQ_by_keys_, rounded_;       // of a row of W: the keys' part, and |p^| |A2|
  Doubles g_, g_bound_, by_rows_, by_W_;  // [g]^2 by the roundings of rows; |A1|^T W'
  Sum T_;  // p^T A1, of which value, peak, and as `common` the roundings of a key
};

}  // namespace

Reference evaluate_activation(const AttentionInput& input, const Chains& chains) {
  return ActivationEvaluation(input, chains).run();
}

}  // namespace redblue
