// Masks derived from another mask: transposed, with only live queries and keys, with only some
// keys.

#include <algorithm>
#include <compare>
#include <iterator>
#include <mutex>
#include <utility>

#include "kernels/mask.hpp"

namespace redblue {
namespace {

constexpr Index kShort = 16;  // most queries of a run with moving edges that are taken one by one

// A corner of a box of live pairs. The queries from `query` on change between live and dead at
// `key`.
struct Corner {
  Index key, query;
  friend auto operator<=>(const Corner&, const Corner&) = default;
};

// Returns the transposed mask of disjoint boxes of queries and keys, given the four corners of each
// box. Between two keys with corners, the same queries are live.
Mask mask_of_corners(Index keys, Index queries, std::vector<Corner> corners) {
  std::ranges::sort(corners);
  std::vector<MaskRun> runs;
  std::vector<Index> bounds;  // of the live ranges, in order
  Index from = 0;
  const auto add_run = [&](Index to) {
    if (from < to) {
      MaskRun& run = runs.emplace_back(MaskRun{{from, to}, {}});
      for (std::size_t k = 0; k < bounds.size(); k += 2) {
        run.live.push_back({{bounds[k]}, {bounds[k + 1]}});
      }
      from = to;
    }
  };
  std::vector<Index> here, next;
  for (auto corner = corners.begin(); corner != corners.end();) {
    const Index key = corner->key;
    add_run(key);
    here.clear();
    for (; corner != corners.end() && corner->key == key; ++corner) {
      if (!here.empty() && here.back() == corner->query) {
        here.pop_back();  // two boxes that touch
      } else {
        here.push_back(corner->query);
      }
    }
    next.clear();
    std::ranges::set_symmetric_difference(bounds, here, std::back_inserter(next));
    bounds.swap(next);
  }
  add_run(keys);
  return {keys, queries, std::move(runs)};
}

// Returns the transposed mask of one segment with moving edges.
Mask turned(Index keys, Index queries, Range of, const MaskSegment& segment) {
  // i + begin <= j < i + end, for queries i in the run: j - end < i <= j - begin.
  const Range met = segment.met_by(of);
  const auto& [begin, end] = segment;
  const Index first_moves = end.moves ? of.begin + end.at : met.end;
  const Index last_stays = begin.moves ? of.end + begin.at - 1 : met.begin;
  std::vector<Index> places = {0,
                               met.begin,
                               std::clamp(first_moves, met.begin, met.end),
                               std::clamp(last_stays, met.begin, met.end),
                               met.end,
                               keys};
  std::ranges::sort(places);
  std::vector<MaskRun> runs;
  for (std::size_t k = 0; k + 1 < places.size(); ++k) {
    const Range here{places[k], places[k + 1]};
    if (here.size() == 0) {
      continue;
    }
    MaskRun& run = runs.emplace_back(MaskRun{here, {}});
    if (common(here, met).size() > 0) {
      run.live.push_back(
          {here.begin < first_moves ? MaskEdge{of.begin} : MaskEdge{1 - end.at, true},
           here.begin >= last_stays ? MaskEdge{of.end} : MaskEdge{1 - begin.at, true}});
    }
  }
  return {keys, queries, std::move(runs)};
}

// Returns the union of the masks. It joins halves, so that each mask takes part in few joins.
Mask any_of(const std::vector<Mask>& masks, std::size_t begin, std::size_t end) {
  const std::size_t middle = begin + (end - begin) / 2;
  return end - begin == 1 ? masks[begin]
                          : any_of(masks, begin, middle) | any_of(masks, middle, end);
}

}  // namespace

Mask Mask::from_key(Index key) const {
  std::vector<MaskRun> runs;
  const Range wanted{key, keys()};
  const auto add_run = [&](const MaskRun& of, Range queries) {
    MaskRun& run = runs.emplace_back(MaskRun{queries, {}});
    for (const MaskSegment& segment : of.near(queries, wanted)) {
      const bool cut = segment.met_by(queries).begin < key;
      run.live.push_back({cut ? MaskEdge{key} : segment.begin, segment.end});
    }
  };
  for (const MaskRun& run : data_->runs) {
    const auto met = run.near(run.queries, wanted);
    const bool passes = !met.empty() && met.front().met_by(run.queries).begin < key &&
                        (met.front().begin.moves || met.front().end.moves);
    if (!passes) {
      add_run(run, run.queries);
    } else if (run.queries.size() <= kShort) {
      for (Index i = run.queries.begin; i < run.queries.end; ++i) {
        add_run(run, {i, i + 1});
      }
    } else {
      MaskRun all{{0, queries()}, {}};
      if (wanted.size() > 0) {
        all.live = {{{key}, {keys()}}};
      }
      return *this & Mask(queries(), keys(), {all});
    }
  }
  return {queries(), keys(), std::move(runs), index()};
}

template <class Make>
Mask Mask::once(Data::View& view, const Make& make) const {
  std::call_once(view.once, [&] { view.data = make().data_; });
  Mask mask;
  mask.data_ = view.data;
  return mask;
}

Mask Mask::transposed() const {
  return once(data_->transposed, [this] { return made_transposed(); });
}

Mask Mask::compact() const {
  return none_dead() ? called(spec_) : once(data_->compact, [this] {
                                         return numbered(live_queries(), live_keys());
                                       }).called(spec_);
}

Ranges Mask::live_sources() const {
  const Ranges all{{0, queries()}};
  return without(all, without(without(all, live_queries()), live_keys()));
}

Mask Mask::compact_sources() const {
  const Ranges live = live_sources();
  return live == Ranges{{0, queries()}}
             ? called(spec_)
             : once(data_->sources, [&] { return numbered(live, live); }).called(spec_);
}

Mask Mask::meeting() const {
  return once(data_->meeting, [this] {
    const Mask pairs = *this | transposed() | window(queries(), keys(), 0, 0);
    return Mask(queries(), keys(), pairs.runs()).called("");
  });
}

bool Mask::none_dead() const {
  return live_queries() == Ranges{{0, queries()}} && live_keys() == Ranges{{0, keys()}};
}

Mask Mask::made_transposed() const {
  const Index n = queries();
  const Index m = keys();
  if (const MaskBits* const of_keys = bits_of_keys()) {
    std::vector<MaskRun> runs;
    for (Index j = 0; j < m; ++j) {
      MaskRun& run = runs.emplace_back(MaskRun{{j, j + 1}, {}});
      for (const Range queries : of_keys->keys(run.queries)) {
        run.live.push_back({{queries.begin}, {queries.end}});
      }
    }
    return {m, n, std::move(runs), index().live() == 0 ? MaskIndex() : index().transposed()};
  }
  std::vector<Corner> corners;
  const auto add_box = [&corners](Range queries, Range keys) {
    for (const Index key : {keys.begin, keys.end}) {
      corners.push_back({key, queries.begin});
      corners.push_back({key, queries.end});
    }
  };
  std::vector<Mask> moving;
  for (const auto& [range, live] : data_->runs) {
    for (const MaskSegment& segment : live) {
      if (!segment.begin.moves && !segment.end.moves) {
        add_box(range, segment.of(range.begin));
      } else if (range.size() <= kShort) {
        for (Index i = range.begin; i < range.end; ++i) {
          add_box({i, i + 1}, segment.of(i));
        }
      } else {
        moving.push_back(turned(m, n, range, segment));
      }
    }
  }
  moving.push_back(mask_of_corners(m, n, std::move(corners)));
  const Mask result = any_of(moving, 0, moving.size());
  return index().live() == 0 ? result : Mask(m, n, result.runs(), index().transposed());
}

Mask Mask::part(const Ranges& queries, const Ranges& keys) const {
  std::vector<MaskRun> runs;
  Index end = 0;
  const auto add_run = [&](Index to, const Ranges& live) {
    if (end < to) {
      MaskRun& run = runs.emplace_back(MaskRun{{end, to}, {}});
      for (const Range range : live) {
        run.live.push_back({{range.begin}, {range.end}});
      }
      end = to;
    }
  };
  for (const Range range : queries) {
    add_run(range.begin, {});
    add_run(range.end, keys);
  }
  add_run(this->queries(), {});
  return (*this & Mask(this->queries(), this->keys(), std::move(runs))).numbered(queries, keys);
}

Mask Mask::numbered(const Ranges& queries, const Ranges& keys) const {
  const NumbersWithin numbers(keys);
  std::vector<MaskRun> runs;
  Index first = 0;  // first query of the run, renumbered
  bool touch = false;
  const auto add = [&](Range range, const std::vector<MaskSegment>& live) {
    // Throughout a run, an edge moves only over keys in `keys`.
    const auto moved = [first](MaskEdge edge, Index number) {
      return MaskEdge{number - (edge.moves ? first : 0), edge.moves};
    };
    MaskRun& run = runs.emplace_back();
    run.queries = {first, first + range.size()};
    for (const MaskSegment& segment : live) {
      const auto [begin, end] = segment.of(range.begin);
      const MaskSegment own{moved(segment.begin, numbers.below(begin)),
                            moved(segment.end, numbers.below(end))};
      // If all keys between two ranges are dead, the ranges join.
      if (!run.live.empty() && run.live.back().end == own.begin) {
        run.live.back().end = own.end;
      } else {
        for (const Index i : {run.queries.begin, run.queries.end - 1}) {
          touch |= !run.live.empty() && run.live.back().end.of(i) == own.begin.of(i);
        }
        run.live.push_back(own);
      }
    }
    first += range.size();
  };
  auto run = data_->runs.begin();
  for (const Range range : queries) {
    while (run->queries.end <= range.begin) {
      ++run;
    }
    for (auto met = run; met != data_->runs.end() && met->queries.begin < range.end; ++met) {
      add(common(met->queries, range), met->live);
    }
  }
  const Mask apart(first, numbers.size(), std::move(runs), index().compact(queries, keys));
  // Joining the mask with itself joins ranges that touch only for the first or last query.
  return (touch ? apart | apart : apart).called("");
}

}  // namespace redblue
