#pragma once
// The mathematics that is asked for: how large, of which operands, and which of them are one.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/activation.hpp"
#include "kernels/mask.hpp"
#include "kernels/sparsity.hpp"
#include "memsim/holds.hpp"
#include "memsim/range.hpp"
#include "memsim/words.hpp"

namespace redblue {

// n queries, m keys, width d. Values, and sums of values, have width dv, which is d where there are
// weights or values are keys.
struct Shape {
  Index n = 1;
  Index m = 1;
  Index d = 1;
  Index dv = d;
  // The words of their values where A1, X and A2 are sparse, and those of S = A1 X; at least one
  // each.
  Index A1_stored = 0, X_stored = 0, A2_stored = 0, S_stored = 0;

  friend bool operator==(const Shape&, const Shape&) = default;
};
// For [n, m, d] = shape.
template <std::size_t k>
Index get(const Shape& shape) {
  return k == 0 ? shape.n : k == 1 ? shape.m : shape.d;
}

// kv: A3 is A2, or V is K: rows are keys and values at once. self: A1 is A2 as well, or Q is K, and
// n = m; bounds use it, a kernel reads queries and keys apart.
enum class Sharing : std::uint8_t { none, kv, self };

// What scores and values are made of: s = (A1 X) A2^T and A3 Y; or s = c Q K^T and V, with a scale
// c of the softmax.
enum class Inputs : std::uint8_t { weighted, plain };

// What is computed: C = A B; L of A1, X, A2; O and L of A1, A2, A3, X, Y; g of these and dO; O and
// L of Q, K, V; dQ, dK, dV of these and dO; of A1, A2, A3, X, Y and dO the gradients of all but dO.
// And without an activation O of A1, A2, A3, X, Y; g of A1, A2, A3, Y and dO.
enum class Pass : std::uint8_t {
  product,
  logsumexp,
  forward,
  backward,
  attention,
  gradients,
  layer,
  linear,
  linear_gradient
};

std::string_view to_string(Pass pass);
constexpr Inputs inputs_of(Pass pass) {
  return pass == Pass::attention || pass == Pass::gradients ? Inputs::plain : Inputs::weighted;
}
// The pass that makes O and L for this one.
constexpr Pass forward_of(Pass pass) {
  return inputs_of(pass) == Inputs::plain ? Pass::attention : Pass::forward;
}
// Passes that start from O and L, or make them.
constexpr bool is_backward(Pass pass) {
  return pass == Pass::backward || pass == Pass::gradients || pass == Pass::layer;
}

constexpr bool is_linear(Pass pass) {
  return pass == Pass::linear || pass == Pass::linear_gradient;
}

// The results that are asked for: all that there are, or some.
class Wanted {
 public:
  Wanted() = default;
  Wanted(std::initializer_list<std::string_view> names);
  // Requires: the name of a result.
  void add(std::string_view name);
  [[nodiscard]] bool all() const { return which_ == 0; }
  [[nodiscard]] bool contains(std::string_view name) const;
  // "dQ,dK"; empty: all.
  [[nodiscard]] std::string text() const;
  friend bool operator==(const Wanted&, const Wanted&) = default;

 private:
  std::uint32_t which_ = 0;  // a bit for each; 0: all
};

struct Problem {
  Problem() = default;
  explicit Problem(const Shape& of, Sharing by = Sharing::none) : shape(of), sharing(by) {}
  Problem(Index n, Index m, Index d, Sharing by = Sharing::none) : shape{n, m, d}, sharing(by) {}

  Shape shape;
  Sharing sharing = Sharing::none;
  Inputs inputs = Inputs::weighted;    // a kernel has one of the two, and plans with it
  std::optional<float> softmax_scale;  // of plain inputs, where it is not 1 / sqrt(d)
  Activation activation = Activation::softmax;
  Mask mask = {};          // full(), or of n queries and m keys
  Sparsity sparsity = {};  // dense(), or of A1, X and A2 of this shape; then no mask
  // The heads of queries that share these keys, as grouped-query attention has them: their queries
  // are stacked, head after head, and n is the number of all. Each head has the same mask.
  Index stacked = 1;
  // In what a kernel works on: so many queries, the last ones, stay through all blocks of the
  // others.
  Index staying = 0;
  // What is not wanted is neither computed nor written.
  Wanted wanted = {};
  // The bytes of a word, where they are asked for: kernels count words. Else a word is a float32.
  std::optional<Index> word_bytes = std::nullopt;
  // What a word of Holds::sums weighs, in words: more than one where sums are wider than operands.
  Index sum_words = 1;

  // What a word of this kind weighs.
  [[nodiscard]] Index weight(Holds holds) const { return holds == Holds::sums ? sum_words : 1; }
  // The queries of one head.
  [[nodiscard]] Index queries() const { return shape.n / stacked; }
  // Those that are cut into blocks, and those that stay.
  [[nodiscard]] Range passing_queries() const { return {0, shape.n - staying}; }
  [[nodiscard]] Range staying_queries() const { return {shape.n - staying, shape.n}; }
  // The problem of so many such heads of queries. Requires: a problem of one head. Throws:
  // CountOverflow.
  [[nodiscard]] Problem with_stacked(Index heads) const;
  [[nodiscard]] bool wants(std::string_view result) const { return wanted.contains(result); }
  [[nodiscard]] Problem wanting_all() const {
    Problem all = *this;
    all.wanted = {};
    return all;
  }
  // The problem of each head alone, which meets all keys.
  [[nodiscard]] Problem one_head() const;

  // Whether f is that of a softmax. Its rows have a maximum, a sum, L and v; those of another
  // activation have none of these.
  [[nodiscard]] bool normalised() const { return activation == Activation::softmax; }
  // The columns of each of these, and the words of a row of it.
  [[nodiscard]] Index row_columns() const { return normalised() ? 1 : 0; }
  [[nodiscard]] Index row_words() const { return row_columns() * sum_words; }

  // The factor c of the scores.
  [[nodiscard]] float scale() const {
    return inputs == Inputs::weighted ? 1.0F
                                      : softmax_scale.value_or(static_cast<float>(
                                            1 / std::sqrt(static_cast<double>(shape.d))));
  }

  // The words of a key with its value: of A2 and A3, or of one for both.
  [[nodiscard]] Words key_words() const {
    return sharing == Sharing::none ? Words(shape.d) + shape.dv : Words(shape.d);
  }

  [[nodiscard]] Problem with_mask(Mask other) const {
    Problem same = *this;
    same.mask = std::move(other);
    return same;
  }
  // The same extents with these entries of A1, X and A2, or of A and B.
  [[nodiscard]] Problem with_sparsity(Sparsity other) const {
    Problem same = *this;
    same.shape.A1_stored = std::max<Index>(other.A1().stored(), 1);
    same.shape.X_stored = std::max<Index>(other.X().stored(), 1);
    same.shape.A2_stored = std::max<Index>(other.A2().stored(), 1);
    same.shape.S_stored = std::max<Index>(other.S().stored(), 1);
    same.sparsity = std::move(other);
    return same;
  }
  // The problem of dense operands that has the same results: dead pairs are dead by a mask, where
  // there are any, and where it is no product. The mask has every live pair.
  [[nodiscard]] Problem densified() const;
  // What a kernel asks of its mask. The keys that some queries meet, and the live pairs of some
  // queries and some keys: none of them, all, or some.
  [[nodiscard]] Ranges keys(Range queries) const {
    return mask.full() ? Ranges{{0, shape.m}} : mask.keys(queries);
  }
  [[nodiscard]] Words pairs(Range queries, Range keys) const {
    return mask.full() ? Words(queries.size()) * keys.size() : mask.pairs(queries, keys);
  }
  [[nodiscard]] Words pairs() const { return pairs({0, shape.n}, {0, shape.m}); }
  // The most pieces of at most `step` keys in which queries meet their keys.
  [[nodiscard]] Index key_pieces(Index step) const {
    const Index pieces = ceil_div(shape.m, step);
    return mask.full() ? pieces : std::min(shape.m, pieces + mask.most_ranges());
  }
  // Queries that meet a key, and keys that one meets.
  [[nodiscard]] Ranges live_queries() const {
    return mask.full() ? Ranges{{0, shape.n}} : mask.live_queries();
  }
  [[nodiscard]] Ranges live_keys() const {
    return mask.full() ? Ranges{{0, shape.m}} : mask.live_keys();
  }
  // The problem of these alone, each by its number among them.
  [[nodiscard]] Problem live_part() const {
    Problem live = *this;
    if (!mask.full()) {
      live.shape.n = size_of(live_queries());
      live.shape.m = size_of(live_keys());
      live.mask = mask.compact();
    }
    return live;
  }

  friend bool operator==(const Problem&, const Problem&) = default;
};

// Where it is computed.
struct Memory {
  Memory(Index words, Index key_blocks = 1) : M(words), prefetch(key_blocks) {}  // NOLINT

  Index M;         // words of the fast memory
  Index prefetch;  // key blocks of each matrix that are in it at a time, for a store that fetches
  // The words of inner levels, from the innermost out; and what a word costs at each level, the
  // machine's last. Empty: as much as the level has words.
  std::vector<Index> inner = {};
  std::vector<double> word_costs = {};
  Index multiple = 1;  // that block sizes of a plan are, where an extent is as large

  [[nodiscard]] std::size_t levels() const { return inner.size() + 1; }
  [[nodiscard]] Index words(std::size_t level) const {
    return level < inner.size() ? inner[level] : M;
  }
  // Without `word_costs` plans lose an equal share over the bound at each level.
  [[nodiscard]] double word_cost(std::size_t level) const {
    return word_costs.empty() ? static_cast<double>(words(level)) : word_costs[level];
  }
  // The words that are moved at each level, each at its cost: the sum that plans of several levels
  // make least. Infinite beyond 63 bits. Requires: as many as there are levels.
  [[nodiscard]] double weighted(const std::vector<Words>& moved) const;
  // The memory of one level alone.
  [[nodiscard]] Memory alone(std::size_t level) const { return {words(level), prefetch}; }
};

}  // namespace redblue

template <>
struct std::tuple_size<redblue::Shape> : std::integral_constant<std::size_t, 3> {};
template <std::size_t k>
struct std::tuple_element<k, redblue::Shape> {
  using type = redblue::Index;
};
