// Products of matrices, and linear attention, for reference.hpp.

#include <algorithm>

#include <omp.h>

#include "memsim/errors.hpp"
#include "runtime/theory/doubles.hpp"
#include "runtime/theory/panels.hpp"
#include "runtime/theory/reference.hpp"
#include "runtime/theory/roundings.hpp"

namespace redblue {
namespace {

using Row = std::vector<double>;

// Returns x B.
Row times(const Row& x, const Doubles& B) {
  Row y(static_cast<std::size_t>(B.cols));
  for (Index k = 0; k < B.rows; ++k) {
    const double factor = x[static_cast<std::size_t>(k)];
    for (Index j = 0; j < B.cols; ++j) {
      y[static_cast<std::size_t>(j)] += factor * B[k][j];
    }
  }
  return y;
}

// Adds `by` times the square of each word.
void add_squares(const Row& from, double by, Row& to) {
  for (std::size_t k = 0; k < from.size(); ++k) {
    to[k] += by * from[k] * from[k];
  }
}
void add(const Row& from, double by, Row& to) {
  for (std::size_t k = 0; k < from.size(); ++k) {
    to[k] += by * from[k];
  }
}

Row squared(const Row& x) {
  Row y(x.size());
  add_squares(x, 1, y);
  return y;
}
Row row_of(const Doubles& a, Index i) {
  return {a[i], a[i] + a.cols};
}
void add(const Doubles& from, double by, Doubles& to) {
  add(from.words, by, to.words);
}

// A^T B, built up from rows of both: its value, the sums of squared terms, and the largest squares
// of partial sums.
struct Summed {
  Summed() = default;
  Summed(Index rows, Index cols) : value(rows, cols), terms2(value), peak2(value) {}

  void add_row(const double* a, const double* b) {
    for (Index k = 0; k < value.rows; ++k) {
      for (Index j = 0; j < value.cols; ++j) {
        const double term = a[k] * b[j];
        value[k][j] += term;
        terms2[k][j] += term * term;
        peak2[k][j] = std::max(peak2[k][j], value[k][j] * value[k][j]);
      }
    }
  }
  [[nodiscard]] Doubles variance(double terms) const {
    Doubles all(value.rows, value.cols);
    add(terms2, of_terms(terms), all);
    add(peak2, of_terms(terms), all);
    return all;
  }

  Doubles value, terms2, peak2;
};

// A B of small matrices and its variance, from the variances of A and B (null: exact).
struct SmallProduct {
  SmallProduct(const Doubles& A, const Doubles* A_variance, const Doubles& B,
               const Doubles* B_variance)
      : value(product(A, B)), variance(value.rows, value.cols) {
    const Doubles A2 = squares(A), B2 = squares(B);
    add(product(A2, B2), of_terms(static_cast<double>(A.cols)), variance);
    add(squares(value), of_terms(static_cast<double>(A.cols)), variance);
    if (A_variance != nullptr) {
      add(product(*A_variance, B2), 1, variance);
    }
    if (B_variance != nullptr) {
      add(product(A2, *B_variance), 1, variance);
    }
  }
  Doubles value, variance;
};

// O = ((A1 X) G) Y with G = A2^T A3, and g = A1^T ((dO Y^T) G) with G = A3^T A2. Both are computed
// alike up to the product with G. With a causal mask, G is the sum over the keys that a query
// meets.
class LinearEvaluation {
 public:
  explicit LinearEvaluation(const AttentionInput& input)
      : in_(input),
        makes_g_(!input.dO.empty()),
        causal_(!input.mask.full()),
        n_(input.shape.n),
        m_(input.shape.m),
        d_(input.shape.d),
        A1_(input.A1, n_, d_),
        Y_(input.Y, d_, d_),
        rows_(makes_g_ ? Doubles(input.dO, n_, d_) : A1_),
        M_(makes_g_ ? transposed(Y_) : Doubles(input.X, d_, d_)),
        left_(makes_g_ ? input.A3 : input.A2, m_, d_),
        right_(makes_g_ ? input.A2 : input.A3, m_, d_),
        G_(d_, d_),
        U_(d_, d_),
        g_(d_, d_),
        g_variance_(d_, d_) {}

  Expected run() {
    const auto words = static_cast<std::size_t>((makes_g_ ? d_ : n_) * d_);
    result_ = {Row(words), Row(words)};
    Index next = 0;
    for (Index i = 0; i < n_; ++i) {
      const Index end = causal_ ? std::max<Index>(0, i + m_ - n_ + 1) : m_;
      for (; next < end; ++next) {
        G_.add_row(left_[next], right_[next]);
      }
      if (!causal_ && i == 0) {
        add_other_orders();
      }
      if (end > 0) {
        add_row(i);
      }
      if (in_.step && i % 64 == 0) {
        in_.step(static_cast<double>(i) / static_cast<double>(n_));
      }
    }
    if (makes_g_) {
      finish_g();
    }
    const bool repeats = mostly_equal(rows_, n_) || mostly_equal(A1_, n_) ||
                         mostly_equal(left_, m_) || mostly_equal(right_, m_);
    for (double& allowed : result_.allowed) {
      allowed *= kTimesOfChain * (repeats ? kTimesOfEqual : 1);
    }
    return std::move(result_);
  }

 private:
  void add_row(Index i);
  void add_other_orders();
  void finish_g();

  const AttentionInput& in_;
  bool makes_g_, causal_;
  Index n_, m_, d_;
  Doubles A1_, Y_, rows_, M_, left_, right_;
  Summed G_;
  Summed U_;  // A1^T (dO Y^T), which multiplies errors of G
  Summed g_;
  Doubles g_variance_;
  Doubles by_rows_;  // for O: the variance of the matrix that A1 multiplies in other orders
  Expected result_;
};

void LinearEvaluation::add_row(Index i) {
  const auto width = static_cast<double>(d_), keys = static_cast<double>(m_) + in_.g_terms;
  const Row row = row_of(rows_, i), row2 = squared(row);
  const Row q = times(row, M_);
  Row size2 = times(row2, squares(M_));  // squares of the terms of q, plus the squares of q
  add_squares(q, 1, size2);
  const Doubles G2 = squares(G_.value);
  const Row W = times(q, G_.value);
  Row error = times(size2, G2);
  add_squares(W, 1, error);
  Row variance(static_cast<std::size_t>(d_));
  add(error, 2 * of_terms(width), variance);  // of q, and of its products with G
  if (makes_g_) {
    g_.add_row(A1_[i], W.data());
    U_.add_row(A1_[i], q.data());
    for (Index a = 0; a < d_; ++a) {
      for (Index b = 0; b < d_; ++b) {
        g_variance_[a][b] += A1_[i][a] * A1_[i][a] * variance[static_cast<std::size_t>(b)];
      }
    }
    return;
  }
  add(times(size2, G_.variance(keys)), 1, variance);
  const Doubles Y2 = squares(Y_);
  const Row O = times(W, Y_);
  Row of_O = times(variance, Y2);
  Row terms2 = times(squared(W), Y2);
  add(terms2, of_terms(width), of_O);
  add_squares(O, of_terms(width), of_O);
  if (!causal_) {
    add(times(row2, by_rows_), 1, of_O);
  }
  const Row spread = times(times(size2, G_.terms2), Y2);
  for (Index b = 0; b < d_; ++b) {
    const auto k = static_cast<std::size_t>(b);
    const auto at = static_cast<std::size_t>(i * d_ + b);
    result_.value[at] = O[k];
    result_.allowed[at] = allowed(of_O[k], O[k], spread[k], keys) + kTiny;
  }
}

// Adds the variances of other orders, which make A3 Y or A1^T dO first, for all pairs. T = G Y and
// P = X T for O; g = U T^T.
void LinearEvaluation::add_other_orders() {
  const Doubles A3(in_.A3, m_, d_), A2(in_.A2, m_, d_);
  const SmallProduct h(A3, nullptr, Y_, nullptr);
  Summed by_h(d_, d_);
  Doubles of_h(d_, d_);
  const Doubles A2_2 = squares(A2);
  for (Index j = 0; j < m_; ++j) {
    by_h.add_row(A2[j], h.value[j]);
  }
  add_transposed(A2_2, h.variance, {0, m_}, of_h);
  const auto keys = static_cast<double>(m_), queries = static_cast<double>(n_);
  Doubles of_G = G_.variance(keys);
  if (!makes_g_) {
    SmallProduct T(G_.value, &of_G, Y_, nullptr);
    add(by_h.variance(keys), 1, T.variance);
    add(of_h, 1, T.variance);
    const SmallProduct P(M_, nullptr, T.value, &T.variance);
    by_rows_ = P.variance;
    add(squares(P.value), of_terms(static_cast<double>(d_)), by_rows_);
    return;
  }
  SmallProduct T(M_, nullptr, G_.value, &of_G);  // the transpose of T
  add(transposed(by_h.variance(keys)), 1, T.variance);
  add(transposed(of_h), 1, T.variance);
  Summed U(d_, d_);
  for (Index i = 0; i < n_; ++i) {
    U.add_row(A1_[i], rows_[i]);
  }
  const Doubles of_U = U.variance(queries);
  g_variance_ = SmallProduct(U.value, &of_U, T.value, &T.variance).variance;
}

void LinearEvaluation::finish_g() {
  const auto keys = static_cast<double>(m_), queries = static_cast<double>(n_);
  Doubles U2 = U_.peak2;
  add(product(U2, G_.variance(keys)), 1, g_variance_);
  add(g_.variance(queries + in_.g_terms), 1, g_variance_);
  const Doubles spread = product(U2, G_.terms2);
  for (std::size_t k = 0; k < g_.value.words.size(); ++k) {
    const double g = g_.value.words[k];
    result_.value[k] = g;
    result_.allowed[k] = allowed(g_variance_.words[k], g, spread.words[k] + g_.terms2.words[k],
                                 keys + queries + in_.g_terms) +
                         kTiny;
  }
}

bool has(std::span<const float> words, Words count) {
  return Words(std::ssize(words)) == count;
}

}  // namespace

Expected evaluate_linear(const AttentionInput& input) {
  const auto [n, m, d] = input.shape;
  const bool makes_g = !input.dO.empty();
  require(has(input.A1, Words(n) * d) && has(input.A2, Words(m) * d) &&
              has(input.A3, Words(m) * d) && has(input.Y, Words(d) * d) &&
              (makes_g ? has(input.dO, Words(n) * d) : has(input.X, Words(d) * d)),
          "A1, A2, A3, Y, and X or dO have the extents of the shape");
  require(input.mask.full() || input.mask == Mask::causal(n, m), "all pairs, or the causal ones");
  return LinearEvaluation(input).run();
}

Expected evaluate_product(Index n, Index m, Index d, std::span<const float> A,
                          std::span<const float> B) {
  require(n > 0 && m > 0 && d > 0, "n, m, d > 0");
  require(has(A, Words(n) * d), "A is n x d");
  require(has(B, Words(d) * m), "B is d x m");
  const Doubles left = with_rows(A, n, d, kBlockRows), right(B, d, m);
  const Index step = padded(m, kKeyMultiple);
  const Panels columns(right, d);
  const std::vector<double> rows2 = row_norms2(left), columns2 = row_norms2(transposed(right));
  Expected C{Row(static_cast<std::size_t>(n * m)), Row(static_cast<std::size_t>(n * m))};
#pragma omp parallel for schedule(static)
  for (Index first = 0; first < n; first += kBlockRows) {
    Row strip(static_cast<std::size_t>(kBlockRows * step));
    set_product(left[first], d, columns, {0, columns.columns()}, strip.data(), step);
    for (Index i = first; i < std::min(first + kBlockRows, n); ++i) {
      for (Index j = 0; j < m; ++j) {
        const double value = strip[static_cast<std::size_t>((i - first) * step + j)];
        const double norms2 =
            rows2[static_cast<std::size_t>(i)] * columns2[static_cast<std::size_t>(j)];
        const auto at = static_cast<std::size_t>(i * m + j);
        const auto depth = static_cast<double>(d);
        C.value[at] = value;
        C.allowed[at] = allowed(of_dot(norms2, value, depth), value, norms2 / depth, depth) + kTiny;
      }
    }
  }
  return C;
}

}  // namespace redblue
