#pragma once
// Masks: the set of live pairs (query, key). A dead pair has the score minus infinity, so f = p = 0
// and it adds no word to a result. A query or key without a live pair is dead and is not read.
//
//   const Mask near = Mask::window(n, m, 128, 0) | Mask::global(n, m, {0, 3});
//
// A mask stores runs of queries. In a run, the live keys of query i are the same ranges throughout,
// and each end of a range stays or moves with i. Sums over queries use the runs, without a loop
// over queries. A mask is a value; copies share their data. Several threads may use one mask.
//
// A mask that is not a formula is data, which a kernel must read: kernels/mask_index.hpp describes
// how it is stored. Comparisons of masks ignore this.

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/mask_bits.hpp"
#include "kernels/mask_index.hpp"
#include "memsim/range.hpp"
#include "memsim/words.hpp"

namespace redblue {

// The key `at`, or the key `at + i` for query i if the edge moves.
struct MaskEdge {
  Index at = 0;
  bool moves = false;

  [[nodiscard]] Index of(Index query) const { return moves ? at + query : at; }
  friend bool operator==(const MaskEdge&, const MaskEdge&) = default;
};

// The keys from `begin` up to `end`: at least one for each query of the run.
struct MaskSegment {
  MaskEdge begin, end;

  [[nodiscard]] Range of(Index query) const { return {begin.of(query), end.of(query)}; }
  // Returns the keys that these consecutive queries of the run meet together, which are one range.
  [[nodiscard]] Range met_by(Range queries) const {
    return {begin.of(queries.begin), end.of(queries.end - 1)};
  }
  friend bool operator==(const MaskSegment&, const MaskSegment&) = default;
};

// A run: consecutive queries with the same live segments, which are disjoint and in order.
struct MaskRun {
  Range queries;
  std::vector<MaskSegment> live;

  // Returns the segments in which some of the queries meet some of the keys.
  [[nodiscard]] std::span<const MaskSegment> near(Range some, Range keys) const;

  friend bool operator==(const MaskRun&, const MaskRun&) = default;
};

// The stored blocks of a matrix, row by row. Row k of blocks has the blocks columns[offsets[k]] to
// columns[offsets[k + 1] - 1], in order and without repeats.
struct BlockPattern {
  Index rows = 0, cols = 0;              // extents in queries and keys
  Index block_rows = 1, block_cols = 1;  // extents of one block
  std::vector<Index> offsets = {0};
  std::vector<Index> columns = {};

  // Return the number of stored blocks, and the block columns of one row.
  [[nodiscard]] Index stored() const { return std::ssize(columns); }
  [[nodiscard]] std::span<const Index> row(Index k) const {
    const auto at = static_cast<std::size_t>(k);
    return std::span(columns).subspan(static_cast<std::size_t>(offsets[at]),
                                      static_cast<std::size_t>(offsets[at + 1] - offsets[at]));
  }
  friend bool operator==(const BlockPattern&, const BlockPattern&) = default;
};

// Sets of indices as ranges that are disjoint and in order.
Index size_of(const Ranges& ranges);
Ranges common(const Ranges& a, const Ranges& b);
Ranges without(const Ranges& a, const Ranges& b);
// Returns the rows for which has(row) is true.
template <class Has>
Ranges rows_with(const Ranges& rows, const Has& has) {
  Ranges some;
  for (const Range range : rows) {
    for (Index row = range.begin; row < range.end; ++row) {
      if (!has(row)) {
        continue;
      }
      if (!some.empty() && some.back().end == row) {
        ++some.back().end;
      } else {
        some.push_back({row, row + 1});
      }
    }
  }
  return some;
}
// Returns the ranges widened to whole blocks of [0, extent). The last block may be smaller.
Ranges in_blocks(const Ranges& ranges, Index extent, Index block);

class Mask {
 public:
  // full(): all pairs, for a problem of any size.
  Mask() = default;
  // Requires: runs that cover [0, queries) in order, with keys in [0, keys).
  Mask(Index queries, Index keys, std::vector<MaskRun> runs, MaskIndex index = {});
  // The primitive masks, for n queries and m keys. None is full(), even if all pairs are live.
  // Query i is at key i + m - n.
  //
  // window(): keys from i + m - n - left to i + m - n + right. Requires: left, right >= 0.
  static Mask window(Index n, Index m, Index left, Index right);
  // Keys up to i + m - n.
  static Mask causal(Index n, Index m);
  // The first `keys` keys, for every query.
  static Mask prefix(Index n, Index m, Index keys);
  // The queries in `both` meet all keys, and the keys in `both` meet all queries. Both are counted
  // by their own index.
  static Mask global(Index n, Index m, Range both);
  static Mask all(Index n, Index m);
  // The pairs in the stored blocks. layout() stores a list of blocks, and pattern() stores pairs.
  static Mask layout(const BlockPattern& blocks);
  static Mask pattern(const BlockPattern& blocks);
  // Each query meets the keys of its own document. Document k has the queries from queries[k] to
  // queries[k + 1] - 1, and keys likewise. Requires: both lists have the same length, begin with 0,
  // end with the extent, and never decrease.
  static Mask documents(const std::vector<Index>& queries, const std::vector<Index>& keys);
  // Returns the same pairs with a name, as a user wrote it. Returns full() if all pairs are live.
  [[nodiscard]] Mask called(std::string spec) const;
  [[nodiscard]] const std::string& spec() const { return spec_; }
  // Returns the same pairs and name, with indices of `words` words each.
  [[nodiscard]] Mask with_index_words(Index words) const;

  [[nodiscard]] bool full() const { return data_ == nullptr; }

  // Return how the mask is stored, and the words that say which keys some queries meet. For full():
  // no words.
  [[nodiscard]] const MaskIndex& index() const;
  [[nodiscard]] Words index_words(Range queries) const;

  // All functions below require a mask that is not full().

  // The extents of the mask.
  [[nodiscard]] Index queries() const { return data_->queries; }
  [[nodiscard]] Index keys() const { return data_->keys; }

  // Returns the live keys of some queries together.
  [[nodiscard]] Ranges keys(Range queries) const;
  // Returns the live keys of some queries that no other queries meet. The mask remembers the
  // result.
  [[nodiscard]] Ranges keys_alone(Range queries) const;
  // Returns the number of live pairs of some queries and some keys.
  [[nodiscard]] Words pairs(Range queries, Range keys) const;
  // Returns the range from the first to the last of `keys` that some of the queries meet. Empty if
  // they meet none.
  [[nodiscard]] Range hull(Range queries, Range keys) const;
  // Calls visit(range) for each range of live keys of one query among `keys`.
  template <class Visit>
  void each_range(Index query, Range keys, const Visit& visit) const {
    for (const MaskSegment& segment : run_of(query).near({query, query + 1}, keys)) {
      visit(common(segment.of(query), keys));
    }
  }
  // Return the pairs as bits, and as bits of queries for each key. Null if the mask has few ranges;
  // then ranges are faster.
  [[nodiscard]] const MaskBits* bits() const;
  [[nodiscard]] const MaskBits* bits_of_keys() const;
  // Returns the queries that meet a key.
  [[nodiscard]] const Ranges& live_queries() const { return data_->live; }
  // Returns the keys that a query meets.
  [[nodiscard]] const Ranges& live_keys() const { return data_->live_keys; }

  // Sums over groups of `size` queries; the last group may be smaller. `keys`: the keys that each
  // group meets, summed. `longest`: the longest range of keys of one group. `most`: the most keys
  // of one group. `pairs`: all live pairs. `index`: the words of indices that say all this.
  struct Met {
    Words keys;
    Index longest = 0;
    Index most = 0;
    Words pairs;
    Words index;
  };
  [[nodiscard]] Met met_by_groups(Range queries, Index size) const;
  // Returns the number of keys that each group and the next both meet, at most `most` for each two,
  // summed.
  [[nodiscard]] Words shared_by_groups(Range queries, Index size, Index most) const;
  // Returns the sizes of the first range of keys of each group, each at most `most`, summed.
  [[nodiscard]] Words first_by_groups(Range queries, Index size, Index most) const;

  // Sums over the live tiles, which are the tiles of a group of queries and a block of keys with a
  // live pair: their queries, keys and words. `most` is the most keys in the tiles of one group.
  struct Tiles {
    Words queries, keys, words;
    Index most = 0;
  };
  [[nodiscard]] Tiles live_tiles(Index group, Index block) const;

  // Returns an upper bound for the number of key ranges of any queries.
  [[nodiscard]] Index most_ranges() const;

  // Return the pairs with keys from `key` on, and the pairs with the given keys. The mask remembers
  // the result of among().
  [[nodiscard]] Mask from_key(Index key) const;
  [[nodiscard]] Mask among(Range keys) const;
  // Returns the mask with queries and keys swapped.
  [[nodiscard]] Mask transposed() const;
  // Returns the mask of only the live queries and live keys, renumbered from 0. Returns full() if
  // all of them meet.
  [[nodiscard]] Mask compact() const;
  // For a square mask in which query i and key i are one source. live_sources(): the sources that
  // are live as queries or as keys. compact_sources(): the mask of only these, renumbered from 0,
  // or full(). meeting(): the pairs of this mask and of its transpose, and each source with itself,
  // without an index.
  [[nodiscard]] Ranges live_sources() const;
  [[nodiscard]] Mask compact_sources() const;
  [[nodiscard]] Mask meeting() const;
  // Returns the pairs of the given queries and keys, renumbered from 0.
  [[nodiscard]] Mask part(const Ranges& queries, const Ranges& keys) const;
  // Returns the same pairs with queries reordered for groups of `size`. Queries that meet the same
  // keys form a class and are consecutive. Classes are ordered so that each group meets few keys.
  // The result depends on the keys that queries meet, not on the present order of the queries. A
  // `size` of 0 keeps the present order. The `last` queries that meet the most keys come at the
  // end, in their present order; of queries with equally many keys, the first ones are chosen.
  // Requires: last <= queries().
  struct Clustered;
  [[nodiscard]] std::shared_ptr<const Clustered> clustered(Index size, Index last = 0) const;
  // Returns the number of queries that meet far more keys than all others, or 0. With numbers of
  // keys in descending order, these are the queries before the largest drop to a half or less.
  // Drops within a run do not count.
  [[nodiscard]] Index staying_queries() const;
  // irregular(): whether a few formulas cannot produce this mask. clusters_soon(): whether
  // clustered() takes less than a second.
  [[nodiscard]] bool irregular() const;
  [[nodiscard]] bool clusters_soon() const;
  // Returns a hash of the extents and the pairs.
  [[nodiscard]] std::uint64_t fingerprint() const;
  [[nodiscard]] const std::vector<MaskRun>& runs() const { return data_->runs; }

  // Returns whether extents and pairs are equal; names do not matter. A full() mask has no extents
  // and equals only full() masks.
  friend bool operator==(const Mask& a, const Mask& b) {
    return a.data_ == b.data_ || (!a.full() && !b.full() && a.data_->keys == b.data_->keys &&
                                  a.data_->runs == b.data_->runs);
  }

 private:
  // The numbers first, first + step, ..., one for each of `count` groups.
  struct Part {
    Index first, step, count;
  };
  using Parts = std::shared_ptr<const std::vector<Part>>;
  template <class Value>
  using Known = std::map<std::array<Index, 3>, Value>;  // the key holds the arguments of the call
  struct Data {
    Index queries = 0, keys = 0;
    // As few runs as possible, each extended as far as possible. Equal masks have equal runs.
    std::vector<MaskRun> runs;
    Words pairs;  // of the whole mask
    Ranges live;  // queries
    Ranges live_keys;
    MaskIndex index;
    // Masks derived from this one, made when they are first requested. Planners request them often,
    // and several workers may do so at once.
    struct View {
      std::once_flag once;
      std::shared_ptr<const Data> data;
    };
    mutable View transposed, compact, sources, meeting;
    struct Bits {
      std::once_flag once;
      std::optional<MaskBits> bits;
    };
    mutable Bits bits, bits_of_keys;
    bool many_ranges = false;  // enough ranges for bits()
    // Remembered results; `asked` guards them.
    mutable std::mutex asked;
    mutable Known<Met> met;
    mutable Known<Tiles> tiles;
    mutable Known<Parts> shared, first;
    mutable Known<Ranges> alone;
    mutable Known<std::shared_ptr<const Data>> among;  // by keys
    // By group size and number of last queries.
    mutable std::map<std::pair<Index, Index>, std::shared_ptr<const Clustered>> clustered;
  };

  [[nodiscard]] Wide sum_of_pairs(Range queries, Range keys) const;
  [[nodiscard]] Wide sum_of_pairs(Range queries) const {
    return sum_of_pairs(queries, {0, keys()});
  }
  template <class Visit>
  void each_run(Range queries, const Visit& visit) const;
  // Consecutive groups that lie in one run, or one group that spans several runs.
  struct Stretch {
    const MaskRun* run;  // null: several runs
    Index first, count;  // first query of the first group; number of groups
  };
  template <class Visit>
  void each_stretch(Range queries, Index size, const Visit& visit) const;
  template <class Make>
  Mask once(Data::View& view, const Make& make) const;
  template <class Value, class Make>
  Value known_of(Known<Value>& known, const std::array<Index, 3>& key, const Make& make) const;
  [[nodiscard]] Met summed_met(Range queries, Index size) const;
  [[nodiscard]] Tiles summed_tiles(Index group, Index block) const;
  [[nodiscard]] std::vector<Part> shared_parts(Range queries, Index size) const;
  [[nodiscard]] std::vector<Part> first_parts(Range queries, Index size) const;
  static Words sum_of_smaller(const std::vector<Part>& parts, Index most);
  [[nodiscard]] bool none_dead() const;
  [[nodiscard]] Mask made_transposed() const;
  // Requires: every pair belongs to these queries and keys.
  [[nodiscard]] Mask numbered(const Ranges& queries, const Ranges& keys) const;
  [[nodiscard]] Clustered made_clustered(Index size, Index last) const;
  [[nodiscard]] Ranges meeting_most(Index count) const;
  [[nodiscard]] std::size_t index_of(Index query) const;
  [[nodiscard]] const MaskRun& run_of(Index query) const { return data_->runs[index_of(query)]; }

  std::shared_ptr<const Data> data_;
  std::string spec_;
};

struct Mask::Clustered {
  Mask mask;
  std::vector<Range> order;  // its queries, by their numbers in the original mask
};

// Return the pairs that are live in both masks, or in at least one. Requires: masks of the same
// extents that are not full().
Mask operator&(const Mask& a, const Mask& b);
Mask operator|(const Mask& a, const Mask& b);

}  // namespace redblue
