#include "kernels/sparsity.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace redblue {
namespace {

BlockPattern product(const BlockPattern& A, const BlockPattern& B) {
  BlockPattern found{A.rows, B.cols, 1, 1, {0}, {}};
  std::vector<Index> last_row(static_cast<std::size_t>(B.cols), -1);
  for (Index row = 0; row < A.rows; ++row) {
    const auto begin = static_cast<std::ptrdiff_t>(found.columns.size());
    for (const Index k : A.row(row)) {
      for (const Index column : B.row(k)) {
        if (std::exchange(last_row[static_cast<std::size_t>(column)], row) != row) {
          found.columns.push_back(column);
        }
      }
    }
    std::sort(found.columns.begin() + begin, found.columns.end());
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
    size += std::popcount(word);
  }
  return size;
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

KeyBits Sparsity::keys_met(Range queries) const {
  const std::vector<KeyBits>& of_columns = bits_of_columns();
  KeyBits met(static_cast<std::size_t>(ceil_div(A2().rows, Index{64})));
  std::vector<bool> added(of_columns.size());
  for (Index query = queries.begin; query < queries.end; ++query) {
    for (const Index column : S().row(query)) {
      const auto at = static_cast<std::size_t>(column);
      if (added[at]) {
        continue;
      }
      added[at] = true;
      for (std::size_t word = 0; word < of_columns[at].size(); ++word) {
        met[word] |= of_columns[at][word];
      }
    }
  }
  return met;
}

Words Sparsity::pairs() const {
  return once(data_->pairs, [&] {
    Words sum;
    for (Index query = 0; query < A1().rows; ++query) {
      sum += size_of(keys_met({query, query + 1}));
    }
    return sum;
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
