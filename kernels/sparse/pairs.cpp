// One key after the other, and of each live pair the score is made and used at once.

#include <cmath>
#include <optional>
#include <utility>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/sparse/arithmetic.hpp"
#include "kernels/sparse/scores.hpp"
#include "kernels/sparse/sums.hpp"

namespace redblue {
namespace {

// A key with its values, while no tile is made.
struct PresentKey {
  SparseRow a2;
  std::optional<ConstView> a3;
};

// phi, or its slope, of one score: `pair` is the tile that holds it.
float of_score(Activation phi, float s, const View& pair, bool slope) {
  pair(0, 0) = s;
  slope ? activation_slope(phi, pair, pair) : activate(phi, pair, pair);
  return pair(0, 0);
}

class PairSums {
 public:
  PairSums(const SparseRows& by, SparseSums& sums) : by_(by), sums_(sums) {}

  // Calls pairs(use), which calls use(i, s) for live pairs of the key.
  template <class Pairs>
  void key(const PresentKey& key, const View& pair, const Pairs& pairs) {
    const std::optional<View> z = key.a3 ? std::optional<View>(sums_.Z) : std::nullopt;
    if (!by_.softmax) {
      pairs([&](Index i, float s) {
        add_scaled_row(*z, i, of_score(by_.activation, s, pair, false), *key.a3);
      });
      return;
    }
    float* const largest = View(sums_.maximum).at(0, 0);
    float* const of_rows = View(sums_.sum).at(0, 0);
    pairs([&](Index i, float s) {
      if (s > largest[i]) {
        const float rescale = std::exp(largest[i] - s);
        largest[i] = s;
        of_rows[i] *= rescale;
        if (z) {
          scale_row(*z, i, rescale);
        }
      }
      const float e = std::exp(s - largest[i]);
      of_rows[i] += e;
      if (z) {
        add_scaled_row(*z, i, e, *key.a3);
      }
    });
  }
  [[nodiscard]] Operations of_pair(const PresentKey& key) const {
    return {.flops = key.a3 ? 2 * key.a3->cols() : 0, .elementwise = by_.softmax ? 3 : 0};
  }

 private:
  const SparseRows& by_;
  SparseSums& sums_;
};

class PairGradients {
 public:
  PairGradients(const SparseRows& by, SparseGradients& sums) : by_(by), sums_(sums) {}

  template <class Pairs>
  void key(const PresentKey& key, const View& pair, const Pairs& pairs) {
    const ConstView g(std::as_const(sums_.G));
    float* const w = View(sums_.W).at(0, 0);
    if (!by_.softmax) {
      pairs([&](Index i, float s) {
        const float slope = of_score(by_.activation, s, pair, true);
        add_scaled(key.a2, slope * dot_row(g, i, *key.a3), w + i * g.cols());
      });
      return;
    }
    const float* const l = ConstView(std::as_const(sums_.L)).at(0, 0);
    const float* const v = ConstView(std::as_const(sums_.v)).at(0, 0);
    pairs([&](Index i, float s) {
      const float f = std::exp(s - l[i]);
      const float p = f * (dot_row(g, i, *key.a3) - v[i]);
      add_scaled(key.a2, p, w + i * g.cols());
    });
  }
  [[nodiscard]] Operations of_pair(const PresentKey& key) const {
    return {.flops = 2 * (key.a3->cols() + key.a2.size()), .elementwise = by_.softmax ? 4 : 1};
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
    sums.key(present, pair.part({0, 1}), [&](const auto& use) {
      done = scores.each(key, a2, beside, [&](Index i, float s) {
        use(i, s);
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
