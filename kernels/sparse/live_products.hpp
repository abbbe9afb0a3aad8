#pragma once
// Arithmetic on tiles of scores in which only some pairs are live, key by key. Word (j, i) belongs
// to the j-th of at most kKeysTogether keys and row i of a chunk. Dead pairs are neither computed
// nor used as factors. The functions use this machine's vector instructions, like
// kernels/arithmetic/arithmetic.hpp. They do not count operations: the caller does.

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/sparse/arithmetic.hpp"
#include "memsim/layout.hpp"

namespace redblue {

inline constexpr Index kKeysTogether = 64;

// The live pairs of some keys and the rows of a chunk, one bit each.
class LiveTile {
 public:
  explicit LiveTile(Index rows);

  // Starts again with `keys` keys and no live pair.
  void begin(Index keys);
  // Marks rows of a key as live, in addition to its earlier rows.
  void add(Index key, std::span<const std::uint64_t> rows);
  // Computes of_row() from the rows of all keys. Call it after the last add().
  void end();

  [[nodiscard]] Index keys() const { return keys_; }
  [[nodiscard]] Index rows() const { return std::ssize(of_row_); }
  [[nodiscard]] Index pairs() const { return pairs_; }
  [[nodiscard]] std::uint64_t of_row(Index row) const {
    return of_row_[static_cast<std::size_t>(row)];
  }
  [[nodiscard]] std::span<const std::uint64_t> of_key(Index key) const {
    return std::span(of_key_).subspan(static_cast<std::size_t>(key * words_),
                                      static_cast<std::size_t>(words_));
  }
  // Returns the number of 64-bit words with one bit for each row.
  static Index words(Index rows) { return ceil_div(rows, Index{64}); }

 private:
  Index words_, keys_ = 0, pairs_ = 0;
  std::vector<std::uint64_t> of_key_, of_row_;
};

// s_ji = `live` or `dead`.
void fill_pairs(const LiveTile& pairs, float live, float dead, const View& s_t);
// Z_i += the sum of e_ji b_j over the live keys j of row i.
void add_live_rows(const LiveTile& pairs, const ConstView& e_t, const ConstView& b, const View& Z);
// q_ji = G_i . b_j for live pairs, else 0.
void live_products(const LiveTile& pairs, const ConstView& G, const ConstView& b, const View& q_t);
// q_ji = exp(s_ji - L_i) (q_ji - v_i). Listeners hear the exponentials as written over s, which is
// not used again.
void exponential_gradient(const View& s_t, const ConstView& L, const ConstView& v, const View& q_t);
// Adds a p_j to row k of W_t, for each entry (k, a) of each key j. Dead pairs have p = 0 and are
// not skipped, so `a` must be finite.
void add_sparse_products(const ConstView& p_t, std::span<const SparseRow> keys, const View& W_t);

}  // namespace redblue
