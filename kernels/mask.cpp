#include "kernels/mask.hpp"

#include <algorithm>
#include <bit>
#include <iterator>
#include <limits>
#include <optional>

#include "memsim/errors.hpp"

namespace redblue {
namespace {

// Sums of products of two sizes.
__extension__ typedef __int128 Wide;  // NOLINT(modernize-use-using): not in ISO C++

Words words(Wide count) {
  constexpr Wide kMost = std::numeric_limits<Index>::max();
  return count <= kMost ? Words(static_cast<Index>(count)) : Words(kMost) * 2;  // overflowed
}

// first + step t, for t from 0 on.
struct Line {
  Wide first, step;

  [[nodiscard]] Wide of(Wide t) const { return first + step * t; }
  [[nodiscard]] Wide sum(Wide begin, Wide end) const {
    return (end - begin) * first + step * ((end - begin) * (begin + end - 1) / 2);
  }
};

// The line through what grows evenly, which is `count` numbers.
template <class Of>
Line line_through(const Of& of, Index count) {
  const Wide first = of(0);
  return {first, count > 1 ? of(1) - first : 0};
}

// The sum over t in [0, count) of the smaller of a line and a number.
Wide sum_of_smaller(const Line& line, Wide most, Wide count) {
  // From some t on, or up to some t, the line is above it.
  const Wide first = std::max(line.of(0), line.of(count - 1));
  if (first <= most) {
    return line.sum(0, count);
  }
  if (std::min(line.of(0), line.of(count - 1)) >= most) {
    return count * most;
  }
  const Wide steps = (most - line.first) / line.step;  // rounded to 0: from here on the other side
  const Wide until = steps + 1;
  return line.step > 0 ? line.sum(0, until) + (count - until) * most
                       : until * most + line.sum(until, count);
}

// The sum over the queries of edge.of(query), held in `to`.
Wide sum_within(MaskEdge edge, Range queries, Range to) {
  if (!edge.moves) {
    return Wide(queries.size()) * std::clamp(edge.at, to.begin, to.end);
  }
  const Index low = std::clamp(to.begin - edge.at, queries.begin, queries.end);
  const Index high = std::clamp(to.end - edge.at, low, queries.end);
  return Wide(low - queries.begin) * to.begin + Line{edge.at, 1}.sum(low, high) +
         Wide(queries.end - high) * to.end;
}

Wide pairs_of(const MaskRun& run, Range queries, Range keys) {
  Wide sum = 0;
  for (const auto& [begin, end] : run.near(queries, keys)) {
    sum += sum_within(end, queries, keys) - sum_within(begin, queries, keys);
  }
  return sum;
}

Index longest_of(const Ranges& ranges) {
  Index longest = 0;
  for (const Range range : ranges) {
    longest = std::max(longest, range.size());
  }
  return longest;
}

// The keys that the queries [first, first + size) of a run meet. Of two ranges that are apart for
// each query these are one only where both move, and then for every group of the run, or for none:
// along the run the number grows evenly, and so does each range.
Wide met_in_run(const MaskRun& run, Index first, Index size) {
  Wide keys = 0;
  Index before = 0;  // the end of the last range
  for (const MaskSegment& segment : run.live) {
    const auto [begin, end] = segment.met_by({first, first + size});
    keys += end - std::max(begin, before);
    before = end;
  }
  return keys;
}

// A set of numbers, one bit each.
class Bits {
 public:
  explicit Bits(Range all) : all_(all), words_(static_cast<std::size_t>(all.size() / kWidth + 1)) {}

  void set(Range range) {
    const auto [first, from] = place(range.begin);
    const auto [last, to] = place(range.end - 1);
    const std::uint64_t upwards = kAll << from;
    const std::uint64_t downwards = kAll >> (kWidth - 1 - to);
    if (first == last) {
      words_[first] |= upwards & downwards;
      return;
    }
    words_[first] |= upwards;
    std::fill(words_.begin() + static_cast<Index>(first) + 1,
              words_.begin() + static_cast<Index>(last), kAll);
    words_[last] |= downwards;
  }
  [[nodiscard]] Ranges ranges() const {
    Ranges found;
    for (Index at = next(all_.begin, 0); at < all_.end;) {
      const Index end = std::min(next(at, kAll), all_.end);
      found.push_back({at, end});
      at = next(end, 0);
    }
    return found;
  }

 private:
  static constexpr Index kWidth = 64;
  static constexpr std::uint64_t kAll = ~std::uint64_t{0};

  [[nodiscard]] std::pair<std::size_t, Index> place(Index number) const {
    return {static_cast<std::size_t>((number - all_.begin) / kWidth),
            (number - all_.begin) % kWidth};
  }
  // The first number from `at` on whose bit is not that of `same`, which is all bits or none.
  [[nodiscard]] Index next(Index at, std::uint64_t same) const {
    auto [word, bit] = place(at);
    while (word < words_.size()) {
      if (const std::uint64_t others = (words_[word] ^ same) >> bit; others != 0) {
        return all_.begin + static_cast<Index>(word) * kWidth + bit + std::countr_zero(others);
      }
      ++word;
      bit = 0;
    }
    return all_.end;
  }

  Range all_;
  std::vector<std::uint64_t> words_;
};

void sort_and_join(Ranges& ranges) {
  if (!std::ranges::is_sorted(ranges, {}, &Range::begin)) {  // as those of one run are
    const Range all{std::ranges::min_element(ranges, {}, &Range::begin)->begin,
                    std::ranges::max_element(ranges, {}, &Range::end)->end};
    if (all.size() / 16 < std::ssize(ranges)) {  // sooner than they are sorted
      Bits bits(all);
      for (const Range range : ranges) {
        bits.set(range);
      }
      ranges = bits.ranges();
      return;
    }
    std::ranges::sort(ranges, {}, &Range::begin);
  }
  std::size_t last = 0;
  for (std::size_t k = 1; k < ranges.size(); ++k) {
    if (ranges[k].begin <= ranges[last].end) {
      ranges[last].end = std::max(ranges[last].end, ranges[k].end);
    } else {
      ranges[++last] = ranges[k];
    }
  }
  if (!ranges.empty()) {
    ranges.resize(last + 1);
  }
}

// ---- runs, as few as there can be --------------------------------------------------------

// The edge through these keys of a query and of the next; none where it does not move so.
bool through(Index query, Index key, Index next, MaskEdge& edge) {
  edge = next == key ? MaskEdge{key, false} : MaskEdge{key - query, true};
  return next == key || next == key + 1;
}

// Whether some of the queries of `next` go on in the run; then these are moved there.
bool extend(MaskRun& run, MaskRun& next) {
  if (run.live.size() != next.live.size()) {
    return false;
  }
  const Index last = run.queries.end - 1;
  const Index first = next.queries.begin;
  std::vector<MaskSegment> lines(run.live.size());
  for (std::size_t k = 0; k < lines.size(); ++k) {
    const Range here = run.live[k].of(last);
    const Range there = next.live[k].of(first);
    if (!through(last, here.begin, there.begin, lines[k].begin) ||
        !through(last, here.end, there.end, lines[k].end)) {
      return false;
    }
  }
  if (run.queries.size() > 1 && lines != run.live) {
    return false;
  }
  run.live = lines;
  if (next.queries.size() == 1 || next.live == lines) {
    run.queries.end = next.queries.end;
  } else {
    run.queries.end = first + 1;
  }
  next.queries.begin = run.queries.end;
  return true;
}

// Runs that are the same for the same pairs: each goes on, from the first, as far as it can; a run
// of one query has edges that stay.
std::vector<MaskRun> fewest(std::vector<MaskRun> runs) {
  std::vector<MaskRun> result;
  for (MaskRun& run : runs) {
    if (run.queries.size() > 0 && !result.empty()) {
      static_cast<void>(extend(result.back(), run));
    }
    if (run.queries.size() == 0) {
      continue;
    }
    if (run.queries.size() == 1) {
      for (auto& [begin, end] : run.live) {
        begin = {begin.of(run.queries.begin), false};
        end = {end.of(run.queries.begin), false};
      }
    }
    result.push_back(std::move(run));
  }
  return result;
}

// ---- and, or -----------------------------------------------------------------------------

enum class Join : std::uint8_t { both, either };

// Where edges that stay meet edges that move, their order changes: queries between two such places
// have all edges in one order.
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

// The segments of some queries throughout which all edges have one order.
std::vector<MaskSegment> joined(const MaskRun& a, const MaskRun& b, Index query, Join how) {
  struct Change {
    MaskEdge edge;
    int by;  // +1 where a segment begins, -1 where one ends
  };
  std::vector<Change> all;
  for (const MaskRun* run : {&a, &b}) {
    for (const auto& [begin, end] : run->live) {
      all.push_back({begin, 1});
      all.push_back({end, -1});
    }
  }
  // Beginnings first, so that ranges next to each other are one.
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
  return {a.queries(), a.keys(), std::move(runs)};
}

// Keys between two edges, which may lie outside the problem.
Mask between(Index n, Index m, MaskEdge begin, MaskEdge end) {
  // The same without bounds is no mask: its edges are cut where they leave [0, m).
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

Index size_of(const Ranges& ranges) {
  Index sum = 0;
  for (const Range range : ranges) {
    sum += range.size();
  }
  return sum;
}

Ranges common(const Ranges& a, const Ranges& b) {
  Ranges result;
  for (auto x = a.begin(), y = b.begin(); x != a.end() && y != b.end();) {
    if (const Range both = common(*x, *y); both.size() > 0) {
      result.push_back(both);
    }
    if (x->end < y->end) {
      ++x;
    } else {
      ++y;
    }
  }
  return result;
}

Ranges without(const Ranges& a, const Ranges& b) {
  Ranges gaps;  // of b
  Index at = 0;
  for (const Range range : b) {
    gaps.push_back({at, range.begin});
    at = range.end;
  }
  gaps.push_back({at, std::numeric_limits<Index>::max()});
  return common(a, gaps);
}

Mask::Mask(Index queries, Index keys, std::vector<MaskRun> runs) {
  const auto data = std::make_shared<Data>();
  data->queries = queries;
  data->keys = keys;
  data->runs = fewest(std::move(runs));
  for (const auto& [range, live] : data->runs) {
    if (live.empty()) {
      continue;
    }
    if (!data->live.empty() && data->live.back().end == range.begin) {
      data->live.back().end = range.end;
    } else {
      data->live.push_back(range);
    }
  }
  data_ = data;
  data->live_keys = this->keys({0, queries});
}

Mask Mask::called(std::string spec) const {
  Mask mask = *this;
  mask.spec_ = std::move(spec);
  if (!full() && runs().size() == 1 &&
      runs().front().live == std::vector<MaskSegment>{{{0, false}, {keys(), false}}}) {
    mask.data_ = nullptr;
  }
  return mask;
}

std::size_t Mask::index_of(Index query) const {
  const auto after = std::ranges::upper_bound(data_->runs, query, {},
                                              [](const MaskRun& run) { return run.queries.begin; });
  return static_cast<std::size_t>(after - data_->runs.begin()) - 1;
}

// visit(run, queries) for the runs of some queries, and which of these are in each.
template <class Visit>
void Mask::each_run(Range queries, const Visit& visit) const {
  if (queries.size() <= 0) {
    return;
  }
  for (std::size_t k = index_of(queries.begin);
       k < data_->runs.size() && data_->runs[k].queries.begin < queries.end; ++k) {
    visit(data_->runs[k], common(data_->runs[k].queries, queries));
  }
}

std::span<const MaskSegment> MaskRun::near(Range some, Range keys) const {
  const auto first = std::ranges::partition_point(
      live, [&](const MaskSegment& segment) { return segment.met_by(some).end <= keys.begin; });
  const auto last = std::partition_point(first, live.end(), [&](const MaskSegment& segment) {
    return segment.met_by(some).begin < keys.end;
  });
  return {first, last};
}

Ranges Mask::keys(Range queries) const {
  Ranges ranges;
  each_run(queries, [&](const MaskRun& run, Range some) {
    for (const MaskSegment& segment : run.live) {
      ranges.push_back(segment.met_by(some));
    }
  });
  sort_and_join(ranges);
  return ranges;
}

Range Mask::hull(Range queries, Range keys) const {
  Range all{keys.end, keys.begin};
  each_run(queries, [&](const MaskRun& run, Range some) {
    if (const auto met = run.near(some, keys); !met.empty()) {
      all = {std::min(all.begin, std::max(met.front().met_by(some).begin, keys.begin)),
             std::max(all.end, std::min(met.back().met_by(some).end, keys.end))};
    }
  });
  return all.size() > 0 ? all : Range{keys.begin, keys.begin};
}

Words Mask::pairs(Range queries, Range keys) const {
  Wide sum = 0;
  each_run(queries, [&](const MaskRun& run, Range some) { sum += pairs_of(run, some, keys); });
  return words(sum);
}

// Cuts the queries into groups of `size`.
template <class Visit>
void Mask::each_stretch(Range queries, Index size, const Visit& visit) const {
  Index at = queries.begin;
  for (std::size_t k = index_of(at); at < queries.end; ++k) {
    const MaskRun& run = data_->runs[k];
    const Index end = std::min(run.queries.end, queries.end);
    if (const Index count = (end - at) / size; count > 0) {
      visit(Stretch{&run, at, count});
      at += count * size;
    }
    if (at < end) {  // a group that leaves the run, or the last
      visit(Stretch{nullptr, at, 1});
      at = std::min(at + size, queries.end);
      k = at < queries.end ? index_of(at) - 1 : k;
    }
  }
}

Mask::Met Mask::met_by_groups(Range queries, Index size) const {
  Wide keys = 0;
  Index longest = 0;
  each_stretch(queries, size, [&](const Stretch& stretch) {
    const Index first = stretch.first;
    const Index count = stretch.count;
    const Index last = first + (count - 1) * size;
    if (count == 1) {
      const Ranges met = this->keys({first, std::min(first + size, queries.end)});
      keys += size_of(met);
      longest = std::max(longest, longest_of(met));
      return;
    }
    const auto met = [&](Index group) {
      return met_in_run(*stretch.run, first + group * size, size);
    };
    keys += line_through(met, count).sum(0, count);
    for (const Index group : {first, last}) {
      longest = std::max(longest, longest_of(this->keys({group, group + size})));
    }
  });
  return {words(keys), longest};
}

Words Mask::shared_by_groups(Range queries, Index size, Index most) const {
  Wide sum = 0;
  std::optional<Ranges> before;  // the keys of the group before
  each_stretch(queries, size, [&](const Stretch& stretch) {
    const Index first = stretch.first;
    const Index count = stretch.count;
    const auto keys_of = [&](Index group) {
      return this->keys({group, std::min(group + size, queries.end)});
    };
    Ranges met = keys_of(first);
    if (before) {
      sum += std::min(size_of(common(*before, met)), most);
    }
    if (stretch.run != nullptr) {
      const auto shared = [&](Index group) {  // what two meet, less what both together meet
        const Index query = first + group * size;
        return met_in_run(*stretch.run, query, size) +
               met_in_run(*stretch.run, query + size, size) -
               met_in_run(*stretch.run, query, 2 * size);
      };
      if (count > 1) {
        sum += sum_of_smaller(line_through(shared, count - 1), most, count - 1);
      }
    }
    before = count == 1 ? std::move(met) : keys_of(first + (count - 1) * size);
  });
  return words(sum);
}

Index Mask::most_ranges() const {
  Index sum = 0;
  for (const MaskRun& run : data_->runs) {
    sum += std::ssize(run.live);
  }
  return sum;
}

std::uint64_t Mask::fingerprint() const {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  const auto mix = [&hash](Index number) {
    for (int byte = 0; byte < 8; ++byte) {
      hash ^= (static_cast<std::uint64_t>(number) >> (8 * byte)) & 0xff;
      hash *= 0x100000001b3;
    }
  };
  mix(queries());
  mix(keys());
  for (const auto& [range, live] : data_->runs) {
    mix(range.begin);
    for (const MaskSegment& segment : live) {
      for (const MaskEdge edge : {segment.begin, segment.end}) {
        mix(edge.at);
        mix(edge.moves ? 1 : 0);
      }
    }
  }
  return hash;
}

Mask Mask::window(Index n, Index m, Index left, Index right) {
  const Index shift = m - n;
  // Further than this no key is.
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

Mask Mask::pattern(const BlockPattern& blocks) {
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
  return {blocks.rows, blocks.cols, std::move(runs)};
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
  return {queries.back(), keys.back(), std::move(runs)};
}

Mask operator&(const Mask& a, const Mask& b) {
  return join(a, b, Join::both);
}

Mask operator|(const Mask& a, const Mask& b) {
  return join(a, b, Join::either);
}

}  // namespace redblue
