#include <algorithm>
#include <bit>
#include <iterator>
#include <numeric>
#include <utility>

#include "kernels/sparse/live_products.hpp"
#include "kernels/sparse/rows.hpp"

namespace redblue {

namespace {

std::vector<Index> entries_by_row(const BlockPattern& of) {
  std::vector<Index> entries;
  for (Index row = 0; row < of.rows; ++row) {
    entries.push_back(stored_in(of, row));
  }
  return entries;
}

}  // namespace

SparseRows::SparseRows(const Problem& problem, const Blocks& blocks, Pass its_pass,
                       SparseStays what)
    : pass(its_pass),
      stays(what),
      n(problem.shape.n),
      m(problem.shape.m),
      d(problem.shape.d),
      of(problem.sparsity),
      backward(its_pass == Pass::backward),
      dense(its_pass != Pass::logsumexp),
      activation(problem.activation),
      softmax(problem.normalised()),
      rows(what == SparseStays::S ? of.S() : of.A1()),
      chunk(blocks["chunk"]),
      runs(blocks.contains(kRuns)),
      width(dense ? std::min(blocks["Bw"], problem.shape.d) : 0),
      together(blocks.contains(kKeys) ? std::min({blocks[kKeys], kKeysTogether, m}) : 0),
      keys_by_length_(static_cast<std::size_t>(m)),
      entries_of_keys_(entries_by_row(of.A2())) {
  // A part of a tile begins at a panel, or lies within one.
  width = width < kPanel ? static_cast<Index>(std::bit_floor(static_cast<std::uint64_t>(width)))
                         : width / kPanel * kPanel;
  std::iota(keys_by_length_.begin(), keys_by_length_.end(), Index{0});
  std::ranges::stable_sort(keys_by_length_, std::ranges::greater(),
                           [&](Index key) { return stored_in(of.A2(), key); });
}

Words SparseRows::row_words(Index row) const {
  const Words entries =
      2 * Words(stored_in(rows, row)) + 1 + (together > 0 ? group_words(together) : 0);
  const Index of_softmax = softmax ? 2 : 0;
  if (!backward) {
    return entries + of_softmax + (dense ? Words(d) : Words(0));  // the maximum, the sum and Z
  }
  // G, W, L and v; later A1 with W.
  const Words later = 2 * Words(stored_in(of.A1(), row)) + 1 + d;
  return std::max(entries + 2 * Words(d) + of_softmax, later);
}

Words SparseRows::throughout() const {
  const bool X_stays = stays == SparseStays::X;
  return Words(backward && !X_stays ? 2 : 1) + (X_stays ? csr_words(of.X()) : Words(0));
}

Words SparseRows::beside() const {
  const Index longest = stored_in(of.A2(), keys_by_length_.front());
  const Words of_key = 2 * Words(longest) + 1 + (dense ? Words(d) : Words(0));
  return throughout() + (together > 0 ? Words(together) * of_key : kPairWords + of_key) +
         (runs ? 3 : 0) + (stays == SparseStays::X ? Words(d) : Words(0));
}

Words SparseRows::beside_gradients() const {
  return throughout() + 2 * Words(d);  // a row of g, and the sum of a chunk
}

MetKeys SparseRows::met(Range I) const {
  MetKeys met;
  met.keys = of.keys_met(I);
  met.number = size_of(met.keys);
  const Index entries = entries_of_keys_.over(met.keys, met.number);
  met.entries = entries;
  const auto is_met = [&](Index key) {
    return (met.keys[static_cast<std::size_t>(key) / 64] >> (key % 64) & 1) != 0;
  };
  const auto longest = [&](bool of_met) {
    const auto found = std::ranges::find(keys_by_length_, of_met, is_met);
    return found == keys_by_length_.end() ? 0 : stored_in(of.A2(), *found);
  };
  std::uint64_t before = 0;  // true if the last key of the word before is met
  for (const std::uint64_t word : met.keys) {
    met.runs += bits_in(word & ~(word << 1 | before));
    before = word >> 63;
  }
  const Words all = Words(m) + 1 + of.A2().stored();
  const Words in_runs = 3 * Words(met.runs) + met.number + entries;
  met.given = runs && in_runs < all;
  met.index = met.given ? in_runs : all;
  met.longest = longest(true);
  met.most_passing = met.given ? 0 : longest(false);
  if (together > 0) {
    each_piece(met.keys, together, [&](Range piece) {
      met.together = std::max(met.together, piece.size());
      met.group = std::max(met.group, 2 * Words(stored_in(of.A2(), piece)) +
                                          Words(piece.size()) * (dense ? d + 1 : 1));
    });
  }
  return met;
}

Index SparseRows::units() const {
  Index number = 0;
  each([&](Range) { ++number; });
  return number;
}

std::vector<Range> SparseRows::chunks(Range units) const {
  std::vector<Range> found;
  Index unit = 0;
  each([&](Range I) {
    if (units.begin <= unit && unit < units.end) {
      found.push_back(I);
    }
    ++unit;
  });
  return found;
}

bool SparseRows::live(Index row) const {
  const BlockPattern& keys = of.keys_of_columns();
  return std::ranges::any_of(of.S().row(row),
                             [&](Index column) { return stored_in(keys, column) > 0; });
}

std::vector<bool> columns_before(const SparseRows& by, Index row) {
  std::vector<bool> touched(static_cast<std::size_t>(by.d));
  for (Index before = 0; before < row; ++before) {
    for (const Index k : by.of.A1().row(before)) {
      touched[static_cast<std::size_t>(k)] = true;
    }
  }
  return touched;
}

namespace {

// Adds the terms of the phase g: the rows of g that a chunk reads and writes.
void add_gradient_sums(const SparseRows& by, Range I, bool partials, std::vector<bool>& touched,
                       ChunkSums& sum) {
  const Words r = I.size(), d = by.d;
  bool again = false;
  std::vector<bool> own(touched.size());
  for (Index row = I.begin; row < I.end; ++row) {
    for (const Index column : by.of.A1().row(row)) {
      const auto k = static_cast<std::size_t>(column);
      if (!own[k]) {
        own[k] = true;
        sum.columns += 1;
        sum.columns_again += touched[k] && !partials ? 1 : 0;
        again = again || (touched[k] && !partials);
        touched[k] = true;
      }
    }
    sum.entries += by.live(row) ? stored_in(by.of.A1(), row) : 0;
  }
  const Index entries = stored_in(by.of.A1(), I);
  const Index rows_of_g = entries == 0 ? 0 : again ? 2 : 1;
  sum.g_peak =
      std::max(sum.g_peak, by.throughout() + r * d + 2 * Words(entries) + r + rows_of_g * d);
}

}  // namespace

ChunkSums chunk_sums(const SparseRows& by, Range units, bool partials) {
  ChunkSums sum;
  const BlockPattern& A2 = by.of.A2();
  const Words d = by.d;
  const bool X_stays = by.stays == SparseStays::X;
  std::vector<Index> of_X(static_cast<std::size_t>(by.d));  // number of entries of each column
  for (const Index column : by.of.X().columns) {
    ++of_X[static_cast<std::size_t>(column)];
  }
  std::vector<Index> of_keys(static_cast<std::size_t>(X_stays ? by.m : 0));  // products in the y of
                                                                             // each key
  for (Index key = 0; key < std::ssize(of_keys); ++key) {
    for (const Index column : A2.row(key)) {
      of_keys[static_cast<std::size_t>(key)] += of_X[static_cast<std::size_t>(column)];
    }
  }
  const KeyNumbers products_of_keys(std::move(of_keys));
  const std::vector<Range> chunks = by.chunks(units);
  std::vector<bool> touched =
      columns_before(by, by.backward && !chunks.empty() ? chunks.front().begin : 0);
  for (const Range I : chunks) {
    const MetKeys met = by.met(I);
    const Words r = I.size();
    ++sum.chunks;
    sum.row_keys += r * met.number;
    sum.row_values += r * met.entries;
    sum.largest = std::max(sum.largest, I.size());
    sum.index += met.index;
    sum.values += met.entries;
    sum.keys += met.number;
    if (X_stays) {
      sum.y_flops += 2 * Words(products_of_keys.over(met.keys, met.number));
    }
    Words of_key = 0;
    if (met.number > 0) {
      const Words one = 2 * Words(met.longest) + 1 + (by.dense ? d : Words(0));
      of_key = (by.together > 0 ? met.group : one) + (met.given ? 3 : 0) + (X_stays ? d : Words(0));
    }
    if (!met.given) {
      of_key = std::max(of_key, met.number < by.m ? Words(met.most_passing) + 1 : Words(0));
    }
    const Words of_rows = r * (by.softmax ? 2 : 0) + (by.backward ? 2 * r * d
                                                      : by.dense  ? r * d
                                                                  : Words(0));
    const Words scores = by.together == 0  ? Words(kPairWords)
                         : met.number == 0 ? Words(0)
                                           : r * by.group_words(met.together);
    sum.core = std::max(sum.core, by.throughout() + 2 * Words(stored_in(by.rows, I)) + r + of_rows +
                                      scores + of_key);
    if (by.backward) {
      add_gradient_sums(by, I, partials, touched, sum);
    }
  }
  return sum;
}

namespace {

// Returns the flops of the scores, without the flops of y: s = S_i . A2_j for sparse-rows, s = A1_i
// . y for sparse-x.
Words score_flops(const SparseRows& by, Range rows) {
  std::vector<Index> keys(static_cast<std::size_t>(by.d));  // number of keys that meet each column
  for (Index k = 0; k < by.d; ++k) {
    keys[static_cast<std::size_t>(k)] = by.stays == SparseStays::S
                                            ? stored_in(by.of.keys_of_columns(), k)
                                            : size_of(by.of.keys_with(by.of.X().row(k)));
  }
  Words sum;
  const Range entries = entries_of(by.rows, rows);
  for (Index entry = entries.begin; entry < entries.end; ++entry) {
    sum += 2 * keys[static_cast<std::size_t>(by.rows.columns[static_cast<std::size_t>(entry)])];
  }
  return sum;
}

// The live pairs of rows, and the number of entries that their keys have.
struct LivePairsOf {
  Words pairs, entries;
};
LivePairsOf live_pairs_of(const SparseRows& by, Range rows) {
  LivePairsOf sum;
  if (rows.size() == by.n) {
    return {by.of.pairs(), by.of.entries_of_pairs()};
  }
  for (Index row = rows.begin; row < rows.end; ++row) {
    const KeyBits keys = by.of.keys_met({row, row + 1});
    sum.pairs += size_of(keys);
    each_key(keys, [&](Index key) { sum.entries += stored_in(by.of.A2(), key); });
  }
  return sum;
}

}  // namespace

Words weights_peak(const SparseRows& by, Index largest, Index width) {
  const Words r = largest, d = by.d, w = width, of_softmax = by.softmax ? r : Words(0);
  return by.throughout() + (by.backward ? of_softmax + 2 * r * d + w * d
                                        : r * d + std::max(2 * of_softmax, w * (d + r)));
}

std::vector<PhaseCost> sparse_part_cost(const SparseRows& by, Range units, bool partials) {
  const ChunkSums sum = chunk_sums(by, units, partials);
  const std::vector<Range> chunks = by.chunks(units);
  const Range rows{chunks.front().begin, chunks.back().end};
  const Words n = rows.size(), d = by.d, of_softmax = by.softmax ? n : Words(0);
  std::vector<PhaseCost> phases;
  if (by.stays == SparseStays::X) {
    phases.push_back({.path = "X",
                      .reads = csr_words(by.of.X()),
                      .writes = 0,
                      .peak = csr_words(by.of.X()),
                      .flops = 0,
                      .index_reads = Words(by.of.X().stored()) + d + 1});
  }
  const PhaseCost of_weights{
      .path = by.backward ? "G" : "O",
      .reads = d * d * sum.chunks + (by.backward ? (by.softmax ? 2 : 1) * n * d : Words(0)),
      .writes = by.backward ? Words(0) : n * d + of_softmax,
      .peak = weights_peak(by, sum.largest, by.width),
      .flops = 2 * n * d * d};
  if (by.backward) {
    phases.push_back(of_weights);
  }
  const LivePairsOf live = live_pairs_of(by, rows);
  const Words index = Words(stored_in(by.rows, rows)) + n + 1 + sum.index;
  // If keys stream together, W multiplies each of their entries by all rows of a chunk.
  const Words of_W = !by.backward      ? Words(0)
                     : by.together > 0 ? 2 * sum.row_values
                                       : 2 * live.entries;
  phases.push_back(
      {.path = "core",
       .reads = index + stored_in(by.rows, rows) + sum.values +
                (by.dense ? sum.keys * d : Words(0)) + (by.backward ? of_softmax : Words(0)),
       .writes = by.dense ? Words(0) : n,
       .peak = sum.core,
       .flops =
           score_flops(by, rows) + sum.y_flops + (by.dense ? 2 * live.pairs * d : Words(0)) + of_W,
       .index_reads = index});
  if (by.backward) {
    const bool reads_A1 = by.stays == SparseStays::S;
    const Words A1_index = Words(stored_in(by.of.A1(), rows)) + n + 1;
    // The last part also writes the rows of g that no chunk has.
    const bool last = !partials && rows.end == by.n;
    const auto touched = columns_before(by, last ? by.n : 0);
    const Words zeros = last ? Words(std::ranges::count(touched, false)) : Words(0);
    phases.push_back(
        {.path = "g",
         .reads =
             (reads_A1 ? A1_index + stored_in(by.of.A1(), rows) : Words(0)) + sum.columns_again * d,
         .writes = (sum.columns + zeros) * d,
         .peak = std::max(sum.g_peak, zeros > Words(0) ? by.throughout() + d : Words(0)),
         .flops = 2 * sum.entries * d,
         .index_reads = reads_A1 ? A1_index : Words(0)});
  } else if (by.dense) {
    phases.push_back(of_weights);
  }
  return phases;
}

std::vector<PhaseCost> sparse_reduce_cost(const SparseRows& by, Range rows) {
  std::vector<Index> chunks(static_cast<std::size_t>(by.d));  // number of chunks that have a row of
                                                              // g
  std::vector<Index> last(chunks.size(), -1);
  by.each([&](Range I) {
    for (Index row = I.begin; row < I.end; ++row) {
      for (const Index k : by.of.A1().row(row)) {
        const auto at = static_cast<std::size_t>(k);
        chunks[at] += std::exchange(last[at], I.begin) != I.begin ? 1 : 0;
      }
    }
  });
  PhaseCost cost{
      .path = "reduce", .reads = 0, .writes = Words(rows.size()) * by.d, .peak = by.d, .flops = 0};
  for (Index k = rows.begin; k < rows.end; ++k) {
    const Words its = chunks[static_cast<std::size_t>(k)];
    cost.reads += its * by.d;
    cost.peak = std::max(cost.peak, std::min(its, Words(2)) * by.d);
  }
  return {cost};
}

std::vector<PhaseCost> sparse_rows_cost(const Problem& problem, const Blocks& blocks, Pass pass,
                                        SparseStays stays) {
  const SparseRows by(problem, blocks, pass, stays);
  std::vector<PhaseCost> phases;
  if (stays == SparseStays::S) {
    phases.push_back(sparse_product_cost("S", by.of, "S", blocks));
  }
  std::ranges::move(sparse_part_cost(by, {0, by.units()}, false), std::back_inserter(phases));
  return phases;
}

}  // namespace redblue
