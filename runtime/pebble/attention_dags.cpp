#include "runtime/pebble/attention_dags.hpp"

#include <algorithm>
#include <functional>
#include <string_view>

#include "runtime/pebble/dag_writer.hpp"

namespace redblue {
namespace {

// The graph of one problem. Of one without weights Q, K, V take the places of S, A2, h.
class Attention {
 public:
  Attention(const Problem& problem, Sums sums)
      : problem_(problem),
        n_(problem.shape.n),
        m_(problem.shape.m),
        d_(problem.shape.d),
        dv_(problem.shape.dv),
        to_(sums) {}

  Dag forward() {
    scores();
    const WordsOf e = exponentials();
    for (Index i = 0; i < n_; ++i) {
      const Index l = row_sum(i, e);
      for (Index k = 0; l != kNoWord && k < dv_; ++k) {
        const Index z = to_.sum_of_products(
            to_.at("Z", i, k), m_, [&](Index j) { return e(i, j); },
            [&](Index j) { return h_(j, k); });
        results_.push_back(to_.add(to_.at("O", i, k), {z, l}));
      }
    }
    return to_.take(results_);
  }

  Dag backward() {
    const WordsOf dO = scores(true);
    const WordsOf q = row_products("q", dO, h_, dv_);
    const WordsOf e = exponentials();
    WordsOf f(n_, m_), p(n_, m_);
    for (Index i = 0; i < n_; ++i) {
      const Index l = row_sum(i, e);
      each_key(i, [&](Index j) { f(i, j) = to_.add(to_.at("f", i, j), {e(i, j), l}); });
      const Index v = to_.sum_of_products(
          to_.at("v", i), m_, [&](Index j) { return f(i, j); }, [&](Index j) { return q(i, j); });
      each_key(i, [&](Index j) {
        p(i, j) = to_.made_of(to_.at("p", i, j), {f(i, j), q(i, j), v});
      });
    }
    const WordsOf T = column_products("T", p, A1_, d_);
    for (Index k = 0; k < d_; ++k) {
      for (Index l = 0; l < d_; ++l) {
        results_.push_back(to_.sum_of_products(
            to_.at("g", k, l), m_, [&](Index j) { return T(j, k); },
            [&](Index j) { return A2_(j, l); }));
      }
    }
    return to_.take(results_);
  }

  Dag gradients() {
    const WordsOf dO = scores(true);
    const WordsOf O = to_.inputs("O", n_, dv_);
    const WordsOf L = to_.inputs("L", n_, 1);
    WordsOf f(n_, m_), p(n_, m_);
    for (Index i = 0; i < n_; ++i) {
      each_key(i, [&](Index j) { f(i, j) = to_.add(to_.at("f", i, j), {s_(i, j), L(i, 0)}); });
    }
    const WordsOf q = row_products("q", dO, h_, dv_);
    for (Index i = 0; i < n_; ++i) {
      const Index v = to_.sum_of_products(
          to_.at("v", i), dv_, [&](Index k) { return dO(i, k); }, [&](Index k) { return O(i, k); });
      each_key(i, [&](Index j) { p(i, j) = to_.add(to_.at("p", i, j), {f(i, j), q(i, j), v}); });
    }
    for (Index i = 0; i < n_; ++i) {
      for (Index k = 0; k < d_; ++k) {
        results_.push_back(to_.sum_of_products(
            to_.at("dQ", i, k), m_, [&](Index j) { return p(i, j); },
            [&](Index j) { return A2_(j, k); }));
      }
    }
    for (const WordsOf& of_keys :
         {column_products("dK", p, A1_, d_), column_products("dV", f, dO, dv_)}) {
      results_.insert(results_.end(), of_keys.all().begin(), of_keys.all().end());
    }
    return to_.take(results_);
  }

 private:
  [[nodiscard]] bool weighted() const { return problem_.inputs == Inputs::weighted; }
  [[nodiscard]] bool live(Index i, Index j) const {
    return problem_.sparsity.dense() ? problem_.pairs({i, i + 1}, {j, j + 1}) != Words(0)
                                     : s_(i, j) != kNoWord;
  }
  template <class Visit>
  void each_key(Index i, const Visit& visit) const {
    for (Index j = 0; j < m_; ++j) {
      if (live(i, j)) {
        visit(j);
      }
    }
  }
  std::function<bool(Index, Index)> stored_in(const BlockPattern& pattern) const {
    return [&pattern](Index i, Index k) { return std::ranges::binary_search(pattern.row(i), k); };
  }

  // The inputs, S and h, and the scores; dO where it is one of them.
  WordsOf scores(bool with_dO = false) {
    const Sparsity& of = problem_.sparsity;
    const bool sparse = !of.dense();
    A1_ = to_.inputs(weighted() ? "A1" : "Q", n_, d_, sparse ? stored_in(of.A1()) : nullptr);
    A2_ = to_.inputs(weighted() ? "A2" : "K", m_, d_, sparse ? stored_in(of.A2()) : nullptr);
    const WordsOf A3 = to_.inputs(weighted() ? "A3" : "V", m_, dv_);
    WordsOf S = A1_, dO(0, 0);
    if (weighted()) {
      const WordsOf X = to_.inputs("X", d_, d_, sparse ? stored_in(of.X()) : nullptr);
      const WordsOf Y = to_.inputs("Y", d_, d_);
      if (with_dO) {
        dO = to_.inputs("dO", n_, dv_);
      }
      S = rows_times("S", A1_, X, n_);
      h_ = rows_times("h", A3, Y, m_);
    } else {
      if (with_dO) {
        dO = to_.inputs("dO", n_, dv_);
      }
      h_ = A3;
    }
    s_ = row_products("s", S, A2_, d_, sparse);
    return dO;
  }
  // A (rows x d) times W.
  WordsOf rows_times(std::string_view name, const WordsOf& A, const WordsOf& W, Index rows) {
    WordsOf made(rows, d_);
    for (Index i = 0; i < rows; ++i) {
      for (Index k = 0; k < d_; ++k) {
        made(i, k) = to_.sum_of_products(
            to_.at(name, i, k), d_, [&](Index t) { return A(i, t); },
            [&](Index t) { return W(t, k); });
      }
    }
    return made;
  }
  // A (n x width) times B^T (width x m), of live pairs; or of all, of which those that meet are.
  WordsOf row_products(std::string_view name, const WordsOf& A, const WordsOf& B, Index width,
                       bool all = false) {
    WordsOf made(n_, m_);
    for (Index i = 0; i < n_; ++i) {
      for (Index j = 0; j < m_; ++j) {
        if (all || live(i, j)) {
          made(i, j) = to_.sum_of_products(
              to_.at(name, i, j), width, [&](Index t) { return A(i, t); },
              [&](Index t) { return B(j, t); });
        }
      }
    }
    return made;
  }
  // P^T (m x n) times A (n x width).
  WordsOf column_products(std::string_view name, const WordsOf& P, const WordsOf& A, Index width) {
    WordsOf made(m_, width);
    for (Index j = 0; j < m_; ++j) {
      for (Index k = 0; k < width; ++k) {
        made(j, k) = to_.sum_of_products(
            to_.at(name, j, k), n_, [&](Index i) { return P(i, j); },
            [&](Index i) { return A(i, k); });
      }
    }
    return made;
  }
  WordsOf exponentials() {
    WordsOf e(n_, m_);
    for (Index i = 0; i < n_; ++i) {
      each_key(i, [&](Index j) { e(i, j) = to_.add(to_.at("e", i, j), {s_(i, j)}); });
    }
    return e;
  }
  Index row_sum(Index i, const WordsOf& e) {
    std::vector<Index> terms;
    each_key(i, [&](Index j) { terms.push_back(e(i, j)); });
    return to_.sum(to_.at("l", i), terms);
  }

  const Problem& problem_;
  Index n_, m_, d_, dv_;
  DagWriter to_;
  WordsOf A1_{0, 0}, A2_{0, 0}, h_{0, 0}, s_{0, 0};
  std::vector<Index> results_;
};

Dag product(const Shape& shape, Sums sums) {
  DagWriter to(sums);
  const WordsOf A = to.inputs("A", shape.n, shape.d), B = to.inputs("B", shape.d, shape.m);
  std::vector<Index> results;
  for (Index i = 0; i < shape.n; ++i) {
    for (Index j = 0; j < shape.m; ++j) {
      results.push_back(to.sum_of_products(
          to.at("C", i, j), shape.d, [&](Index k) { return A(i, k); },
          [&](Index k) { return B(k, j); }));
    }
  }
  return to.take(results);
}

}  // namespace

Dag dag_of(Pass pass, const Problem& problem, Sums sums) {
  switch (pass) {
    case Pass::product:
      return product(problem.shape, sums);
    case Pass::forward:
    case Pass::attention:
      return Attention(problem, sums).forward();
    case Pass::backward:
      return Attention(problem, sums).backward();
    default:
      return Attention(problem, sums).gradients();
  }
}

}  // namespace redblue
