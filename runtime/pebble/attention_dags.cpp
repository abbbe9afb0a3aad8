#include "runtime/pebble/attention_dags.hpp"

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace redblue {
namespace {

constexpr Index kNone = -1;  // a word that is no vertex: 0

// The vertices of a matrix.
class Words2 {
 public:
  Words2(Index rows, Index cols) : cols_(cols), of_(static_cast<std::size_t>(rows * cols), kNone) {}
  Index& operator()(Index i, Index k) { return of_[static_cast<std::size_t>(i * cols_ + k)]; }
  Index operator()(Index i, Index k) const { return of_[static_cast<std::size_t>(i * cols_ + k)]; }
  [[nodiscard]] const std::vector<Index>& all() const { return of_; }

 private:
  Index cols_;
  std::vector<Index> of_;
};

class Writer {
 public:
  explicit Writer(Sums sums) : sums_(sums) {}

  Words2 inputs(std::string_view name, Index rows, Index cols,
                const std::function<bool(Index, Index)>& stored = nullptr) {
    Words2 words(rows, cols);
    for (Index i = 0; i < rows; ++i) {
      for (Index k = 0; k < cols; ++k) {
        if (!stored || stored(i, k)) {
          words(i, k) = add(at(name, i, k), {});
        }
      }
    }
    return words;
  }

  // The sum over t < depth of a(t) b(t), where both are vertices.
  template <class Left, class Right>
  Index sum_of_products(const std::string& name, Index depth, const Left& a, const Right& b) {
    std::vector<std::pair<Index, Index>> factors;
    for (Index t = 0; t < depth; ++t) {
      if (const std::pair of{a(t), b(t)}; of.first != kNone && of.second != kNone) {
        factors.push_back(of);
      }
    }
    if (factors.size() == 1) {
      return add(name, operands(factors.front()));
    }
    std::vector<Index> terms;
    for (const auto& of : factors) {
      terms.push_back(add(fmt::format("{}*{}", name, terms.size()), operands(of)));
      dag_.vertices.back().term = true;
    }
    return sum(name, terms);
  }
  // The sum of these words; of one it is a vertex, too.
  Index sum(const std::string& name, const std::vector<Index>& terms) {
    if (terms.empty()) {
      return kNone;
    }
    if (terms.size() == 1 || sums_ == Sums::any) {
      return add(name, terms);
    }
    partial_ = 0;
    return sums_ == Sums::chain ? chain(name, terms) : tree(name, terms.begin(), terms.end(), true);
  }
  Index add(std::string name, std::vector<Index> operands) {
    if (dag_.size() >= kMostVertices) {
      throw std::length_error(fmt::format("more than {} vertices", kMostVertices));
    }
    return dag_.add(std::move(name), std::move(operands));
  }
  // Of those words that are vertices.
  Index made_of(std::string name, std::initializer_list<Index> words) {
    std::vector<Index> operands;
    std::ranges::copy_if(words, std::back_inserter(operands),
                         [](Index word) { return word != kNone; });
    return add(std::move(name), std::move(operands));
  }
  static std::string at(std::string_view name, Index i, Index k) {
    return fmt::format("{}({},{})", name, i, k);
  }
  static std::string at(std::string_view name, Index i) { return fmt::format("{}({})", name, i); }
  // With what those words are made of, and nothing else.
  [[nodiscard]] Dag take(const std::vector<Index>& results) {
    std::vector<Index> place(dag_.vertices.size(), kNone);
    std::vector<Index> left = results;
    while (!left.empty()) {
      const Index v = left.back();
      left.pop_back();
      if (v != kNone && std::exchange(place[static_cast<std::size_t>(v)], 0) == kNone) {
        left.insert(left.end(), dag_[v].operands.begin(), dag_[v].operands.end());
      }
    }
    Dag kept;
    for (Index v = 0; v < dag_.size(); ++v) {
      if (place[static_cast<std::size_t>(v)] == kNone) {
        continue;
      }
      place[static_cast<std::size_t>(v)] = kept.size();
      Vertex& vertex = dag_.vertices[static_cast<std::size_t>(v)];
      for (Index& operand : vertex.operands) {
        operand = place[static_cast<std::size_t>(operand)];
      }
      kept.vertices.push_back(std::move(vertex));
    }
    return kept;
  }

 private:
  using At = std::vector<Index>::const_iterator;

  static std::vector<Index> operands(const std::pair<Index, Index>& of) {
    return of.first == of.second ? std::vector<Index>{of.first}
                                 : std::vector<Index>{of.first, of.second};
  }
  std::string partial(const std::string& name, bool last) {
    return last ? name : fmt::format("{}+{}", name, ++partial_);
  }
  Index chain(const std::string& name, const std::vector<Index>& terms) {
    Index sum = terms.front();
    for (std::size_t t = 1; t < terms.size(); ++t) {
      sum = add(partial(name, t + 1 == terms.size()), {sum, terms[t]});
    }
    return sum;
  }
  Index tree(const std::string& name, At begin, At end, bool last) {
    if (end - begin == 1) {
      return *begin;
    }
    const At middle = begin + (end - begin + 1) / 2;
    const Index left = tree(name, begin, middle, false);
    const Index right = tree(name, middle, end, false);
    return add(partial(name, last), {left, right});
  }

  Sums sums_;
  Dag dag_;
  Index partial_ = 0;
};

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
    const Words2 e = exponentials();
    for (Index i = 0; i < n_; ++i) {
      const Index l = row_sum(i, e);
      for (Index k = 0; l != kNone && k < dv_; ++k) {
        const Index z = to_.sum_of_products(
            to_.at("Z", i, k), m_, [&](Index j) { return e(i, j); },
            [&](Index j) { return h_(j, k); });
        results_.push_back(to_.add(to_.at("O", i, k), {z, l}));
      }
    }
    return to_.take(results_);
  }

  Dag backward() {
    const Words2 dO = scores(true);
    const Words2 q = row_products("q", dO, h_, dv_);
    const Words2 e = exponentials();
    Words2 f(n_, m_), p(n_, m_);
    for (Index i = 0; i < n_; ++i) {
      const Index l = row_sum(i, e);
      each_key(i, [&](Index j) { f(i, j) = to_.add(to_.at("f", i, j), {e(i, j), l}); });
      const Index v = to_.sum_of_products(
          to_.at("v", i), m_, [&](Index j) { return f(i, j); }, [&](Index j) { return q(i, j); });
      each_key(i, [&](Index j) {
        p(i, j) = to_.made_of(to_.at("p", i, j), {f(i, j), q(i, j), v});
      });
    }
    const Words2 T = column_products("T", p, A1_, d_);
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
    const Words2 dO = scores(true);
    const Words2 O = to_.inputs("O", n_, dv_);
    const Words2 L = to_.inputs("L", n_, 1);
    Words2 f(n_, m_), p(n_, m_);
    for (Index i = 0; i < n_; ++i) {
      each_key(i, [&](Index j) { f(i, j) = to_.add(to_.at("f", i, j), {s_(i, j), L(i, 0)}); });
    }
    const Words2 q = row_products("q", dO, h_, dv_);
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
    for (const Words2& of_keys :
         {column_products("dK", p, A1_, d_), column_products("dV", f, dO, dv_)}) {
      results_.insert(results_.end(), of_keys.all().begin(), of_keys.all().end());
    }
    return to_.take(results_);
  }

 private:
  [[nodiscard]] bool weighted() const { return problem_.inputs == Inputs::weighted; }
  [[nodiscard]] bool live(Index i, Index j) const {
    return problem_.sparsity.dense() ? problem_.pairs({i, i + 1}, {j, j + 1}) != Words(0)
                                     : s_(i, j) != kNone;
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
  Words2 scores(bool with_dO = false) {
    const Sparsity& of = problem_.sparsity;
    const bool sparse = !of.dense();
    A1_ = to_.inputs(weighted() ? "A1" : "Q", n_, d_, sparse ? stored_in(of.A1()) : nullptr);
    A2_ = to_.inputs(weighted() ? "A2" : "K", m_, d_, sparse ? stored_in(of.A2()) : nullptr);
    const Words2 A3 = to_.inputs(weighted() ? "A3" : "V", m_, dv_);
    Words2 S = A1_, dO(0, 0);
    if (weighted()) {
      const Words2 X = to_.inputs("X", d_, d_, sparse ? stored_in(of.X()) : nullptr);
      const Words2 Y = to_.inputs("Y", d_, d_);
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
  Words2 rows_times(std::string_view name, const Words2& A, const Words2& W, Index rows) {
    Words2 made(rows, d_);
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
  Words2 row_products(std::string_view name, const Words2& A, const Words2& B, Index width,
                      bool all = false) {
    Words2 made(n_, m_);
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
  Words2 column_products(std::string_view name, const Words2& P, const Words2& A, Index width) {
    Words2 made(m_, width);
    for (Index j = 0; j < m_; ++j) {
      for (Index k = 0; k < width; ++k) {
        made(j, k) = to_.sum_of_products(
            to_.at(name, j, k), n_, [&](Index i) { return P(i, j); },
            [&](Index i) { return A(i, k); });
      }
    }
    return made;
  }
  Words2 exponentials() {
    Words2 e(n_, m_);
    for (Index i = 0; i < n_; ++i) {
      each_key(i, [&](Index j) { e(i, j) = to_.add(to_.at("e", i, j), {s_(i, j)}); });
    }
    return e;
  }
  Index row_sum(Index i, const Words2& e) {
    std::vector<Index> terms;
    each_key(i, [&](Index j) { terms.push_back(e(i, j)); });
    return to_.sum(to_.at("l", i), terms);
  }

  const Problem& problem_;
  Index n_, m_, d_, dv_;
  Writer to_;
  Words2 A1_{0, 0}, A2_{0, 0}, h_{0, 0}, s_{0, 0};
  std::vector<Index> results_;
};

Dag product(const Shape& shape, Sums sums) {
  Writer to(sums);
  const Words2 A = to.inputs("A", shape.n, shape.d), B = to.inputs("B", shape.d, shape.m);
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
