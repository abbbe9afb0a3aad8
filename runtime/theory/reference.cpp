#include "runtime/theory/reference.hpp"

// docs/theory/reference.md derives the formulas of this file and has the same names.

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <exception>
#include <limits>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>

#include <omp.h>

#include "memsim/errors.hpp"
#include "runtime/theory/double_pairs.hpp"
#include "runtime/theory/doubles.hpp"
#include "runtime/theory/panels.hpp"
#include "runtime/theory/roundings.hpp"

namespace redblue {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr Index kProbes = 16;    // random sums over the keys of each row
constexpr Index kKeyProbes = 8;  // random sums over the rows of each key
constexpr Index kSegments = 12;  // segments of rows; their sums are added in order

using Row = std::vector<double>;

double mean2(const double* words, Index count) {
  return norm2(words, count) / static_cast<double>(count);
}

double largest2(const double* words, Index count) {
  double most = 0;
  for (Index k = 0; k < count; ++k) {
    most = std::max(most, words[k] * words[k]);
  }
  return most;
}

// Returns 1 or -1, from a hash.
double sign(Index i, Index k) {
  auto x = static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15U + static_cast<std::uint64_t>(k) + 1;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return ((x >> 40) & 1) == 0 ? 1 : -1;
}

// Returns a typical size of the words in each column, which a few large words hardly change.
Row column_sizes(const Doubles& a, Index rows) {
  Row sizes;
  for (Index k = 0; k < a.cols; ++k) {
    double roots = 0;
    for (Index i = 0; i < rows; ++i) {
      roots += std::sqrt(std::abs(a[i][k]));
    }
    roots /= static_cast<double>(rows);
    sizes.push_back(roots > 0 ? roots * roots : 1);
  }
  return sizes;
}

// A matrix of rows or keys, and the values from which errors are estimated. Each row has its
// squared norm. In units of the columns' sizes, it also has the mean square of its words, and a
// mean by sixth powers, which gives more weight to large words.
struct Factor {
  Factor() = default;
  Factor(Doubles from, Index count) : words(std::move(from)), sizes(column_sizes(words, count)) {
    const auto all = static_cast<std::size_t>(words.rows);
    norm = mean_square = large_square = error = worst = Row(all);
    for (Index i = 0; i < words.rows; ++i) {
      double second = 0, sixth = 0;
      for (Index k = 0; k < words.cols; ++k) {
        const double x2 = squared(words[i][k] / sizes[static_cast<std::size_t>(k)]);
        second += x2;
        sixth += x2 * x2 * x2;
      }
      const auto at = static_cast<std::size_t>(i);
      norm[at] = norm2(words[i], words.cols);
      mean_square[at] = second / static_cast<double>(words.cols);
      large_square[at] = std::cbrt(sixth / static_cast<double>(words.cols));
    }
  }
  // Multiplies errors by the number of equal rows. Equal rows have equal errors, which add up.
  void repeat(const Row& times) {
    for (std::size_t i = 0; i < times.size(); ++i) {
      large_square[i] *= times[i];
      error[i] *= times[i];
    }
  }
  // Sets the variances of words that are sums of products of the rows of A and of columns with
  // these squared norms. For each row, `error` is the largest in units of sizes, and `worst` the
  // largest.
  void made_of(const Row& A_norms, const Row& column_norms) {
    const double most = *std::ranges::max_element(column_norms);
    const auto depth = static_cast<double>(column_norms.size());
    for (std::size_t i = 0; i < A_norms.size(); ++i) {
      const auto row = static_cast<Index>(i);
      worst[i] = of_dot(A_norms[i] * most, std::sqrt(largest2(words[row], words.cols)), depth);
      for (std::size_t k = 0; k < sizes.size(); ++k) {
        error[i] = std::max(error[i], of_dot(A_norms[i] * column_norms[k], words[row][k], depth) /
                                          squared(sizes[k]));
      }
    }
  }

  Doubles words;
  Row sizes;  // of columns
  Row norm, mean_square, large_square, error, worst;
};

// Returns the squares of the columns' sizes of `made`, for sums of errors in units of `from`. Each
// row of `made` is made from a row of `from`.
Row in_place_of(const Factor& from, const Factor& made) {
  const double before = std::reduce(from.large_square.begin(), from.large_square.end());
  const double now = std::reduce(made.large_square.begin(), made.large_square.end());
  Row squares;
  for (const double size : made.sizes) {
    squares.push_back(before > 0 ? size * size * now / before : 0);
  }
  return squares;
}

// Returns sums over each row of a matrix with random signs, `count` sums for each row. If `sized`,
// words are in units of the columns' sizes.
Doubles probes_of(const Factor& of, Index count, Index salt, bool sized) {
  Doubles signs(of.words.cols, count);
  for (Index k = 0; k < signs.rows; ++k) {
    for (Index c = 0; c < count; ++c) {
      signs[k][c] = sign(k, salt + c) / (sized ? of.sizes[static_cast<std::size_t>(k)] : 1);
    }
  }
  return product(of.words, signs);
}

// Sets the columns of `to`, from column `from` on, to products of words of a and b.
void set_products(const Doubles& a, const Doubles& b, Doubles& to, Index from) {
  for (Index i = 0; i < a.rows; ++i) {
    for (Index c = 0; c < a.cols; ++c) {
      to[i][from + c] = a[i][c] * b[i][c];
    }
  }
}

// Returns the keys between two looks at partial sums: few enough for several looks, many enough
// that looks cost little.
Index chunk_of(Range keys) {
  return std::clamp<Index>(padded(keys.size() / 5, kKeyMultiple), kKeyMultiple, 240);
}

// The largest squares of partial sums of the words of C; and for each row the partial sum with the
// largest norm.
struct Peaks {
  explicit Peaks(const Doubles& of)
      : squares(of.rows, of.cols), rows(squares), norms(static_cast<std::size_t>(of.rows)) {}
  void clear() {
    for (Row* words : {&squares.words, &rows.words, &norms}) {
      std::ranges::fill(*words, 0);
    }
  }
  void look(const Doubles& C) {
    for (Index i = 0; i < C.rows; ++i) {
      double& norm = norms[static_cast<std::size_t>(i)];
      const double here = norm2(C[i], C.cols);
      if (here > norm) {
        norm = here;
        std::copy_n(C[i], C.cols, rows[i]);
      }
      for (Index k = 0; k < C.cols; ++k) {
        squares[i][k] = std::max(squares[i][k], C[i][k] * C[i][k]);
      }
    }
  }

  Doubles squares, rows;
  Row norms;
};

// The state of a row in a block.
struct RowState {
  bool live = false;
  double growth = 1;   // factor on errors that are not small
  double v_error = 0;  // the part of v's variance that needs neither O nor W
  PairRow pair;
  SoftmaxSums softmax;
  RowSums sums;
};

// The data of one core for a block of rows.
struct Block {
  Block(Index keys, Index d, Index dv)
      : step(keys + 8),
        s(static_cast<std::size_t>(step * kBlockRows)),
        f(s),
        q(s),
        slope(s),
        O(kBlockRows, padded(dv, kKeyMultiple)),
        O_peaks(O),
        W(kBlockRows, padded(d, kKeyMultiple)),
        W_peaks(W),
        probes(kBlockRows, padded(kProbes, kKeyMultiple)),
        p_probes(probes) {}
  double* row(Row& strip, Index i) const { return strip.data() + i * step; }

  Index step;
  Row s, f, q, slope;  // by rows and keys
  Doubles O;
  Peaks O_peaks;
  Doubles W;
  Peaks W_peaks;
  Doubles probes, p_probes;
  std::array<RowState, kBlockRows> rows;
};

// Sums over rows, indexed by key; and d x d matrices.
struct Sums {
  Panels dK, dV, p_probes, probes;
  Row dK_error, dK_terms, dV_error, dV_terms;
  Doubles g, g_error, g_terms, dY, dY_error;

  std::array<Row*, 13> parts() {
    return {&dK.words(),    &dV.words(), &p_probes.words(), &probes.words(), &dK_error,
            &dK_terms,      &dV_error,   &dV_terms,         &g.words,        &g_error.words,
            &g_terms.words, &dY.words,   &dY_error.words};
  }
  void clear() {
    for (Row* part : parts()) {
      std::ranges::fill(*part, 0);
    }
  }
};

// Adds `part` to `to`. Sets `peaks` to the largest squares of partial sums of dK, dV, g and dY.
void add(Sums& to, Sums& part, Sums& peaks) {
  const auto all = to.parts(), parts = part.parts(), most = peaks.parts();
  for (std::size_t k = 0; k < all.size(); ++k) {
    Row& sum = *all[k];
    const bool keeps = !most[k]->empty();
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i] += (*parts[k])[i];
      if (keeps) {
        double& peak = (*most[k])[i];
        peak = std::max(peak, sum[i] * sum[i]);
      }
    }
  }
}

// Adds strip B to C, over some keys and for kBlockRows rows.
void add_product(const double* strip, Index step, Range keys, const Panels& B, Doubles& C,
                 Peaks* peaks) {
  const Index chunk = chunk_of(keys);
  for (Index first = keys.begin; first < keys.end; first += chunk) {
    const Index depth = std::min(chunk, keys.end - first);
    for (Index panel = 0; panel < B.count(); ++panel) {
      multiply({.A = strip + first,
                .row_step = step,
                .depth_step = 1,
                .rows = kBlockRows,
                .B = B.row(panel, first),
                .depth = depth,
                .C = C[0] + panel * B.width(),
                .C_step = C.cols,
                .adds = true});
    }
    if (peaks != nullptr) {
      peaks->look(C);
    }
  }
}

// Adds strip^T B to C, over kBlockRows rows and for some keys.
void add_key_product(const double* strip, Index step, Range keys, const Panels& B, Panels& C) {
  for (Index first = keys.begin; first < keys.end; first += kKeyMultiple) {
    for (Index panel = 0; panel < B.count(); ++panel) {
      multiply({.A = strip + first,
                .row_step = 1,
                .depth_step = step,
                .rows = kKeyMultiple,
                .B = B.row(panel, 0),
                .depth = kBlockRows,
                .C = C.row(panel, first),
                .C_step = C.width(),
                .adds = true});
    }
  }
}

class Evaluation {
 public:
  explicit Evaluation(const AttentionInput& input);
  ExpectedResults run();

 private:
  [[nodiscard]] bool wants(std::string_view name) const {
    return std::ranges::find(in_.results, name) != in_.results.end();
  }
  [[nodiscard]] const Factor& dO() const { return weighted_ ? dO_ : G_; }
  // Returns the rows that sums over rows multiply: rows of S for dK. Without dK, rows of A1 for g.
  [[nodiscard]] const Factor& rows_of_keys() const { return weighted_ && !makes_keys_ ? A1_ : S_; }
  [[nodiscard]] PairKeys pair_keys() const {
    return {K_.norm.data(),        others2_.data(),        V_.norm.data(),
            value_others2_.data(), K_.large_square.data(), V_.large_square.data(),
            V_.mean_square.data()};
  }
  void make_rows();
  void make_keys();
  void make_probes();
  [[nodiscard]] Sums fresh_sums(bool of_peaks) const;
  void evaluate_rows(Range blocks, Block& at, Sums& sums);
  void evaluate_block(Range rows, Block& at, Sums& sums);
  [[nodiscard]] Range keys_of(Range rows) const;
  void drop_dead(Range rows, Range keys, Block& at) const;
  void start_row(Index i, Range keys, Block& at, RowState& row) const;
  void sum_softmax(Index i, Range keys, const double* s, const double* f, const double* q,
                   RowState& row) const;
  void add_products(Range rows, Range keys, Block& at, Sums& sums) const;
  void finish_L(Index i, const RowState& row);
  void finish_O(Index i, Index r, Block& at, Sums& sums);
  void start_v(Index i, double v_peak2, RowState& row) const;
  void finish_W(Index i, Index r, Block& at, Sums& sums);
  void add_to_g(Index i, const double* W, const double* W_peak2, const Row& variance,
                Sums& sums) const;
  void finish_keys(const Sums& sums, const Sums& peaks);
  void finish_g(const Sums& sums, const Sums& peaks);
  void finish_layer(const Sums& sums, const Sums& peaks, const Doubles& dV_variance);
  void set(std::string_view name, Index at, double value, double allowed);

  const AttentionInput& in_;
  Index n_, m_, d_, dv_, keys_;  // keys_: m_ and the keys of zeros added
  bool weighted_, softmax_, given_, layer_, backward_, one_source_, makes_keys_,
      exact_scale_ = true;
  Factor S_, K_, V_, G_, A1_, dO_;                   // G = dO Y^T, or dO
  Row others2_, value_others2_, y_error_, h_error_;  // by keys
  Panels scores_, values_T_, keys_by_d_, values_by_d_, probes_, p_probes_;
  Doubles row_probes_, row_p_probes_, X_, Y_;
  Row X_rows_, Y_rows_, Y_columns_;  // squared norms
  // By columns: squared sizes of y, h and G, used for K, V and dO where pairs have errors.
  Row y2_, h2_, G2_;
  Row equal_rows_, equal_keys_;
  double most_equal_keys_ = 1, most_equal_rows_ = 1;
  double V_sizes2_ = 0;  // over all columns
  double V_alike_ = 0;   // squared norm of the mean row of V, in units of the mean squared norm
  double tiny_ = 0;
  std::atomic<bool> hopeless_ = false;  // some row has scores too large to bound its error
  ExpectedResults results_;
};

Evaluation::Evaluation(const AttentionInput& input)
    : in_(input),
      n_(input.shape.n),
      m_(input.shape.m),
      d_(input.shape.d),
      dv_(input.shape.dv),
      keys_(padded(input.shape.m, kKeyMultiple)),
      weighted_(!input.X.empty()),
      softmax_(input.activation == Activation::softmax),
      given_(!input.O.empty()),
      layer_(wants("dX") || wants("dA1") || wants("dA2") || wants("dA3") || wants("dY")),
      backward_(!input.dO.empty() &&
                (layer_ || wants("g") || wants("dQ") || wants("dK") || wants("dV"))),
      one_source_(in_.sharing == Sharing::self && !weighted_ && wants("dQ")),
      makes_keys_(layer_ || one_source_ || wants("dK") || wants("dV")) {
  double largest = 1;
  for (const auto& words : {in_.A1, in_.A2, in_.A3, in_.X, in_.Y, in_.dO}) {
    for (const float word : words) {
      largest = std::max(largest, static_cast<double>(std::abs(word)));
    }
  }
  tiny_ = kTiny * static_cast<double>(n_ + m_ + d_) * largest * largest * largest;
  make_rows();
  make_keys();
  if (backward_ || weighted_ || !exact_scale_) {
    make_probes();
  }
  const auto add = [&](std::string_view name, Index words) {
    if (wants(name)) {
      results_[std::string(name)] = {Row(static_cast<std::size_t>(words)),
                                     Row(static_cast<std::size_t>(words))};
    }
  };
  for (const auto& [name, rows, cols] : {std::tuple{"O", n_, dv_},
                                         {"L", n_, 1},
                                         {"g", d_, d_},
                                         {"dQ", n_, d_},
                                         {"dK", m_, d_},
                                         {"dV", m_, dv_},
                                         {"dX", d_, d_},
                                         {"dY", d_, d_},
                                         {"dA1", n_, d_},
                                         {"dA2", m_, d_},
                                         {"dA3", m_, d_}}) {
    add(name, rows * cols);
  }
  if (wants("L")) {
    std::ranges::fill(results_.at("L").value, -kInfinity);
  }
}

void Evaluation::set(std::string_view name, Index at, double value, double allowed) {
  const auto found = results_.find(name);
  if (found == results_.end()) {
    return;
  }
  Expected& result = found->second;
  result.value[static_cast<std::size_t>(at)] = value;
  result.allowed[static_cast<std::size_t>(at)] = allowed + tiny_;
}

void Evaluation::make_rows() {
  Doubles A1 = with_rows(in_.A1, n_, d_, kBlockRows);
  Doubles dO = in_.dO.empty() ? Doubles(A1.rows, 1) : with_rows(in_.dO, n_, dv_, kBlockRows);
  if (weighted_) {
    X_ = Doubles(in_.X, d_, d_);
    X_rows_ = row_norms2(X_);
    A1_ = Factor(std::move(A1), n_);
    S_ = Factor(product(A1_.words, X_), n_);
    S_.made_of(A1_.norm, row_norms2(transposed(X_)));
    Y_ = in_.Y.empty() ? Doubles(d_, d_) : Doubles(in_.Y, d_, d_);
    Y_rows_ = row_norms2(Y_);
    Y_columns_ = row_norms2(transposed(Y_));
    if (!in_.dO.empty()) {
      dO_ = Factor(std::move(dO), n_);
      G_ = Factor(product(dO_.words, transposed(Y_)), n_);
      G_.made_of(dO_.norm, Y_rows_);
      G2_ = in_place_of(dO_, G_);
    }
    return;
  }
  int exponent = 0;
  const auto scale = static_cast<double>(in_.scale);
  exact_scale_ = std::frexp(std::abs(scale), &exponent) == 0.5;
  for (double& word : A1.words) {
    word *= scale;
  }
  S_ = Factor(std::move(A1), n_);
  G_ = Factor(std::move(dO), n_);
  for (std::size_t i = 0; !exact_scale_ && i < S_.error.size(); ++i) {
    S_.error[i] = 2 * kRounding * S_.mean_square[i];
    S_.worst[i] = 2 * kRounding * largest2(S_.words[static_cast<Index>(i)], d_);
  }
}

void Evaluation::make_keys() {
  K_ = Factor(with_rows(in_.A2, m_, d_, kKeyMultiple), m_);
  V_ = Factor(in_.A3.empty() ? Doubles(keys_, 1) : with_rows(in_.A3, m_, dv_, kKeyMultiple), m_);
  others2_ = value_others2_ = y_error_ = h_error_ = Row(static_cast<std::size_t>(keys_));
  if (weighted_) {
    const auto add = [&](Factor made, const Factor& from, const Row& columns, Row& error,
                         Row& others, Row& squares) {
      const Row& norms = from.norm;
      made.made_of(norms, columns);
      error = made.worst;
      squares = in_place_of(from, made);
      for (std::size_t j = 0; j < others.size(); ++j) {
        others[j] = 0.1 * made.norm[j] + error[j];
      }
    };
    add(Factor(product(K_.words, transposed(X_)), m_), K_, X_rows_, y_error_, others2_, y2_);
    if (!in_.A3.empty()) {
      add(Factor(product(V_.words, Y_), m_), V_, Y_columns_, h_error_, value_others2_, h2_);
    }
  }
  equal_keys_ = multiplicities(K_.words, V_.words, m_);
  most_equal_keys_ = *std::ranges::max_element(equal_keys_);
  K_.repeat(equal_keys_);
  V_.repeat(equal_keys_);
  equal_rows_ = multiplicities(weighted_ ? A1_.words : S_.words, dO().words, n_);
  most_equal_rows_ = *std::ranges::max_element(equal_rows_);
  for (Factor* rows : {&S_, &A1_, &dO_, &G_}) {
    rows->repeat(rows->large_square.empty() ? Row() : equal_rows_);
  }
  Row mean_V(V_.sizes.size());
  double V2 = 0;
  for (Index j = 0; j < m_; ++j) {
    V2 += V_.norm[static_cast<std::size_t>(j)] / static_cast<double>(m_);
    for (std::size_t k = 0; k < mean_V.size(); ++k) {
      mean_V[k] += V_.words[j][k] / static_cast<double>(m_);
    }
  }
  V_alike_ = V2 > 0 ? norm2(mean_V.data(), std::ssize(mean_V)) / V2 : 0;
  V_sizes2_ = norm2(V_.sizes.data(), std::ssize(V_.sizes));
  scores_ = Panels(transposed(K_.words), d_);
  values_by_d_ = Panels(V_.words, keys_);
  if (backward_) {
    values_T_ = Panels(transposed(V_.words), V_.words.cols);
    keys_by_d_ = Panels(K_.words, keys_);
  }
}

// Errors that all pairs of a row or of a key share are multiplied by a matrix. These random sums
// estimate the size of the product.
void Evaluation::make_probes() {
  constexpr Index kEach = kProbes / 4;
  Doubles of_keys(keys_, kProbes);
  const Doubles ones = [&] {
    Doubles all(keys_, kEach);
    std::ranges::fill(all.words, 1);
    return all;
  }();
  set_products(probes_of(V_, kEach, 0, false), ones, of_keys, 0);
  set_products(probes_of(K_, kEach, 4, true), ones, of_keys, kEach);
  set_products(probes_of(V_, kEach, 8, false), probes_of(K_, kEach, 12, true), of_keys, 2 * kEach);
  set_products(probes_of(K_, kEach, 16, false), probes_of(V_, kEach, 20, true), of_keys, 3 * kEach);
  probes_ = Panels(of_keys, keys_);
  if (!backward_) {
    return;
  }
  Doubles squares_of_keys(keys_, kKeyProbes);
  set_products(probes_of(K_, kKeyProbes, 24, false), probes_of(K_, kKeyProbes, 32, true),
               squares_of_keys, 0);
  p_probes_ = Panels(squares_of_keys, keys_);
  if (weighted_) {
    const Factor& rows = rows_of_keys();
    row_p_probes_ = row_probes_ = Doubles(A1_.words.rows, kKeyProbes);
    set_products(probes_of(A1_, kKeyProbes, 40, false), probes_of(rows, kKeyProbes, 48, true),
                 row_p_probes_, 0);
    set_products(probes_of(dO_, 4, 56, false), probes_of(rows, 4, 60, true), row_probes_, 0);
    set_products(probes_of(A1_, 4, 64, false), probes_of(dO_, 4, 68, true), row_probes_, 4);
  }
}

Sums Evaluation::fresh_sums(bool of_peaks) const {
  Sums sums;
  if (!backward_) {
    return sums;
  }
  if (makes_keys_) {
    sums.dK = Panels(keys_, d_);
    sums.dV = Panels(keys_, dv_);
  }
  if (weighted_) {
    sums.g = Doubles(d_, d_);
    sums.dY = Doubles(layer_ ? d_ : 0, d_);
  }
  if (of_peaks) {
    return sums;
  }
  for (Row* by_keys : {&sums.dK_error, &sums.dK_terms, &sums.dV_error, &sums.dV_terms}) {
    by_keys->resize(static_cast<std::size_t>(keys_));
  }
  if (weighted_) {
    sums.p_probes = sums.probes = Panels(keys_, kKeyProbes);
    sums.g_error = sums.g_terms = Doubles(d_, d_);
    sums.dY_error = sums.dY;
  }
  return sums;
}

// Returns the keys that some of the rows meet, widened to multiples of kKeyMultiple.
Range Evaluation::keys_of(Range rows) const {
  if (in_.mask.full()) {
    return {0, keys_};
  }
  const Ranges keys = in_.mask.keys(rows);
  return keys.empty() ? Range{0, 0}
                      : Range{keys.front().begin / kKeyMultiple * kKeyMultiple,
                              padded(keys.back().end, kKeyMultiple)};
}

// Sets the scores of dead pairs, and of added keys and rows, to kDeadScore, and their q to 0.
void Evaluation::drop_dead(Range rows, Range keys, Block& at) const {
  for (Index r = 0; r < kBlockRows; ++r) {
    double* const s = at.row(at.s, r);
    double* const q = at.row(at.q, r);
    const auto drop = [&](Index first, Index end) {
      std::fill(s + first, s + std::max(first, end), kDeadScore);
      std::fill(q + first, q + std::max(first, end), 0);
    };
    Index alive = keys.begin;  // keys before this one are done
    at.rows[static_cast<std::size_t>(r)] = {};
    bool& live = at.rows[static_cast<std::size_t>(r)].live;
    const Index i = rows.begin + r;
    const auto keep = [&](Range range) {
      drop(alive, range.begin);
      alive = range.end;
      live = true;
    };
    if (i < rows.end && in_.mask.full()) {
      keep({0, m_});
    } else if (i < rows.end) {
      in_.mask.each_range(i, {keys.begin, std::min(keys.end, m_)}, [&](Range range) {
        if (range.begin < range.end) {
          keep(range);
        }
      });
    }
    drop(alive, keys.end);
  }
}

// Computes f and its slope, and the values that all pairs of the row share.
void Evaluation::start_row(Index i, Range keys, Block& at, RowState& row) const {
  const auto r = static_cast<std::size_t>(i);
  const Index in_block = i % kBlockRows;
  double* const s = at.row(at.s, in_block) + keys.begin;
  double* const f = at.row(at.f, in_block) + keys.begin;
  PairRow& pair = row.pair;
  pair.s_keys = 0.1 * S_.norm[r] + S_.worst[r];
  pair.s_others = weighted_ ? A1_.norm[r] : 0;
  pair.dot = of_terms(static_cast<double>(std::max(d_, dv_)));
  if (backward_) {
    pair.q_keys = 0.1 * G_.norm[r] + G_.worst[r];
    pair.q_others = weighted_ ? dO_.norm[r] : 0;
    pair.values2 = dO().large_square[r];
    pair.rows2 = rows_of_keys().large_square[r];
    pair.rows_error = rows_of_keys().error[r];
  }
  if (!softmax_) {
    activate(in_.activation, s, f, at.row(at.slope, in_block) + keys.begin, keys.size());
    return;
  }
  if (given_) {
    pair.L = static_cast<double>(in_.L[r]);
    exponentials(s, pair.L, f, keys.size());
  } else {
    pair.L = softmax(s, f, keys.size());
  }
  sum_softmax(i, keys, at.row(at.s, in_block), at.row(at.f, in_block),
              backward_ ? at.row(at.q, in_block) : nullptr, row);
}

void Evaluation::sum_softmax(Index i, Range keys, const double* s, const double* f, const double* q,
                             RowState& row) const {
  const auto r = static_cast<std::size_t>(i);
  PairRow& pair = row.pair;
  SoftmaxSums& sums = row.softmax;
  const PairKeys of_keys = pair_keys();
  double v_peak2 = 0;
  const Index chunk = chunk_of(keys);
  for (Index first = keys.begin; first < keys.end; first += chunk) {
    add_softmax(pair, of_keys, s, f, q, first, std::min(first + chunk, keys.end), sums);
    v_peak2 = std::max(v_peak2, sums.q * sums.q);
  }
  const double terms = of_terms(static_cast<double>(m_));
  const double size_of_L = std::abs(pair.L) + std::log(static_cast<double>(m_));
  pair.f_error = 4;
  if (!given_) {
    pair.f_error += kRounding * size_of_L * size_of_L + terms + most_equal_keys_ * sums.errors +
                    S_.worst[r] * sums.kappa2;
  }
  const double z = kTimes * kUnit * std::sqrt(sums.largest + pair.f_error);
  row.growth = z < 1e-3 ? 1 : z < 300 ? std::expm1(z) / z : kInfinity;
  if (backward_) {
    start_v(i, v_peak2, row);
  }
}

// Computes v and its variance. row.v_error leaves out the errors of words of S_i and G_i, which all
// pairs of the row share. row.pair.v_error adds their largest effect.
void Evaluation::start_v(Index i, double v_peak2, RowState& row) const {
  const auto r = static_cast<std::size_t>(i);
  const SoftmaxSums& sums = row.softmax;
  PairRow& pair = row.pair;
  const auto width = static_cast<double>(dv_);
  if (given_) {
    double O2 = 0;
    pair.v = 0;
    for (Index k = 0; k < dv_; ++k) {
      const auto O = static_cast<double>(in_.O[static_cast<std::size_t>(i * dv_ + k)]);
      pair.v += dO().words[i][k] * O;
      O2 += O * O;
    }
    row.v_error = pair.v_error = of_dot(dO().norm[r] * O2, pair.v, width);
    return;
  }
  const double v = pair.v = sums.q;
  const double of_f = sums.errors_q2 - 2 * v * sums.errors_q + v * v * sums.errors;
  row.v_error = std::max(0.0, of_f) + sums.q_errors + pair.f_error * v * v +
                of_terms(static_cast<double>(m_)) * (v_peak2 + sums.q_terms) +
                of_terms(width) * v * v + squared(sums.largest_q);
  // If the terms of O are nearly equal, its roundings add up.
  const double alike = V_alike_ * std::min(1.0, 1 / (static_cast<double>(m_) * sums.f2));
  row.v_error += squared((static_cast<double>(m_) + width) / 32) * std::pow(alike, 4) * G_.norm[r] *
                 sums.value_mean2 * V_sizes2_ / width;
  pair.v_error = row.v_error + S_.worst[r] * sums.kappa2 * std::max(0.0, sums.q2 - v * v) +
                 (G_.worst[r] + 0.1 * G_.norm[r]) * sums.value_mean2 * V_sizes2_;
}

void Evaluation::add_products(Range rows, Range keys, Block& at, Sums& sums) const {
  for (Doubles* fresh : {&at.O, &at.W, &at.probes, &at.p_probes}) {
    std::ranges::fill(fresh->words, 0);
  }
  at.O_peaks.clear();
  at.W_peaks.clear();
  const double* const slope = softmax_ ? at.f.data() : at.slope.data();
  if (wants("O") || layer_) {
    add_product(at.f.data(), at.step, keys, values_by_d_, at.O, &at.O_peaks);
  }
  if (probes_.count() > 0) {
    add_product(slope, at.step, keys, probes_, at.probes, nullptr);
  }
  if (!backward_) {
    return;
  }
  add_product(at.q.data(), at.step, keys, keys_by_d_, at.W, &at.W_peaks);
  if (weighted_ || !exact_scale_) {
    add_product(at.q.data(), at.step, keys, p_probes_, at.p_probes, nullptr);
  }
  const auto block_of = [&](const Doubles& from) {
    Panels block(kBlockRows, from.cols);
    for (Index r = 0; r < kBlockRows; ++r) {
      for (Index k = 0; k < from.cols; ++k) {
        block.at(r, k) = from[rows.begin + r][k];
      }
    }
    return block;
  };
  if (makes_keys_) {
    add_key_product(at.q.data(), at.step, keys, block_of(S_.words), sums.dK);
    add_key_product(at.f.data(), at.step, keys, block_of(dO().words), sums.dV);
  }
  if (weighted_) {
    add_key_product(at.q.data(), at.step, keys, block_of(row_p_probes_), sums.p_probes);
    add_key_product(slope, at.step, keys, block_of(row_probes_), sums.probes);
  }
}

void Evaluation::evaluate_block(Range rows, Block& at, Sums& sums) {
  const Range keys = keys_of(rows);
  if (keys.begin == keys.end) {
    return;  // dead rows: O = 0, L = -infinity, no gradient
  }
  set_product(S_.words[rows.begin], d_, scores_, keys, at.s.data(), at.step);
  if (backward_) {
    set_product(G_.words[rows.begin], V_.words.cols, values_T_, keys, at.q.data(), at.step);
  }
  drop_dead(rows, keys, at);
  for (Index i = rows.begin; i < rows.begin + kBlockRows; ++i) {
    RowState& row = at.rows[static_cast<std::size_t>(i - rows.begin)];
    if (row.live) {
      start_row(i, keys, at, row);
      hopeless_ = hopeless_ || std::isinf(row.growth);
      const double growth = std::isinf(row.growth) ? 1 : row.growth * row.growth;
      row.pair.rows2 *= growth;
      row.pair.values2 *= growth;
      row.pair.rows_error *= growth;
    } else {
      for (Row* strip : {&at.f, &at.slope, &at.q}) {
        std::fill_n(at.row(*strip, i - rows.begin) + keys.begin, keys.size(), 0);
      }
    }
  }
  const PairKeys of_keys = pair_keys();
  const KeySums to{sums.dV_error.data(), sums.dV_terms.data(), sums.dK_error.data(),
                   sums.dK_terms.data()};
  const Index chunk = chunk_of(keys);
  for (Index first = keys.begin; first < keys.end; first += chunk) {
    const Index end = std::min(first + chunk, keys.end);
    for (Index r = 0; (backward_ || !softmax_) && r < rows.size(); ++r) {
      RowState& row = at.rows[static_cast<std::size_t>(r)];
      if (row.live) {
        add_pairs(in_.activation, row.pair, of_keys, at.row(at.s, r), at.row(at.f, r),
                  at.row(at.slope, r), backward_ ? at.row(at.q, r) : nullptr, first, end, row.sums,
                  to);
      }
    }
  }
  add_products(rows, keys, at, sums);
  for (Index i = rows.begin; i < rows.end; ++i) {
    const Index r = i - rows.begin;
    if (at.rows[static_cast<std::size_t>(r)].live) {
      finish_L(i, at.rows[static_cast<std::size_t>(r)]);
      finish_O(i, r, at, sums);
      finish_W(i, r, at, sums);
    }
  }
}

void Evaluation::finish_L(Index i, const RowState& row) {
  if (!wants("L")) {
    return;
  }
  // The terms of the sum are positive, so its roundings are a factor. In L this factor is added.
  const auto keys = static_cast<double>(m_);
  set("L", i, row.pair.L, allowed(row.pair.f_error, 1, row.softmax.f2, keys));
}

// Computes O; in weighted problems from B = f A3.
void Evaluation::finish_O(Index i, Index r, Block& at, Sums& sums) {
  if (!wants("O") && !layer_) {
    return;
  }
  const auto row_at = static_cast<std::size_t>(i);
  const RowState& row = at.rows[static_cast<std::size_t>(r)];
  const double* const B = at.O[r];
  const auto width = static_cast<double>(dv_);
  const auto terms = static_cast<double>(m_);
  double own, terms2, of_row, in_common = mean2(at.probes[r] + 12, 4) / width;
  if (probes_.count() == 0) {
    in_common = 0;
  }
  if (softmax_) {
    const SoftmaxSums& f = row.softmax;
    double sized2 = 0;
    for (Index k = 0; k < dv_; ++k) {
      sized2 += squared(B[k] / V_.sizes[static_cast<std::size_t>(k)]) / width;
    }
    const double spread = 3 * std::max(0.0, f.value_mean2 - sized2);
    own = std::min(f.O + f.errors * sized2, f.largest_error * spread);
    in_common = std::min(in_common, f.kappa2 * spread);
    terms2 = f.O_terms;
    of_row = row.pair.f_error;
  } else {
    own = row.sums.O;
    terms2 = row.sums.O_terms;
    of_row = 0;
  }
  own += S_.worst[row_at] * in_common;
  Row variance(static_cast<std::size_t>(dv_));
  for (Index k = 0; k < dv_; ++k) {
    const auto c = static_cast<std::size_t>(k);
    const double size2 = squared(V_.sizes[c]);
    variance[c] = row.growth * row.growth * (size2 * own + of_row * B[k] * B[k]) +
                  of_terms(terms) * (at.O_peaks.squares[r][k] + size2 * terms2);
    if (wants("O") && !weighted_) {
      set("O", i * dv_ + k, B[k],
          allowed(variance[c], B[k], size2 * terms2 / most_equal_keys_, terms));
    }
    for (Index b = 0; layer_ && b < d_; ++b) {
      sums.dY[k][b] += B[k] * dO_.words[i][b];
      sums.dY_error[k][b] += equal_rows_[row_at] * variance[c] * squared(dO_.words[i][b]);
    }
  }
  if (!weighted_ || !wants("O")) {
    return;
  }
  const double V2 = V_sizes2_ * terms2;
  for (Index b = 0; b < d_; ++b) {
    double O = 0, of_O = 0, of_terms2 = 0, peak = 0;
    for (Index k = 0; k < d_; ++k) {
      const double y2 = squared(Y_[k][b]);
      O += B[k] * Y_[k][b];
      peak += at.O_peaks.rows[r][k] * Y_[k][b];
      of_O += variance[static_cast<std::size_t>(k)] * y2;
      of_terms2 += squared(V_.sizes[static_cast<std::size_t>(k)]) * terms2 * y2;
    }
    of_O += row.growth * row.growth * own * h2_[static_cast<std::size_t>(b)] +
            of_dot((norm2(B, d_) + V2) * Y_columns_[static_cast<std::size_t>(b)], O, width) +
            of_terms(terms + width) * (std::max(O * O, peak * peak) + of_terms2);
    set("O", i * d_ + b, O, allowed(of_O, O, of_terms2 / most_equal_keys_, terms));
  }
}

// Computes dQ, and the results made from it.
void Evaluation::finish_W(Index i, Index r, Block& at, Sums& sums) {
  if (!backward_) {
    return;
  }
  const auto row_at = static_cast<std::size_t>(i);
  const RowState& row = at.rows[static_cast<std::size_t>(r)];
  const double* const W = at.W[r];
  const double* const probes = at.probes[r];
  const auto width = static_cast<double>(d_);
  const auto terms = static_cast<double>(m_);
  const double W2 = norm2(W, d_);
  double v_error = row.v_error;
  if (softmax_ && !given_) {
    const double O2 = mean2(probes, 4);
    v_error += S_.worst[row_at] * W2 + (G_.worst[row_at] + 0.1 * G_.norm[row_at]) * O2;
  }
  const double in_common =
      (v_error * mean2(probes + 4, 4) + G_.worst[row_at] * mean2(probes + 8, 4) +
       S_.worst[row_at] * mean2(at.p_probes[r], kKeyProbes)) /
      width;
  const double scale = weighted_ ? 1 : static_cast<double>(in_.scale);
  Row variance(static_cast<std::size_t>(d_));
  for (Index k = 0; k < d_; ++k) {
    const auto c = static_cast<std::size_t>(k);
    const double size2 = squared(K_.sizes[c]);
    variance[c] = row.growth * row.growth *
                      (size2 * (row.sums.W + in_common) + row.pair.f_error * W[k] * W[k]) +
                  of_terms(terms) * (at.W_peaks.squares[r][k] + size2 * row.sums.W_terms);
    if (wants("dQ")) {
      const double of_dQ = squared(scale) * (variance[c] + W[k] * W[k]);
      set("dQ", i * d_ + k, scale * W[k],
          allowed(of_dQ, scale * W[k], squared(scale) * size2 * row.sums.W_terms / most_equal_keys_,
                  terms));
    }
  }
  if (weighted_) {
    add_to_g(i, W, at.W_peaks.squares[r], variance, sums);
  }
  for (Index a = 0; layer_ && a < d_; ++a) {
    double dA1 = 0, of_dA1 = 0;
    for (Index k = 0; k < d_; ++k) {
      dA1 += W[k] * X_[a][k];
      of_dA1 += variance[static_cast<std::size_t>(k)] * squared(X_[a][k]);
    }
    of_dA1 += row.growth * row.growth * row.sums.W * y2_[static_cast<std::size_t>(a)] +
              of_dot(W2 * X_rows_[static_cast<std::size_t>(a)], dA1, width);
    set("dA1", i * d_ + a, dA1,
        allowed(of_dA1, dA1, row.sums.W_terms * y2_[static_cast<std::size_t>(a)] / most_equal_keys_,
                terms));
  }
}

void Evaluation::add_to_g(Index i, const double* W, const double* W_peak2, const Row& variance,
                          Sums& sums) const {
  const double times = equal_rows_[static_cast<std::size_t>(i)];
  for (Index a = 0; a < d_; ++a) {
    const double A1 = A1_.words[i][a];
    for (Index b = 0; b < d_; ++b) {
      sums.g[a][b] += A1 * W[b];
      sums.g_error[a][b] += times * A1 * A1 * variance[static_cast<std::size_t>(b)];
      sums.g_terms[a][b] += A1 * A1 * W_peak2[b];
    }
  }
}

// Returns the mean square of some of a key's sums over rows.
double mean2(const Panels& probes, Index j, Range some) {
  double sum = 0;
  for (Index c = some.begin; c < some.end; ++c) {
    sum += squared(probes.at(j, c));
  }
  return sum / static_cast<double>(some.size());
}

void Evaluation::finish_keys(const Sums& sums, const Sums& peaks) {
  if (!makes_keys_) {
    return;
  }
  const double rows = of_terms(static_cast<double>(n_));
  const bool joins = !weighted_ && in_.sharing != Sharing::none;
  Doubles dV_variance(m_, dv_);
  for (Index j = 0; j < m_; ++j) {
    const auto at = static_cast<std::size_t>(j);
    double of_dV = sums.dV_error[at], of_dK = sums.dK_error[at];
    if (weighted_) {
      of_dV += y_error_[at] * mean2(sums.probes, j, {4, 8}) / static_cast<double>(dv_);
      of_dK += (y_error_[at] * mean2(sums.p_probes, j, {0, kKeyProbes}) +
                h_error_[at] * mean2(sums.probes, j, {0, 4})) /
               static_cast<double>(d_);
    }
    for (Index k = 0; k < dv_; ++k) {
      const double size2 = squared(dO().sizes[static_cast<std::size_t>(k)]);
      const double terms2 = size2 * sums.dV_terms[at];
      dV_variance[j][k] = size2 * of_dV + rows * (peaks.dV.at(j, k) + terms2);
      if (wants("dV")) {
        const double dV = sums.dV.at(j, k);
        set("dV", j * dv_ + k, dV,
            allowed(dV_variance[j][k], dV, terms2 / most_equal_rows_, static_cast<double>(n_)));
      }
    }
    for (Index k = 0; k < d_ && (one_source_ || wants("dK") || wants("dA2")); ++k) {
      const double size2 = squared(S_.sizes[static_cast<std::size_t>(k)]);
      double terms2 = size2 * sums.dK_terms[at];
      double variance = size2 * of_dK + rows * (peaks.dK.at(j, k) + terms2);
      double value = sums.dK.at(j, k);
      if (joins) {
        value += sums.dV.at(j, k);
        variance +=
            dV_variance[j][k] + rows * (value * value + peaks.dK.at(j, k) + peaks.dV.at(j, k));
        terms2 += squared(dO().sizes[static_cast<std::size_t>(k)]) * sums.dV_terms[at];
      }
      const auto terms = static_cast<double>(joins ? 2 * n_ : n_);
      if (one_source_) {
        Expected& dQ = results_.at("dQ");
        const auto word = static_cast<std::size_t>(j * d_ + k);
        dQ.value[word] += value;
        variance += rows * squared(dQ.value[word]);
        dQ.allowed[word] = std::hypot(
            dQ.allowed[word], tiny_ + allowed(variance, value, terms2 / most_equal_rows_, terms));
        continue;
      }
      set(layer_ ? "dA2" : "dK", j * d_ + k, value,
          allowed(variance, value, terms2 / most_equal_rows_, terms));
    }
  }
  if (layer_) {
    finish_layer(sums, peaks, dV_variance);
  }
}

// Computes dA3 = dV Y^T, which is added to dA2 if A3 is A2; and dY = A3^T dV.
void Evaluation::finish_layer(const Sums& sums, const Sums& peaks, const Doubles& dV_variance) {
  const auto width = static_cast<double>(d_);
  const auto rows = static_cast<double>(n_), keys = static_cast<double>(m_);
  const bool joins = in_.sharing != Sharing::none;
  Doubles terms2(d_, d_);
  for (Index j = 0; j < m_; ++j) {
    double dV2 = 0;
    for (Index b = 0; b < d_; ++b) {
      dV2 += squared(sums.dV.at(j, b));
      for (Index a = 0; a < d_; ++a) {
        terms2[a][b] += equal_keys_[static_cast<std::size_t>(j)] * squared(V_.words[j][a]) *
                        (dV_variance[j][b] + of_terms(keys) * squared(sums.dV.at(j, b)));
      }
    }
    for (Index a = 0; a < d_; ++a) {
      double value = 0, variance = 0;
      for (Index b = 0; b < d_; ++b) {
        value += sums.dV.at(j, b) * Y_[a][b];
        variance += dV_variance[j][b] * squared(Y_[a][b]);
      }
      // Errors of f are shared by all words of dV_j: they multiply dO_i Y^T.
      variance += G2_[static_cast<std::size_t>(a)] * sums.dV_error[static_cast<std::size_t>(j)] +
                  of_dot(dV2 * Y_rows_[static_cast<std::size_t>(a)], value, width);
      const auto at = static_cast<std::size_t>(j * d_ + a);
      const double alike2 = G2_[static_cast<std::size_t>(a)] *
                            sums.dV_terms[static_cast<std::size_t>(j)] / most_equal_rows_;
      if (!joins) {
        set("dA3", j * d_ + a, value, allowed(variance, value, alike2, rows));
        continue;
      }
      if (!wants("dA2")) {
        continue;
      }
      Expected& dA2 = results_.at("dA2");
      dA2.value[at] += value;
      dA2.allowed[at] = std::hypot(
          dA2.allowed[at],
          allowed(variance + of_terms(width) * squared(dA2.value[at]), value, alike2, rows));
    }
  }
  for (Index a = 0; a < d_; ++a) {
    for (Index b = 0; b < d_; ++b) {
      const double dY = sums.dY[a][b];
      const double variance =
          sums.dY_error[a][b] + terms2[a][b] + of_terms(rows + keys) * peaks.dY[a][b];
      set("dY", a * d_ + b, dY, allowed(variance, dY, 0, rows));
    }
  }
}

// Computes g = A1^T W. Errors that all pairs of a key share, and errors of its sums over rows,
// reach g with the key.
void Evaluation::finish_g(const Sums& sums, const Sums& peaks) {
  if (!weighted_ || !backward_) {
    return;
  }
  const double terms = std::max(in_.g_terms, static_cast<double>(n_ + m_));
  const Factor& rows = rows_of_keys();
  double sized = 0, sized_rows = 0;
  for (Index i = 0; i < n_; ++i) {
    sized += A1_.mean_square[static_cast<std::size_t>(i)];
    sized_rows += rows.mean_square[static_cast<std::size_t>(i)];
  }
  const double in_A1 = sized_rows > 0 ? sized / sized_rows : 0;
  Row by_keys(static_cast<std::size_t>(d_));
  for (Index j = 0; j < m_; ++j) {
    const auto at = static_cast<std::size_t>(j);
    const double of_key = in_A1 * ((y_error_[at] * mean2(sums.p_probes, j, {0, kKeyProbes}) +
                                    h_error_[at] * mean2(sums.probes, j, {0, 4})) /
                                       static_cast<double>(d_) +
                                   of_terms(static_cast<double>(n_)) * sums.dK_terms[at]);
    for (Index b = 0; b < d_; ++b) {
      by_keys[static_cast<std::size_t>(b)] += of_key * squared(K_.words[j][b]);
    }
  }
  for (Index a = 0; a < d_; ++a) {
    for (Index b = 0; b < d_; ++b) {
      const double variance =
          sums.g_error[a][b] +
          squared(A1_.sizes[static_cast<std::size_t>(a)]) * by_keys[static_cast<std::size_t>(b)] +
          of_terms(terms) * (peaks.g[a][b] + sums.g_terms[a][b]);
      set(layer_ ? "dX" : "g", a * d_ + b, sums.g[a][b],
          allowed(variance, sums.g[a][b], sums.g_terms[a][b] * static_cast<double>(n_) / terms,
                  terms));
    }
  }
}

// Evaluates blocks of rows on all threads. Sums over rows are made for segments and added in order.
ExpectedResults Evaluation::run() {
  const Index blocks = ceil_div(n_, kBlockRows);
  const Index segments = backward_ ? std::min(kSegments, blocks) : blocks;
  const int threads = static_cast<int>(std::min<Index>(segments, omp_get_max_threads()));
  Sums sums = fresh_sums(false), peaks = fresh_sums(true);
  std::vector<Sums> parts(static_cast<std::size_t>(threads), sums);
  std::vector<Block> at(static_cast<std::size_t>(threads), Block(keys_, d_, V_.words.cols));
  std::atomic<Index> done = 0;
  std::atomic<bool> stopped = false;
  std::exception_ptr failure;
#pragma omp parallel for ordered schedule(dynamic, 1) num_threads(threads)
  for (Index segment = 0; segment < segments; ++segment) {
    const auto thread = static_cast<std::size_t>(omp_get_thread_num());
    Sums& part = parts[thread];
    for (Index block = segment * blocks / segments;
         block < (segment + 1) * blocks / segments && !stopped; ++block) {
      const Range rows{block * kBlockRows, std::min((block + 1) * kBlockRows, n_)};
      evaluate_block(rows, at[thread], part);
      ++done;
      if (thread == 0 && in_.step) {
        try {
          in_.step(static_cast<double>(done) / static_cast<double>(blocks));
        } catch (...) {
          failure = std::current_exception();
          stopped = true;
        }
      }
    }
#pragma omp ordered
    if (backward_) {
      add(sums, part, peaks);
      part.clear();
    }
  }
  if (failure) {
    std::rethrow_exception(failure);
  }
  if (in_.step) {
    in_.step(1);
  }
  finish_keys(sums, peaks);
  finish_g(sums, peaks);
  const bool repeats = mostly_equal(S_.words, n_) || (backward_ && mostly_equal(dO().words, n_)) ||
                       mostly_equal(K_.words, m_) ||
                       (!in_.A3.empty() && mostly_equal(V_.words, m_));
  for (auto& [name, result] : results_) {
    for (double& allowed : result.allowed) {
      allowed *= repeats ? kTimesOfEqual : 1;
    }
  }
  if (hopeless_) {
    for (auto& [name, result] : results_) {
      if (name != "L") {
        std::ranges::fill(result.allowed, kInfinity);
      }
    }
  }
  return std::move(results_);
}

bool has(std::span<const float> words, Words count) {
  return Words(std::ssize(words)) == count;
}

}  // namespace

ExpectedResults evaluate(const AttentionInput& input) {
  const auto [n, m, d] = input.shape;
  const Index dv = input.shape.dv;
  require(n > 0 && m > 0 && d > 0 && dv > 0, "n, m, d, dv > 0");
  require(has(input.A1, Words(n) * d), "A1 is n x d");
  require(has(input.A2, Words(m) * d), "A2 is m x d");
  require(input.A3.empty() || has(input.A3, Words(m) * dv), "A3 is m x dv");
  require(dv == d || input.X.empty(), "with X, dv = d");
  require(input.X.empty() || has(input.X, Words(d) * d), "X is d x d");
  require(input.Y.empty() || (has(input.Y, Words(d) * d) && !input.X.empty()), "Y is d x d");
  require(input.X.empty() || input.scale == 1, "with X, the scale is 1");
  require(input.dO.empty() || has(input.dO, Words(n) * dv), "dO is n x dv");
  require(input.O.empty() == input.L.empty(), "O and L come together");
  require(input.O.empty() || has(input.O, Words(n) * dv), "O is n x dv");
  require(input.L.empty() || has(input.L, n), "L has n elements");
  require(input.activation == Activation::softmax || input.O.empty(), "O and L are of a softmax");
  require(input.mask.full() || (input.mask.queries() == n && input.mask.keys() == m),
          "the mask is of n queries and m keys");
  return Evaluation(input).run();
}

// Counts the matrices of rows and keys, their panels and their errors; and the sums of each core.
Words evaluation_bytes(const Shape& shape) {
  const auto [n, m, width] = shape;
  const Index d = std::max(width, shape.dv);
  const Index cores = omp_get_max_threads();
  const Words doubles =
      Words(m) * (14 * Words(d) + 120) + Words(n) * (14 * Words(d) + 40) +
      Words(cores) * (Words(m) * (2 * Words(d) + 4 * kBlockRows + 24) + 5 * Words(d) * d);
  return 8 * doubles;
}

double Deviation::part() const {
  return std::isinf(allowed) ? allowed : error == 0 ? 0 : error / allowed;
}

Deviation compare(std::span<const float> computed, const Expected& exact) {
  const std::size_t size = computed.size();
  require(size == exact.value.size() && size == exact.allowed.size(),
          "computed and exact have the same size");
  Deviation worst;
  double most = -1, largest_error = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const double found = static_cast<double>(computed[i]);
    const bool same = found == exact.value[i];  // also for infinities
    const double difference = same ? 0 : std::abs(found - exact.value[i]);
    const Deviation here{.error = std::isnan(difference) ? kInfinity : difference,
                         .allowed = std::isnan(exact.allowed[i]) ? kInfinity : exact.allowed[i],
                         .index = static_cast<Index>(i)};
    largest_error = std::max(largest_error, here.error);
    worst.largest =
        std::max(worst.largest, std::isinf(exact.value[i]) ? 0 : std::abs(exact.value[i]));
    if (here.part() > most) {
      most = here.part();
      worst.error = here.error;
      worst.allowed = here.allowed;
      worst.index = here.index;
      worst.ok = most <= 1;
    }
  }
  worst.relative = largest_error == 0 ? 0 : largest_error / worst.largest;
  return worst;
}

}  // namespace redblue
