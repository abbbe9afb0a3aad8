// Orders queries for groups. Queries that meet the same keys form a class, and classes are sorted
// by their keys. A group begins with the rest of the class that the last group began, or with the
// first class left. It then takes the class that adds the fewest keys to it, the first of equals.
// Only classes that share a key with the group can add fewer keys than they have. Lists say which
// classes meet each key.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <numeric>
#include <tuple>
#include <utility>

#include "kernels/mask.hpp"

namespace redblue {
namespace {

constexpr std::size_t kFormula = 8;                         // most ranges in the runs of a formula
constexpr Index kMostRanges = Index{1} << 19;               // most ranges of queries in a search
constexpr std::size_t kMostMembers = std::size_t{1} << 23;  // most entries in the lists
constexpr std::size_t kMostSteps = std::size_t{1} << 26;    // in a search: a fraction of a second
constexpr std::size_t kMostOrders = 16;                     // most remembered orders

bool moves(const MaskRun& run) {
  return std::ranges::any_of(run.live, [](const MaskSegment& segment) {
    return segment.begin.moves || segment.end.moves;
  });
}

Index keys_of(const MaskRun& run, Index query) {
  Index keys = 0;
  for (const MaskSegment& segment : run.live) {
    keys += segment.of(query).size();
  }
  return keys;
}

// Returns the runs of some queries.
std::vector<MaskRun> runs_of(const std::vector<MaskRun>& runs, const Ranges& queries) {
  std::vector<MaskRun> some;
  auto run = runs.begin();
  for (const Range range : queries) {
    while (run->queries.end <= range.begin) {
      ++run;
    }
    for (auto met = run; met != runs.end() && met->queries.begin < range.end; ++met) {
      some.push_back({common(met->queries, range), met->live});
    }
  }
  return some;
}

void add_queries(std::vector<Range>& all, Range queries) {
  if (!all.empty() && all.back().end == queries.begin) {
    all.back().end = queries.end;
  } else {
    all.push_back(queries);
  }
}

struct Class {
  Ranges keys;
  std::vector<Range> queries;
  Index size = 0;  // queries
};

bool before(const Class& a, const Class& b) {
  return std::ranges::lexicographical_compare(a.keys, b.keys, [](Range x, Range y) {
    return std::tie(x.begin, x.end) < std::tie(y.begin, y.end);
  });
}

std::vector<Class> classes_of(const std::vector<MaskRun>& runs) {
  std::vector<Class> all;
  const auto add = [&all](const MaskRun& run, Range queries) {
    Class& one = all.emplace_back(Class{{}, {queries}, queries.size()});
    for (const MaskSegment& segment : run.live) {
      one.keys.push_back(segment.of(queries.begin));
    }
  };
  for (const MaskRun& run : runs) {
    for (const Range queries : blocks(run.queries.size(), moves(run) ? 1 : run.queries.size())) {
      add(run, part_of(run.queries, queries));
    }
  }
  std::ranges::stable_sort(all, before);
  std::vector<Class> classes;
  for (Class& one : all) {
    if (classes.empty() || classes.back().keys != one.keys) {
      classes.push_back(std::move(one));
    } else {
      classes.back().queries.push_back(one.queries.front());
      classes.back().size += one.size;
    }
  }
  return classes;
}

class GreedyOrder {
 public:
  explicit GreedyOrder(const std::vector<Class>& classes)
      : classes_(classes), adds_(classes.size()), taken_(classes.size()) {
    for (const Class& one : classes) {
      keys_.push_back(size_of(one.keys));
      for (const Range range : one.keys) {
        cuts_.insert(cuts_.end(), {range.begin, range.end});
      }
    }
    adds_ = keys_;
    std::ranges::sort(cuts_);
    cuts_.erase(std::unique(cuts_.begin(), cuts_.end()), cuts_.end());
    met_.resize(cuts_.size());
    fewest_.resize(classes.size());
    std::iota(fewest_.begin(), fewest_.end(), std::size_t{0});
    std::ranges::stable_sort(fewest_, {}, [this](std::size_t k) { return keys_[k]; });
    list_members();
  }

  // Returns the classes in the order in which groups of `size` queries take them.
  std::vector<std::size_t> order(Index size) {
    std::vector<std::size_t> order;
    Index room = 0;
    while (order.size() < classes_.size() && !members_.empty() && steps_ < kMostSteps) {
      if (room == 0) {
        begin_group();
        room = size;
      }
      const std::size_t next = room == size ? first() : adding_fewest();
      order.push_back(next);
      taken_[next] = true;
      const Index more = classes_[next].size - room;
      if (more < 0) {
        meet(next);
        room -= classes_[next].size;
      } else {
        begin_group();
        room = more % size == 0 ? 0 : size - more % size;
        if (room > 0) {
          meet(next);
        }
      }
    }
    for (std::size_t k = 0; k < classes_.size(); ++k) {
      if (!taken_[k]) {
        order.push_back(k);
      }
    }
    return order;
  }

 private:
  // Lists the classes that meet the keys between each cut and the next. The lists stay empty if
  // they would be too long.
  void list_members() {
    std::vector<std::size_t> ends(cuts_.size() + 1);
    for (const Class& one : classes_) {
      each_piece(one, [&](std::size_t piece) { ++ends[piece + 1]; });
    }
    std::partial_sum(ends.begin(), ends.end(), ends.begin());
    firsts_ = ends;
    if (ends.back() > kMostMembers) {
      return;
    }
    members_.resize(ends.back());
    for (std::size_t k = 0; k < classes_.size(); ++k) {
      each_piece(classes_[k], [&](std::size_t piece) {
        members_[ends[piece]++] = static_cast<std::uint32_t>(k);
      });
    }
  }
  template <class Visit>
  void each_piece(const Class& one, const Visit& visit) const {
    for (const Range range : one.keys) {
      for (auto cut = std::ranges::lower_bound(cuts_, range.begin); *cut < range.end; ++cut) {
        visit(static_cast<std::size_t>(cut - cuts_.begin()));
      }
    }
  }

  void begin_group() {
    for (const std::size_t k : near_) {
      adds_[k] = keys_[k];
    }
    near_.clear();
    std::fill(met_.begin(), met_.end(), false);
  }
  // Adds the keys of a class to the group.
  void meet(std::size_t which) {
    each_piece(classes_[which], [&](std::size_t piece) {
      if (met_[piece]) {
        return;
      }
      met_[piece] = true;
      for (std::size_t at = firsts_[piece]; at < firsts_[piece + 1]; ++at) {
        const std::size_t k = members_[at];
        if (adds_[k] == keys_[k]) {
          near_.push_back(k);
        }
        adds_[k] -= cuts_[piece + 1] - cuts_[piece];
      }
      steps_ += firsts_[piece + 1] - firsts_[piece];
    });
  }

  std::size_t first() {
    while (taken_[first_]) {
      ++first_;
    }
    return first_;
  }
  // Among the classes that share no key with the group, the class with the fewest keys adds the
  // fewest.
  std::size_t adding_fewest() {
    while (taken_[fewest_[smallest_]]) {
      ++smallest_;
    }
    std::size_t best = fewest_[smallest_];
    for (const std::size_t k : near_) {
      if (!taken_[k] && std::pair(adds_[k], k) < std::pair(adds_[best], best)) {
        best = k;
      }
    }
    steps_ += near_.size();
    return best;
  }

  const std::vector<Class>& classes_;
  // For each class: the number of its keys, and of its keys that the group does not meet.
  std::vector<Index> keys_, adds_;
  std::vector<bool> taken_;          // classes
  std::vector<Index> cuts_;          // where ranges of keys begin or end
  std::vector<bool> met_;            // by the group: keys from one cut to the next
  std::vector<std::size_t> firsts_;  // first members of the pieces between cuts
  std::vector<std::uint32_t> members_;
  std::vector<std::size_t> near_;    // classes that share a key with the group
  std::vector<std::size_t> fewest_;  // classes, sorted by number of keys
  std::size_t first_ = 0, smallest_ = 0, steps_ = 0;
};

}  // namespace

bool Mask::irregular() const {
  std::size_t ranges = 0;
  for (const MaskRun& run : runs()) {
    ranges += run.live.size();
  }
  return ranges > kFormula;
}

bool Mask::clusters_soon() const {
  Index ranges = 0;
  for (const MaskRun& run : runs()) {
    ranges += std::ssize(run.live) * (moves(run) ? run.queries.size() : 1);
    if (ranges > kMostRanges) {
      return false;
    }
  }
  return true;
}

// Looks at whole runs, and ignores steps within a run.
Index Mask::staying_queries() const {
  struct Size {
    Index least, most, queries;
  };
  std::vector<Size> sizes;
  for (const MaskRun& run : runs()) {
    const Range queries = run.queries;
    const auto [least, most] =
        std::minmax({keys_of(run, queries.begin), keys_of(run, queries.end - 1)});
    sizes.push_back({least, most, queries.size()});
  }
  std::ranges::sort(sizes, std::greater<>(), &Size::most);
  Index found = 0;
  Index largest_step = 0;
  Index before = 0;  // queries
  Index least = keys();
  for (const Size& size : sizes) {
    if (const Index step = least - size.most;
        before > 0 && size.most <= least / 2 && step > largest_step) {
      found = before;
      largest_step = step;
    }
    before += size.queries;
    least = std::min(least, size.least);
  }
  return found;
}

Ranges Mask::meeting_most(Index count) const {
  if (count == 0) {
    return {};
  }
  struct Meets {
    Index keys, query;
  };
  std::vector<Meets> all;
  for (const MaskRun& run : runs()) {
    for (Index i = run.queries.begin; i < run.queries.end; ++i) {
      all.push_back({keys_of(run, i), i});
    }
  }
  const auto more_keys_then_first = [](const Meets& a, const Meets& b) {
    return a.keys != b.keys ? a.keys > b.keys : a.query < b.query;
  };
  std::ranges::nth_element(all, all.begin() + count - 1, more_keys_then_first);
  std::vector<Index> queries;
  for (Index k = 0; k < count; ++k) {
    queries.push_back(all[static_cast<std::size_t>(k)].query);
  }
  std::ranges::sort(queries);
  Ranges ranges;
  for (const Index i : queries) {
    add_queries(ranges, {i, i + 1});
  }
  return ranges;
}

std::shared_ptr<const Mask::Clustered> Mask::clustered(Index size, Index last) const {
  {
    const std::lock_guard lock(data_->asked);
    if (const auto found = data_->clustered.find({size, last}); found != data_->clustered.end()) {
      return found->second;
    }
  }
  auto made = std::make_shared<const Clustered>(made_clustered(size, last));
  const std::lock_guard lock(data_->asked);
  if (data_->clustered.size() >= kMostOrders) {
    data_->clustered.clear();
  }
  return data_->clustered.try_emplace({size, last}, std::move(made)).first->second;
}

Mask::Clustered Mask::made_clustered(Index size, Index last) const {
  std::vector<MaskRun> runs;
  std::vector<Range> order;
  Index at = 0;
  const auto add_run = [&](Index queries, std::vector<MaskSegment> live) {
    runs.push_back({{at, at + queries}, std::move(live)});
    at += queries;
  };
  const auto add_in_order = [&](const std::vector<MaskRun>& all) {
    for (const auto& [queries, live] : all) {
      const Index back = queries.begin - at;
      std::vector<MaskSegment> moved = live;
      for (auto& [begin, end] : moved) {
        begin.at += begin.moves ? back : 0;
        end.at += end.moves ? back : 0;
      }
      add_run(queries.size(), std::move(moved));
      add_queries(order, queries);
    }
  };
  const Ranges most = meeting_most(last);
  const std::vector<MaskRun> others = runs_of(this->runs(), without({{0, queries()}}, most));
  if (size == 0) {
    add_in_order(others);
  } else {
    const std::vector<Class> classes = classes_of(others);
    for (const std::size_t k : GreedyOrder(classes).order(size)) {
      const Class& one = classes[k];
      std::vector<MaskSegment> live;
      for (const Range keys : one.keys) {
        live.push_back({{keys.begin}, {keys.end}});
      }
      add_run(one.size, std::move(live));
      for (const Range queries : one.queries) {
        add_queries(order, queries);
      }
    }
  }
  add_in_order(runs_of(this->runs(), most));
  Mask clustered(queries(), keys(), std::move(runs), index().reordered(order));
  return {std::move(clustered), std::move(order)};
}

}  // namespace redblue
