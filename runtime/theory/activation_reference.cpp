#include "runtime/theory/activation_reference.hpp"

// docs/theory/reference.md derives the bounds evaluated here.

#include <algorithm>
#include <cmath>

#include "runtime/theory/doubles.hpp"

namespace redblue {
namespace {

constexpr double kSlack = 1 + 1e-6;  // of this evaluation's own roundings

// What k roundings do to a term: at most; or where they are independent, to first order.
enum class Roundings { all, independent };
double rho(Roundings which, double k) {
  return which == Roundings::all ? std::expm1(k * kHalfUnit)
                                 : kIndependent * 0x1p-24 * std::sqrt(k);
}

// A function, its derivative, and how they carry errors on. `lipschitz` and `curvature` bound the
// first two derivatives, `swing` how far the first moves at all.
struct Phi {
  double value, slope;
};
struct PhiErrors {
  double lipschitz, curvature, swing;
  double value_roundings, slope_roundings;
  double slope_size;  // what those of the slope are relative to
};

double sigmoid(double s) {
  const double e = std::exp(-std::abs(s));
  return (s < 0 ? e : 1) / (1 + e);
}

Phi phi(Activation activation, double s) {
  switch (activation) {
    case Activation::relu:
      return {std::max(s, 0.0), s > 0 ? 1.0 : 0.0};
    case Activation::sigmoid:
      return {sigmoid(s), sigmoid(s) * sigmoid(-s)};
    default:
      return {s * sigmoid(s), sigmoid(s) * (1 + s * sigmoid(-s))};
  }
}

PhiErrors errors_of(Activation activation) {
  switch (activation) {
    case Activation::relu:
      return {1, 0, 1, 0, 0, 0};
    case Activation::sigmoid:
      return {0.25, 0.0963, 0.25, 7, 14, 0.25};
    default:
      return {1.1, 0.5, 1.2, 8, 17, 1.1};
  }
}

Doubles absolute(Doubles A) {
  std::ranges::transform(A.words, A.words.begin(), [](double x) { return std::abs(x); });
  return A;
}

Doubles times(const Doubles& A, Index rows, const Doubles& B, Index depth) {
  Doubles C(rows, B.cols);
  for (Index i = 0; i < rows; ++i) {
    for (Index k = 0; k < depth; ++k) {
      for (Index j = 0; j < B.cols; ++j) {
        C[i][j] += A[i][k] * B[k][j];
      }
    }
  }
  return C;
}

double dot(const double* a, const double* b, Index words) {
  double sum = 0;
  for (Index k = 0; k < words; ++k) {
    sum += a[k] * b[k];
  }
  return sum;
}

// to += factor row.
void add(double* to, double factor, const double* row, Index words) {
  for (Index k = 0; k < words; ++k) {
    to[k] += factor * row[k];
  }
}

// A matrix, and the sizes of its words' errors of both kinds.
struct Result {
  Result() = default;
  Result(Index rows, Index cols) : value(rows, cols), bound(rows, cols), expected(rows, cols) {}
  Doubles& error(Roundings which) { return which == Roundings::all ? bound : expected; }
  // `lost`: by underflow.
  [[nodiscard]] Bounded bounded(double lost) const {
    Bounded result;
    result.value = value.words;
    for (std::size_t k = 0; k < value.words.size(); ++k) {
      result.bound.push_back((bound.words[k] + lost) * kSlack);
      result.expected.push_back(std::min(result.bound.back(), (expected.words[k] + lost) * kSlack));
    }
    return result;
  }

  Doubles value, bound, expected;
};

double largest(const Doubles& A) {
  double most = 0;
  for (const double x : A.words) {
    most = std::max(most, x);
  }
  return most;
}

class Evaluation {
 public:
  Evaluation(const AttentionInput& input, double chain, bool joins_dK_and_dV)
      : input_(input),
        n_(input.shape.n),
        m_(input.shape.m),
        d_(input.shape.d),
        dv_(input.shape.dv),
        weighted_(!input.X.empty()),
        scale_(input.scale),
        depth_s_(static_cast<double>(weighted_ ? 2 * d_ : d_ + 1)),
        depth_q_(static_cast<double>(weighted_ ? 2 * d_ : dv_)),
        depth_O_(static_cast<double>(m_ + (weighted_ ? d_ : 0) + 2)),
        depth_g_(std::max(chain, static_cast<double>(n_ + m_)) + 2),
        depth_dK_(static_cast<double>((joins_dK_and_dV ? 2 : 1) * n_ + (weighted_ ? d_ : 0) + 3)),
        depth_dV_(static_cast<double>((joins_dK_and_dV ? 2 : 1) * n_ + 2)),
        joins_(joins_dK_and_dV),
        A1_(input.A1, n_, d_),
        K_(input.A2, m_, d_),
        dO_(input.dO, input.dO.empty() ? 0 : n_, dv_),
        S_(weighted_ ? times(A1_, n_, Doubles(input.X, d_, d_), d_) : A1_),
        V_(input.A3, m_, dv_),
        A1_size_(absolute(A1_)),
        K_size_(absolute(K_)),
        dO_size_(absolute(dO_)),
        S_size_(weighted_ ? times(A1_size_, n_, absolute(Doubles(input.X, d_, d_)), d_) : A1_size_),
        V_size_(absolute(V_)),
        lost_each_(1 + static_cast<double>(d_) * (largest(A1_size_) + largest(K_size_))) {
    if (weighted_) {
      const Doubles Y(input.Y, d_, d_);
      V_ = times(V_, m_, Y, d_);
      V_size_ = times(V_size_, m_, absolute(Y), d_);
    }
  }

  Reference run() {
    for (Index i = 0; i < n_; ++i) {
      if (input_.mask.full()) {
        row(i, {0, m_});
      } else {
        begin_row();
        input_.mask.each_range(i, {0, m_}, [&](Range J) { keys(i, J); });
        end_row(i);
      }
    }
    Reference reference;
    const double words = static_cast<double>(n_ + m_ + d_ + dv_);
    const double sizes = 1 + words * (largest(A1_size_) + largest(K_size_) + largest(S_size_) +
                                      largest(V_size_) + largest(dO_size_) + largest_f_);
    const double lost = kSmallest * words * sizes * sizes * (1 + std::abs(scale_));
    reference.O = O_.bounded(lost);
    if (has_dO()) {
      if (weighted_) {
        reference.g = g_.bounded(lost);
      }
      reference.dQ = dQ_.bounded(lost);
      reference.dK = dK_.bounded(lost);
      reference.dV = dV_.bounded(lost);
      if (joins_) {
        join_dK_and_dV(reference);
      }
    }
    return reference;
  }

 private:
  [[nodiscard]] bool has_dO() const { return !input_.dO.empty(); }

  void row(Index i, Range J) {
    begin_row();
    keys(i, J);
    end_row(i);
  }

  void begin_row() {
    W_ = Doubles(1, d_);
    for (const Roundings which : kBoth) {
      carried_[static_cast<int>(which)] = Doubles(1, d_);
    }
    rounded_ = Doubles(1, d_);
  }

  // f and p of a query and these keys, and what they add.
  void keys(Index i, Range J) {
    const PhiErrors errors = errors_of(input_.activation);
    const double lost_s =
        kSmallest * static_cast<double>(2 * d_) * lost_each_ * (1 + std::abs(scale_));
    for (Index j = J.begin; j < J.end; ++j) {
      const double s = scale_ * dot(S_[i], K_[j], d_);
      const double s_size = std::abs(scale_) * dot(S_size_[i], K_size_[j], d_);
      const auto [f, slope] = phi(input_.activation, s);
      const double q = has_dO() ? dot(dO_[i], V_[j], dv_) : 0;
      const double q_size = has_dO() ? dot(dO_size_[i], V_size_[j], dv_) : 0;
      const double p = slope * q;
      largest_f_ = std::max({largest_f_, std::abs(f), std::abs(q)});
      add(O_.value[i], f, V_[j], dv_);
      if (has_dO()) {
        add(W_[0], p, K_[j], d_);
        add(dK_.value[j], scale_ * p, S_[i], d_);
        add(dV_.value[j], f, dO_[i], dv_);
      }
      for (const Roundings which : kBoth) {
        const double ds = rho(which, depth_s_) * s_size + lost_s;
        const double df =
            errors.lipschitz * ds +
            rho(which, errors.value_roundings) * (std::abs(f) + errors.lipschitz * ds) + kSmallest;
        add(O_.error(which)[i], df + rho(which, depth_O_) * (std::abs(f) + df), V_size_[j], dv_);
        if (!has_dO()) {
          continue;
        }
        const bool may_jump =
            input_.activation == Activation::relu && s_size > 0 && std::abs(s) <= ds;
        const double dslope =
            may_jump ? 1
                     : std::min(errors.curvature * ds, errors.swing) +
                           rho(which, errors.slope_roundings) * errors.slope_size + kSmallest;
        const double dq = rho(which, depth_q_) * q_size + kSmallest;
        const double made = (std::abs(slope) + dslope) * (std::abs(q) + dq);
        const double dp = std::abs(slope) * dq + dslope * (std::abs(q) + dq) + rho(which, 1) * made;
        const double P = std::abs(p) + dp;
        add(carried_[static_cast<int>(which)][0], dp, K_size_[j], d_);
        if (which == Roundings::all) {
          add(rounded_[0], P, K_size_[j], d_);
        }
        add(dK_.error(which)[j], std::abs(scale_) * (dp + rho(which, depth_dK_) * P), S_size_[i],
            d_);
        add(dV_.error(which)[j], df + rho(which, depth_dV_) * (std::abs(f) + df), dO_size_[i], dv_);
      }
    }
  }

  // dQ_i, and what it adds to g.
  void end_row(Index i) {
    if (!has_dO()) {
      return;
    }
    add(dQ_.value[i], scale_, W_[0], d_);
    for (const Roundings which : kBoth) {
      const Doubles& carried = carried_[static_cast<int>(which)];
      add(dQ_.error(which)[i], std::abs(scale_), carried[0], d_);
      add(dQ_.error(which)[i], std::abs(scale_) * rho(which, static_cast<double>(m_ + 3)),
          rounded_[0], d_);
    }
    for (Index k = 0; weighted_ && k < d_; ++k) {
      add(g_.value[k], A1_[i][k], W_[0], d_);
      for (const Roundings which : kBoth) {
        const Doubles& carried = carried_[static_cast<int>(which)];
        add(g_.error(which)[k], A1_size_[i][k], carried[0], d_);
        add(g_.error(which)[k], A1_size_[i][k] * rho(which, depth_g_), rounded_[0], d_);
      }
    }
  }

  static constexpr Roundings kBoth[] = {Roundings::all, Roundings::independent};

  const AttentionInput& input_;
  Index n_, m_, d_, dv_;
  bool weighted_;
  double scale_;
  double depth_s_, depth_q_, depth_O_, depth_g_, depth_dK_, depth_dV_;  // roundings of a term
  bool joins_;
  Doubles A1_, K_, dO_;
  Doubles S_, V_;                                         // A1 X and A3 Y, where there are weights
  Doubles A1_size_, K_size_, dO_size_, S_size_, V_size_;  // of absolute values
  double lost_each_;  // the factors that a word lost by underflow meets on its way to a score
  double largest_f_ = 0;
  Doubles W_, carried_[2], rounded_;  // of one query: p A2, |dp| |A2| and |p| |A2|
  Result O_{n_, dv_}, g_{weighted_ ? d_ : 0, d_}, dQ_{n_, d_}, dK_{m_, d_}, dV_{m_, dv_};
};

}  // namespace

Reference evaluate_activation(const AttentionInput& input, double chain, bool joins_dK_and_dV) {
  return Evaluation(input, chain, joins_dK_and_dV).run();
}

}  // namespace redblue
