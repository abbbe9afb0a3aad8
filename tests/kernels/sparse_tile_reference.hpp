#pragma once
// Attention of sparse operands in double precision, from its definition, with an error bound for
// each number.

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "kernels/problem.hpp"
#include "tests/kernels/sparse_cases.hpp"

namespace redblue {

// A number in double precision, and the largest error of its rounded version.
struct Rounded {
  double value = 0, error = 0;
};
using RoundedMatrix = std::vector<std::vector<Rounded>>;
using StoredAt = std::vector<std::vector<bool>>;

inline StoredAt stored_at(const BlockPattern& of) {
  StoredAt found(static_cast<std::size_t>(of.rows), std::vector<bool>(of.cols));
  for (Index i = 0; i < of.rows; ++i) {
    for (const Index j : of.row(i)) {
      found[i][j] = true;
    }
  }
  return found;
}

inline StoredAt either_way(const StoredAt& a, const StoredAt& b, Index cols) {
  StoredAt c(a.size(), std::vector<bool>(cols));
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t k = 0; k < b.size(); ++k) {
      for (Index j = 0; a[i][k] && j < cols; ++j) {
        c[i][j] = c[i][j] || b[k][j];
      }
    }
  }
  return c;
}

template <class Matrix>
Matrix turned(const Matrix& a, Index cols) {
  Matrix t(static_cast<std::size_t>(cols), typename Matrix::value_type(a.size()));
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (Index j = 0; j < cols; ++j) {
      t[j][i] = a[i][j];
    }
  }
  return t;
}

// All results of a problem, from the definition.
class TileReference {
 public:
  TileReference(const Problem& problem, std::map<std::string, DenseWords>& words)
      : problem_(problem), unit_(std::ldexp(roundings(problem.shape), -24)) {
    const auto [n, m, d] = problem.shape;
    const Sparsity& of = problem.sparsity;
    live = either_way(either_way(stored_at(of.A1()), stored_at(of.X()), d),
                      turned(stored_at(of.A2()), d), m);
    const RoundedMatrix A1 = entries(of.A1(), words.at("A1")),
                        A2 = entries(of.A2(), words.at("A2"));
    const RoundedMatrix A3 = matrix(m, d, words.at("A3")), Y = matrix(d, d, words.at("Y"));
    const RoundedMatrix s = times(times(A1, entries(of.X(), words.at("X"))), turned(A2, d));
    make_f(s);
    O = times(times(f_, A3), Y);
    for (Index i = 0; i < n; ++i) {
      words["L"].push_back(static_cast<float>(L[i][0].value));
      for (const Rounded& word : O[i]) {
        words["O"].push_back(static_cast<float>(word.value));
      }
    }
    const RoundedMatrix dO = matrix(n, d, words.at("dO"));
    const RoundedMatrix q = times(times(dO, turned(Y, d)), turned(A3, d));
    RoundedMatrix used = A1;
    RoundedMatrix p(s.size(), std::vector<Rounded>(static_cast<std::size_t>(m)));
    for (Index i = 0; i < n; ++i) {
      const Rounded v =
          problem.normalised() ? times({dO[i]}, turned(RoundedMatrix{O[i]}, d))[0][0] : Rounded();
      for (Index j = 0; j < m; ++j) {
        if (live[i][j]) {
          p[i][j] = product(factor_[i][j], {q[i][j].value - v.value, q[i][j].error + v.error});
        }
      }
      if (std::ranges::find(live[i], true) == live[i].end()) {
        used[i].assign(static_cast<std::size_t>(d), {});
      }
    }
    g = times(turned(used, d), times(p, A2));
  }

  StoredAt live;
  RoundedMatrix O, L, g;

 private:
  static double roundings(const Shape& of) {
    return static_cast<double>(2 * (of.n + of.m) + 8 * of.d + 64);
  }
  static RoundedMatrix entries(const BlockPattern& of, const DenseWords& words) {
    RoundedMatrix found(static_cast<std::size_t>(of.rows), std::vector<Rounded>(of.cols));
    for (Index i = 0; i < of.rows; ++i) {
      for (Index e = of.offsets[i]; e < of.offsets[i + 1]; ++e) {
        found[i][of.columns[e]].value = words[e];
      }
    }
    return found;
  }
  static RoundedMatrix matrix(Index rows, Index cols, const DenseWords& words) {
    RoundedMatrix found(static_cast<std::size_t>(rows), std::vector<Rounded>(cols));
    for (Index i = 0; i < rows * cols; ++i) {
      found[i / cols][i % cols].value = words[i];
    }
    return found;
  }
  [[nodiscard]] Rounded product(Rounded a, Rounded b) const {
    const double size = (std::abs(a.value) + a.error) * (std::abs(b.value) + b.error);
    return {a.value * b.value, size - std::abs(a.value * b.value) + unit_ * size};
  }
  [[nodiscard]] RoundedMatrix times(const RoundedMatrix& a, const RoundedMatrix& b) const {
    RoundedMatrix c(a.size(), std::vector<Rounded>(b[0].size()));
    for (std::size_t i = 0; i < a.size(); ++i) {
      for (std::size_t k = 0; k < b.size(); ++k) {
        for (std::size_t j = 0; j < b[k].size(); ++j) {
          const Rounded term = product(a[i][k], b[k][j]);
          c[i][j].value += term.value;
          c[i][j].error += term.error;
        }
      }
    }
    return c;
  }
  // Makes f, and the factor by which p multiplies q - v.
  void make_f(const RoundedMatrix& s) {
    const Index m = problem_.shape.m;
    L.assign(s.size(), std::vector<Rounded>(1));
    f_.assign(s.size(), std::vector<Rounded>(static_cast<std::size_t>(m)));
    factor_ = f_;
    for (std::size_t i = 0; i < s.size(); ++i) {
      double sum = 0, error = 0, size = 0;
      for (Index j = 0; j < m; ++j) {
        if (live[i][j]) {
          sum += std::exp(s[i][j].value);
          error = std::max(error, s[i][j].error);
          size = std::max(size, std::abs(s[i][j].value));
        }
      }
      L[i][0] = {std::log(sum), error + unit_ * (2 + size)};
      for (Index j = 0; j < m; ++j) {
        if (!live[i][j]) {
          continue;
        }
        if (problem_.normalised()) {
          const double f = std::exp(s[i][j].value) / sum;
          f_[i][j] = {f, f * std::expm1(2 * error + unit_ * (4 + 2 * size))};
          factor_[i][j] = f_[i][j];
        } else {
          activate(s[i][j], f_[i][j], factor_[i][j]);
        }
      }
    }
  }
  // Slopes are at most 1.1, and change by at most half the change of s. The slope of relu jumps at
  // 0.
  void activate(Rounded s, Rounded& f, Rounded& slope) const {
    const double x = s.value, sigma = 1 / (1 + std::exp(-x));
    const double off = 1.1 * s.error + unit_ * (1 + std::abs(x));
    if (problem_.activation == Activation::relu) {
      f = {std::max(x, 0.0), off};
      slope = {x > 0 ? 1.0 : 0.0, std::abs(x) <= s.error ? 1.0 : 0.0};
    } else if (problem_.activation == Activation::sigmoid) {
      f = {sigma, off};
      slope = {sigma * (1 - sigma), off};
    } else {
      f = {x * sigma, off};
      slope = {sigma * (1 + x * (1 - sigma)), off};
    }
  }

  const Problem& problem_;
  double unit_;
  RoundedMatrix f_, factor_;
};

}  // namespace redblue
