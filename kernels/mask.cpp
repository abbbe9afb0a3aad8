#include "kernels/mask.hpp"

#include <algorithm>
#include <iterator>

#include "kernels/mask_lines.hpp"

namespace redblue {
namespace {

// Returns the sum over the queries of edge.of(query), clamped to `to`.
Wide sum_within(MaskEdge edge, Range queries, Range to) {
  if (!edge.moves) {
    return Wide(queries.size()) * std::clamp(edge.at, to.begin, to.end);
  }
  const Index low = std::clamp(to.begin - edge.at, queries.begin, queries.end);
  const Index high = std::clamp(to.end - edge.at, low, queries.end);
  return Wide(low - queries.begin) * to.begin + Line{edge.at, 1}.sum(low, high) +
         Wide(queries.end - high) * to.end;
}

// A mask has bits if it has a range for so many pairs. Few pairs need no bits.
constexpr Index kPairsOfRange = 1024, kFewPairs = 4096;

Wide pairs_of(const MaskRun& run, Range queries, Range keys) {
  Wide sum = 0;
  for (const auto& [begin, end] : run.near(queries, keys)) {
    sum += sum_within(end, queries, keys) - sum_within(begin, queries, keys);
  }
  return sum;
}

// Joins ranges within `all`, in time linear in their number and the size of `all`.
Ranges joined_by_counting(const Ranges& ranges, Range all) {
  // How many more ranges begin than end at each number.
  std::vector<Index> more(static_cast<std::size_t>(all.size()) + 1);
  for (const Range range : ranges) {
    ++more[static_cast<std::size_t>(range.begin - all.begin)];
    --more[static_cast<std::size_t>(range.end - all.begin)];
  }
  Ranges joined;
  Index open = 0;
  for (std::size_t k = 0; k < more.size(); ++k) {
    const bool was_open = open > 0;
    open += more[k];
    const Index at = all.begin + static_cast<Index>(k);
    if (!was_open && open > 0) {
      joined.push_back({at, at});
    } else if (was_open && open == 0) {
      joined.back().end = at;
    }
  }
  return joined;
}

void sort_and_join(Ranges& ranges) {
  if (!std::ranges::is_sorted(ranges, {}, &Range::begin)) {  // the ranges of one run are sorted
    const Range all{std::ranges::min_element(ranges, {}, &Range::begin)->begin,
                    std::ranges::max_element(ranges, {}, &Range::end)->end};
    if (all.size() / 16 < std::ssize(ranges)) {  // faster than sorting
      ranges = joined_by_counting(ranges, all);
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

// ---- runs, as few as possible -----------------------------------------------------------------

// Finds the edge through the key of a query and the key of the next query. Returns false if no edge
// passes through both.
bool through(Index query, Index key, Index next, MaskEdge& edge) {
  edge = next == key ? MaskEdge{key, false} : MaskEdge{key - query, true};
  return next == key || next == key + 1;
}

// Moves queries from `next` to `run` while they continue it. Returns whether any were moved.
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

// Returns runs that are equal for equal pairs. Each run, from the first on, continues as far as
// possible, and a run with one query has edges that stay.
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

Ranges in_blocks(const Ranges& ranges, Index extent, Index block) {
  Ranges result;
  for (const Range range : ranges) {
    const Range wide{range.begin / block * block,
                     std::min(ceil_div(range.end, block) * block, extent)};
    if (result.empty() || result.back().end < wide.begin) {
      result.push_back(wide);
    } else {
      result.back().end = wide.end;
    }
  }
  return result;
}

Mask::Mask(Index queries, Index keys, std::vector<MaskRun> runs, MaskIndex index) {
  const auto data = std::make_shared<Data>();
  data->index = std::move(index);
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
  Wide ranges = 0;
  for (const MaskRun& run : data->runs) {
    ranges += std::ssize(run.live);
  }
  const Wide all_pairs = Wide(queries) * keys;
  data->many_ranges = all_pairs >= kFewPairs && ranges * kPairsOfRange >= all_pairs;
  data->live_keys = this->keys({0, queries});
  Wide pairs = 0;
  for (const MaskRun& run : data->runs) {
    pairs += pairs_of(run, run.queries, {0, keys});
  }
  data->pairs = words(pairs);
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

Mask Mask::with_index_words(Index words) const {
  if (full() || index().index_words() == words) {
    return *this;
  }
  Mask mask(queries(), keys(), runs(), index().with_words(words));
  mask.spec_ = spec_;
  return mask;
}

const MaskIndex& Mask::index() const {
  static const MaskIndex none;
  return full() ? none : data_->index;
}

Words Mask::index_words(Range queries) const {
  const Wide indices =
      index().is_pattern()
          ? MaskIndex::pattern_words(sum_of_pairs(queries), size_of(keys(queries)), queries.size())
          : index().words(queries, queries.size());
  return words(indices * index().index_words());
}

std::size_t Mask::index_of(Index query) const {
  const auto after = std::ranges::upper_bound(data_->runs, query, {},
                                              [](const MaskRun& run) { return run.queries.begin; });
  return static_cast<std::size_t>(after - data_->runs.begin()) - 1;
}

// Calls visit(run, queries) for each run of some queries, with its part of them.
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
  return {std::to_address(first), static_cast<std::size_t>(last - first)};
}

const MaskBits* Mask::bits() const {
  if (!data_->many_ranges) {
    return nullptr;
  }
  std::call_once(data_->bits.once,
                 [this] { data_->bits.bits.emplace(queries(), keys(), data_->runs); });
  return &*data_->bits.bits;
}

const MaskBits* Mask::bits_of_keys() const {
  if (!data_->many_ranges) {
    return nullptr;
  }
  std::call_once(data_->bits_of_keys.once,
                 [this] { data_->bits_of_keys.bits.emplace(bits()->transposed()); });
  return &*data_->bits_of_keys.bits;
}

Ranges Mask::keys(Range queries) const {
  if (const MaskBits* const of = bits()) {
    return of->keys(queries);
  }
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
  if (const MaskBits* const of = bits()) {
    return of->hull(queries, keys);
  }
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
  if (queries == Range{0, this->queries()} && keys == Range{0, this->keys()}) {
    return data_->pairs;
  }
  return words(sum_of_pairs(queries, keys));
}

Wide Mask::sum_of_pairs(Range queries, Range keys) const {
  if (const MaskBits* const of = bits()) {
    return of->pairs(queries, keys);
  }
  Wide sum = 0;
  each_run(queries, [&](const MaskRun& run, Range some) { sum += pairs_of(run, some, keys); });
  return sum;
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

}  // namespace redblue
