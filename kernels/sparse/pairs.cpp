// Handles one key after the other. Each live pair's score is computed and used at once.

#include <cmath>
#include <optional>
#include <utility>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/sparse/arithmetic.hpp"
#include "kernels/sparse/scores.hpp"
#include "kernels/sparse/sums.hpp"

namespace redblue {
namespace {

// The present key and its values, valid until a tile is made.
struct PresentKey {
  SparseRow a2;
  std::optional<ConstView> a3;
};

// The kPairWords words of a pair: a score (or the value computed from it), and a factor or a
// gradient.
struct Pair {
  explicit Pair(Tile& tile) : score(tile.part({0, 1})), other(tile.part({1, 2})) {}
  View score, other;
};

class PairSums {
 public:
  PairSums(const SparseRows& by, SparseSums& sums) : by_(by), sums_(sums) {}

  // Calls pairs(use), which calls use(i) for each live pair of the key when its score is computed.
  template <class Pairs>
  void key(Machine& machine, const PresentKey& key, const Pair& pair, const Pairs& pairs) {
    const std::optional<View> z = key.a3 ? std::optional<View>(sums_.Z) : std::nullopt;
    if (!by_.softmax) {
      pairs([&](Index i) {
        activate(by_.activation, pair.score, pair.score);
        add_scaled_row(*z, i, pair.score, 0, *key.a3);
      });
      return;
    }
    float& score = pair.score(0, 0);
    float& rescale = pair.other(0, 0);
    float* const largest = View(sums_.maximum).at(0, 0);
    float* const of_rows = View(sums_.sum).at(0, 0);
    pairs([&](Index i) {
      const bool raises = score > largest[i];
      if (machine.is_heard()) [[unlikely]] {
        tell_sums(machine, &score, &rescale, largest + i, of_rows + i, raises);
      }
      if (raises) {
        rescale = std::exp(largest[i] - score);
        largest[i] = score;
        of_rows[i] *= rescale;
        if (z) {
          scale_row(*z, i, pair.other);
        }
      }
      score = std::exp(score - largest[i]);
      of_rows[i] += score;
      if (z) {
        add_scaled_row(*z, i, pair.score, 0, *key.a3);
      }
    });
  }
  [[nodiscard]] Operations of_pair(const PresentKey& key) const {
    return {.flops = key.a3 ? 2 * key.a3->cols() : 0, .elementwise = by_.softmax ? 3 : 0};
  }

 private:
  static void tell_sums(Machine& machine, const float* score, const float* rescale,
                        const float* largest, const float* sum, bool raises) {
    if (raises) {
      tell_map(machine, "copy", rescale, Old::overwritten, {largest});
    }
    tell_fold(machine, "maximum", largest, score);
    if (raises) {
      tell_map(machine, "exp_difference", rescale, Old::taken, {largest});
      tell_map(machine, "multiply", sum, Old::taken, {rescale});
    }
    tell_map(machine, "exp_difference", score, Old::taken, {largest});
    tell_fold(machine, "sum", sum, score);
  }

  const SparseRows& by_;
  SparseSums& sums_;
};

class PairGradients {
 public:
  PairGradients(const SparseRows& by, SparseGradients& sums) : by_(by), sums_(sums) {}

  template <class Pairs>
  void key(Machine& machine, const PresentKey& key, const Pair& pair, const Pairs& pairs) {
    const ConstView g(std::as_const(sums_.G));
    float* const w = View(sums_.W).at(0, 0);
    float& p = pair.score(0, 0);
    float& q = pair.other(0, 0);
    const float* const l = by_.softmax ? ConstView(std::as_const(sums_.L)).at(0, 0) : nullptr;
    const float* const v = by_.softmax ? ConstView(std::as_const(sums_.v)).at(0, 0) : nullptr;
    pairs([&](Index i) {
      fill_word(machine, &q, 0);
      q += dot_row(g, i, *key.a3);
      if (machine.is_heard()) [[unlikely]] {
        tell_dot_row(g, i, *key.a3, pair.other, 0, 0);
      }
      if (by_.softmax) {
        p = std::exp(p - l[i]) * (q - v[i]);
        if (machine.is_heard()) [[unlikely]] {
          tell_map(machine, "exp_difference", &p, Old::taken, {l + i});
          tell_map(machine, "softmax_gradient", &p, Old::taken, {&q, v + i});
        }
      } else {
        activation_gradient(by_.activation, pair.score, pair.other, pair.score);
      }
      add_scaled(machine, key.a2, &p, w + i * g.cols());
    });
  }
  [[nodiscard]] Operations of_pair(const PresentKey& key) const {
    return {.flops = 2 * (key.a3->cols() + key.a2.size()), .elementwise = by_.softmax ? 4 : 0};
  }

 private:
  const SparseRows& by_;
  SparseGradients& sums_;
};

template <class Scores, class Sums>
void over_met_keys(Machine& machine, const SparseChunk& chunk, Scores scores, Sums sums) {
  const SparseRows& by = chunk.by;
  Tile pair = machine.initialize("pair", kPairWords, 1, Holds::scores);
  const SlowCsr A2{by.of.A2(), chunk.io.in("A2")};
  each_met_keys(machine, A2, by.met(chunk.I), 1, [&](Range keys, const CsrEntries& a2) {
    const Index key = keys.begin;
    const Tile beside = scores.beside(machine, key, a2);
    const Tile a3 = by.dense ? machine.read(chunk.io.in("A3").row_block(keys)) : Tile();
    const PresentKey present{{by.of.A2().row(key), a2.word(a2.entries.begin)},
                             by.dense ? std::optional<ConstView>(a3) : std::nullopt};
    Index pairs = 0;
    Operations done;
    const Pair words(pair);
    sums.key(machine, present, words, [&](const auto& use) {
      done = scores.each(machine, key, a2, beside, words.score.at(0, 0), [&](Index i) {
        use(i);
        ++pairs;
      });
    });
    const Operations of_pair = sums.of_pair(present);
    machine.computed(done + Operations{pairs * of_pair.flops, pairs * of_pair.elementwise});
  });
}

template <class Sums>
void over_pairs(Machine& machine, const SparseChunk& chunk, const Sums& sums) {
  if (chunk.beside.columns) {
    over_met_keys(machine, chunk,
                  StayingX(chunk.by, *chunk.beside.columns, chunk.beside.x, chunk.I, chunk.rows),
                  sums);
  } else {
    over_met_keys(machine, chunk, StayingS(chunk.by, chunk.I, chunk.rows), sums);
  }
}

}  // namespace

void add_pairs(Machine& machine, const SparseChunk& chunk, SparseSums& sums) {
  over_pairs(machine, chunk, PairSums(chunk.by, sums));
}

void add_pairs(Machine& machine, const SparseChunk& chunk, SparseGradients& sums) {
  over_pairs(machine, chunk, PairGradients(chunk.by, sums));
}

}  // namespace redblue
