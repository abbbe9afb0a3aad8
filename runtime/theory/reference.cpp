#include "runtime/theory/reference.hpp"

// docs/theory/reference.md derives the formulas evaluated here; names are those of that page.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <utility>

#include "memsim/errors.hpp"
#include "runtime/theory/activation_reference.hpp"
#include "runtime/theory/doubles.hpp"

namespace redblue {
namespace {

constexpr double kSlack = 1 + 1e-6;
constexpr double kExp = 4;             // roundings of an exp or a log
constexpr double kRescale = kExp + 1;  // an exp and a product
constexpr Index kRows = 8;             // query rows that pass through the keys together
constexpr Index kKeys = 256;           // keys that stay in a real cache meanwhile

double rho(double k) {
  return std::expm1(k * kHalfUnit);
}

// rho' of the derivation: rho for independent roundings.
double independent(double k) {
  return kIndependent * 0x1p-24 * std::sqrt(k);
}

// A close upper bound of e^x - 1.
double growth(double x) {
  return x < 0.125 ? x * (1 + x) : std::expm1(x);
}

Doubles matrix(std::span<const float> words, Index first_row, Index rows, Index cols) {
  Doubles result(rows, cols);
  std::copy_n(words.begin() + first_row * cols, rows * cols, result.words.begin());
  return result;
}

template <class F>
Doubles map(const Doubles& a, F f) {
  Doubles result(a.rows, a.cols);
  std::transform(a.words.begin(), a.words.end(), result.words.begin(), f);
  return result;
}

template <class F>
Doubles map(const Doubles& a, const Doubles& b, F f) {
  Doubles result(a.rows, a.cols);
  std::transform(a.words.begin(), a.words.end(), b.words.begin(), result.words.begin(), f);
  return result;
}

Doubles abs(const Doubles& a) {
  return map(a, [](double x) { return std::abs(x); });
}

Doubles squares(const Doubles& a) {
  return map(a, [](double x) { return x * x; });
}

Doubles transposed(const Doubles& a) {
  Doubles result(a.cols, a.rows);
  for (Index i = 0; i < a.rows; ++i) {
    for (Index j = 0; j < a.cols; ++j) {
      result[j][i] = a[i][j];
    }
  }
  return result;
}

void axpy(double a, const double* __restrict x, double* __restrict y, Index count) {
  for (Index k = 0; k < count; ++k) {
    y[k] += a * x[k];
  }
}

// The same; `peak` keeps the largest |y_k| so far.
void axpy(double a, const double* __restrict x, double* __restrict y, double* __restrict peak,
          Index count) {
  for (Index k = 0; k < count; ++k) {
    y[k] += a * x[k];
    peak[k] = std::max(peak[k], std::abs(y[k]));
  }
}

// C += A B, in pieces of C's columns if C is wide, and of B's rows if it is not; `peak` keeps the
// peaks of |C|.
void add_product(const Doubles& A, const Doubles& B, Doubles& C, Doubles* peak = nullptr) {
  for (Index j = 0; j < C.cols; j += kKeys) {
    const Index width = std::min(kKeys, C.cols - j);
    for (Index first = 0; first < A.cols; first += kKeys) {
      const Index last = std::min(first + kKeys, A.cols);
      for (Index i = 0; i < A.rows; ++i) {
        for (Index k = first; k < last; ++k) {
          if (peak != nullptr) {
            axpy(A[i][k], B[k] + j, C[i] + j, (*peak)[i] + j, width);
          } else {
            axpy(A[i][k], B[k] + j, C[i] + j, width);
          }
        }
      }
    }
  }
}

// C += A^T B, in pieces of C's rows; `peak` keeps the peaks of |C|.
void add_transposed_product(const Doubles& A, const Doubles& B, Doubles& C,
                            Doubles* peak = nullptr) {
  for (Index first = 0; first < A.cols; first += kKeys) {
    const Index last = std::min(first + kKeys, A.cols);
    for (Index i = 0; i < A.rows; ++i) {
      for (Index j = first; j < last; ++j) {
        if (peak != nullptr) {
          axpy(A[i][j], B[i], C[j], (*peak)[j], B.cols);
        } else {
          axpy(A[i][j], B[i], C[j], B.cols);
        }
      }
    }
  }
}

Doubles product(const Doubles& A, const Doubles& B) {
  Doubles C(A.rows, B.cols);
  add_product(A, B, C);
  return C;
}

double dot(const double* x, const double* y, Index count) {
  double sum = 0;
  for (Index k = 0; k < count; ++k) {
    sum += x[k] * y[k];
  }
  return sum;
}

// The largest power of two that divides every element; infinite if all are zero.
double unit(std::span<const float> words) {
  double smallest = std::numeric_limits<double>::infinity();
  for (const float word : words) {
    if (word != 0 && std::isfinite(word)) {
      int exponent = 0;
      const auto digits =
          static_cast<std::uint32_t>(std::ldexp(std::abs(std::frexp(word, &exponent)), 24));
      smallest = std::min(smallest, std::ldexp(1.0, exponent - 24 + std::countr_zero(digits)));
    }
  }
  return smallest;
}

// Whether products of multiples of `unit` with this sum of absolute values add up without error.
bool exact(double sum_of_absolutes, double unit) {
  return unit >= 0x1p-126 && sum_of_absolutes <= 0x1p24 * unit;
}

bool is_power_of_two(double x) {
  int exponent = 0;
  return std::frexp(x, &exponent) == 0.5;
}

// A product of depth d, and the bound of the error of a float32 one.
struct Product {
  Product() = default;
  Product(const Doubles& A, const Doubles& B, double unit)
      : value(product(A, B)), error(product(abs(A), abs(B))) {
    const auto d = static_cast<double>(A.cols);
    for (double& x : error.words) {
      const bool without_error = exact(x, unit);
      is_exact = is_exact && without_error;
      x = without_error ? 0 : rho(d) * x + 2 * d * kSmallest;
    }
  }

  // A matrix that is given, times a factor: each word is rounded once.
  Product(Doubles given, double factor) : value(std::move(given)), error(value.rows, value.cols) {
    is_exact = is_power_of_two(factor);
    for (std::size_t k = 0; k < value.words.size(); ++k) {
      value.words[k] *= factor;
      error.words[k] = is_exact ? 0 : rho(1) * std::abs(value.words[k]) + 2 * kSmallest;
    }
  }

  Doubles value, error;
  bool is_exact = true;
};

// The factor of B's side in |fl(A^ B^) - A B|, if |A^ - A| <= error: error + rho(k)(|A| + error).
Doubles carried(const Doubles& value, const Doubles& error, double k) {
  return map(value, error, [r = rho(k)](double x, double e) { return e + r * (std::abs(x) + e); });
}

// The largest absolute value of each column.
std::vector<double> column_maxima(const Doubles& a) {
  std::vector<double> maxima(static_cast<std::size_t>(a.cols));
  for (Index i = 0; i < a.rows; ++i) {
    for (Index k = 0; k < a.cols; ++k) {
      double& largest = maxima[static_cast<std::size_t>(k)];
      largest = std::max(largest, std::abs(a[i][k]));
    }
  }
  return maxima;
}

double norm(const double* x, Index count) {
  return std::sqrt(dot(x, x, count));
}

double norm_of_products(const double* x, const double* y, Index count) {
  double sum = 0;
  for (Index k = 0; k < count; ++k) {
    sum += x[k] * y[k] * x[k] * y[k];
  }
  return std::sqrt(sum);
}

// For each row of a product of that depth, the factor of [row . y] <= factor ||y||, y of width d.
std::vector<double> independent_rows(const Product& product, double depth, double d) {
  std::vector<double> factors;
  const Index width = product.value.cols;
  for (Index i = 0; i < product.value.rows; ++i) {
    const double* error = product.error[i];
    factors.push_back(
        std::hypot(kIndependent / std::sqrt(depth) * *std::max_element(error, error + width),
                   independent(d) * norm(product.value[i], width)));
  }
  return factors;
}

// The keys K of products (A B) K^T.
struct Keys {
  explicit Keys(const Doubles& K)
      : T(transposed(K)), abs_T(abs(T)), maxima(column_maxima(K)), rows(K.rows) {
    for (Index j = 0; j < K.rows; ++j) {
      norms.push_back(norm(K[j], K.cols));
    }
  }
  Keys() = default;

  Doubles T, abs_T;
  std::vector<double> maxima, norms;
  Index rows = 0;
};

// h = B W, or given, for products (rows) h^T with all keys.
struct KeyProduct {
  KeyProduct(const Doubles& B, const Doubles& W, double unit, double d)
      : KeyProduct(Product(B, W, unit), d) {}
  KeyProduct(Product of, double d)
      : h(std::move(of)),
        T(transposed(h.value)),
        carried_T(transposed(carried(h.value, h.error, d))),
        maxima(column_maxima(h.value)),
        factors(independent_rows(h, d, d)) {}
  KeyProduct() = default;

  Product h;
  Doubles T, carried_T;
  std::vector<double> maxima, factors;
};

// A product of a block of rows with all keys, the bound of its error, and [it].
struct Scores {
  Scores(Index count, Index keys) : value(count, keys), error(count, keys), dev(count, keys) {}

  Doubles value, error, dev;
};

// Sum of |row_k| maxima_k, which no sum of absolute products of this row exceeds.
double largest_sum(const double* row, const std::vector<double>& maxima) {
  double sum = 0;
  for (std::size_t k = 0; k < maxima.size(); ++k) {
    sum += std::abs(row[k]) * maxima[k];
  }
  return sum;
}

struct Result {
  Result() = default;
  Result(Index rows, Index cols) : value(rows, cols), bound(rows, cols), expected(rows, cols) {}

  Doubles value, bound, expected;
};

Bounded bounded(const Result& found) {
  Bounded result{found.value.words, found.bound.words, found.expected.words};
  for (std::size_t i = 0; i < result.value.size(); ++i) {
    double& bound = result.bound[i];
    bound = std::isnan(bound) ? std::numeric_limits<double>::infinity() : bound * kSlack;
    double& expected = result.expected[i];
    expected = expected * kSlack < bound ? expected * kSlack : bound;  // the bound for a NaN
  }
  return result;
}

void add_to(Bounded& sum, const Bounded& other) {
  for (const auto of : {&Bounded::value, &Bounded::bound, &Bounded::expected}) {
    std::ranges::transform(sum.*of, other.*of, (sum.*of).begin(), std::plus());
  }
}

bool has(std::span<const float> words, Index count) {
  return static_cast<Index>(words.size()) == count;
}

// The softmax of one query row, besides f and a. The dev_ are the [] of the derivation.
struct Row {
  double L = 0, dL = 0, dev_L = 0;
  double reach = 0;                 // no score is larger, as computed
  double beta = 0, dev_b = 0;       // of b_i
  double dev_b_y = 0, dev_v_y = 0;  // of b_i and v by the errors of y
  double v = 0, dv = 0;
  double dev_v = 0, dev_v_h = 0;  // without the errors of h, and by these
  double lost = 0;                // of a word of W by underflow, if recentred
};

// The softmax of a block of rows: f^ = f (1 + a)(1 + b), |a| <= e^alpha - 1.
struct Rows {
  Rows(Index rows, Index cols)
      : f(rows, cols), alpha(rows, cols), dev_a(rows, cols), row(static_cast<std::size_t>(rows)) {}

  Row& operator[](Index i) { return row[static_cast<std::size_t>(i)]; }
  const Row& operator[](Index i) const { return row[static_cast<std::size_t>(i)]; }

  Doubles f, alpha, dev_a;
  std::vector<Row> row;
};

// A block of rows of O: O^ = (1 + b)(O + r), |O^ - O| <= error. dev_r is without the errors of h,
// dev_by_h by these. Where O is given, r = error = dev_r = 0. Where Y meets the rows, r has the
// errors of the weights, those of the words of f A3 besides (`chain`), and those of their product
// with Y.
struct Output {
  Output(Index rows, Index cols)
      : O(rows, cols), r(rows, cols), error(rows, cols), dev_r(rows, cols), dev_by_h(rows, cols) {}

  Doubles O, r, error, dev_r, dev_by_h;
  Doubles chain, dev_chain, by_product, dev_by_product;
};

class Evaluation {
 public:
  Evaluation(const AttentionInput& input, Chains chains)
      : in_(input),
        rows_(input.shape.n),
        keys_(input.shape.m),
        width_(input.shape.d),
        n_(static_cast<double>(rows_)),
        terms_(chains.joins_dK_and_dV ? 2 * n_ + 1 : n_),
        m_(static_cast<double>(keys_)),
        d_(static_cast<double>(width_)),
        merges_(chains.key_groups > 1),
        sums_(m_ + (merges_ ? 3 : 0)),
        K_(std::min(chains.recentred_blocks, m_)),
        R_(K_ > 0 ? K_ - 1 : std::min(chains.rescales, m_ - 1)),
        moves_(merges_ ? K_ : K_ - 1),
        merged_(merges_ ? 2 * chains.key_groups + 6 : 0),
        chain_(std::max(chains.g, n_ + m_)),
        per_depth_(kIndependent / std::sqrt(d_)),
        per_sum_(independent((kExp * kExp + 1) * R_ + sums_)),
        given_(!input.O.empty()),
        backward_(!input.dO.empty()),
        X_meets_keys_(chains.X_meets_keys),
        Y_meets_rows_(chains.Y_meets_rows),
        recentred_(K_ > 0),
        plain_(input.X.empty()),
        joins_(chains.joins_dK_and_dV),
        scale_(static_cast<double>(input.scale)),
        S_unit_(unit(input.A1) * (plain_ ? (is_power_of_two(scale_) ? scale_ : 0) : unit(input.X))),
        s_unit_(S_unit_ * unit(input.A2)),
        X_(plain_ ? Doubles() : matrix(input.X, 0, width_, width_)),
        A2_(matrix(input.A2, 0, keys_, width_)),
        abs_A2_(abs(A2_)),
        A2_keys_(A2_) {
    A3_ = matrix(input.A3, 0, keys_, width_);
    if (plain_) {
      h_ = KeyProduct(Product(A3_, 1), d_);
      abs_h_ = abs(A3_);
      A3_ = {};
    } else if (Y_ = matrix(input.Y, 0, width_, width_); Y_meets_rows_) {
      abs_A3_ = abs(A3_);
      abs_Y_ = abs(Y_);
      abs_h_ = abs(product(A3_, Y_));
    } else {
      h_ = KeyProduct(A3_, Y_, unit(input.A3) * unit(input.Y), d_);
      abs_h_ = abs(h_.h.value);
      A3_ = Y_ = {};
    }
    if (X_meets_keys_) {
      y_ = KeyProduct(A2_, transposed(X_), unit(input.A2) * unit(input.X), d_);
    }
    if (!given_) {
      O_ = Result(rows_, width_);
      L_ = Result(rows_, 1);
    }
    if (backward_) {
      G_unit_ = plain_ ? 0 : unit(input.dO) * unit(input.Y);
      q_unit_ = unit(input.dO) * unit(input.A3) * (plain_ ? 1 : unit(input.Y));
      if (Y_meets_rows_) {
        Y_T_ = transposed(Y_);
        A3_keys_ = Keys(A3_);
      }
      g_ = Result(width_, width_);
      by_rows_ = by_W_ = Doubles(width_, width_);
      U_ = Doubles(keys_, width_);
      dQ_ = Result(rows_, width_);
      if (!recentred_ || plain_) {
        T_ = T_peak_ = Doubles(keys_, width_);
        dK_ = dV_ = Result(keys_, width_);
        P_error_S_ = Doubles(keys_, width_);
      }
    }
  }

  Reference run() {
    for (Index i = 0; i < rows_; i += kRows) {
      if (in_.stop) {
        in_.stop();
      }
      rows(i, std::min(kRows, rows_ - i));
    }
    Reference result;
    if (!given_) {
      result.O = bounded(O_);
      result.L = bounded(L_);
    }
    if (backward_) {
      add_what_all_rows_share();
      add_underflow();
      if (!plain_) {
        result.g = bounded(g_);
      }
      result.dQ = bounded(dQ_);
      result.dK = bounded(dK_);  // these two are empty if recentred
      result.dV = bounded(dV_);
      if (joins_) {
        join_dK_and_dV(result);
      }
    }
    return result;
  }

 private:
  void rows(Index first, Index count) {
    const Doubles A1 = matrix(in_.A1, first, count, width_);
    const Product S = plain_ ? Product(A1, scale_) : Product(A1, X_, S_unit_);
    Rows block(count, keys_);
    Scores s = X_meets_keys_ ? times_product(A1, y_, s_unit_) : times_keys(S, A2_keys_, s_unit_);
    set_dead(first, s);
    for (Index r = 0; r < count; ++r) {
      if (in_.mask.full() || !in_.mask.keys({first + r, first + r + 1}).empty()) {
        softmax(first + r, s.value[r], s.error[r], block, r);
        independent_softmax(s.value[r], s.dev[r], block, r);
      } else {
        block[r].L = -std::numeric_limits<double>::infinity();  // and f = 0
      }
    }

    Output output(count, width_);
    if (given_) {
      output.O = matrix(in_.O, first, count, width_);
    } else {
      forward(first, block, output);
    }
    if (backward_) {
      backward(first, block, A1, S, s.dev, output);
    }
  }

  // Dead pairs have the values of a live pair of their row, so that no maximum of the row is
  // theirs; 0 where it has none. Their f is 0.
  void set_dead(Index first, Scores& s) const {
    for (Index r = 0; r < s.value.rows && !in_.mask.full(); ++r) {
      const Ranges live = in_.mask.keys({first + r, first + r + 1});
      for (Doubles* words : {&s.value, &s.error, &s.dev}) {
        const double other = live.empty() ? 0 : (*words)[r][live.front().begin];
        each_dead(live, [&](Index j) { (*words)[r][j] = other; });
      }
    }
  }
  template <class Visit>
  void each_dead(const Ranges& live, const Visit& visit) const {
    Index j = 0;
    for (const Range range : live) {
      for (; j < range.begin; ++j) {
        visit(j);
      }
      j = range.end;
    }
    for (; j < keys_; ++j) {
      visit(j);
    }
  }
  void clear_dead(Index i, double* f) const {
    if (!in_.mask.full()) {
      each_dead(in_.mask.keys({i, i + 1}), [f](Index j) { f[j] = 0; });
    }
  }

  // (A B) K^T for a block of rows; S = A B.
  Scores times_keys(const Product& S, const Keys& keys, double unit) const {
    const Index count = S.value.rows;
    Doubles E = carried(S.value, S.error, d_);
    std::vector<bool> exact_row(static_cast<std::size_t>(count));
    for (Index r = 0; r < count; ++r) {
      const bool exact_S =
          std::all_of(S.error[r], S.error[r] + width_, [](double e) { return e == 0; });
      if (exact_S && exact(largest_sum(S.value[r], keys.maxima), unit)) {
        std::fill(E[r], E[r] + width_, 0.0);
        exact_row[static_cast<std::size_t>(r)] = true;
      }
    }
    Scores s(count, keys.rows);
    add_product(S.value, keys.T, s.value);
    add_product(E, keys.abs_T, s.error);
    const std::vector<double> factors = independent_rows(S, plain_ ? 1 : d_, d_);
    for (Index r = 0; r < count; ++r) {
      double* error = s.error[r];
      if (!exact_row[static_cast<std::size_t>(r)]) {
        std::for_each(error, error + keys.rows, [this](double& x) { x += 2 * d_ * kSmallest; });
      }
      for (Index j = 0; j < keys.rows; ++j) {
        s.dev[r][j] = std::min(per_depth_ * error[j], factors[static_cast<std::size_t>(r)] *
                                                          keys.norms[static_cast<std::size_t>(j)]);
      }
    }
    return s;
  }

  // dO h^T for a block of rows, or a product of that form.
  Scores times_product(const Doubles& dO, const KeyProduct& with, double unit) const {
    Scores q(dO.rows, keys_);
    add_product(dO, with.T, q.value);
    add_product(abs(dO), with.carried_T, q.error);
    for (Index r = 0; r < dO.rows; ++r) {
      const bool exact_q = with.h.is_exact && exact(largest_sum(dO[r], with.maxima), unit);
      const double dO_norm = norm(dO[r], width_);
      double* error = q.error[r];
      for (Index j = 0; j < keys_; ++j) {
        error[j] = exact_q ? 0 : error[j] + 2 * d_ * kSmallest;
        q.dev[r][j] =
            std::min(per_depth_ * error[j], dO_norm * with.factors[static_cast<std::size_t>(j)]);
      }
    }
    return q;
  }

  void softmax(Index i, const double* s, const double* ds, Rows& block, Index r) const {
    Row& row = block[r];
    double* f = block.f[r];
    double spread = 0;  // reach - top
    if (given_) {
      row.L = static_cast<double>(in_.L[static_cast<std::size_t>(i)]);
      for (Index j = 0; j < keys_; ++j) {
        f[j] = std::exp(s[j] - row.L);
      }
      clear_dead(i, f);
    } else {
      const double top = *std::max_element(s, s + keys_);
      double reach = top;
      double l = 0;
      for (Index j = 0; j < keys_; ++j) {
        reach = std::max(reach, s[j] + ds[j]);
        f[j] = std::exp(s[j] - top);
      }
      clear_dead(i, f);
      l = std::accumulate(f, f + keys_, l);
      spread = reach - top;
      row.L = top + std::log(l);
      row.reach = reach;
      const double same = kExp + kRescale * R_ + sums_;
      double grown = 0;
      for (Index j = 0; j < keys_; ++j) {
        f[j] /= l;
        grown += f[j] * std::expm1(ds[j] + kHalfUnit * (reach - s[j] + ds[j] + same +
                                                        merge(row, s[j], ds[j]).all()));
      }
      const double lambda = std::log1p(grown);
      const double raw = lambda + kExp * kHalfUnit * (std::log(l) + spread + lambda);
      row.dL = raw + kHalfUnit * (std::abs(row.L) + raw);
      row.beta = std::expm1(row.dL);
    }
    double* alpha = block.alpha[r];
    for (Index j = 0; j < keys_; ++j) {
      alpha[j] = ds[j] + kHalfUnit * (std::abs(s[j] - row.L) + ds[j] + spread + row.dL + kExp + 2 +
                                      merge(row, s[j], ds[j]).all());
    }
  }

  // What is wrong with the weight of one key's group, in units of U: by the rounding of L of the
  // group, by its logarithm, and by the exponential of its difference to the largest.
  struct Merge {
    double L = 0, logarithm = 0, difference = 0, exponential = 0;
    [[nodiscard]] double all() const { return L + logarithm + difference + exponential; }
    [[nodiscard]] double squares() const {
      return L * L + logarithm * logarithm + difference * difference + exponential * exponential;
    }
  };
  [[nodiscard]] Merge merge(const Row& row, double s, double ds) const {
    if (!merges_ || given_) {
      return {};
    }
    const double log_m = std::log(m_);
    return {.L = 1 + std::max(std::abs(s) + ds, std::abs(row.reach) + log_m),
            .logarithm = kExp * log_m,
            .difference = log_m,
            .exponential = kExp};
  }

  // [a], [L] and [b] of one row. l^ as a sum of e^(s - mu) counts as in the bound.
  void independent_softmax(const double* s, const double* dev_s, Rows& block, Index r) const {
    Row& row = block[r];
    const double* f = block.f[r];
    double* dev_a = block.dev_a[r];
    const double once = independent(1);
    const double exponentials = independent(kExp * kExp + 2);
    const double top = *std::max_element(s, s + keys_);
    double sum = 0;
    for (Index j = 0; j < keys_; ++j) {
      const double merged = independent(merge(row, s[j], dev_s[j]).squares());
      sum += f[j] * growth(dev_s[j] + once * (top - s[j]) + merged);
      dev_a[j] = growth(dev_s[j] + once * std::abs(s[j] - row.L) + exponentials + merged);
    }
    if (!given_) {
      row.dev_L = sum + independent(kExp * kExp) + per_sum_ +
                  once * (kExp * (row.L - top) + std::abs(row.L));
      row.dev_b = growth(row.dev_L);
      row.dev_b_y = X_meets_keys_ ? norm_of_products(f, dev_s, keys_) : 0;
    }
  }

  void forward(Index first, const Rows& block, Output& output) {
    if (Y_meets_rows_) {
      sum_then_Y(block, output);
    } else {
      sum_h(block, output);
    }
    for (Index i = 0; i < block.f.rows; ++i) {
      const Row& at = block[i];
      for (Index k = 0; k < width_; ++k) {
        const double size = std::abs(output.O[i][k]);
        output.error[i][k] = at.beta * size + (1 + at.beta) * output.r[i][k];
        O_.value[first + i][k] = output.O[i][k];
        O_.bound[first + i][k] = output.error[i][k];
        O_.expected[first + i][k] = at.dev_b * size + output.dev_r[i][k] + output.dev_by_h[i][k];
      }
      L_.value[first + i][0] = at.L;
      L_.bound[first + i][0] = at.dL;
      L_.expected[first + i][0] = at.dev_L;
    }
  }

  // O = f h.
  void sum_h(const Rows& block, Output& output) {
    const Doubles& f = block.f;
    Doubles off(f.rows, keys_), grown(f.rows, keys_), dev_off(f.rows, keys_);
    for (Index i = 0; i < f.rows; ++i) {
      for (Index j = 0; j < keys_; ++j) {
        const double factor = std::expm1(block.alpha[i][j] + kHalfUnit * (kRescale * R_ + sums_));
        off[i][j] = f[i][j] * factor + kSmallest;
        grown[i][j] = f[i][j] * (1 + factor);
        dev_off[i][j] = f[i][j] * (block.dev_a[i][j] + per_sum_) + kSmallest;
      }
    }
    add_product(f, h_.h.value, output.O);
    add_product(off, abs_h_, output.r);
    add_product(dev_off, abs_h_, output.dev_r);
    const Doubles by_h = product(grown, h_.h.error);
    for (std::size_t k = 0; k < by_h.words.size(); ++k) {
      output.r.words[k] += by_h.words[k] + 4 * m_ * kSmallest;
      output.dev_r.words[k] += 4 * m_ * kSmallest;
    }
    output.dev_by_h = map(by_h, [this](double x) { return per_depth_ * x; });
  }

  // O = (f A3) Y.
  void sum_then_Y(const Rows& block, Output& output) const {
    const Doubles& f = block.f;
    Doubles off(f.rows, keys_), common(f.rows, keys_), grown(f.rows, keys_);
    Doubles dev_common(f.rows, keys_);
    const double chain = rho(R_ + sums_ + 2);
    for (Index i = 0; i < f.rows; ++i) {
      for (Index j = 0; j < keys_; ++j) {
        const double a = std::expm1(block.alpha[i][j] + kHalfUnit * kExp * R_);
        common[i][j] = f[i][j] * a + kSmallest;
        grown[i][j] = f[i][j] * (1 + a) * chain;
        off[i][j] = common[i][j] + grown[i][j];
        dev_common[i][j] =
            f[i][j] * (block.dev_a[i][j] + independent(kExp * kExp * R_)) + kSmallest;
      }
    }
    const auto plus = [](Doubles a, double x) {
      std::for_each(a.words.begin(), a.words.end(), [x](double& word) { word += x; });
      return a;
    };
    const double lost = 4 * m_ * kSmallest;
    const Doubles B = product(f, A3_);
    output.O = product(B, Y_);
    output.chain = plus(product(grown, abs_A3_), lost);
    output.dev_chain =
        map(product(f, abs_A3_),
            [lost, times = independent(R_ + sums_ + 2)](double x) { return times * x + lost; });
    const Doubles B_off = plus(product(off, abs_A3_), lost);
    const auto multiplied = [&](double rounding) {
      const Doubles rounded =
          map(B, B_off, [rounding](double x, double e) { return rounding * (std::abs(x) + e); });
      return plus(product(rounded, abs_Y_), 2 * d_ * kSmallest);
    };
    output.by_product = multiplied(rho(d_ + 2));
    output.dev_by_product = multiplied(independent(d_ + 2));
    output.r = output.by_product;
    add_product(common, abs_h_, output.r);
    add_product(output.chain, abs_Y_, output.r);
    output.dev_r = map(product(squares(output.dev_chain), squares(abs_Y_)),
                       [](double x) { return std::sqrt(x); });
    output.dev_r = map(output.dev_r, output.dev_by_product, std::plus<>());
    add_product(dev_common, abs_h_, output.dev_r);
  }

  // v of one row, and the bound of its error. G is null if it is not formed.
  void row_sum(Row& row, const double* f, const double* a, const Scores& scores, const double* dO,
               const double* G, const Output& output, Index r) const {
    const double* O = output.O[r];
    double by_O = 0;
    double size_O = 0;
    for (Index k = 0; k < width_; ++k) {
      by_O += G == nullptr || given_
                  ? std::abs(dO[k]) * output.r[r][k]
                  : std::abs(dO[k]) * output.by_product[r][k] + std::abs(G[k]) * output.chain[r][k];
      size_O += std::abs(dO[k]) * (std::abs(O[k]) + output.error[r][k]);
    }
    const double rounding = rho(d_) * size_O + 2 * d_ * kSmallest;
    if (given_) {
      row.v = dot(dO, O, width_);
      row.dv = rounding;
      return;
    }
    const double* q = scores.value[r];
    const double* dq = scores.error[r];
    double by_f = 2 * m_ * kSmallest;
    const double rho_m = rho(m_);
    const double rescales = rho(kExp * R_);
    for (Index j = 0; j < keys_; ++j) {
      const double size = std::abs(q[j]) + dq[j];
      by_f +=
          f[j] * (a[j] * std::abs(q[j]) + (1 + a[j]) * (dq[j] + rho_m * size)) + kSmallest * size;
      if (G != nullptr) {
        by_O += (f[j] * (a[j] + (1 + a[j]) * rescales) + kSmallest) * std::abs(q[j]);
      }
    }
    row.v = dot(f, q, keys_);
    row.dv = row.beta * std::abs(row.v) +
             std::max((1 + row.beta) * by_f, (1 + row.beta) * by_O + rounding);
  }

  // [v] of one row.
  void independent_row_sum(Row& row, const double* f, const double* dev_a, const Scores& scores,
                           const double* dO, const double* G, const Output& output, Index r) const {
    const double* O = output.O[r];
    const bool by_chain = G != nullptr && !given_;
    double by_O = 2 * d_ * kSmallest;
    double by_words = 0;
    for (Index k = 0; k < width_; ++k) {
      const double off = by_chain ? output.dev_by_product[r][k] : output.dev_r[r][k];
      by_O += std::abs(dO[k]) * (off + independent(d_) * std::abs(O[k]));
      if (by_chain) {
        by_words += G[k] * output.dev_chain[r][k] * G[k] * output.dev_chain[r][k];
      }
    }
    if (given_) {
      row.dev_v = by_O;
      return;
    }
    by_O += std::sqrt(by_words);
    const double* q = scores.value[r];
    const double* dev_q = scores.dev[r];
    double by_f = 2 * m_ * kSmallest;
    double by_h = 0;
    const double sum = independent(m_);
    const double rescales = independent(kExp * kExp * R_);
    for (Index j = 0; j < keys_; ++j) {
      by_f += (f[j] * (dev_a[j] + sum) + kSmallest) * std::abs(q[j]);
      if (Y_meets_rows_) {
        by_f += f[j] * dev_q[j];
        by_O += (f[j] * (dev_a[j] + rescales) + kSmallest) * std::abs(q[j]);
      } else {
        by_h += f[j] * dev_q[j] * f[j] * dev_q[j];
      }
    }
    row.dev_v = row.dev_b * std::abs(row.v) + std::max(by_f, by_O);
    row.dev_v_h = std::sqrt(by_h);
  }

  // A block of rows of p, for either way to W: p, c and D of the derivation, and the part of U.
  struct Gradient {
    Gradient(Index rows, Index cols)
        : p(rows, cols), c(rows, cols), D(rows, cols), shared(rows, cols) {}

    Doubles p, c, D, shared;
  };

  // The sizes of one row with a running mean.
  struct Sizes {
    double Q = 0, N = 0, D = 0, wander = 0;
    double spread = 0;  // max|q - v|
    double sum_p = 0;   // of |p|
    double lost = 0;    // underflow, of what one key is multiplied by
    double within = 0;  // underflow, of a sum over keys
  };

  // p, v and its errors, c and D of one row with a running mean; a and dev_a with the rescales.
  void recentred(Row& row, const double* f, const double* a, const double* dev_a,
                 const Scores& scores, Gradient& found, Index r) const {
    const double* q = scores.value[r];
    const double* dq = scores.error[r];
    row.v = dot(f, q, keys_);
    double low = std::numeric_limits<double>::infinity();
    double high = -low;
    Sizes sizes;
    for (Index j = 0; j < keys_; ++j) {
      found.p[r][j] = f[j] * (q[j] - row.v);
      low = std::min(low, q[j] - dq[j]);
      high = std::max(high, q[j] + dq[j]);
      sizes.Q = std::max(sizes.Q, std::abs(q[j]) + dq[j]);
      sizes.spread = std::max(sizes.spread, std::abs(q[j] - row.v));
      sizes.sum_p += std::abs(found.p[r][j]);
    }
    sizes.within = kSmallest * (2 * m_ + 3 * K_ + merged_);
    sizes.N = (1 + rho(4 * m_ + 9 * K_ + merged_)) * sizes.Q + sizes.within;
    const double settled =
        high - low + rho(2 * m_ + 3 + merged_) * sizes.Q + moves_ * kHalfUnit * sizes.N;
    sizes.D = (1 + rho(3 * m_ + 5 * K_ + merged_)) * settled + sizes.within;
    sizes.wander = moves_ * kHalfUnit * std::max(sizes.N, sizes.D);
    sizes.lost = kSmallest * (sizes.Q + sizes.N + K_ * sizes.D + 2);
    row.lost = sizes.within * (1 + K_ * sizes.D);

    recentred_sum(row, f, a, q, dq, sizes);
    recentred_weights(row, f, a, q, dq, sizes, found.c[r]);
    independent_recentred_sum(row, f, dev_a, q, scores.dev[r], sizes);
    independent_recentred_weights(row, f, dev_a, q, scores.dev[r], sizes, found.p[r], found.D[r]);
    for (Index j = 0; j < keys_; ++j) {
      found.shared[r][j] = Y_meets_rows_ ? 0 : f[j] * scores.dev[r][j];
    }
  }

  void recentred_sum(Row& row, const double* f, const double* a, const double* q, const double* dq,
                     const Sizes& sizes) const {
    const double rounding = rho(2 * m_ + R_ + 4 + merged_);
    double sum = 0;
    for (Index j = 0; j < keys_; ++j) {
      const double size = std::max(std::abs(q[j]) + dq[j], sizes.D);
      sum += f[j] * (a[j] * std::abs(q[j] - row.v) + (1 + a[j]) * (dq[j] + rounding * size));
    }
    row.dv = (1 + row.beta) * sum + sizes.wander + sizes.within + m_ * sizes.lost;
  }

  void recentred_weights(const Row& row, const double* f, const double* a, const double* q,
                         const double* dq, const Sizes& sizes, double* c) const {
    const double rounding = rho(2 * (R_ + m_ + K_ + 3 + merged_));
    const double mean_off = (1 + row.beta) * ((1 + row.beta) * sizes.sum_p / 2 + row.dv);
    for (Index j = 0; j < keys_; ++j) {
      const double off = std::abs(q[j] - row.v);
      const double near = dq[j] + kHalfUnit * sizes.D + sizes.wander;
      const double weight = f[j] * (1 + a[j]);
      const double reach = std::min(weight * ((1 + kHalfUnit) * sizes.D + sizes.wander),
                                    weight * (off + near) + 2 * mean_off);
      c[j] = f[j] * a[j] * (off + row.dv) + weight * near + rounding * reach + sizes.lost;
    }
  }

  void independent_recentred_sum(Row& row, const double* f, const double* dev_a, const double* q,
                                 const double* dev_q, const Sizes& sizes) const {
    const double rounding = independent(2 * m_ + R_ + 4 + merged_);
    double sum = independent(moves_) * sizes.Q + sizes.within + m_ * sizes.lost;
    double by_h = 0;
    for (Index j = 0; j < keys_; ++j) {
      const double off = std::abs(q[j] - row.v);
      sum += f[j] * (dev_a[j] * off + rounding * std::max(std::abs(q[j]), off + sizes.spread));
      if (Y_meets_rows_) {
        sum += f[j] * dev_q[j];
      } else {
        by_h += f[j] * dev_q[j] * f[j] * dev_q[j];
      }
    }
    row.dev_v = sum;
    row.dev_v_h = std::sqrt(by_h);
  }

  void independent_recentred_weights(const Row& row, const double* f, const double* dev_a,
                                     const double* q, const double* dev_q, const Sizes& sizes,
                                     const double* p, double* D) const {
    // First the distance of the mean of the keys up to each; then the largest from there on.
    double sum_f = 0;
    double sum_p = 0;
    for (Index j = 0; j < keys_; ++j) {
      sum_f += f[j];
      sum_p += p[j];
      const bool near = !merges_ && std::abs(sum_p) < sum_f * sizes.spread;
      D[j] = near ? std::abs(sum_p) / sum_f : sizes.spread;
    }
    const double rounding = independent(R_ + m_ + K_ + 3 + merged_);
    const double once = independent(1);
    const double wander = independent(moves_) * sizes.Q;
    double drift = 0;
    for (Index j = keys_; j-- > 0;) {
      drift = std::max(drift, D[j]);
      const double off = std::abs(q[j] - row.v);
      D[j] = f[j] * (dev_a[j] * off + dev_q[j] + once * (off + sizes.spread) + wander +
                     rounding * (off + 4 * drift)) +
             sizes.lost;
    }
  }

  void backward(Index first, Rows& block, const Doubles& A1, const Product& S, const Doubles& dev_s,
                const Output& output) {
    const Doubles& f = block.f;
    const Index count = f.rows;
    const bool forms_p = !recentred_ || plain_;
    const bool adds_W = recentred_ && !merges_;           // whole rows, to dQ and g
    const Index formed = forms_p || !adds_W ? count : 0;  // rows of p that are formed
    const double rho_2 = rho(2);
    const double rho_n = rho(terms_);
    const double to_dQ = rho(m_ + (plain_ ? 1 : 0));
    const double once = plain_ ? rho(1) : 0;
    const double size_of_scale = std::abs(scale_);
    const double to_g = rho(chain_);
    const double twice = independent(2);
    const double n_times = independent(terms_);
    const double m_times = independent(m_);
    const Doubles dO = matrix(in_.dO, first, count, width_);
    const Product G = Y_meets_rows_ ? Product(dO, Y_T_, G_unit_) : Product();
    Scores scores =
        Y_meets_rows_ ? times_keys(G, A3_keys_, q_unit_) : times_product(dO, h_, q_unit_);
    set_dead(first, scores);
    const Doubles& q = scores.value;
    const Doubles& dq = scores.error;
    const Doubles& dev_q = scores.dev;
    const double rescales = recentred_ ? kHalfUnit * kExp * R_ : 0;
    const Doubles a = map(block.alpha, [rescales](double x) { return std::expm1(x + rescales); });
    Gradient found(count, keys_);
    Doubles& p = found.p;
    Doubles& c = found.c;
    Doubles& D = found.D;
    Doubles dp(formed, keys_), P(formed, keys_), df(formed, keys_);
    Doubles dev_p(formed, keys_), dev_f(formed, keys_);

    for (Index r = 0; r < count; ++r) {
      Row& at = block[r];
      if (recentred_) {
        std::for_each(block.dev_a[r], block.dev_a[r] + keys_,
                      [this](double& x) { x += independent(kExp * kExp * R_); });
        recentred(at, f[r], a[r], block.dev_a[r], scores, found, r);
        if (!plain_) {
          for (Index j = 0; j < keys_ && merges_; ++j) {
            P[r][j] = (1 + at.beta) * (std::abs(p[r][j]) + f[r][j] * at.dv + c[r][j]);
          }
          continue;
        }
      } else {
        const double* G_row = Y_meets_rows_ ? G.value[r] : nullptr;
        row_sum(at, f[r], a[r], scores, dO[r], G_row, output, r);
        independent_row_sum(at, f[r], block.dev_a[r], scores, dO[r], G_row, output, r);
      }
      for (Index j = 0; j < keys_; ++j) {
        const double size = std::abs(q[r][j]) + dq[r][j] + std::abs(at.v) + at.dv;
        const double off = std::abs(q[r][j] - at.v);
        const double lost = kSmallest * (size + 2);
        p[r][j] = f[r][j] * (q[r][j] - at.v);
        const double c_rj =
            f[r][j] * (a[r][j] * (off + at.dv) + (1 + a[r][j]) * (dq[r][j] + rho_2 * size)) + lost;
        dp[r][j] = at.beta * std::abs(p[r][j]) + (1 + at.beta) * (f[r][j] * at.dv + c_rj);
        P[r][j] = std::abs(p[r][j]) + dp[r][j];
        df[r][j] = f[r][j] * std::expm1(block.alpha[r][j] + at.dL) + kSmallest;

        const double size_p = std::abs(p[r][j]);
        const double dev_a = block.dev_a[r][j];
        const double D_rj =
            f[r][j] * (dev_a * off + dev_q[r][j] + twice * (std::abs(q[r][j]) + std::abs(at.v))) +
            lost;
        if (!recentred_) {  // then W has errors that recentred() has found
          c[r][j] = c_rj;
          D[r][j] = D_rj;
        }
        found.shared[r][j] = (Y_meets_rows_ ? 0 : f[r][j] * dev_q[r][j]) + n_times * size_p;
        dev_p[r][j] = (at.dev_b + n_times) * size_p + f[r][j] * (at.dev_v + at.dev_v_h) + D_rj;
        dev_f[r][j] = f[r][j] * (dev_a + at.dev_b + n_times) + kSmallest;
      }
    }
    if (X_meets_keys_) {
      for (Index r = 0; r < count; ++r) {
        block[r].dev_v_y = given_ ? 0 : norm_of_products(p[r], dev_s[r], keys_);
        for (Index j = 0; j < keys_; ++j) {
          found.shared[r][j] += dev_s[r][j] * std::abs(p[r][j]);
        }
      }
    }

    Doubles W(count, width_), W_peak(count, width_);
    add_product(p, A2_, W, &W_peak);
    if (adds_W) {
      W_peak = abs(W);
    }
    const Doubles fA2 = product(f, A2_);
    const Doubles cA2 = product(c, abs_A2_);
    const Doubles PA2 = product(P, abs_A2_);
    const Doubles DA2 = product(D, abs_A2_);
    Doubles bound_W(count, width_);  // with the chain that leads to g
    Doubles dev_W(count, width_), by_keys(count, width_);
    for (Index r = 0; r < count; ++r) {
      const Row& at = block[r];
      for (Index k = 0; k < width_; ++k) {
        const double size = std::abs(W[r][k]);
        const double size_f = std::abs(fA2[r][k]);
        const double dW = at.beta * size + (1 + at.beta) * (at.dv * size_f + cA2[r][k] + at.lost);
        // The chains to dQ and g add up p A2, or W itself.
        const double summed = adds_W ? 0 : PA2[r][k];
        bound_W[r][k] = dW + to_g * (adds_W ? size + dW : summed);
        by_keys[r][k] = (at.dev_v_h + at.dev_v_y) * size_f + at.dev_b_y * size;
        dev_W[r][k] = at.dev_b * size + at.dev_v * size_f + by_keys[r][k] + DA2[r][k] +
                      m_times * summed + at.lost;
        dQ_.value[first + r][k] = scale_ * W[r][k];
        dQ_.bound[first + r][k] = size_of_scale * (dW + to_dQ * summed + once * (size + dW));
        dQ_.expected[first + r][k] =
            size_of_scale * (dev_W[r][k] + (plain_ ? independent(1) : 0) * (summed + size));
      }
    }
    const Doubles abs_A1 = abs(A1);
    if (!plain_) {
      add_transposed_product(A1, W, g_.value);
      add_transposed_product(abs_A1, bound_W, g_.bound);
      add_transposed_product(abs_A1, by_keys, g_.expected);
      add_transposed_product(squares(A1), squares(dev_W), by_rows_);
      add_transposed_product(abs_A1, W_peak, by_W_);
      add_transposed_product(found.shared, abs_A1, U_);
    }
    if (!forms_p) {
      return;
    }
    const Doubles abs_S = abs(S.value);
    if (!plain_) {
      add_transposed_product(p, A1, T_, &T_peak_);
    }
    add_transposed_product(p, S.value, dK_.value);
    add_transposed_product(map(dp, P, [rho_n](double e, double x) { return e + rho_n * x; }), abs_S,
                           dK_.bound);
    add_transposed_product(P, S.error, P_error_S_);
    add_transposed_product(dev_p, abs_S, dK_.expected);
    add_transposed_product(f, dO, dV_.value);
    add_transposed_product(map(f, df, [rho_n](double x, double e) { return e + rho_n * (x + e); }),
                           abs(dO), dV_.bound);
    add_transposed_product(dev_f, abs(dO), dV_.expected);
  }

  // The parts of dK and g that are known after the last row.
  void add_what_all_rows_share() {
    for (std::size_t k = 0; k < P_error_S_.words.size(); ++k) {
      dK_.bound.words[k] += (1 + rho(terms_)) * P_error_S_.words[k];
      dK_.expected.words[k] += (plain_ ? kIndependent : per_depth_) * P_error_S_.words[k];
    }
    Doubles by_keys(width_, width_), by_T(width_, width_);
    add_transposed_product(squares(U_), squares(A2_), by_keys);
    if (!recentred_) {
      add_transposed_product(T_peak_, abs_A2_, by_T);
    }
    const double to_g = (recentred_ && !merges_ ? 1 : 2) * independent(chain_);
    for (std::size_t k = 0; k < by_keys.words.size(); ++k) {
      g_.expected.words[k] += std::sqrt(by_rows_.words[k]) + std::sqrt(by_keys.words[k]) +
                              to_g * std::max(by_W_.words[k], by_T.words[k]);
    }
  }

  // The underflow of products and sums in the last matrix products.
  void add_underflow() {
    const auto add = [](Result& to, double x) {
      for (std::size_t k = 0; k < to.bound.words.size(); ++k) {
        to.bound.words[k] += x;
        to.expected.words[k] += x;
      }
    };
    // (p A2) lost 2 m tiny and met A1; (A1^T p) lost 2 n tiny and met A2; then follow g's sums.
    for (Index a = 0; a < width_; ++a) {
      double column_A1 = 0;
      for (Index i = 0; i < rows_; ++i) {
        column_A1 +=
            std::abs(static_cast<double>(in_.A1[static_cast<std::size_t>(i * width_ + a)]));
      }
      for (Index b = 0; b < width_; ++b) {
        double lost = 2 * m_ * kSmallest * column_A1;
        for (Index j = 0; j < keys_; ++j) {
          lost += 2 * n_ * kSmallest * abs_A2_[j][b];
        }
        g_.bound[a][b] += lost;
        g_.expected[a][b] += lost;
      }
    }
    add(g_, 2 * (n_ * m_ + n_ + m_) * kSmallest);
    const double scaled = std::max(1.0, std::abs(scale_));
    add(dQ_, 2 * m_ * kSmallest * scaled);
    add(dK_, 2 * n_ * kSmallest * scaled);
    add(dV_, 2 * n_ * kSmallest);
  }

  AttentionInput in_;
  Index rows_, keys_, width_;
  double n_, terms_;  // as the formulas have them: queries; terms of a word of dK
  double m_, d_;
  bool merges_;  // O and L of groups of keys
  double sums_;  // m, and what a merge adds: the roundings of a term of a sum over keys
  double K_;     // 0 if not recentred
  double R_;
  double moves_, merged_;  // of a running mean: how often it moves; the roundings of a merge
  double chain_;
  double per_depth_;  // [x] of a sum of depth d, in units of its bound
  double per_sum_;    // [] of the sum and the rescales of a softmax, relative
  bool given_, backward_, X_meets_keys_, Y_meets_rows_, recentred_, plain_, joins_;
  double scale_;
  double S_unit_, s_unit_, G_unit_ = 0, q_unit_ = 0;
  Doubles X_, A2_, abs_A2_;
  Keys A2_keys_;
  Doubles abs_h_;
  KeyProduct h_;  // if it is formed
  KeyProduct y_;  // if X meets the keys
  // If Y meets the rows.
  Doubles A3_, abs_A3_, Y_, abs_Y_, Y_T_;
  Keys A3_keys_;
  Result O_, L_, g_, dQ_, dK_, dV_;
  Doubles by_rows_, by_W_;  // [g]^2 by the roundings of rows; |A1|^T W'
  Doubles U_, T_, T_peak_;  // of the derivation; T_peak_ is T'
  Doubles P_error_S_;       // P^T E1
};

}  // namespace

namespace {

// Of matrices of `from` columns, with as many columns of 0 as make it `to`, or without the last.
template <class Word>
std::vector<Word> resized(std::span<const Word> words, Index from, Index to) {
  const Index rows = static_cast<Index>(words.size()) / from;
  std::vector<Word> result(static_cast<std::size_t>(rows * to));
  for (Index i = 0; i < rows; ++i) {
    std::copy_n(words.begin() + i * from, std::min(from, to), result.begin() + i * to);
  }
  return result;
}

void resize(Bounded& result, Index from, Index to) {
  for (std::vector<double>* words : {&result.value, &result.bound, &result.expected}) {
    *words = resized(std::span<const double>(*words), from, to);
  }
}

// Columns of 0 change no sum: the narrower matrices are as wide as the others. Bounds hold, and are
// those of sums of so many terms.
Reference evaluate_padded(const AttentionInput& input, Chains chains) {
  const Shape& shape = input.shape;
  const Index width = std::max(shape.d, shape.dv);
  const std::vector<float> Q = resized(input.A1, shape.d, width);
  const std::vector<float> K = resized(input.A2, shape.d, width);
  const std::vector<float> V = resized(input.A3, shape.dv, width);
  const std::vector<float> dO = resized(input.dO, shape.dv, width);
  const std::vector<float> O = resized(input.O, shape.dv, width);
  AttentionInput padded = input;
  padded.shape = {shape.n, shape.m, width};
  padded.A1 = Q;
  padded.A2 = K;
  padded.A3 = V;
  padded.dO = dO;
  padded.O = O;
  Reference result = evaluate(padded, chains);
  for (Bounded* of_keys : {&result.dQ, &result.dK}) {
    resize(*of_keys, width, shape.d);
  }
  for (Bounded* of_values : {&result.O, &result.dV}) {
    resize(*of_values, width, shape.dv);
  }
  return result;
}

}  // namespace

void join_dK_and_dV(Reference& reference) {
  add_to(reference.dK, reference.dV);
  reference.dV = {};
}

Reference evaluate(const AttentionInput& input, Chains chains) {
  const auto [n, m, d] = input.shape;
  const Index dv = input.shape.dv;
  require(n > 0 && m > 0 && d > 0 && dv > 0, "n, m, d, dv > 0");
  require(has(input.A1, n * d), "A1 is n x d");
  require(has(input.A2, m * d), "A2 is m x d");
  require(has(input.A3, m * dv), "A3 is m x dv");
  require(dv == d || input.X.empty(), "with X, dv = d");
  require(input.X.empty() == input.Y.empty(), "X and Y come together");
  require(input.X.empty() || has(input.X, d * d), "X is d x d");
  require(input.Y.empty() || has(input.Y, d * d), "Y is d x d");
  require(input.X.empty() || input.scale == 1, "with X, the scale is 1");
  require(!input.X.empty() || !(chains.X_meets_keys || chains.Y_meets_rows),
          "without X and Y, neither meets anything");
  require(!chains.joins_dK_and_dV || (input.X.empty() && dv == d),
          "dK + dV are one sum without X and Y, and dv = d");
  require(input.dO.empty() || has(input.dO, n * dv), "dO is n x dv");
  require(input.O.empty() == input.L.empty(), "O and L come together");
  require(input.O.empty() || has(input.O, n * dv), "O is n x dv");
  require(input.L.empty() || has(input.L, n), "L has n elements");
  require(input.O.empty() || chains.recentred_blocks == 0, "no O and L where q is recentred");
  require(input.mask.full() || (input.mask.queries() == n && input.mask.keys() == m),
          "the mask is of n queries and m keys");
  if (input.activation != Activation::softmax) {
    require(input.O.empty(), "O and L are of a softmax");
    return evaluate_activation(input, chains);
  }
  if (dv != d) {
    return evaluate_padded(input, chains);
  }
  return Evaluation(input, chains).run();
}

namespace {

// A matrix that a kernel has made, with the bounds of its errors; and one that is given.
Doubles matrix(const std::vector<double>& words, Index rows, Index cols) {
  Doubles result(rows, cols);
  result.words = words;
  return result;
}

// C = A B, of which A, or B, has errors that its product carries on, as many roundings as it is
// deep, and what underflows.
template <class Times>
Bounded product_of(const Bounded& made, Index rows, Index cols, double depth, const Times& times) {
  const Doubles value = matrix(made.value, rows, cols);
  const Doubles bound = carried(value, matrix(made.bound, rows, cols), depth);
  Doubles expected = matrix(made.expected, rows, cols);
  const double rounded = independent(depth);
  for (std::size_t k = 0; k < expected.words.size(); ++k) {
    expected.words[k] += rounded * std::abs(value.words[k]);
  }
  const auto lost = [&](Doubles of) {
    return map(of, [&](double x) { return x + 2 * depth * kSmallest; });
  };
  Result result;
  result.value = times(value, false);
  result.bound = lost(times(bound, true));
  result.expected = lost(times(expected, true));
  return bounded(result);
}

}  // namespace

namespace {

// A matrix to which a product is added: its errors, and the roundings of so many additions.
Bounded carried_along(const Bounded& made, double additions) {
  Bounded all = made;
  for (std::size_t k = 0; k < all.value.size(); ++k) {
    const double size = std::abs(made.value[k]);
    all.bound[k] += rho(additions) * (size + made.bound[k]);
    all.expected[k] = std::min(made.expected[k] + independent(additions) * size, all.bound[k]);
  }
  return all;
}

}  // namespace

LayerReference evaluate_layer(const AttentionInput& input, const Reference& reference,
                              Sharing sharing) {
  const auto [n, m, d] = input.shape;
  const auto of_size = [](const Bounded& of, Index words) {
    return std::ssize(of.value) == words && std::ssize(of.bound) == words &&
           std::ssize(of.expected) == words;
  };
  require(has(input.X, d * d) && has(input.Y, d * d) && has(input.A3, m * d), "A3, X and Y");
  require(of_size(reference.dQ, n * d) && of_size(reference.dV, m * d), "dQ and dV are known");
  const Index width = d;
  const auto times_transposed = [width](std::span<const float> W) {
    const Doubles right = transposed(matrix(W, 0, width, width));
    return [right, size = abs(right)](const Doubles& A, bool sizes) {
      return product(A, sizes ? size : right);
    };
  };
  const Doubles A3 = matrix(input.A3, 0, m, d);
  const auto A3_times = [&](const Doubles& B, bool sizes) {
    Doubles C(width, width);
    add_transposed_product(sizes ? abs(A3) : A3, B, C);
    return C;
  };
  const auto depth = static_cast<double>(d);
  LayerReference layer{.dA1 = product_of(reference.dQ, n, d, depth, times_transposed(input.X)),
                       .dA3 = {},
                       .dY = product_of(reference.dV, m, d, static_cast<double>(m), A3_times),
                       .dA2 = {}};
  const auto with_Y = times_transposed(input.Y);
  if (sharing == Sharing::none) {
    layer.dA3 = product_of(reference.dV, m, d, depth, with_Y);
    return layer;
  }
  require(of_size(reference.dK, m * d), "dK is known");
  layer.dA2 = carried_along(reference.dK, depth + 1);
  add_to(layer.dA2, product_of(reference.dV, m, d, depth + 1, with_Y));
  return layer;
}

// Values, bounds and expected errors, their squares and transposes, as measured over thin, wide and
// square problems.
Words evaluation_bytes(const Shape& shape) {
  const auto [n, m, width] = shape;
  const Index d = std::max(width, shape.dv);
  const Words doubles =
      Words(m) * (24 * Words(d) + 160) + Words(n) * (12 * Words(d) + 8) + 13 * Words(d) * d;
  return 8 * doubles;
}

Bounded evaluate_product(Index n, Index m, Index d, std::span<const float> A,
                         std::span<const float> B) {
  require(n > 0 && m > 0 && d > 0, "n, m, d > 0");
  require(has(A, n * d), "A is n x d");
  require(has(B, d * m), "B is d x m");
  Product C(matrix(A, 0, n, d), matrix(B, 0, d, m), unit(A) * unit(B));
  Result result;
  result.expected = map(C.error, [d](double error) {
    return kIndependent / std::sqrt(static_cast<double>(d)) * error;
  });
  result.value = std::move(C.value);
  result.bound = std::move(C.error);
  return bounded(result);
}

Deviation compare(std::span<const float> computed, const Bounded& exact) {
  const std::size_t size = computed.size();
  require(size == exact.value.size() && size == exact.bound.size() && size == exact.expected.size(),
          "computed and exact have the same size");
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Deviation worst;
  double worst_ratio = -1;
  double largest = 0;
  double largest_error = 0;
  bool explained = size > 0;
  for (std::size_t i = 0; i < size; ++i) {
    const double found = static_cast<double>(computed[i]);
    const bool same = found == exact.value[i];  // infinities, too
    const double difference = same ? 0 : std::abs(found - exact.value[i]);
    const double error = std::isnan(difference) ? kInfinity : difference;
    const double bound = exact.bound[i];
    const bool stated = std::isfinite(error) && bound < kInfinity;
    double ratio = kInfinity;
    if (stated && error <= bound) {
      ratio = error == 0 ? 0 : error / bound;
    } else if (stated && bound > 0) {
      ratio = error / bound;
    }
    if (ratio > worst_ratio) {
      worst_ratio = ratio;
      worst.error = error;
      worst.bound = bound;
      worst.expected = exact.expected[i];
      worst.index = static_cast<Index>(i);
      worst.ok = stated && error <= bound;
    }
    explained = explained && stated && error <= exact.expected[i];
    largest = std::isinf(exact.value[i]) ? largest : std::max(largest, std::abs(exact.value[i]));
    largest_error = std::max(largest_error, error);
  }
  worst.explained = explained;
  worst.largest = largest;
  worst.relative = largest_error == 0 ? 0 : largest_error / largest;
  return worst;
}

}  // namespace redblue
