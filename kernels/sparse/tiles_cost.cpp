#include <algorithm>
#include <utility>

#include "kernels/fit.hpp"
#include "kernels/sparse/product.hpp"
#include "kernels/sparse/tiles.hpp"

namespace redblue {
namespace {

// Entries of a matrix in blocks of rows, of which the last may be shorter, by columns.
struct GroupCounts {
  GroupCounts(const BlockPattern& of, Index rows)
      : pattern(&of),
        size(std::min(rows, of.rows)),
        number(ceil_div(of.rows, size)),
        last_size(of.rows - (number - 1) * size),
        columns(static_cast<std::size_t>(number)),
        entries(static_cast<std::size_t>(of.cols)),
        blocks_with(entries.size()),
        most(entries.size()),
        most_in_last(entries.size()) {
    std::vector<Index> count(entries.size());
    for (Index block = 0; block < number; ++block) {
      const bool is_last = block == number - 1;
      const Range I{block * size, std::min((block + 1) * size, of.rows)};
      auto& its = columns[static_cast<std::size_t>(block)];
      const Range all = entries_of(of, I);
      for (Index entry = all.begin; entry < all.end; ++entry) {
        const Index column = of.columns[static_cast<std::size_t>(entry)];
        if (count[static_cast<std::size_t>(column)]++ == 0) {
          its.push_back(column);
        }
      }
      for (const Index column : its) {
        const auto k = static_cast<std::size_t>(column);
        const Index found = std::exchange(count[k], 0);
        entries[k] += found;
        ++blocks_with[k];
        Index& largest = (is_last ? most_in_last : most)[k];
        largest = std::max(largest, found);
      }
      groups += std::ssize(its);
    }
  }

  const BlockPattern* pattern;
  Index size, number, last_size;
  std::vector<std::vector<Index>> columns;  // that each block has
  // Of each column: its entries, the blocks that have it, the most entries in one of them.
  std::vector<Index> entries, blocks_with, most, most_in_last;
  Words groups;

  // Of all conversions of blocks; that of none takes one word less.
  [[nodiscard]] Words prepare_peak() const {
    Words peak;
    for (const Range I : blocks(pattern->rows, size)) {
      peak = std::max(peak, Words(3 * I.size() + (stored_in(*pattern, I) > 0 ? 1 : 0)));
    }
    return peak;
  }
};

// Blocks of equal size: what one of them has of a column at most is met by what one of the keys'
// has of it, in a tile that is live.
Words core_peak(const GroupCounts& S, const GroupCounts& A2) {
  Words peak = 2 * Words(S.size);
  const auto of_tiles = [&](Index r, const std::vector<Index>& of_S, Index c,
                            const std::vector<Index>& of_A2) {
    Index few = 0;
    for (std::size_t k = 0; k < of_S.size(); ++k) {
      few = std::max(few, std::min(of_S[k], of_A2[k]));
    }
    if (few > 0) {
      peak = std::max(peak, 2 * Words(r) + Words(r) * c + 5 + 2 * Words(few) + 2);
    }
  };
  of_tiles(S.size, S.most, A2.size, A2.most);
  of_tiles(S.size, S.most, A2.last_size, A2.most_in_last);
  of_tiles(S.last_size, S.most_in_last, A2.size, A2.most);
  of_tiles(S.last_size, S.most_in_last, A2.last_size, A2.most_in_last);
  return peak;
}

// 1 + 2 (kS + kA), summed up over live tiles.
Words header_words(const GroupCounts& S, const GroupCounts& A2) {
  std::vector<KeyBits> with(S.entries.size());  // the blocks of keys that have a column
  const auto words = static_cast<std::size_t>(ceil_div(A2.number, Index{64}));
  for (Index block = 0; block < A2.number; ++block) {
    for (const Index column : A2.columns[static_cast<std::size_t>(block)]) {
      KeyBits& bits = with[static_cast<std::size_t>(column)];
      bits.resize(words);
      bits[static_cast<std::size_t>(block) / 64] |= std::uint64_t{1} << (block % 64);
    }
  }
  Words sum;
  KeyBits met(words);
  for (const std::vector<Index>& of_rows : S.columns) {
    std::ranges::fill(met, 0);
    for (const Index column : of_rows) {
      const KeyBits& bits = with[static_cast<std::size_t>(column)];
      for (std::size_t word = 0; word < bits.size(); ++word) {
        met[word] |= bits[word];
      }
    }
    each_key(met, [&](Index block) {
      sum += 1 + 2 * Words(std::ssize(of_rows) +
                           std::ssize(A2.columns[static_cast<std::size_t>(block)]));
    });
  }
  return sum;
}

// What regrouping and tiles take.
std::vector<PhaseCost> tiles_cost(const GroupCounts& S, const GroupCounts& A2) {
  PhaseCost prepare{.path = "prepare",
                    .reads = 0,
                    .writes = 0,
                    .peak = std::max(S.prepare_peak(), A2.prepare_peak()),
                    .flops = 0};
  for (const GroupCounts* of : {&S, &A2}) {
    const Words entries = of->pattern->stored();
    prepare.index_reads += entries + of->pattern->rows + of->number;
    prepare.index_writes += entries + 2 * of->groups;
    prepare.reads += entries;
    prepare.writes += entries;
  }
  prepare.reads += prepare.index_reads;
  prepare.writes += prepare.index_writes;
  Words passing, products;
  for (std::size_t k = 0; k < S.entries.size(); ++k) {
    passing += Words(S.entries[k]) * A2.blocks_with[k] + Words(A2.entries[k]) * S.blocks_with[k];
    products += Words(S.entries[k]) * A2.entries[k];
  }
  const Words headers = header_words(S, A2);
  return {prepare,
          {.path = "core",
           .reads = headers + 2 * passing,
           .writes = S.pattern->rows,
           .peak = core_peak(S, A2),
           .flops = 2 * products,
           .index_reads = headers + passing}};
}

}  // namespace

std::vector<PhaseCost> sparse_tiles_cost(const Problem& problem, const Blocks& blocks) {
  const Sparsity& of = problem.sparsity;
  std::vector<PhaseCost> phases = {sparse_product_cost("S", of, "S", blocks)};
  for (PhaseCost& phase :
       tiles_cost(GroupCounts(of.S(), blocks["r"]), GroupCounts(of.A2(), blocks["c"]))) {
    phases.push_back(std::move(phase));
  }
  return phases;
}

// Of some rows in each doubling, with the most keys that fit beside them.
Blocks fit_sparse_tiles(const Problem& problem, Index M) {
  const Sparsity& of = problem.sparsity;
  const Index n = problem.shape.n, m = problem.shape.m;
  Blocks blocks;
  plan_sparse_product(of, M, "S", blocks);
  blocks.add("r", 1);
  blocks.add("c", 1);
  Words least;
  Index tried = 0;
  for (Index rows = 1; tried < n; rows = std::min(n, rows + std::max<Index>(rows / 8, 1))) {
    const Index r = even(n, rows);
    if (std::exchange(tried, r) == r) {
      continue;
    }
    const GroupCounts S(of.S(), r);
    const auto fits = [&](Index c) {
      const GroupCounts A2(of.A2(), c);
      return std::max({core_peak(S, A2), S.prepare_peak(), A2.prepare_peak()}) <= Words(M);
    };
    if (!fits(1)) {
      break;
    }
    const Index c = largest(std::clamp<Index>(M / r, 1, m), fits);
    const PhaseCost cost = total(tiles_cost(S, GroupCounts(of.A2(), c)));
    if (r == 1 || cost.reads + cost.writes < least) {
      blocks.set("r", r);
      blocks.set("c", c);
      least = cost.reads + cost.writes;
    }
  }
  return blocks;
}

}  // namespace redblue
