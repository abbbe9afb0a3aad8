#include "kernels/sparse/live_products.hpp"

#include <algorithm>
#include <bit>

#include "memsim/machine.hpp"
#include "memsim/unchecked.hpp"

// Compiled once for each instruction set, like the sources in kernels/arithmetic.
#include "kernels/arithmetic/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/sparse/live_products.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h must come first.
#include <hwy/highway.h>

#include "kernels/arithmetic/exp-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace redblue::HWY_NAMESPACE {
namespace {

using Lanes = hn::CappedTag<float, kPanel>;
using Vector = hn::Vec<Lanes>;
constexpr Lanes kLanes;
constexpr Index kWidth = hn::MaxLanes(kLanes);
constexpr int kVectors = kPanel / kWidth;           // vectors in a row of a panel
constexpr int kPanels = std::max(1, 8 / kVectors);  // panels with sums held in registers
constexpr int kKeys = 4;                            // keys multiplied together
constexpr Index kNear = 16;                         // panels of these keys that a near cache holds

// Words behind a narrow panel are loaded too, but never used.
HWY_INLINE Vector load(const float* row, int v) {
  return hn::LoadU(kLanes, row + v * kWidth);
}
HWY_INLINE Vector load(const float* row, int v, Index cols) {
  const Index lanes = std::clamp<Index>(cols - v * kWidth, 0, kWidth);
  return hn::IfThenElseZero(hn::FirstN(kLanes, static_cast<std::size_t>(lanes)), load(row, v));
}
HWY_INLINE void store(Vector value, float* row, int v, Index cols) {
  const Index lanes = cols - v * kWidth;
  if (HWY_LIKELY(lanes >= kWidth)) {
    hn::StoreU(value, kLanes, row + v * kWidth);
  } else if (lanes > 0) {
    float words[kWidth];
    hn::StoreU(value, kLanes, words);
    std::copy_n(words, lanes, row + v * kWidth);
  }
}

// A column of words (0, i), (1, i) ...: the address of the first, and the distance between them.
template <class Word>
struct Down {
  Down(const BasicView<Word>& a, Index i)
      : first(Unchecked(a).at(0, i / kPanel) + i % kPanel),
        stride(Unchecked(a).stride(i / kPanel)) {}
  HWY_INLINE Word& operator[](Index j) const { return first[j * stride]; }
  Word* first;
  Index stride;
};

void fill_pairs(const LiveTile& pairs, float live, float dead, const View& s_t) {
  const Vector if_live = hn::Set(kLanes, live), if_dead = hn::Set(kLanes, dead);
  constexpr Index kOfWord = 64 / kPanel;
  for (Index p = 0; p < s_t.panels(); ++p) {
    const Index cols = Unchecked(s_t).panel_cols(p);
    for (Index j = 0; j < pairs.keys(); ++j) {
      const std::uint64_t bits =
          pairs.of_key(j)[static_cast<std::size_t>(p / kOfWord)] >> (p % kOfWord * kPanel);
      for (int v = 0; v < kVectors; ++v) {
        const std::uint64_t of_lanes = bits >> (v * kWidth);
        const auto mask =
            hn::LoadMaskBits(kLanes, reinterpret_cast<const std::uint8_t*>(&of_lanes));
        store(hn::IfThenElse(mask, if_live, if_dead), Unchecked(s_t).at(j, p), v, cols);
      }
    }
  }
}

// Handles panels p to p + G: whole panels, or a single narrow one.
template <int G>
void add_live_panels(const LiveTile& pairs, const ConstView& e_t, const ConstView& b, const View& Z,
                     Index p) {
  const Index cols = Unchecked(Z).panel_cols(p), of_b = Unchecked(b).stride(p);
  const float* line[G];
  for (int g = 0; g < G; ++g) {
    line[g] = Unchecked(b).at(0, p + g);
  }
  for (Index i = 0; i < pairs.rows(); ++i) {
    std::uint64_t keys = pairs.of_row(i);
    if (keys == 0) {
      continue;
    }
    const Down<const float> e(e_t, i);
    Vector sum[G * kVectors];
    HWY_UNROLL(16)
    for (int v = 0; v < G * kVectors; ++v) {
      sum[v] = load(Unchecked(Z).at(i, p + v / kVectors), v % kVectors);
    }
    for (; keys != 0; keys &= keys - 1) {
      const Index j = std::countr_zero(keys);
      const Vector factor = hn::Set(kLanes, e[j]);
      HWY_UNROLL(16)
      for (int v = 0; v < G * kVectors; ++v) {
        sum[v] = hn::MulAdd(factor, load(line[v / kVectors] + j * of_b, v % kVectors), sum[v]);
      }
    }
    HWY_UNROLL(16)
    for (int v = 0; v < G * kVectors; ++v) {
      store(sum[v], Unchecked(Z).at(i, p + v / kVectors), v % kVectors, G > 1 ? kPanel : cols);
    }
  }
}

void add_live_rows(const LiveTile& pairs, const ConstView& e_t, const ConstView& b, const View& Z) {
  const Index wide = Z.cols() / kPanel;
  Index p = 0;
  for (; p + kPanels <= wide; p += kPanels) {
    add_live_panels<kPanels>(pairs, e_t, b, Z, p);
  }
  for (; p < Z.panels(); ++p) {
    add_live_panels<1>(pairs, e_t, b, Z, p);
  }
}

// Adds G_i . b_j over the panels `of` to q, for K keys.
template <int K>
HWY_INLINE void products_of(const ConstView& G, Index i, const ConstView& b, const Index (&keys)[K],
                            Range of, const Down<float>& q) {
  Vector sum[K];
  HWY_UNROLL(16)
  for (int k = 0; k < K; ++k) {
    sum[k] = hn::Zero(kLanes);
  }
  for (Index p = of.begin; p < of.end; ++p) {
    const Index cols = Unchecked(G).panel_cols(p), stride = Unchecked(b).stride(p);
    const float* const row = Unchecked(G).at(i, p);
    const float* const line = Unchecked(b).at(0, p);
    HWY_UNROLL(16)
    for (int v = 0; v < kVectors; ++v) {
      if (HWY_LIKELY(cols == kPanel)) {
        const Vector g = load(row, v);
        HWY_UNROLL(16)
        for (int k = 0; k < K; ++k) {
          sum[k] = hn::MulAdd(g, load(line + keys[k] * stride, v), sum[k]);
        }
      } else {
        const Vector g = load(row, v, cols);
        for (int k = 0; k < K; ++k) {
          sum[k] = hn::MulAdd(g, load(line + keys[k] * stride, v, cols), sum[k]);
        }
      }
    }
  }
  HWY_UNROLL(16)
  for (int k = 0; k < K; ++k) {
    q[keys[k]] += hn::GetLane(hn::SumOfLanes(kLanes, sum[k]));
  }
}

void live_products(const LiveTile& pairs, const ConstView& G, const ConstView& b, const View& q_t) {
  for (const Range of : blocks(G.panels(), kNear)) {
    for (Index i = 0; i < pairs.rows(); ++i) {
      const Down<float> q(q_t, i);
      std::uint64_t left = pairs.of_row(i);
      const auto next = [&] {
        const Index j = std::countr_zero(left);
        left &= left - 1;
        return j;
      };
      while (std::popcount(left) >= kKeys) {
        const Index keys[kKeys] = {next(), next(), next(), next()};
        products_of(G, i, b, keys, of, q);
      }
      while (left != 0) {
        const Index key[1] = {next()};
        products_of(G, i, b, key, of, q);
      }
    }
  }
}

void exponential_gradient(const ConstView& s_t, const ConstView& L, const ConstView& v,
                          const View& q_t) {
  for (Index p = 0; p < q_t.panels(); ++p) {
    const Index cols = Unchecked(q_t).panel_cols(p);
    for (int lane = 0; lane * kWidth < cols; ++lane) {
      const Index at = p * kPanel;
      const Vector l = load(Unchecked(L).at(0, 0) + at, lane);
      const Vector shift = load(Unchecked(v).at(0, 0) + at, lane);
      for (Index j = 0; j < q_t.rows(); ++j) {
        float* const q = Unchecked(q_t).at(j, p);
        const Vector f = exp(kLanes, hn::Sub(load(Unchecked(s_t).at(j, p), lane), l));
        store(hn::Mul(f, hn::Sub(load(q, lane), shift)), q, lane, cols);
      }
    }
  }
}

void add_sparse_products(const ConstView& p_t, std::span<const SparseRow> keys, const View& W_t) {
  for (Index p = 0; p < W_t.panels(); ++p) {
    const Index cols = Unchecked(W_t).panel_cols(p), stride = Unchecked(W_t).stride(p);
    float* const first = Unchecked(W_t).at(0, p);
    for (std::size_t j = 0; j < keys.size(); ++j) {
      const SparseRow& key = keys[j];
      const float* const from = Unchecked(p_t).at(static_cast<Index>(j), p);
      Vector of_key[kVectors];
      HWY_UNROLL(16)
      for (int v = 0; v < kVectors; ++v) {
        of_key[v] = load(from, v);
      }
      for (Index entry = 0; entry < key.size(); ++entry) {
        float* const to = first + key.columns[static_cast<std::size_t>(entry)] * stride;
        const Vector factor = hn::Set(kLanes, key.words[entry]);
        HWY_UNROLL(16)
        for (int v = 0; v < kVectors; ++v) {
          store(hn::MulAdd(factor, of_key[v], load(to, v)), to, v, cols);
        }
      }
    }
  }
}

}  // namespace
}  // namespace redblue::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace redblue {
namespace {

HWY_EXPORT(fill_pairs);
HWY_EXPORT(add_live_rows);
HWY_EXPORT(live_products);
HWY_EXPORT(exponential_gradient);
HWY_EXPORT(add_sparse_products);

bool is_of(const LiveTile& pairs, const ConstView& s_t) {
  return s_t.rows() == pairs.keys() && s_t.cols() == pairs.rows();
}

ToldPart column_of(const ConstView& a, Index i) {
  ToldPart part = row_of(a, i);
  part.transposed = true;
  return part;
}

// Calls visit(key, row) for each live pair.
template <class Visit>
void each_live(const LiveTile& pairs, const Visit& visit) {
  for (Index i = 0; i < pairs.rows(); ++i) {
    for (std::uint64_t keys = pairs.of_row(i); keys != 0; keys &= keys - 1) {
      visit(std::countr_zero(keys), i);
    }
  }
}

}  // namespace

LiveTile::LiveTile(Index rows)
    : words_(words(rows)),
      of_key_(static_cast<std::size_t>(kKeysTogether * words_)),
      of_row_(static_cast<std::size_t>(rows)) {}

void LiveTile::begin(Index keys) {
  keys_ = keys;
  pairs_ = 0;
  std::ranges::fill(of_key_, std::uint64_t{0});
  std::ranges::fill(of_row_, std::uint64_t{0});
}

void LiveTile::add(Index key, std::span<const std::uint64_t> rows) {
  std::uint64_t* const to = &of_key_[static_cast<std::size_t>(key * words_)];
  for (std::size_t word = 0; word < rows.size(); ++word) {
    to[word] |= rows[word];
  }
}

void LiveTile::end() {
  for (Index key = 0; key < keys_; ++key) {
    for (Index word = 0; word < words_; ++word) {
      std::uint64_t bits = of_key(key)[static_cast<std::size_t>(word)];
      pairs_ += std::popcount(bits);
      for (; bits != 0; bits &= bits - 1) {
        of_row_[static_cast<std::size_t>(word * 64 + std::countr_zero(bits))] |= std::uint64_t{1}
                                                                                 << key;
      }
    }
  }
}

void fill_pairs(const LiveTile& pairs, float live, float dead, const View& s_t) {
  require(is_of(pairs, s_t), "scores of these pairs: the tile conforms");
  HWY_DYNAMIC_DISPATCH(fill_pairs)(pairs, live, dead, s_t);
  if (s_t.machine().is_heard()) [[unlikely]] {
    for (Index j = 0; j < s_t.rows(); ++j) {
      for (Index i = 0; i < s_t.cols(); ++i) {
        const bool is_live = (pairs.of_row(i) >> j & 1) != 0;
        tell_map(s_t.machine(), "fill", &s_t(j, i), Old::overwritten, {}, is_live ? live : dead);
      }
    }
  }
}

void add_live_rows(const LiveTile& pairs, const ConstView& e_t, const ConstView& b, const View& Z) {
  require(is_of(pairs, e_t) && b.rows() == pairs.keys() && Z.rows() == pairs.rows() &&
              Z.cols() == b.cols(),
          "Z += e b: the tiles conform");
  HWY_DYNAMIC_DISPATCH(add_live_rows)(pairs, e_t, b, Z);
  if (Z.machine().is_heard()) [[unlikely]] {
    each_live(pairs, [&](Index j, Index i) {
      tell_product(word_of(e_t, j, i), row_of(b, j), row_of(Z, i));
    });
  }
}

void live_products(const LiveTile& pairs, const ConstView& G, const ConstView& b, const View& q_t) {
  require(is_of(pairs, q_t) && b.rows() == pairs.keys() && G.rows() == pairs.rows() &&
              G.cols() == b.cols(),
          "q = G b^T: the tiles conform");
  fill_pairs(pairs, 0, 0, q_t);
  HWY_DYNAMIC_DISPATCH(live_products)(pairs, G, b, q_t);
  if (q_t.machine().is_heard()) [[unlikely]] {
    each_live(pairs, [&](Index j, Index i) {
      tell_product(row_of(G, i), column_of(b, j), word_of(q_t, j, i));
    });
  }
}

void exponential_gradient(const View& s_t, const ConstView& L, const ConstView& v,
                          const View& q_t) {
  require(s_t.rows() == q_t.rows() && s_t.cols() == q_t.cols() && L.rows() == q_t.cols() &&
              v.rows() == q_t.cols(),
          "p = exp(s - L) (q - v): the tiles conform");
  HWY_DYNAMIC_DISPATCH(exponential_gradient)(s_t, L, v, q_t);
  if (q_t.machine().is_heard()) [[unlikely]] {
    tell(ToldStep{Operation::Form::map, "exp_difference", s_t, Old::taken, {of_columns(L)}});
    tell(ToldStep{Operation::Form::map,
                  "softmax_gradient",
                  q_t,
                  Old::overwritten,
                  {s_t, q_t, of_columns(v)}});
  }
}

void add_sparse_products(const ConstView& p_t, std::span<const SparseRow> keys, const View& W_t) {
  require(p_t.cols() == W_t.cols() && std::ssize(keys) == p_t.rows(),
          "W += p A2: the tiles conform");
  HWY_DYNAMIC_DISPATCH(add_sparse_products)(p_t, keys, W_t);
  if (Machine& machine = W_t.machine(); machine.is_heard()) [[unlikely]] {
    for (Index j = 0; j < p_t.rows(); ++j) {
      const SparseRow& key = keys[static_cast<std::size_t>(j)];
      for (Index entry = 0; entry < key.size(); ++entry) {
        const Index k = key.columns[static_cast<std::size_t>(entry)];
        for (Index i = 0; i < p_t.cols(); ++i) {
          tell_term(machine, key.words + entry, &p_t(j, i), &W_t(k, i));
        }
      }
    }
  }
}

}  // namespace redblue
#endif
