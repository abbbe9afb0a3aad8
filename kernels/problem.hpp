#pragma once
// Describes a problem: its results, the sizes of its operands, and the operands that are the same
// matrix.

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

// The extents of a problem: n queries, m keys, width d. Values and sums of values have width dv,
// which equals d if there are weights or if values are keys. Plans of attention may have a smaller
// dv with keys as values: the values are then the first columns of the keys. No kernel runs such a
// plan.
struct Shape {
  Index n = 1;
  Index m = 1;
  Index d = 1;
  Index dv = d;
  // Words of the stored values of sparse A1, X and A2, and of S = A1 X. At least 1 each for sparse
  // operands.
  Index A1_stored = 0, X_stored = 0, A2_stored = 0, S_stored = 0;

  friend bool operator==(const Shape&, const Shape&) = default;
};
// Allows `const auto [n, m, d] = shape`.
template <std::size_t k>
Index get(const Shape& shape) {
  return k == 0 ? shape.n : k == 1 ? shape.m : shape.d;
}

// The operands that are the same matrix. kv: A3 is A2, or V is K; each row is a key and a value.
// self: also A1 is A2, or Q is K, and n = m. Query i and key i are then one source. Of the kernels
// only those of one source take it (Kernel::of_one_source); others read queries and keys apart.
enum class Sharing : std::uint8_t { none, kv, self };

// The formula of scores and values. weighted: scores (A1 X) A2^T, values A3 Y. plain: scores c Q
// K^T, values V, with the scale c of the softmax.
enum class Inputs : std::uint8_t { weighted, plain };

// The results of a kernel and its operands. Some kernels of backward, gradients and layer need O
// and L as well (Kernel::needs_forward).
//
//    product          C = A B
//    logsumexp        L from A1, X, A2
//    forward          O and L from A1, A2, A3, X, Y
//    backward         g from A1, A2, A3, X, Y, dO
//    attention        O and L from Q, K, V
//    gradients        dQ, dK, dV from Q, K, V, dO
//    layer            dA1, dA2, dA3, dX, dY from A1, A2, A3, X, Y, dO
//    linear           O from A1, A2, A3, X, Y, without an activation
//    linear_gradient  g from A1, A2, A3, Y, dO, without an activation
//    own              a problem that only a nest describes (kernels/nests)
enum class Pass : std::uint8_t {
  product,
  logsumexp,
  forward,
  backward,
  attention,
  gradients,
  layer,
  linear,
  linear_gradient,
  own
};

std::string_view to_string(Pass pass);
constexpr Inputs inputs_of(Pass pass) {
  return pass == Pass::attention || pass == Pass::gradients || pass == Pass::own ? Inputs::plain
                                                                                 : Inputs::weighted;
}
// Returns the pass that computes O and L for this pass.
constexpr Pass forward_of(Pass pass) {
  return inputs_of(pass) == Inputs::plain ? Pass::attention : Pass::forward;
}
// Returns whether the pass starts from O and L, or computes them first.
constexpr bool is_backward(Pass pass) {
  return pass == Pass::backward || pass == Pass::gradients || pass == Pass::layer;
}

constexpr bool is_linear(Pass pass) {
  return pass == Pass::linear || pass == Pass::linear_gradient;
}

// The wanted results of a problem: all of them, or some by name.
class Wanted {
 public:
  Wanted() = default;
  Wanted(std::initializer_list<std::string_view> names);
  // Requires: the name of a result.
  void add(std::string_view name);
  [[nodiscard]] bool all() const { return which_ == 0; }
  [[nodiscard]] bool contains(std::string_view name) const;
  // Returns for example "dQ,dK". Empty: all.
  [[nodiscard]] std::string text() const;
  friend bool operator==(const Wanted&, const Wanted&) = default;

 private:
  std::uint32_t which_ = 0;  // one bit for each result; 0: all
};

struct Problem {
  Problem() = default;
  explicit Problem(const Shape& of, Sharing by = Sharing::none) : shape(of), sharing(by) {}
  Problem(Index n, Index m, Index d, Sharing by = Sharing::none) : shape{n, m, d}, sharing(by) {}

  Shape shape;
  Sharing sharing = Sharing::none;
  // A kernel takes one kind of inputs and sets it in its plans.
  Inputs inputs = Inputs::weighted;
  // For plain inputs, if the scale is not 1 / sqrt(d).
  std::optional<float> softmax_scale;
  Activation activation = Activation::softmax;
  Mask mask = {};  // full(), or a mask of n queries and m keys
  // dense(), or the entries of A1, X and A2 of this shape. Sparse operands take no mask.
  Sparsity sparsity = {};
  // Number of query heads that share these keys (grouped-query attention). The queries of all heads
  // are stacked, and n counts all of them. Each head has the same mask.
  Index stacked = 1;
  // Number of heads of keys, for a kernel that works on all heads (Kernel::of_all_heads).
  Index kv_heads = 1;
  // For the kernel of live queries and keys (Kernel::of_live): the number of queries, at the end,
  // that are resident while all blocks of the other queries pass.
  Index staying = 0;
  // Results that are not wanted are neither computed nor written.
  Wanted wanted = {};
  // Bytes of a word, if the caller gives them; otherwise a word is a float32. Kernels count words.
  std::optional<Index> word_bytes = std::nullopt;
  // Words in memory for each word of Holds::sums. More than 1 if sums are wider than operands.
  Index sum_words = 1;

  // Returns the words in memory for each word of this kind.
  [[nodiscard]] Index weight(Holds holds) const { return holds == Holds::sums ? sum_words : 1; }
  // Returns the number of queries of one head.
  [[nodiscard]] Index queries() const { return shape.n / stacked; }
  // The queries that pass in blocks, and the queries that stay resident.
  [[nodiscard]] Range passing_queries() const { return {0, shape.n - staying}; }
  [[nodiscard]] Range staying_queries() const { return {shape.n - staying, shape.n}; }
  // Returns the problem with the queries of `heads` heads stacked. Requires: a problem of one
  // head. Throws: CountOverflow.
  [[nodiscard]] Problem with_stacked(Index heads) const;
  [[nodiscard]] bool wants(std::string_view result) const { return wanted.contains(result); }
  [[nodiscard]] Problem wanting_all() const {
    Problem all = *this;
    all.wanted = {};
    return all;
  }
  // Returns the problem of one head, with all its keys.
  [[nodiscard]] Problem one_head() const;

  // Returns whether the activation is softmax. Only softmax has a maximum, a sum, L and v for each
  // row.
  [[nodiscard]] bool normalised() const { return activation == Activation::softmax; }
  // Columns of each such row quantity (1 or 0), and the words of one row of it.
  [[nodiscard]] Index row_columns() const { return normalised() ? 1 : 0; }
  [[nodiscard]] Index row_words() const { return row_columns() * sum_words; }

  // Returns the factor c of the scores.
  [[nodiscard]] float scale() const {
    return inputs == Inputs::weighted ? 1.0F
                                      : softmax_scale.value_or(static_cast<float>(
                                            1 / std::sqrt(static_cast<double>(shape.d))));
  }

  // Returns the words of a key with its value. If values are keys, they count once.
  [[nodiscard]] Words key_words() const {
    return sharing == Sharing::none ? Words(shape.d) + shape.dv : Words(shape.d);
  }

  [[nodiscard]] Problem with_mask(Mask other) const {
    Problem same = *this;
    same.mask = std::move(other);
    return same;
  }
  // Returns the problem of the same extents with these sparse entries of A1, X and A2, or of A and
  // B.
  [[nodiscard]] Problem with_sparsity(Sparsity other) const {
    Problem same = *this;
    same.shape.A1_stored = std::max<Index>(other.A1().stored(), 1);
    same.shape.X_stored = std::max<Index>(other.X().stored(), 1);
    same.shape.A2_stored = std::max<Index>(other.A2().stored(), 1);
    same.shape.S_stored = std::max<Index>(other.S().stored(), 1);
    same.sparsity = std::move(other);
    return same;
  }
  // Returns the problem with dense operands that has the same results. If some pairs are dead, its
  // mask holds the live pairs. A product gets no mask.
  [[nodiscard]] Problem densified() const;
  // Return the keys that some of the queries meet, and the number of live pairs of the queries and
  // keys, for every mask including full().
  [[nodiscard]] Ranges keys(Range queries) const {
    return mask.full() ? Ranges{{0, shape.m}} : mask.keys(queries);
  }
  [[nodiscard]] Words pairs(Range queries, Range keys) const {
    return mask.full() ? Words(queries.size()) * keys.size() : mask.pairs(queries, keys);
  }
  [[nodiscard]] Words pairs() const { return pairs({0, shape.n}, {0, shape.m}); }
  // Returns an upper bound for the pieces of at most `step` keys in which queries meet their keys.
  [[nodiscard]] Index key_pieces(Index step) const {
    const Index pieces = ceil_div(shape.m, step);
    return mask.full() ? pieces : std::min(shape.m, pieces + mask.most_ranges());
  }
  // The queries that meet a key, and the keys that a query meets. With `self`, both are the sources
  // that are live as queries or as keys.
  [[nodiscard]] Ranges live_queries() const {
    return mask.full()                ? Ranges{{0, shape.n}}
           : sharing == Sharing::self ? mask.live_sources()
                                      : mask.live_queries();
  }
  [[nodiscard]] Ranges live_keys() const {
    return mask.full()                ? Ranges{{0, shape.m}}
           : sharing == Sharing::self ? mask.live_sources()
                                      : mask.live_keys();
  }
  // Returns the problem of only the live queries and keys, renumbered from 0.
  [[nodiscard]] Problem live_part() const {
    Problem live = *this;
    if (!mask.full()) {
      live.shape.n = size_of(live_queries());
      live.shape.m = size_of(live_keys());
      live.mask = sharing == Sharing::self ? mask.compact_sources() : mask.compact();
    }
    return live;
  }

  friend bool operator==(const Problem&, const Problem&) = default;
};

// The memory of a machine.
struct Memory {
  Memory(Index words, Index key_blocks = 1) : M(words), prefetch(key_blocks) {}  // NOLINT

  Index M;  // words of fast memory
  // Key blocks of each streamed matrix that are in fast memory at once, for a store that
  // prefetches.
  Index prefetch;
  // `inner`: the words of each inner level, innermost first. `word_costs`: the cost of a word at
  // each level; the last one is for the machine's own fast memory. Empty: the cost equals the
  // level's words.
  std::vector<Index> inner = {};
  std::vector<double> word_costs = {};
  // Block sizes of a plan are multiples of this, unless the extent is smaller.
  Index multiple = 1;
  // Block sizes that the caller gives. Only a nest chooses its other blocks for them.
  std::vector<std::pair<std::string, Index>> given = {};
  // Whether a nest also chooses the blocks that have a size in its text. A block that is a formula
  // of other blocks, and a block named Part, keep it.
  bool all_blocks = false;

  [[nodiscard]] std::size_t levels() const { return inner.size() + 1; }
  [[nodiscard]] Index words(std::size_t level) const {
    return level < inner.size() ? inner[level] : M;
  }
  // Returns the cost of a word at a level. With the default costs, exceeding a lower bound
  // proportional to 1/M by 1% weighs the same at every level.
  [[nodiscard]] double word_cost(std::size_t level) const {
    return word_costs.empty() ? static_cast<double>(words(level)) : word_costs[level];
  }
  // Returns the words moved at each level times their cost, summed. Plans for several levels
  // minimise this sum. Infinite if a count exceeds 63 bits. Requires: one entry for each level.
  [[nodiscard]] double weighted(const std::vector<Words>& moved) const;
  // Returns a memory with only this level.
  [[nodiscard]] Memory alone(std::size_t level) const { return {words(level), prefetch}; }
};

}  // namespace redblue

template <>
struct std::tuple_size<redblue::Shape> : std::integral_constant<std::size_t, 3> {};
template <std::size_t k>
struct std::tuple_element<k, redblue::Shape> {
  using type = redblue::Index;
};
