#include "runtime/pebble/core_dags.hpp"

#include "runtime/pebble/dag_writer.hpp"

namespace redblue {
namespace {

class CoreOf {
 public:
  CoreOf(Core core, const Shape& shape, bool shared, Sums sums)
      : core_(core), n_(shape.n), m_(shape.m), d_(shape.d), shared_(shared), to_(sums) {}

  Dag get() {
    const bool gradients = core_ == Core::gradients;
    const WordsOf S = to_.inputs(gradients ? "Q" : "S", n_, d_);
    const WordsOf A2 = to_.inputs(gradients ? "K" : "A2", m_, d_);
    const WordsOf h = shared_ ? A2 : to_.inputs(gradients ? "V" : "h", m_, d_);
    const WordsOf s = scores("s", S, A2);
    if (core_ == Core::forward) {
      result(of_rows("O", s, h));
      return to_.take(results_);
    }
    const WordsOf dO = to_.inputs("dO", n_, d_);
    const WordsOf p = products(s, scores("q", dO, h));
    if (core_ == Core::gradients) {
      result(of_rows("dQ", p, A2));
      result(of_columns("dK", p, S));
      result(of_columns("dV", s, dO));
    } else if (core_ == Core::backward) {
      result(of_rows("W", p, A2));
    } else {
      result(of_weights(to_.inputs("A1", n_, d_), of_rows("W", p, A2)));
    }
    return to_.take(results_);
  }

 private:
  void result(const WordsOf& words) {
    results_.insert(results_.end(), words.all().begin(), words.all().end());
  }
  // Returns rows x cols sums over t < depth of left(row, t) times right(t, col).
  template <class Left, class Right>
  WordsOf product(const char* name, Index rows, Index cols, Index depth, const Left& left,
                  const Right& right) {
    WordsOf made(rows, cols);
    for (Index i = 0; i < rows; ++i) {
      for (Index k = 0; k < cols; ++k) {
        made(i, k) = to_.sum_of_products(
            to_.at(name, i, k), depth, [&](Index t) { return left(i, t); },
            [&](Index t) { return right(t, k); });
      }
    }
    return made;
  }
  WordsOf scores(const char* name, const WordsOf& A, const WordsOf& B) {
    return product(
        name, n_, m_, d_, [&](Index i, Index t) { return A(i, t); },
        [&](Index t, Index j) { return B(j, t); });
  }
  WordsOf products(const WordsOf& s, const WordsOf& q) {
    const bool given = core_ == Core::g;
    const WordsOf l = to_.inputs("l", given ? n_ : 0, 1), v = to_.inputs("v", given ? n_ : 0, 1);
    WordsOf p(n_, m_);
    for (Index i = 0; i < n_; ++i) {
      for (Index j = 0; j < m_; ++j) {
        p(i, j) = given ? to_.add(to_.at("p", i, j), {s(i, j), q(i, j), l(i, 0), v(i, 0)})
                        : to_.add(to_.at("p", i, j), {s(i, j), q(i, j)});
      }
    }
    return p;
  }
  WordsOf of_rows(const char* name, const WordsOf& P, const WordsOf& B) {
    return product(
        name, n_, d_, m_, [&](Index i, Index t) { return P(i, t); },
        [&](Index t, Index k) { return B(t, k); });
  }
  WordsOf of_columns(const char* name, const WordsOf& P, const WordsOf& B) {
    return product(
        name, m_, d_, n_, [&](Index j, Index t) { return P(t, j); },
        [&](Index t, Index k) { return B(t, k); });
  }
  WordsOf of_weights(const WordsOf& A, const WordsOf& W) {
    return product(
        "g", d_, d_, n_, [&](Index k, Index t) { return A(t, k); },
        [&](Index t, Index l) { return W(t, l); });
  }

  Core core_;
  Index n_, m_, d_;
  bool shared_;
  DagWriter to_;
  std::vector<Index> results_;
};

}  // namespace

Dag core_dag(Core core, const Shape& shape, bool shared_keys, Sums sums) {
  return CoreOf(core, shape, shared_keys, sums).get();
}

}  // namespace redblue
