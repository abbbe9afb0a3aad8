#pragma once
// Which entries of sparse operands are stored, and what follows from that alone: which scores of
// s = (A1 X) A2^T are live. Score (i, j) is, where for some k and l the entries A1_ik, X_kl and
// A2_jl are stored, whatever their values are; a stored 0 counts, and nothing cancels. Dead scores
// are minus infinity, as under a mask.
//
// A value: copies share what they hold. What is derived is made when it is first asked for, and may
// be asked for by several threads.

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "kernels/mask.hpp"
#include "memsim/range.hpp"
#include "memsim/words.hpp"

namespace redblue {

// A set of keys, a bit for each.
using KeyBits = std::vector<std::uint64_t>;
Index size_of(const KeyBits& keys);
// The bits of a word that are set; without a call, which std::popcount is on any x86-64.
constexpr Index bits_in(std::uint64_t word) {
  word -= word >> 1 & 0x5555555555555555;
  word = (word & 0x3333333333333333) + (word >> 2 & 0x3333333333333333);
  word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0f;
  return static_cast<Index>(word * 0x0101010101010101 >> 56);
}
// Calls visit(key) in their order.
template <class Visit>
void each_key(const KeyBits& keys, const Visit& visit);

// Sums over sets of keys of a number that each key has: of large sets bit by bit of the numbers, a
// word of 64 keys at a time.
class KeyNumbers {
 public:
  // Requires: none is negative.
  explicit KeyNumbers(std::vector<Index> numbers);
  // `size` is size_of(keys).
  [[nodiscard]] Index over(const KeyBits& keys, Index size) const;

 private:
  std::vector<Index> numbers_;
  std::vector<std::pair<int, KeyBits>> bits_;  // that some have, each with the keys that have it
};

// The entries (j, i) for those at (i, j), of single entries.
BlockPattern transposed(const BlockPattern& of);

class Sparsity {
 public:
  // Of operands that are dense.
  Sparsity() = default;
  // Of single entries. Requires: n x d, d x d and m x d.
  Sparsity(BlockPattern A1, BlockPattern X, BlockPattern A2);
  // Of the factors of a product C = A B, of which A is asked for as A1, B as X and C as S.
  Sparsity(BlockPattern A, BlockPattern B);

  [[nodiscard]] bool dense() const { return data_ == nullptr; }

  // Requires, of all that follow: not dense().
  [[nodiscard]] const BlockPattern& A1() const { return data_->A1; }
  [[nodiscard]] const BlockPattern& X() const { return data_->X; }
  [[nodiscard]] const BlockPattern& A2() const { return data_->A2; }
  // The entries of A1 X, in the order of columns.
  [[nodiscard]] const BlockPattern& S() const;
  [[nodiscard]] bool of_product() const { return data_->A2.rows == 0; }
  // Of a product there are no keys. The rows of A2 that have an entry in each column.
  [[nodiscard]] const BlockPattern& keys_of_columns() const;
  // The keys that some queries meet.
  [[nodiscard]] KeyBits keys_met(Range queries) const;
  // Those with an entry in one of these columns.
  [[nodiscard]] KeyBits keys_with(std::span<const Index> columns) const;
  // Of all live pairs: how many there are, and the entries that their keys have, summed up.
  [[nodiscard]] Words pairs() const { return pair_sums().pairs; }
  [[nodiscard]] Words entries_of_pairs() const { return pair_sums().entries; }
  [[nodiscard]] bool all_pairs() const { return pairs() == Words(A1().rows) * A2().rows; }
  // The live pairs as a mask.
  [[nodiscard]] Mask mask() const;

  // The same entries.
  friend bool operator==(const Sparsity& a, const Sparsity& b) {
    return a.data_ == b.data_ ||
           (!a.dense() && !b.dense() && a.A1() == b.A1() && a.X() == b.X() && a.A2() == b.A2());
  }

 private:
  template <class Value>
  struct Derived {
    std::once_flag once;
    Value value;
  };
  struct PairSums {
    Words pairs, entries;
  };
  struct Data {
    BlockPattern A1, X, A2;
    mutable Derived<BlockPattern> S, keys_of_columns;
    mutable Derived<std::vector<KeyBits>> keys;  // of each column of A2
    mutable Derived<PairSums> pairs;
  };
  [[nodiscard]] const PairSums& pair_sums() const;
  [[nodiscard]] const std::vector<KeyBits>& bits_of_columns() const;

  std::shared_ptr<const Data> data_;
};

template <class Visit>
void each_key(const KeyBits& keys, const Visit& visit) {
  for (std::size_t word = 0; word < keys.size(); ++word) {
    for (std::uint64_t bits = keys[word]; bits != 0; bits &= bits - 1) {
      visit(static_cast<Index>(word) * 64 + __builtin_ctzll(bits));
    }
  }
}

}  // namespace redblue
