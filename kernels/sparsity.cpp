#include "kernels/sparsity.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace redblue {
namespace {

// Returns the pattern of A B. It collects each row as bits, so that one word covers 64 columns of a
// full row of B.
BlockPattern product(const BlockPattern& A, const BlockPattern& B) {
  BlockPattern found{A.rows, B.cols, 1, 1, {0}, {}};
  const auto words = static_cast<std::size_t>(ceil_div(B.cols, Index{64}));
  std::vector<KeyBits> full(static_cast<std::size_t>(B.rows));  // rows that are quicker as bits
  const auto set = [](KeyBits& bits, Index column) {
    bits[static_cast<std::size_t>(column) / 64] |= std::uint64_t{1} << (column % 64);
  };
  for (Index k = 0; k < B.rows; ++k) {
    if (B.row(k).size() > words) {
      KeyBits& bits = full[static_cast<std::size_t>(k)];
      bits.resize(words);
      for (const Index column : B.row(k)) {
        set(bits, column);
      }
    }
  }
  KeyBits row(words);
  std::vector<std::size_t> touched;  // words of the row
  for (Index i = 0; i < A.rows; ++i) {
    bool all = false;
    for (const Index k : A.row(i)) {
      const KeyBits& bits = full[static_cast<std::size_t>(k)];
      all = all || !bits.empty();
      for (std::size_t word = 0; word < bits.size(); ++word) {
        row[word] |= bits[word];
      }
      if (bits.empty()) {
        for (const Index column : B.row(k)) {
          set(row, column);
          touched.push_back(static_cast<std::size_t>(column) / 64);
        }
      }
    }
    if (all) {
      each_key(row, [&](Index column) { found.columns.push_back(column); });
      std::ranges::fill(row, 0);
    } else {
      std::ranges::sort(touched);
      for (const std::size_t word : touched) {
        for (std::uint64_t bits = std::exchange(row[word], 0); bits != 0; bits &= bits - 1) {
          found.columns.push_back(static_cast<Index>(word) * 64 + std::countr_zero(bits));
        }
      }
    }
    touched.clear();
    found.offsets.push_back(std::ssize(found.columns));
  }
  return found;
}

template <class Derived, class Make>
const auto& once(Derived& derived, const Make& make) {
  std::call_once(derived.once, [&] { derived.value = make(); });
  return derived.value;
}

}  // namespace

BlockPattern transposed(const BlockPattern& of) {
  BlockPattern found{of.cols, of.rows, 1, 1, {}, {}};
  found.offsets.assign(static_cast<std::size_t>(of.cols) + 1, 0);
  for (const Index column : of.columns) {
    ++found.offsets[static_cast<std::size_t>(column) + 1];
  }
  for (std::size_t column = 1; column < found.offsets.size(); ++column) {
    found.offsets[column] += found.offsets[column - 1];
  }
  found.columns.resize(of.columns.size());
  std::vector<Index> next(found.offsets.begin(), found.offsets.end() - 1);
  for (Index row = 0; row < of.rows; ++row) {
    for (const Index column : of.row(row)) {
      found.columns[static_cast<std::size_t>(next[static_cast<std::size_t>(column)]++)] = row;
    }
  }
  return found;
}

Index size_of(const KeyBits& keys) {
  Index size = 0;
  for (const std::uint64_t word : keys) {
    size += bits_in(word);
  }
  return size;
}

KeyNumbers::KeyNumbers(std::vector<Index> numbers) : numbers_(std::move(numbers)) {
  std::uint64_t any = 0;
  for (const Index number : numbers_) {
    any |= static_cast<std::uint64_t>(number);
  }
  for (; any != 0; any &= any - 1) {
    const int bit = std::countr_zero(any);
    KeyBits keys((numbers_.size() + 63) / 64);
    for (std::size_t key = 0; key < numbers_.size(); ++key) {
      keys[key / 64] |= (static_cast<std::uint64_t>(numbers_[key]) >> bit & 1) << (key % 64);
    }
    bits_.emplace_back(bit, std::move(keys));
  }
}

Index KeyNumbers::over(const KeyBits& keys, Index size) const {
  Index sum = 0;
  if (size <= std::ssize(bits_) * std::ssize(keys)) {
    each_key(keys, [&](Index key) { sum += numbers_[static_cast<std::size_t>(key)]; });
    return sum;
  }
  for (const auto& [bit, having] : bits_) {
    Index found = 0;
    for (std::size_t word = 0; word < keys.size(); ++word) {
      found += bits_in(keys[word] & having[word]);
    }
    sum += found << bit;
  }
  return sum;
}

Sparsity::Sparsity(BlockPattern A1, BlockPattern X, BlockPattern A2) {
  auto data = std::make_shared<Data>();
  data->A1 = std::move(A1);
  data->X = std::move(X);
  data->A2 = std::move(A2);
  data_ = std::move(data);
}

Sparsity::Sparsity(BlockPattern A, BlockPattern B)
    : Sparsity(std::move(A), std::move(B), BlockPattern{}) {}

const BlockPattern& Sparsity::S() const {
  return once(data_->S, [&] { return product(A1(), X()); });
}

const BlockPattern& Sparsity::keys_of_columns() const {
  return once(data_->keys_of_columns, [&] { return transposed(A2()); });
}

const std::vector<KeyBits>& Sparsity::bits_of_columns() const {
  return once(data_->keys, [&] {
    const BlockPattern& keys = keys_of_columns();
    const auto words = static_cast<std::size_t>(ceil_div(A2().rows, Index{64}));
    std::vector<KeyBits> bits(static_cast<std::size_t>(keys.rows));
    for (Index column = 0; column < keys.rows; ++column) {
      if (keys.row(column).empty()) {
        continue;
      }
      KeyBits& own = bits[static_cast<std::size_t>(column)];
      own.resize(words);
      for (const Index key : keys.row(column)) {
        own[static_cast<std::size_t>(key) / 64] |= std::uint64_t{1} << (key % 64);
      }
    }
    return bits;
  });
}

KeyBits Sparsity::keys_with(std::span<const Index> columns) const {
  const std::vector<KeyBits>& of_columns = bits_of_columns();
  KeyBits keys(static_cast<std::size_t>(ceil_div(A2().rows, Index{64})));
  for (const Index column : columns) {
    const KeyBits& own = of_columns[static_cast<std::size_t>(column)];
    for (std::size_t word = 0; word < own.size(); ++word) {
      keys[word] |= own[word];
    }
  }
  return keys;
}

KeyBits Sparsity::keys_met(Range queries) const {
  std::vector<bool> added(static_cast<std::size_t>(S().cols));
  std::vector<Index> columns;
  for (Index query = queries.begin; query < queries.end; ++query) {
    for (const Index column : S().row(query)) {
      if (!added[static_cast<std::size_t>(column)]) {
        added[static_cast<std::size_t>(column)] = true;
        columns.push_back(column);
      }
    }
  }
  return keys_with(columns);
}

const Sparsity::PairSums& Sparsity::pair_sums() const {
  return once(data_->pairs, [&] {
    std::vector<Index> of_keys;
    for (Index key = 0; key < A2().rows; ++key) {
      of_keys.push_back(std::ssize(A2().row(key)));
    }
    const KeyNumbers entries(std::move(of_keys));
    PairSums sums, row;
    for (Index query = 0; query < A1().rows; ++query) {
      const auto columns = S().row(query);
      // Equal consecutive rows, such as full rows, are counted only once.
      if (query == 0 || !std::ranges::equal(columns, S().row(query - 1))) {
        const KeyBits keys = keys_with(columns);
        const Index size = size_of(keys);
        row = {size, entries.over(keys, size)};
      }
      sums.pairs += row.pairs;
      sums.entries += row.entries;
    }
    return sums;
  });
}

Mask Sparsity::mask() const {
  BlockPattern live{A1().rows, A2().rows, 1, 1, {0}, {}};
  for (Index query = 0; query < live.rows; ++query) {
    each_key(keys_met({query, query + 1}), [&](Index key) { live.columns.push_back(key); });
    live.offsets.push_back(std::ssize(live.columns));
  }
  return Mask::pattern(live);
}

}  // namespace redblue
