#include "kernels/problem.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "memsim/errors.hpp"

namespace redblue {
namespace {

// Returns the edge as seen from a numbering that begins `queries` queries earlier.
MaskEdge later(MaskEdge edge, Index queries) {
  return {edge.moves ? edge.at - queries : edge.at, edge.moves};
}

// All results of all kernels.
constexpr std::string_view kResults[] = {"C",  "O",  "L",  "g",   "dQ",  "dK",
                                         "dV", "dX", "dY", "dA1", "dA2", "dA3"};

std::uint32_t bit_of(std::string_view name) {
  const auto* const found = std::ranges::find(kResults, name);
  require(found != std::end(kResults), "the name of a result");
  return std::uint32_t{1} << (found - kResults);
}

}  // namespace

Wanted::Wanted(std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    add(name);
  }
}

void Wanted::add(std::string_view name) {
  which_ |= bit_of(name);
}

bool Wanted::contains(std::string_view name) const {
  return all() || (which_ & bit_of(name)) != 0;
}

std::string Wanted::text() const {
  std::string text;
  for (const std::string_view name : kResults) {
    if (!all() && contains(name)) {
      text += (text.empty() ? "" : ",") + std::string(name);
    }
  }
  return text;
}

Problem Problem::with_stacked(Index heads) const {
  require(heads > 0 && stacked == 1, "at least one head, of a problem of one");
  constexpr Index kMostQueries = Index{1} << 60;  // for masks, in which edges may be negative
  constexpr Index kMostRuns = Index{1} << 22;
  Problem all = *this;
  all.stacked = heads;
  all.shape.n = (Words(shape.n) * heads).value();
  if (heads == 1 || mask.full()) {
    return all;
  }
  if (all.shape.n > kMostQueries ||
      (Words(std::ssize(mask.runs())) + mask.most_ranges()) * heads > Words(kMostRuns)) {
    throw CountOverflow("the mask of so many heads of queries for one of keys is too large");
  }
  std::vector<MaskRun> runs;
  for (Index head = 0; head < heads; ++head) {
    const Index before = head * shape.n;
    for (const auto& [range, live] : mask.runs()) {
      MaskRun& run = runs.emplace_back();
      run.queries = part_of({before, all.shape.n}, range);
      for (const auto& [begin, end] : live) {
        run.live.push_back({later(begin, before), later(end, before)});
      }
    }
  }
  all.mask =
      Mask(all.shape.n, shape.m, std::move(runs), mask.index().stacked(heads)).called(mask.spec());
  return all;
}

Problem Problem::densified() const {
  Problem dense = *this;
  if (sparsity.dense()) {
    return dense;
  }
  dense.shape.A1_stored = dense.shape.X_stored = dense.shape.A2_stored = dense.shape.S_stored = 0;
  dense.sparsity = {};
  if (!sparsity.of_product() && !sparsity.all_pairs()) {
    dense.mask = sparsity.mask();
  }
  return dense;
}

Problem Problem::one_head() const {
  Problem one = *this;
  one.stacked = 1;
  one.shape.n = queries();
  if (stacked == 1 || mask.full()) {
    return one;
  }
  std::vector<MaskRun> runs;
  for (const MaskRun& run : mask.runs()) {
    if (run.queries.begin < one.shape.n) {
      runs.push_back({common(run.queries, {0, one.shape.n}), run.live});
    }
  }
  one.mask =
      Mask(one.shape.n, shape.m, std::move(runs), mask.index().stacked(1)).called(mask.spec());
  return one;
}

double Memory::weighted(const std::vector<Words>& moved) const {
  double sum = 0;
  for (std::size_t level = 0; level < levels(); ++level) {
    sum += moved[level].overflowed() ? std::numeric_limits<double>::infinity()
                                     : word_cost(level) * static_cast<double>(moved[level].value());
  }
  return sum;
}

}  // namespace redblue
