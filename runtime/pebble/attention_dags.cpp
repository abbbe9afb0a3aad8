#include "runtime/pebble/attention_dags.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <string_view>
#include <utility>

#include "runtime/pebble/dag_writer.hpp"
#include "runtime/theory/sources.hpp"

namespace redblue {
namespace {

// Builds the graph of one task. Without weights, Q, K, V replace S, A2, h.
class Attention {
 public:
  Attention(const Task& task, Sums sums, const GraphOrder& order)
      : task_(task),
        problem_(task.problem),
        sources_(sources_of(task)),
        order_(order),
        n_(problem_.shape.n),
        m_(problem_.shape.m),
        d_(problem_.shape.d),
        dv_(problem_.shape.dv),
        to_(sums) {}

  Dag forward() {
    scores();
    const WordsOf e = exponentials();
    const bool first = order_.rows == RowValues::other;  // f = e / l, then sums of f
    std::vector<Index> l;
    for (Index i = 0; i < n_; ++i) {
      l.push_back(row_sum(i, e));
    }
    WordsOf f = e;
    for (Index i = 0; first && i < n_; ++i) {
      each_key(i, [&](Index j) { f(i, j) = to_.add(to_.at("f", i, j), {e(i, j), l[slot(i)]}); });
    }
    const WordsOf& values = order_.values_last ? A3_ : h_;
    WordsOf sums = row_sums(first && !order_.values_last ? "O" : "Z", f, values, dv_);
    for (Index i = 0; !first && i < n_; ++i) {
      for (Index k = 0; l[slot(i)] != kNoWord && k < dv_; ++k) {
        sums(i, k) =
            to_.add(to_.at(order_.values_last ? "N" : "O", i, k), {sums(i, k), l[slot(i)]});
      }
    }
    returns("O", order_.values_last ? times("O", sums, Y_, n_) : sums);
    WordsOf L(n_, 1);
    for (Index i = 0; i < n_; ++i) {
      L(i, 0) = order_.in_place || l[slot(i)] == kNoWord ? l[slot(i)]
                                                         : to_.add(to_.at("L", i), {l[slot(i)]});
    }
    returns("L", L);
    return to_.take(results_);
  }

  Dag backward() {
    scores();
    const WordsOf q = gradients_of_f();
    const bool queries_last = order_.queries_last;
    const WordsOf sums = order_.rows == RowValues::one_pass ? corrected_sums(q)
                         : queries_last ? row_sums("W", p_and_f(q).first, A2_, d_)
                                        : column_products("T", p_and_f(q).first, A1_, d_);
    WordsOf g(d_, d_);
    for (Index k = 0; k < d_; ++k) {
      for (Index l = 0; l < d_; ++l) {
        g(k, l) = to_.sum_of_products(
            to_.at("g", k, l), queries_last ? n_ : m_,
            [&](Index t) { return queries_last ? A1_(t, k) : sums(t, k); },
            [&](Index t) { return queries_last ? sums(t, l) : A2_(t, l); });
      }
    }
    returns("g", g);
    return to_.take(results_);
  }

  Dag gradients() {
    scores();
    const auto [p, f] = p_and_f(gradients_of_f());
    returns("dQ", row_sums("dQ", p, A2_, d_));
    returns("dK", column_products("dK", p, A1_, d_));
    returns("dV", column_products("dV", f, dO_, dv_));
    return to_.take(results_);
  }

 private:
  [[nodiscard]] bool weighted() const { return inputs_of(task_.pass) == Inputs::weighted; }
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

  // Returns the words of a source. They have no vertices if the task has no such source.
  WordsOf source(std::string_view name, Index rows, Index cols,
                 const std::function<bool(Index, Index)>& stored = nullptr) {
    return std::ranges::find(sources_, name, &Source::name) == sources_.end()
               ? WordsOf(rows, cols)
               : to_.inputs(name, rows, cols, stored);
  }
  // Makes the inputs and the scores.
  void scores() {
    const Sparsity& of = problem_.sparsity;
    const bool sparse = !of.dense();
    A1_ = source(weighted() ? "A1" : "Q", n_, d_, sparse ? stored_in(of.A1()) : nullptr);
    A2_ = source(weighted() ? "A2" : "K", m_, d_, sparse ? stored_in(of.A2()) : nullptr);
    A3_ = source(weighted() ? "A3" : "V", m_, dv_);
    const WordsOf X = source("X", d_, d_, sparse ? stored_in(of.X()) : nullptr);
    Y_ = source("Y", d_, d_);
    dO_ = source("dO", n_, dv_);
    if (is_backward(task_.pass) && task_.known == Known::O_and_L) {
      O_ = to_.inputs("O", n_, dv_);
      L_ = to_.inputs("L", n_, 1);
    }
    const bool keys_first = weighted() && order_.keys_first;
    const WordsOf S = weighted() && !keys_first ? times("S", A1_, X, n_) : A1_;
    h_ = weighted() && !order_.values_last ? times("h", A3_, Y_, m_) : A3_;
    s_ = row_products("s", S, keys_first ? times("R", A2_, X, m_, true) : A2_, d_, sparse);
  }
  // Returns q, made from h = A3 Y or from G = dO Y^T.
  WordsOf gradients_of_f() {
    const bool by_G = weighted() && order_.values_last;
    return row_products("q", by_G ? times("G", dO_, Y_, n_, true) : dO_, h_, dv_);
  }
  // Returns p and f. Gradients need both.
  std::pair<WordsOf, WordsOf> p_and_f(const WordsOf& q) {
    const bool given = task_.known == Known::O_and_L;
    const WordsOf e = given ? s_ : exponentials();
    WordsOf f(n_, m_), p(n_, m_);
    for (Index i = 0; i < n_; ++i) {
      const Index l = given ? L_(i, 0) : row_sum(i, e);
      each_key(i, [&](Index j) { f(i, j) = to_.add(to_.at("f", i, j), {e(i, j), l}); });
      const Index v = given ? to_.sum_of_products(
                                  to_.at("v", i), dv_, [&](Index k) { return dO_(i, k); },
                                  [&](Index k) { return O_(i, k); })
                      : order_.rows == RowValues::other ? divided_v(i, e, q, l)
                                                        : row_of_q("v", i, f, q);
      each_key(i, [&](Index j) {
        p(i, j) = to_.made_of(to_.at("p", i, j), {f(i, j), q(i, j), v});
      });
    }
    return {std::move(p), std::move(f)};
  }
  // Returns the sum over keys of f q, or of e q.
  Index row_of_q(std::string_view name, Index i, const WordsOf& f, const WordsOf& q) {
    return to_.sum_of_products(
        to_.at(name, i), m_, [&](Index j) { return f(i, j); }, [&](Index j) { return q(i, j); });
  }
  Index divided_v(Index i, const WordsOf& e, const WordsOf& q, Index l) {
    const Index u = row_of_q("u", i, e, q);
    return u == kNoWord ? kNoWord : to_.add(to_.at("v", i), {u, l});
  }
  // Returns W = (U - (u / l) Z) / l with U = (e q) A2 and Z = e A2, in one pass over keys.
  WordsOf corrected_sums(const WordsOf& q) {
    const WordsOf e = exponentials();
    WordsOf eq(n_, m_), W(n_, d_);
    for (Index i = 0; i < n_; ++i) {
      each_key(i, [&](Index j) { eq(i, j) = to_.made_of(to_.at("eq", i, j), {e(i, j), q(i, j)}); });
    }
    const WordsOf Z = row_sums("Z", e, A2_, d_), U = row_sums("U", eq, A2_, d_);
    for (Index i = 0; i < n_; ++i) {
      const Index l = row_sum(i, e), u = row_sum(i, eq, "u");
      for (Index k = 0; l != kNoWord && k < d_; ++k) {
        W(i, k) = to_.made_of(to_.at("W", i, k), {U(i, k), Z(i, k), l, u});
      }
    }
    return W;
  }
  // Returns A (rows x d) times W, or times W^T.
  WordsOf times(std::string_view name, const WordsOf& A, const WordsOf& W, Index rows,
                bool transposed = false) {
    WordsOf made(rows, d_);
    for (Index i = 0; i < rows; ++i) {
      for (Index k = 0; k < d_; ++k) {
        made(i, k) = to_.sum_of_products(
            to_.at(name, i, k), d_, [&](Index t) { return A(i, t); },
            [&](Index t) { return transposed ? W(k, t) : W(t, k); });
      }
    }
    return made;
  }
  // Returns P (n x m) times A (m x width).
  WordsOf row_sums(std::string_view name, const WordsOf& P, const WordsOf& A, Index width) {
    WordsOf made(n_, width);
    for (Index i = 0; i < n_; ++i) {
      for (Index k = 0; k < width; ++k) {
        made(i, k) = to_.sum_of_products(
            to_.at(name, i, k), m_, [&](Index j) { return P(i, j); },
            [&](Index j) { return A(j, k); });
      }
    }
    return made;
  }
  // Returns A (n x width) times B^T (width x m) at live pairs. If `all`, at all pairs; an empty sum
  // has no vertex.
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
  // Returns P^T (m x n) times A (n x width).
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
    if (order_.in_place) {
      return s_;
    }
    WordsOf e(n_, m_);
    for (Index i = 0; i < n_; ++i) {
      each_key(i, [&](Index j) { e(i, j) = to_.add(to_.at("e", i, j), {s_(i, j)}); });
    }
    return e;
  }
  Index row_sum(Index i, const WordsOf& e, std::string_view name = "l") {
    std::vector<Index> terms;
    each_key(i, [&](Index j) { terms.push_back(e(i, j)); });
    return to_.sum(to_.at(name, i), terms);
  }
  // Adds the words of a result, if it is wanted.
  void returns(std::string_view name, const WordsOf& words) {
    if (problem_.wants(name)) {
      std::ranges::copy_if(words.all(), std::back_inserter(results_),
                           [](Index word) { return word != kNoWord; });
    }
  }

  const Task& task_;
  const Problem& problem_;
  std::vector<Source> sources_;
  GraphOrder order_;
  Index n_, m_, d_, dv_;
  DagWriter to_;
  WordsOf A1_{0, 0}, A2_{0, 0}, A3_{0, 0}, Y_{0, 0}, dO_{0, 0}, O_{0, 0}, L_{0, 0};
  WordsOf h_{0, 0}, s_{0, 0};
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

bool has_graph(Pass pass) {
  return pass == Pass::product || pass == Pass::forward || pass == Pass::backward ||
         pass == Pass::attention || pass == Pass::gradients;
}

Dag dag_of(const Task& task, Sums sums, const GraphOrder& order) {
  if (task.pass == Pass::product) {
    return product(task.problem.shape, sums);
  }
  Attention attention(task, sums, order);
  return task.pass == Pass::backward    ? attention.backward()
         : task.pass == Pass::gradients ? attention.gradients()
                                        : attention.forward();
}

std::vector<GraphOrder> orders_of(const Task& task) {
  const bool weighted = task.pass == Pass::forward || task.pass == Pass::backward;
  const bool given = task.known == Known::O_and_L;
  std::vector<GraphOrder> all;
  for (const RowValues rows : {RowValues::usual, RowValues::other, RowValues::one_pass}) {
    for (int choice = 0; choice < 8; ++choice) {
      const GraphOrder order{.keys_first = (choice & 1) != 0,
                             .values_last = (choice & 2) != 0,
                             .queries_last = (choice & 4) != 0,
                             .rows = rows,
                             .in_place = true};
      const bool one_order = !weighted && (order.keys_first || order.values_last);
      const bool no_g = task.pass != Pass::backward && order.queries_last;
      const bool no_sums =
          rows == RowValues::one_pass && (task.pass != Pass::backward || !order.queries_last);
      const bool no_choice = rows == RowValues::other && is_backward(task.pass) && given;
      if (!one_order && !no_g && !no_sums && !no_choice &&
          (task.pass != Pass::product || rows == RowValues::usual) &&
          (rows != RowValues::one_pass || !given)) {
        all.push_back(order);
      }
    }
  }
  return all;
}

std::string to_string(const GraphOrder& order, Pass pass) {
  if (pass == Pass::product) {
    return "C";
  }
  const bool weighted = pass == Pass::forward || pass == Pass::backward;
  std::string text;
  if (weighted) {
    text = order.keys_first ? "R, " : "S, ";
    text += !order.values_last ? "h, " : pass == Pass::backward ? "G, " : "Z Y, ";
  }
  if (!is_backward(pass)) {
    return text + (order.rows == RowValues::other ? "f" : "e");
  }
  if (pass == Pass::backward) {
    text += order.queries_last ? "W, " : "T, ";
  }
  return text + (order.rows == RowValues::usual ? "v" : order.rows == RowValues::other ? "u" : "U");
}

}  // namespace redblue
