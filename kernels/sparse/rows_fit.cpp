#include <algorithm>
#include <optional>

#include "kernels/fit.hpp"
#include "kernels/sparse/live_products.hpp"
#include "kernels/sparse/rows.hpp"

namespace redblue {
namespace {

// Returns the plan with the fewest words. `together` is the number of keys that stream together, or
// 0.
Blocks fewest(const Problem& problem, Index M, Pass pass, SparseStays stays, Index together) {
  constexpr Index kBusy = 256;  // enough columns to keep the registers busy
  Blocks product;
  if (stays == SparseStays::S) {
    plan_sparse_product(problem.sparsity, M, "S", product);
  }
  // The largest chunk that leaves room for the other words in fast memory.
  const auto candidate = [&](bool runs, bool for_gradients) {
    Blocks blocks = product;
    blocks.add("chunk", 1);
    if (runs) {
      blocks.add(SparseRows::kRuns, 1);
    }
    if (pass != Pass::logsumexp) {
      blocks.add("Bw", 1);
    }
    if (together > 0) {
      blocks.add(SparseRows::kKeys, together);
    }
    const SparseRows by(problem, blocks, pass, stays);
    Words all;
    for (Index row = 0; row < by.n; ++row) {
      all += by.row_words(row);
    }
    const Words beside = for_gradients ? std::max(by.beside(), by.beside_gradients()) : by.beside();
    const Words most = beside < Words(M) ? Words(M - beside.value()) : Words(1);
    blocks.set("chunk", std::min(all, most).value());
    return blocks;
  };
  Blocks best;
  PhaseCost least;
  for (const bool runs : {true, false}) {
    Blocks tried = candidate(runs, false);
    PhaseCost cost = total(sparse_rows_cost(problem, tried, pass, stays));
    if (cost.peak > Words(M) && pass == Pass::backward) {
      tried = candidate(runs, true);
      cost = total(sparse_rows_cost(problem, tried, pass, stays));
    }
    const bool both_fit = cost.peak <= Words(M) && least.peak <= Words(M);
    if (runs || (both_fit ? cost.reads < least.reads : cost.peak < least.peak)) {
      best = tried;
      least = cost;
    }
  }
  if (pass != Pass::logsumexp) {
    const SparseRows by(problem, best, pass, stays);
    Index rows = 0;
    by.each([&](Range I) { rows = std::max(rows, I.size()); });
    best.set("Bw", largest(std::min(problem.shape.d, kBusy),
                           [&](Index width) { return weights_peak(by, rows, width) <= Words(M); }));
  }
  return best;
}

// Nanoseconds on a current processor. Only their ratios matter. They were measured at one word per
// two vector instructions of 16 words, and small errors are harmless.
struct SparseRates {
  double of_live_word = 0.025;  // multiply-add, per word of a live pair's row
  double of_pair = 25;    // search for a pair's score, and exp, if keys stream one after the other
  double of_entry = 0.5;  // add an entry to W, if keys stream one after the other
  double of_row_word = 0.15;   // load and store Z or G, per word of a row and group of keys
  double of_score = 0.6;       // compute a score of a tile, live or dead
  double of_row_entry = 0.03;  // add an entry to W, per row of a chunk
  double of_word = 0.15;       // read a word
};

double seconds_of_core(const Problem& problem, const Blocks& blocks, Pass pass, SparseStays stays) {
  constexpr SparseRates rates;
  const SparseRows by(problem, blocks, pass, stays);
  const ChunkSums sum = chunk_sums(by, {0, by.units()}, false);
  const auto number = [](Words words) { return static_cast<double>(words.value()); };
  const double pairs = number(by.of.pairs());
  const double d = by.dense ? static_cast<double>(by.d) : 0;
  const double words = number(sum.index + sum.values) + number(sum.keys) * d +
                       static_cast<double>(sum.chunks) * d * d;
  const double of_words = words * rates.of_word + pairs * d * rates.of_live_word;
  if (by.together == 0) {
    return of_words + pairs * rates.of_pair +
           (by.backward ? number(by.of.entries_of_pairs()) * rates.of_entry : 0);
  }
  return of_words + number(sum.row_keys) * rates.of_score +
         number(sum.row_keys) / static_cast<double>(by.together) * d * rates.of_row_word +
         (by.backward ? number(sum.row_values) * rates.of_row_entry : 0);
}

}  // namespace

Blocks fit_sparse_rows(const Problem& problem, Index M, Objective objective, Pass pass,
                       SparseStays stays) {
  Blocks best = fewest(problem, M, pass, stays, 0);
  if (objective == Objective::words || problem.sparsity.pairs() == Words(0)) {
    return best;
  }
  double least = seconds_of_core(problem, best, pass, stays);
  for (const Index together : {8, 16, 32, 48}) {
    const Blocks tried = fewest(problem, M, pass, stays, std::min(together, problem.shape.m));
    if (total(sparse_rows_cost(problem, tried, pass, stays)).peak > Words(M)) {
      break;
    }
    if (const double time = seconds_of_core(problem, tried, pass, stays); time < least) {
      best = tried;
      least = time;
    }
  }
  return best;
}

}  // namespace redblue
