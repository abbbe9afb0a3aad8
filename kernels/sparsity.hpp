#pragma once
// Describes which entries of sparse operands are stored, and which scores of s = (A1 X) A2^T are
// therefore live. Score (i, j) is live if, for some k and l, the entries A1_ik, X_kl and A2_jl are
// stored. Values do not matter: a stored 0 counts, and sums do not cancel. Dead scores are minus
// infinity, as under a mask.
//
// A Sparsity is a value; copies share their data. Derived patterns are made at the first request,
// and several threads may request them at once.

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

// A set of keys, one bit for each key.
using KeyBits = std::vector<std::uint64_t>;
Index size_of(const KeyBits& keys);
// Returns the number of bits set in a word. Unlike std::popcount, it needs no library call on a
// basic x86-64.
constexpr Index bits_in(std::uint64_t word) {
  word -= word >> 1 & 0x5555555555555555;
  word = (word & 0x3333333333333333) + (word >> 2 & 0x3333333333333333);
  word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0f;
  return static_cast<Index>(word * 0x0101010101010101 >> 56);
}
// Calls visit(key) for each key, in order.
template <class Visit>
void each_key(const KeyBits& keys, const Visit& visit);

// Sums a number that each key has over sets of keys. For large sets, it adds bit by bit of the
// numbers, 64 keys per word.
class KeyNumbers {
 public:
  // Requires: no negative numbers.
  explicit KeyNumbers(std::vector<Index> numbers);
  // Returns the sum over `keys`. Requires: size == size_of(keys).
  [[nodiscard]] Index over(const KeyBits& keys, Index size) const;

 private:
  std::vector<Index> numbers_;
  // The bits that occur in some number, each with the keys that have it.
  std::vector<std::pair<int, KeyBits>> bits_;
};

// Returns the transposed pattern. Requires: blocks of one entry.
BlockPattern transposed(const BlockPattern& of);

class Sparsity {
 public:
  // Dense operands.
  Sparsity() = default;
  // Sparse operands. Requires: patterns of single entries, n x d, d x d and m x d.
  Sparsity(BlockPattern A1, BlockPattern X, BlockPattern A2);
  // The factors of a product C = A B. A is then called A1, B is X, and C is S.
  Sparsity(BlockPattern A, BlockPattern B);

  [[nodiscard]] bool dense() const { return data_ == nullptr; }

  // All functions below require sparse operands.
  [[nodiscard]] const BlockPattern& A1() const { return data_->A1; }
  [[nodiscard]] const BlockPattern& X() const { return data_->X; }
  [[nodiscard]] const BlockPattern& A2() const { return data_->A2; }
  // Returns the entries of A1 X, in the order of columns.
  [[nodiscard]] const BlockPattern& S() const;
  [[nodiscard]] bool of_product() const { return data_->A2.rows == 0; }
  // Returns the rows of A2 that have an entry in each column. A product has no keys.
  [[nodiscard]] const BlockPattern& keys_of_columns() const;
  // Returns the keys that some queries meet.
  [[nodiscard]] KeyBits keys_met(Range queries) const;
  // Returns the keys with an entry in one of the columns.
  [[nodiscard]] KeyBits keys_with(std::span<const Index> columns) const;
  // Return the number of live pairs, and the entries in the keys of all live pairs, summed.
  [[nodiscard]] Words pairs() const { return pair_sums().pairs; }
  [[nodiscard]] Words entries_of_pairs() const { return pair_sums().entries; }
  [[nodiscard]] bool all_pairs() const { return pairs() == Words(A1().rows) * A2().rows; }
  // Returns the live pairs as a mask.
  [[nodiscard]] Mask mask() const;

  // Returns whether the entries are equal.
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
    mutable Derived<std::vector<KeyBits>> keys;  // for each column of A2
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
