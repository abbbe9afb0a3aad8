#pragma once
// Random mask expressions. Each comes with a table of its live pairs by definition, and with the
// patterns, layouts and documents that it uses.

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "kernels/problem.hpp"

namespace redblue {

// The live pairs of n queries and m keys, row by row.
struct PairTable {
  Index n, m;
  std::vector<bool> live;

  template <class Lives>
  PairTable(Index queries, Index keys, const Lives& lives) : n(queries), m(keys) {
    for (Index i = 0; i < n; ++i) {
      for (Index j = 0; j < m; ++j) {
        live.push_back(lives(i, j));
      }
    }
  }
  [[nodiscard]] bool at(Index i, Index j) const {
    return live[static_cast<std::size_t>(i * m + j)];
  }
  [[nodiscard]] bool meets(Range queries, Index j) const {
    for (Index i = queries.begin; i < queries.end; ++i) {
      if (at(i, j)) {
        return true;
      }
    }
    return false;
  }
  [[nodiscard]] Ranges keys(Range queries) const {
    Ranges ranges;
    for (Index j = 0; j < m; ++j) {
      if (meets(queries, j)) {
        if (ranges.empty() || ranges.back().end < j) {
          ranges.push_back({j, j});
        }
        ranges.back().end = j + 1;
      }
    }
    return ranges;
  }
  [[nodiscard]] Index pairs(Range queries, Range keys) const {
    Index sum = 0;
    for (Index i = queries.begin; i < queries.end; ++i) {
      for (Index j = keys.begin; j < keys.end; ++j) {
        sum += at(i, j) ? 1 : 0;
      }
    }
    return sum;
  }
};

// The index data that a mask keeps: a pattern, or layouts and documents, each stored once.
struct KeptAs {
  struct List {
    std::vector<Index> file;
    // `of_queries` and `of_keys`: the block row, block column or document of each query and key.
    // `row_words` and `column_words`: the index words of each, two and one per block.
    std::vector<Index> of_queries = {}, of_keys = {};
    std::map<Index, Index> row_words = {}, column_words = {};
  };
  bool pattern = false;
  std::map<std::vector<Index>, List> lists = {};  // keyed by their file content

  [[nodiscard]] bool formula() const { return !pattern && lists.empty(); }
  [[nodiscard]] Index live() const { return pattern ? 2 : std::ssize(lists); }
};

struct TabledMask {
  Mask mask;
  PairTable table;
  KeptAs kept = {};

  // Returns the index words that say which keys these queries meet, counted one by one.
  [[nodiscard]] Index index_words(const std::vector<Index>& queries) const {
    Index words = 0;
    if (kept.pattern) {
      Index pairs = 0, keys = 0;
      for (Index j = 0; j < table.m; ++j) {
        const auto meets = [&](Index i) { return table.at(i, j); };
        const auto here = static_cast<Index>(std::ranges::count_if(queries, meets));
        pairs += here;
        keys += here > 0 ? 1 : 0;
      }
      const Index bit_words = (std::ssize(queries) + 31) / 32;
      words = 1 + std::min(pairs + 2 * keys, keys * (1 + bit_words));
    }
    for (const auto& [file, list] : kept.lists) {
      std::set<Index> touched;
      for (const Index i : queries) {
        touched.insert(list.of_queries[static_cast<std::size_t>(i)]);
      }
      for (const Index row : touched) {
        words += list.row_words.at(row);
      }
    }
    return words;
  }
  // Exchanges queries and keys.
  [[nodiscard]] TabledMask transposed() const {
    TabledMask result{mask.transposed(),
                      PairTable(table.m, table.n, [&](Index j, Index i) { return table.at(i, j); }),
                      kept};
    for (auto& [file, list] : result.kept.lists) {
      std::swap(list.of_queries, list.of_keys);
      std::swap(list.row_words, list.column_words);
    }
    return result;
  }
  // Returns the mask of `heads` heads of queries, stacked, which share the index data. Requires:
  // some pair is dead.
  [[nodiscard]] TabledMask stacked(Index heads) const {
    Problem problem(table.n, table.m, 1);
    problem.mask = mask.called("some");
    TabledMask result{problem.with_stacked(heads).mask,
                      PairTable(table.n * heads, table.m,
                                [&](Index i, Index j) { return table.at(i % table.n, j); }),
                      kept};
    for (auto& [file, list] : result.kept.lists) {
      const std::vector<Index> of_head = list.of_queries;
      for (Index head = 1; head < heads; ++head) {
        list.of_queries.insert(list.of_queries.end(), of_head.begin(), of_head.end());
      }
    }
    return result;
  }
};

class RandomMasks {
 public:
  explicit RandomMasks(std::uint64_t seed) : random_(seed) {}

  Index any(Index from, Index to) {
    return std::uniform_int_distribution<Index>(from, to)(random_);
  }
  Range range(Index extent) {
    const Index begin = any(0, extent - 1);
    return {begin, any(begin + 1, extent)};
  }

  TabledMask primitive(Index n, Index m) {
    const Index shift = m - n;
    switch (any(0, 6)) {
      case 0: {
        return {Mask::causal(n, m),
                PairTable(n, m, [&](Index i, Index j) { return j <= i + shift; })};
      }
      case 1: {
        const Index left = any(0, n + m);
        const Index right = any(0, n + m);
        return {Mask::window(n, m, left, right), PairTable(n, m, [&](Index i, Index j) {
                  return i + shift - left <= j && j <= i + shift + right;
                })};
      }
      case 2: {
        const Index keys = any(0, m + 2);
        return {Mask::prefix(n, m, keys),
                PairTable(n, m, [&](Index, Index j) { return j < keys; })};
      }
      case 3: {
        const Index first = any(0, n + m);
        const Range both{first, any(first + 1, first + 5)};
        const auto in = [&](Index k) { return both.begin <= k && k < both.end; };
        return {Mask::global(n, m, both),
                PairTable(n, m, [&](Index i, Index j) { return in(i) || in(j); })};
      }
      case 4:
        return blocks(n, m, any(0, 1) == 0);
      case 5:
        return documents(n, m);
      default:
        return {Mask::all(n, m), PairTable(n, m, [](Index, Index) { return true; })};
    }
  }
  // Returns blocks as a file has them, either random or in one of a few fixed forms, as a layout or
  // as a pattern.
  TabledMask blocks(Index n, Index m, bool layout) {
    const auto side_of = [this](Index extent) {  // a divisor
      Index side = any(1, extent);
      while (extent % side != 0) {
        --side;
      }
      return any(0, 1) == 0 ? 1 : side;
    };
    BlockPattern blocks{n, m, side_of(n), side_of(m), {0}, {}};
    const Index form = any(0, 5);
    const Index share = any(0, 100);
    const Index some = any(0, m);
    for (Index row = 0; row < n / blocks.block_rows; ++row) {
      const bool empty = form == 0 && any(0, 2) == 0;
      for (Index col = 0; col < m / blocks.block_cols; ++col) {
        const bool there = form == 1   ? row == 0 || col == 0 || row == col  // an arrow
                           : form == 2 ? (row * 7 + some) % m == col         // one each
                           : form == 3 ? (row + col) % (some + 1) == 0       // diagonals
                           : form == 4 ? col > 0 && any(1, 100) <= share     // the first are dead
                                       : !empty && any(1, 100) <= share;
        if (there) {
          blocks.columns.push_back(col);
        }
      }
      blocks.offsets.push_back(std::ssize(blocks.columns));
    }
    KeptAs kept{.pattern = !layout};
    if (layout) {
      KeptAs::List list{.file = {blocks.block_rows, blocks.block_cols}};
      for (Index row = 0; row < n / blocks.block_rows; ++row) {
        const auto k = static_cast<std::size_t>(row);
        list.row_words[row] = 2 + blocks.offsets[k + 1] - blocks.offsets[k];
      }
      for (Index col = 0; col < m / blocks.block_cols; ++col) {
        list.column_words[col] = 2 + std::ranges::count(blocks.columns, col);
      }
      for (Index i = 0; i < n; ++i) {
        list.of_queries.push_back(i / blocks.block_rows);
      }
      for (Index j = 0; j < m; ++j) {
        list.of_keys.push_back(j / blocks.block_cols);
      }
      list.file.insert(list.file.end(), blocks.offsets.begin(), blocks.offsets.end());
      list.file.insert(list.file.end(), blocks.columns.begin(), blocks.columns.end());
      kept.lists[list.file] = list;
    }
    return {layout ? Mask::layout(blocks) : Mask::pattern(blocks),
            PairTable(n, m,
                      [&](Index i, Index j) {
                        const auto row = static_cast<std::size_t>(i / blocks.block_rows);
                        const auto first = blocks.columns.begin();
                        return std::binary_search(first + blocks.offsets[row],
                                                  first + blocks.offsets[row + 1],
                                                  j / blocks.block_cols);
                      }),
            kept};
  }
  // Returns random documents, some possibly empty.
  TabledMask documents(Index n, Index m) {
    std::vector<Index> queries = {0, n}, keys = {0, m};
    for (Index more = any(0, 5); more > 0; --more) {
      queries.push_back(any(0, n));
      keys.push_back(any(0, m));
    }
    std::ranges::sort(queries);
    std::ranges::sort(keys);
    const auto in = [](const std::vector<Index>& offsets, std::size_t k, Index at) {
      return offsets[k] <= at && at < offsets[k + 1];
    };
    KeptAs::List list{.file = {-1}};  // differs from every layout's file
    list.file.insert(list.file.end(), queries.begin(), queries.end());
    list.file.insert(list.file.end(), keys.begin(), keys.end());
    for (std::size_t k = 0; k + 1 < queries.size(); ++k) {
      const auto document = static_cast<Index>(k);
      list.row_words[document] = list.column_words[document] = 2;
      list.of_queries.resize(static_cast<std::size_t>(queries[k + 1]), document);
      list.of_keys.resize(static_cast<std::size_t>(keys[k + 1]), document);
    }
    return {Mask::documents(queries, keys),
            PairTable(n, m,
                      [&](Index i, Index j) {
                        bool both = false;
                        for (std::size_t k = 0; k + 1 < queries.size(); ++k) {
                          both |= in(queries, k, i) && in(keys, k, j);
                        }
                        return both;
                      }),
            {.lists = {{list.file, list}}}};
  }
  TabledMask expression(Index n, Index m) {
    TabledMask sum = primitive(n, m);
    for (Index more = any(0, 3); more > 0; --more) {
      const TabledMask other = primitive(n, m);
      const bool both = any(0, 1) == 0;
      sum.mask = both ? sum.mask & other.mask : sum.mask | other.mask;
      const PairTable before = sum.table;
      sum.table = PairTable(n, m, [&](Index i, Index j) {
        return both ? before.at(i, j) && other.table.at(i, j)
                    : before.at(i, j) || other.table.at(i, j);
      });
      sum.kept.pattern |= other.kept.pattern;
      sum.kept.lists.insert(other.kept.lists.begin(), other.kept.lists.end());
      if (sum.kept.pattern) {
        sum.kept.lists.clear();
      }
    }
    return sum;
  }

 private:
  std::mt19937 random_;
};

}  // namespace redblue
