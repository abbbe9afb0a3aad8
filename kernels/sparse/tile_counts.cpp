#include "kernels/sparse/tile_counts.hpp"

#include <algorithm>
#include <utility>

namespace redblue {

GroupCounts::GroupCounts(const BlockPattern& of, Index rows)
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

Words GroupCounts::prepare_peak() const {
  Words peak;
  for (const Range I : blocks(pattern->rows, size)) {
    peak = std::max(peak, Words(3 * I.size() + (stored_in(*pattern, I) > 0 ? 1 : 0)));
  }
  return peak;
}

PhaseCost prepare_cost(const std::vector<const GroupCounts*>& all) {
  PhaseCost prepare{.path = "prepare", .reads = 0, .writes = 0, .peak = 0, .flops = 0};
  for (const GroupCounts* of : all) {
    const Words entries = of->pattern->stored();
    prepare.peak = std::max(prepare.peak, of->prepare_peak());
    prepare.index_reads += entries + of->pattern->rows + of->number;
    prepare.index_writes += entries + 2 * of->groups;
    prepare.reads += entries;
    prepare.writes += entries;
  }
  prepare.reads += prepare.index_reads;
  prepare.writes += prepare.index_writes;
  return prepare;
}

BlockBits::BlockBits(const GroupCounts& of)
    : words_(static_cast<std::size_t>(ceil_div(of.number, Index{64}))),
      of_columns_(of.entries.size()) {
  for (Index block = 0; block < of.number; ++block) {
    for (const Index column : of.columns[static_cast<std::size_t>(block)]) {
      KeyBits& bits = of_columns_[static_cast<std::size_t>(column)];
      bits.resize(words_);
      bits[static_cast<std::size_t>(block) / 64] |= std::uint64_t{1} << (block % 64);
    }
  }
}

void LiveBlocks::add(const KeyBits& bits, Index number) {
  const std::uint64_t of_last = std::uint64_t{1} << ((number - 1) % 64);
  last = last || (bits.back() & of_last) != 0;
  others = others || (bits.back() & ~of_last) != 0 ||
           std::any_of(bits.begin(), bits.end() - 1, [](std::uint64_t word) { return word != 0; });
}

namespace {

constexpr Index kQueriesInWord = 32;

}  // namespace

StoredScores::StoredScores(const Sparsity& of, const GroupCounts& queries)
    : size(queries.size),
      number(queries.number),
      last_size(queries.last_size),
      blocks_of_key(static_cast<std::size_t>(of.A2().rows)),
      pairs(of.pairs()) {
  BlockBits(queries).each_row(of.A2(), [&](Index key, const KeyBits& bits) {
    const Index found = size_of(bits);
    blocks_of_key[static_cast<std::size_t>(key)] = found;
    met += found;
    live.add(bits, number);
  });
  as_bits = met * (1 + ceil_div(size, kQueriesInWord)) < 2 * met + pairs;
}

Index StoredScores::header() const {
  return as_bits ? 1 + ceil_div(size, kQueriesInWord) : 2;
}

Index StoredScores::pattern(const ByColumns& of_block, Range keys) const {
  Index sum = 0;
  for (Index key = keys.begin; key < keys.end; ++key) {
    sum += of_block.has(key) ? pattern(std::ssize(of_block[key])) : 0;
  }
  return sum;
}

}  // namespace redblue
