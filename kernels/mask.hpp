#pragma once
// Which keys each query meets: a set of pairs (query, key), the live ones. Scores of dead pairs are
// minus infinity, so that f = p = 0 there, and no word of theirs reaches a result. Queries and keys
// without a live pair are dead; they are not read.
//
//   const Mask near = Mask::window(n, m, 128, 0) | Mask::global(n, m, {0, 3});
//
// A mask is kept as runs of queries: in one run the live keys of query i are the same ranges
// throughout, each end of which stays or moves with i. What a kernel asks is answered from the
// runs, in sums that do not walk over queries. A value: copies share what they hold.
//
// A mask that is no formula is data, which a kernel reads: kernels/mask_index.hpp says how it is
// kept. It is no part of what masks compare.

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/mask_index.hpp"
#include "memsim/range.hpp"
#include "memsim/words.hpp"

namespace redblue {

// The key `at`, or at + i for query i.
struct MaskEdge {
  Index at = 0;
  bool moves = false;

  [[nodiscard]] Index of(Index query) const { return moves ? at + query : at; }
  friend bool operator==(const MaskEdge&, const MaskEdge&) = default;
};

// The keys from `begin` up to `end`, at least one for each query of the run.
struct MaskSegment {
  MaskEdge begin, end;

  [[nodiscard]] Range of(Index query) const { return {begin.of(query), end.of(query)}; }
  // What some queries of its run meet together: queries next to each other meet keys next to each
  // other.
  [[nodiscard]] Range met_by(Range queries) const {
    return {begin.of(queries.begin), end.of(queries.end - 1)};
  }
  friend bool operator==(const MaskSegment&, const MaskSegment&) = default;
};

// Queries whose live keys are these: apart from each other, and in their order.
struct MaskRun {
  Range queries;
  std::vector<MaskSegment> live;

  // The segments in which some of its queries meet some of the keys.
  [[nodiscard]] std::span<const MaskSegment> near(Range some, Range keys) const;

  friend bool operator==(const MaskRun&, const MaskRun&) = default;
};

// Which blocks of a matrix of blocks are there, row by row: those of row k are
// columns[offsets[k]] to columns[offsets[k + 1] - 1], in their order and each once.
struct BlockPattern {
  Index rows = 0, cols = 0;              // queries and keys in all
  Index block_rows = 1, block_cols = 1;  // of a block
  std::vector<Index> offsets = {0};
  std::vector<Index> columns = {};

  // The blocks that are there; and the columns of those of a row.
  [[nodiscard]] Index stored() const { return std::ssize(columns); }
  [[nodiscard]] std::span<const Index> row(Index k) const {
    const auto at = static_cast<std::size_t>(k);
    return std::span(columns).subspan(static_cast<std::size_t>(offsets[at]),
                                      static_cast<std::size_t>(offsets[at + 1] - offsets[at]));
  }
  friend bool operator==(const BlockPattern&, const BlockPattern&) = default;
};

// Apart from each other, and in their order.
Index size_of(const Ranges& ranges);
Ranges common(const Ranges& a, const Ranges& b);
Ranges without(const Ranges& a, const Ranges& b);
// Widened to whole blocks of [0, extent), of which the last may be smaller.
Ranges in_blocks(const Ranges& ranges, Index extent, Index block);

class Mask {
 public:
  // All pairs, of any problem.
  Mask() = default;
  // Requires: runs that cut [0, queries), with keys in [0, keys).
  Mask(Index queries, Index keys, std::vector<MaskRun> runs, MaskIndex index = {});
  // The primitives, of n queries and m keys; none is full(), even if all pairs are live. Query i
  // is at key i + m - n.
  // Keys from i + m - n - left to i + m - n + right. Requires: neither is negative.
  static Mask window(Index n, Index m, Index left, Index right);
  // Keys up to i + m - n.
  static Mask causal(Index n, Index m);
  // The first keys, for every query.
  static Mask prefix(Index n, Index m, Index keys);
  // The queries `both` meet all keys, the keys `both` all queries; each by its own index.
  static Mask global(Index n, Index m, Range both);
  static Mask all(Index n, Index m);
  // The pairs of blocks that are there, kept as blocks; or pair by pair.
  static Mask layout(const BlockPattern& blocks);
  static Mask pattern(const BlockPattern& blocks);
  // Each query meets the keys of its own document, which has the queries from queries[k] and the
  // keys from keys[k] on, up to those of the next. Requires: as many of both, each from 0 to the
  // extent; none is less than the one before.
  static Mask documents(const std::vector<Index>& queries, const std::vector<Index>& keys);
  // The same pairs under a name, as a user wrote them: full() where all pairs are live.
  [[nodiscard]] Mask called(std::string spec) const;
  [[nodiscard]] const std::string& spec() const { return spec_; }
  // The same pairs and name, where each index that is read is so many words.
  [[nodiscard]] Mask with_index_words(Index words) const;

  [[nodiscard]] bool full() const { return data_ == nullptr; }

  // How it is kept; and the words that say which keys some queries meet. full(): none.
  [[nodiscard]] const MaskIndex& index() const;
  [[nodiscard]] Words index_words(Range queries) const;

  // Requires, of all that follow: a mask that is not full().

  // The extents that it is for.
  [[nodiscard]] Index queries() const { return data_->queries; }
  [[nodiscard]] Index keys() const { return data_->keys; }

  // The live keys of some queries together.
  [[nodiscard]] Ranges keys(Range queries) const;
  // Those of them that no other queries meet, remembered.
  [[nodiscard]] Ranges keys_alone(Range queries) const;
  // The live pairs of some queries and some keys.
  [[nodiscard]] Words pairs(Range queries, Range keys) const;
  // From the first to the last key among `keys` that some of the queries meet; empty where none do.
  [[nodiscard]] Range hull(Range queries, Range keys) const;
  // The live keys of one query among `keys`: visit(range) for each range of them.
  template <class Visit>
  void each_range(Index query, Range keys, const Visit& visit) const {
    for (const MaskSegment& segment : run_of(query).near({query, query + 1}, keys)) {
      visit(common(segment.of(query), keys));
    }
  }
  // The queries that meet a key.
  [[nodiscard]] const Ranges& live_queries() const { return data_->live; }
  // The keys that a query meets.
  [[nodiscard]] const Ranges& live_keys() const { return data_->live_keys; }

  // The queries are cut into groups of `size`, the last of which may be smaller. `keys` is the sum
  // over the groups of the keys that they meet, `longest` the longest range of keys of any, `most`
  // the most keys of any, and `pairs` are those of all; `index` are the words that say so.
  struct Met {
    Words keys;
    Index longest = 0;
    Index most = 0;
    Words pairs;
    Words index;
  };
  [[nodiscard]] Met met_by_groups(Range queries, Index size) const;
  // Of the same groups: the keys that one and the next both meet, but at most so many of each two.
  [[nodiscard]] Words shared_by_groups(Range queries, Index size, Index most) const;
  // And the first range of keys that each meets, but at most so many of each.
  [[nodiscard]] Words first_by_groups(Range queries, Index size, Index most) const;

  // The queries are cut into such groups, the keys into blocks of `block`. Of the tiles of a group
  // and a block with a live pair: their queries, their keys and their words, each summed up; and
  // the most keys of the tiles of one group.
  struct Tiles {
    Words queries, keys, words;
    Index most = 0;
  };
  [[nodiscard]] Tiles live_tiles(Index group, Index block) const;

  // No fewer than the ranges of keys of any queries.
  [[nodiscard]] Index most_ranges() const;

  // The pairs with keys from `key` on; and with some keys, remembered.
  [[nodiscard]] Mask from_key(Index key) const;
  [[nodiscard]] Mask among(Range keys) const;
  // Keys for queries, and queries for keys.
  [[nodiscard]] Mask transposed() const;
  // The same pairs with live queries and live keys alone, each by its number among these; full()
  // where these all meet.
  [[nodiscard]] Mask compact() const;
  // The pairs of these queries and these keys, each by its number among these.
  [[nodiscard]] Mask part(const Ranges& queries, const Ranges& keys) const;
  // The same pairs with the queries in an order for groups of `size`: those that meet the same keys
  // next to each other, and such classes so that a group meets few keys. The mask depends on what
  // queries meet alone, and not on their order here. For groups of 0 it is their own order. The
  // `last` that meet most keys, of equals the first, come after all others, in their own order.
  // Requires: last <= queries().
  struct Clustered;
  [[nodiscard]] std::shared_ptr<const Clustered> clustered(Index size, Index last = 0) const;
  // How many queries meet far more keys than all others: those before the largest step of the
  // numbers of keys down to a half or less, but for steps within a run. 0 where there is none.
  [[nodiscard]] Index staying_queries() const;
  // Whether its queries meet keys in more ways than a few formulas say; and whether the order is
  // found in less than a second.
  [[nodiscard]] bool irregular() const;
  [[nodiscard]] bool clusters_soon() const;
  // A hash of the extents and the pairs.
  [[nodiscard]] std::uint64_t fingerprint() const;
  [[nodiscard]] const std::vector<MaskRun>& runs() const { return data_->runs; }

  // The same extents and pairs, whatever they are called. A full() mask has no extents, and equals
  // another full() one alone.
  friend bool operator==(const Mask& a, const Mask& b) {
    return a.data_ == b.data_ || (!a.full() && !b.full() && a.data_->keys == b.data_->keys &&
                                  a.data_->runs == b.data_->runs);
  }

 private:
  // Numbers of groups, one after the other: first, first + step, ...
  struct Part {
    Index first, step, count;
  };
  using Parts = std::shared_ptr<const std::vector<Part>>;
  template <class Value>
  using Known = std::map<std::array<Index, 3>, Value>;  // by what was asked
  struct Data {
    Index queries = 0, keys = 0;
    // As few as there can be, from the first on: equal masks, equal runs.
    std::vector<MaskRun> runs;
    Words pairs;  // in all
    Ranges live;  // queries
    Ranges live_keys;
    MaskIndex index;
    // Masks that are made of this one when they are first asked for: planners ask often, and
    // workers at the same time.
    struct View {
      std::once_flag once;
      std::shared_ptr<const Data> data;
    };
    mutable View transposed, compact;
    // Sums over groups of queries that were asked for.
    mutable std::mutex asked;
    mutable Known<Met> met;
    mutable Known<Tiles> tiles;
    mutable Known<Parts> shared, first;
    mutable Known<Ranges> alone;
    mutable Known<std::shared_ptr<const Data>> among;  // by keys
    // By the size of a group, and those that come last.
    mutable std::map<std::pair<Index, Index>, std::shared_ptr<const Clustered>> clustered;
  };

  [[nodiscard]] Wide sum_of_pairs(Range queries, Range keys) const;
  [[nodiscard]] Wide sum_of_pairs(Range queries) const {
    return sum_of_pairs(queries, {0, keys()});
  }
  template <class Visit>
  void each_run(Range queries, const Visit& visit) const;
  // Groups next to each other, all in one run; or one that is of several.
  struct Stretch {
    const MaskRun* run;  // null: of several
    Index first, count;  // the first query of the first group, the number of groups
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
  // Requires, of part(): no pair of others.
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
  std::vector<Range> order;  // its queries, by their numbers in the mask that it is made of
};

// Pairs that are live in both, or in one of both. Requires: masks of the same extents, none full().
Mask operator&(const Mask& a, const Mask& b);
Mask operator|(const Mask& a, const Mask& b);

}  // namespace redblue
