// Primitive masks, and intersections and unions of masks.

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/mask.hpp"
#include "memsim/errors.hpp"

namespace redblue {
namespace {

enum class Join : std::uint8_t { both, either };

// Returns the queries at which the order of the edges may change, where edges that stay meet edges
// that move. Between two of them, all edges keep one order.
std::vector<Index> changes(const MaskRun& a, const MaskRun& b, Range queries) {
  if (queries.size() == 1) {
    return {queries.begin, queries.end};
  }
  std::vector<Index> stay, move;
  for (const MaskRun* run : {&a, &b}) {
    for (const auto& segment : run->live) {
      for (const MaskEdge edge : {segment.begin, segment.end}) {
        (edge.moves ? move : stay).push_back(edge.at);
      }
    }
  }
  std::vector<Index> places = {queries.begin, queries.end};
  for (const Index stays : stay) {
    for (const Index moves : move) {
      for (const Index place : {stays - moves, stays - moves + 1}) {
        if (queries.begin < place && place < queries.end) {
          places.push_back(place);
        }
      }
    }
  }
  std::ranges::sort(places);
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return places;
}

// Returns the segments of some queries for which all edges keep one order; `query` is the first.
std::vector<MaskSegment> joined(const MaskRun& a, const MaskRun& b, Index query, Join how) {
  struct Change {
    MaskEdge edge;
    int by;  // +1 if a segment begins here, -1 if one ends
  };
  std::vector<Change> all;
  for (const MaskRun* run : {&a, &b}) {
    for (const auto& [begin, end] : run->live) {
      all.push_back({begin, 1});
      all.push_back({end, -1});
    }
  }
  // Beginnings come first, so that adjacent ranges are joined.
  std::ranges::sort(all, [&](const Change& x, const Change& y) {
    return std::pair(x.edge.of(query), -x.by) < std::pair(y.edge.of(query), -y.by);
  });
  const int enough = how == Join::both ? 2 : 1;
  std::vector<MaskSegment> result;
  int depth = 0;
  MaskEdge begin;
  for (const auto& [edge, by] : all) {
    if (by > 0 && ++depth == enough) {
      begin = edge;
    } else if (by < 0 && depth-- == enough && begin.of(query) < edge.of(query)) {
      result.push_back({begin, edge});
    }
  }
  return result;
}

Mask join(const Mask& a, const Mask& b, Join how) {
  require(a.queries() == b.queries() && a.keys() == b.keys(), "masks of the same extents");
  std::vector<MaskRun> runs;
  auto x = a.runs().begin();
  auto y = b.runs().begin();
  while (x != a.runs().end()) {
    const std::vector<Index> places = changes(*x, *y, common(x->queries, y->queries));
    for (std::size_t k = 0; k + 1 < places.size(); ++k) {
      runs.push_back({{places[k], places[k + 1]}, joined(*x, *y, places[k], how)});
    }
    const Index end = places.back();
    x += x->queries.end == end ? 1 : 0;
    y += y->queries.end == end ? 1 : 0;
  }
  return {a.queries(), a.keys(), std::move(runs), a.index().with(b.index())};
}

// Returns the keys between two edges, which may lie outside the problem.
Mask between(Index n, Index m, MaskEdge begin, MaskEdge end) {
  // The edges of `some` are not valid yet. The join with `all` cuts them where they leave [0, m).
  const MaskRun all{{0, n}, {{{0, false}, {m, false}}}};
  const MaskRun some{{0, n}, {{begin, end}}};
  std::vector<MaskRun> runs;
  const std::vector<Index> places = changes(all, some, {0, n});
  for (std::size_t k = 0; k + 1 < places.size(); ++k) {
    runs.push_back({{places[k], places[k + 1]}, joined(all, some, places[k], Join::both)});
  }
  return {n, m, std::move(runs)};
}

}  // namespace

Mask Mask::window(Index n, Index m, Index left, Index right) {
  const Index shift = m - n;
  // No key is farther away than this.
  left = std::min(left, n + m);
  right = std::min(right, n + m);
  return between(n, m, {shift - left, true}, {shift + right + 1, true});
}

Mask Mask::causal(Index n, Index m) {
  return between(n, m, {0, false}, {m - n + 1, true});
}

Mask Mask::prefix(Index n, Index m, Index keys) {
  return between(n, m, {0, false}, {std::min(keys, m), false});
}

Mask Mask::global(Index n, Index m, Range both) {
  const Range queries = common(both, {0, n});
  const Mask keys = between(n, m, {both.begin, false}, {std::min(both.end, m), false});
  if (queries.size() <= 0) {
    return keys;
  }
  std::vector<MaskRun> runs = {
      {{0, queries.begin}, {}}, {queries, {{{0, false}, {m, false}}}}, {{queries.end, n}, {}}};
  std::erase_if(runs, [](const MaskRun& run) { return run.queries.size() == 0; });
  return Mask(n, m, std::move(runs)) | keys;
}

Mask Mask::all(Index n, Index m) {
  return between(n, m, {0, false}, {m, false});
}

namespace {

std::vector<MaskRun> runs_of(const BlockPattern& blocks) {
  std::vector<MaskRun> runs;
  const auto columns = blocks.columns.begin();
  for (std::size_t row = 0; row + 1 < blocks.offsets.size(); ++row) {
    const Index first = std::ssize(runs) * blocks.block_rows;
    MaskRun& run = runs.emplace_back(MaskRun{{first, first + blocks.block_rows}, {}});
    for (auto col = columns + blocks.offsets[row]; col != columns + blocks.offsets[row + 1];
         ++col) {
      const Index begin = *col * blocks.block_cols;
      if (run.live.empty() || run.live.back().end.at != begin) {
        run.live.push_back({{begin}, {begin}});
      }
      run.live.back().end.at = begin + blocks.block_cols;
    }
  }
  return runs;
}

}  // namespace

Mask Mask::layout(const BlockPattern& blocks) {
  return {blocks.rows, blocks.cols, runs_of(blocks), MaskIndex::layout(blocks)};
}

Mask Mask::pattern(const BlockPattern& blocks) {
  return {blocks.rows, blocks.cols, runs_of(blocks), MaskIndex::pattern()};
}

Mask Mask::documents(const std::vector<Index>& queries, const std::vector<Index>& keys) {
  std::vector<MaskRun> runs;
  for (std::size_t k = 0; k + 1 < queries.size(); ++k) {
    if (queries[k] < queries[k + 1]) {
      MaskRun& run = runs.emplace_back(MaskRun{{queries[k], queries[k + 1]}, {}});
      if (keys[k] < keys[k + 1]) {
        run.live = {{{keys[k]}, {keys[k + 1]}}};
      }
    }
  }
  return {queries.back(), keys.back(), std::move(runs), MaskIndex::documents(queries, keys)};
}

Mask operator&(const Mask& a, const Mask& b) {
  return join(a, b, Join::both);
}

Mask operator|(const Mask& a, const Mask& b) {
  return join(a, b, Join::either);
}

}  // namespace redblue
