#pragma once
// Arithmetic on tiles of scores of which some pairs are live, key by key: word (j, i) is that of
// row i of a chunk and the j-th of at most kKeysTogether keys. What is dead is not computed, and
// nothing is multiplied by it. In the vector instructions of this machine, as
// kernels/arithmetic/arithmetic.hpp, but for the operations: the caller reports their number.

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/sparse/arithmetic.hpp"
#include "memsim/layout.hpp"

namespace redblue {

inline constexpr Index kKeysTogether = 64;

// The live pairs of some keys and the rows of a chunk: a bit for each.
class LiveTile {
 public:
  explicit LiveTile(Index rows);

  // From now on of so many keys, with which no row is live.
  void begin(Index keys);
  // The rows of a key; these bits are live, too.
  void add(Index key, std::span<const std::uint64_t> rows);
  // When the rows of all keys are there: the keys of each row follow.
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
  // So many words have a bit for each row.
  static Index words(Index rows) { return ceil_div(rows, Index{64}); }

 private:
  Index words_, keys_ = 0, pairs_ = 0;
  std::vector<std::uint64_t> of_key_, of_row_;
};

// s_ji = `live` or `dead`.
void fill_pairs(const LiveTile& pairs, float live, float dead, const View& s_t);
// Z_i += sum over its live j of e_ji b_j.
void add_live_rows(const LiveTile& pairs, const ConstView& e_t, const ConstView& b, const View& Z);
// q_ji = G_i . b_j of live pairs, else 0.
void live_products(const LiveTile& pairs, const ConstView& G, const ConstView& b, const View& q_t);
// q_ji = exp(s_ji - L_i) (q_ji - v_i). Listeners hear the exponentials in the place of s, which is
// given up.
void exponential_gradient(const View& s_t, const ConstView& L, const ConstView& v, const View& q_t);
// Row k of W_t += a p_j, for each entry (k, a) of each key j, which is finite: dead pairs have p =
// 0 and are not left out.
void add_sparse_products(const ConstView& p_t, std::span<const SparseRow> keys, const View& W_t);

}  // namespace redblue
