// Sums over groups of queries. In a run of a mask, the number of keys that a group meets is linear
// in the number of the group.

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "kernels/mask.hpp"
#include "kernels/mask_lines.hpp"

namespace redblue {
namespace {

constexpr std::size_t kMostKnown = 256;  // sums that are remembered

// Returns the line through a linear sequence of `count` numbers.
template <class Of>
Line line_through(const Of& of, Index count) {
  const Wide first = of(0);
  return {first, count > 1 ? of(1) - first : 0};
}

// Returns the sum over t in [0, count) of the smaller of a line and a number.
Wide smaller_sum(const Line& line, Wide most, Wide count) {
  // The line exceeds the number from some t on, or up to some t.
  const Wide first = std::max(line.of(0), line.of(count - 1));
  if (first <= most) {
    return line.sum(0, count);
  }
  if (std::min(line.of(0), line.of(count - 1)) >= most) {
    return count * most;
  }
  const Wide steps = (most - line.first) / line.step;  // the last t on the same side as t = 0
  const Wide until = steps + 1;
  return line.step > 0 ? line.sum(0, until) + (count - until) * most
                       : until * most + line.sum(until, count);
}

Index longest_of(const Ranges& ranges) {
  Index longest = 0;
  for (const Range range : ranges) {
    longest = std::max(longest, range.size());
  }
  return longest;
}

// Sizes of ranges of whole blocks. The last block may be smaller.
struct SizeInBlocks {
  Wide keys = 0, blocks = 0;
};
SizeInBlocks size_in_blocks(const Ranges& ranges, Index block) {
  SizeInBlocks sum;
  for (const Range range : ranges) {
    sum.keys += range.size();
    sum.blocks += ceil_div(range.size(), block);
  }
  return sum;
}

// Returns the number of keys that the queries [first, first + size) of a run meet. Two ranges that
// are disjoint for each query can overlap for a group only if both move. Then they overlap for
// every group of the run or for none. The number is therefore linear along the run, as each range
// is.
Wide met_in_run(const MaskRun& run, Index first, Index size) {
  Wide keys = 0;
  Index before = 0;  // end of the last range
  for (const MaskSegment& segment : run.live) {
    const auto [begin, end] = segment.met_by({first, first + size});
    keys += end - std::max(begin, before);
    before = end;
  }
  return keys;
}

// Returns the words that `count` groups of `size` queries read from a pattern, for linear pairs and
// keys. The smaller of two lines is the second line plus the smaller of their difference and 0.
Wide pattern_words(const Line& pairs, const Line& keys, Index size, Index count) {
  const Line by_pairs{MaskIndex::by_pairs(pairs.first, keys.first),
                      MaskIndex::by_pairs(pairs.step, keys.step)};
  const Line by_bits{MaskIndex::by_bits(keys.first, size), MaskIndex::by_bits(keys.step, size)};
  return count + by_bits.sum(0, count) +
         smaller_sum({by_pairs.first - by_bits.first, by_pairs.step - by_bits.step}, 0, count);
}

}  // namespace

// Returns the remembered value of an earlier call, or makes it. Planners ask for the same sizes
// often.
template <class Value, class Make>
Value Mask::known_of(Known<Value>& known, const std::array<Index, 3>& key, const Make& make) const {
  {
    const std::lock_guard lock(data_->asked);
    if (const auto found = known.find(key); found != known.end()) {
      return found->second;
    }
  }
  const Value made = make();
  const std::lock_guard lock(data_->asked);
  if (known.size() >= kMostKnown) {
    known.clear();
  }
  return known.try_emplace(key, made).first->second;
}

// Calls visit() for stretches of groups of `size` queries.
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
    if (at < end) {  // a group that crosses the end of the run, or the last group
      visit(Stretch{nullptr, at, 1});
      at = std::min(at + size, queries.end);
      k = at < queries.end ? index_of(at) - 1 : k;
    }
  }
}

Mask Mask::among(Range keys) const {
  Mask part;
  part.data_ = known_of(data_->among, {keys.begin, keys.end, 0}, [&] {
    const MaskRun all{{0, queries()}, {{{keys.begin}, {keys.end}}}};
    return (*this & Mask(queries(), this->keys(), {all})).data_;
  });
  return part;
}

Ranges Mask::keys_alone(Range queries) const {
  return known_of(data_->alone, {queries.begin, queries.end, 0}, [&] {
    const Ranges before = keys({0, queries.begin});
    const Ranges after = keys({queries.end, this->queries()});
    return without(without(keys(queries), before), after);
  });
}

Mask::Met Mask::met_by_groups(Range queries, Index size) const {
  return known_of(data_->met, {queries.begin, queries.end, size},
                  [&] { return summed_met(queries, size); });
}

Mask::Met Mask::summed_met(Range queries, Index size) const {
  Wide keys = 0;
  Index longest = 0;
  Index most = 0;
  const bool is_pattern = data_->index.is_pattern();
  Wide index = is_pattern ? 0 : data_->index.words(queries, size);
  each_stretch(queries, size, [&](const Stretch& stretch) {
    const Index first = stretch.first;
    const Index count = stretch.count;
    const Index last = first + (count - 1) * size;
    if (count == 1) {
      const Range group{first, std::min(first + size, queries.end)};
      const Ranges met = this->keys(group);
      keys += size_of(met);
      if (is_pattern) {
        index += MaskIndex::pattern_words(sum_of_pairs(group), size_of(met), group.size());
      }
      longest = std::max(longest, longest_of(met));
      most = std::max(most, size_of(met));
      return;
    }
    const auto met = [&](Index group) {
      return met_in_run(*stretch.run, first + group * size, size);
    };
    const Line met_keys = line_through(met, count);
    keys += met_keys.sum(0, count);
    if (is_pattern) {
      const auto pairs = [&](Index group) {
        return sum_of_pairs({first + group * size, first + (group + 1) * size});
      };
      index += pattern_words(line_through(pairs, count), met_keys, size, count);
    }
    for (const Index group : {first, last}) {
      const Ranges of_group = this->keys({group, group + size});
      longest = std::max(longest, longest_of(of_group));
      most = std::max(most, size_of(of_group));
    }
  });
  return {words(keys), longest, most, pairs(queries, {0, this->keys()}),
          words(index * data_->index.index_words())};
}

Words Mask::sum_of_smaller(const std::vector<Part>& parts, Index most) {
  Wide sum = 0;
  for (const auto& [first, step, count] : parts) {
    sum += smaller_sum({first, step}, most, count);
  }
  return words(sum);
}

Words Mask::shared_by_groups(Range queries, Index size, Index most) const {
  return sum_of_smaller(
      *known_of(
          data_->shared, {queries.begin, queries.end, size},
          [&] { return std::make_shared<const std::vector<Part>>(shared_parts(queries, size)); }),
      most);
}

Words Mask::first_by_groups(Range queries, Index size, Index most) const {
  return sum_of_smaller(
      *known_of(
          data_->first, {queries.begin, queries.end, size},
          [&] { return std::make_shared<const std::vector<Part>>(first_parts(queries, size)); }),
      most);
}

std::vector<Mask::Part> Mask::first_parts(Range queries, Index size) const {
  std::vector<Part> parts;
  each_stretch(queries, size, [&](const Stretch& stretch) {
    const auto first_of = [&](Index group) {
      const Index first = stretch.first + group * size;
      const Ranges met = this->keys({first, std::min(first + size, queries.end)});
      return met.empty() ? 0 : met.front().size();
    };
    const Line line = line_through(first_of, stretch.count);
    parts.push_back({static_cast<Index>(line.first), static_cast<Index>(line.step), stretch.count});
  });
  return parts;
}

std::vector<Mask::Part> Mask::shared_parts(Range queries, Index size) const {
  std::vector<Part> parts;
  std::optional<Ranges> before;  // keys of the previous group
  each_stretch(queries, size, [&](const Stretch& stretch) {
    const Index first = stretch.first;
    const Index count = stretch.count;
    const auto keys_of = [&](Index group) {
      return this->keys({group, std::min(group + size, queries.end)});
    };
    Ranges met = keys_of(first);
    if (before) {
      const Index both = size_of(common(*before, met));
      if (!parts.empty() && parts.back().step == 0 && parts.back().first == both) {
        ++parts.back().count;
      } else {
        parts.push_back({both, 0, 1});
      }
    }
    if (count > 1) {
      const auto shared = [&](Index group) {  // keys of both groups, minus keys of the two together
        const Index query = first + group * size;
        return met_in_run(*stretch.run, query, size) +
               met_in_run(*stretch.run, query + size, size) -
               met_in_run(*stretch.run, query, 2 * size);
      };
      const Line line = line_through(shared, count - 1);
      parts.push_back({static_cast<Index>(line.first), static_cast<Index>(line.step), count - 1});
    }
    before = count == 1 ? std::move(met) : keys_of(first + (count - 1) * size);
  });
  return parts;
}

Mask::Tiles Mask::live_tiles(Index group, Index block) const {
  return known_of(data_->tiles, {group, block, 0}, [&] { return summed_tiles(group, block); });
}

Mask::Tiles Mask::summed_tiles(Index group, Index block) const {
  Wide queries = 0, keys = 0, words = 0, most = 0;
  each_stretch({0, this->queries()}, group, [&](const Stretch& stretch) {
    const Index rows = std::min(group, this->queries() - stretch.first);
    const auto met = [&](Index which) {
      const Index first = stretch.first + which * group;
      return size_in_blocks(in_blocks(this->keys({first, first + rows}), this->keys(), block),
                            block);
    };
    const auto add_evenly_grown = [&](Index first, Index count) {
      const SizeInBlocks size = met(first);
      const SizeInBlocks next = count > 1 ? met(first + 1) : size;
      const Line of_keys{size.keys, next.keys - size.keys};
      const Line of_blocks{size.blocks, next.blocks - size.blocks};
      keys += of_keys.sum(0, count);
      words += of_keys.sum(0, count) * rows;
      queries += of_blocks.sum(0, count) * rows;
      most = std::max({most, of_keys.of(0), of_keys.of(count - 1)});
    };
    // If edges move by whole blocks, the sums are linear from the second group to the last but one.
    // The first and last groups may share blocks with edges that stay, and the last group may meet
    // the last block, which is smaller.
    const Index count = stretch.count;
    if (group % block == 0 && count > 2) {
      add_evenly_grown(0, 1);
      add_evenly_grown(1, count - 2);
      add_evenly_grown(count - 1, 1);
      return;
    }
    for (Index which = 0; which < count; ++which) {
      add_evenly_grown(which, 1);
    }
  });
  return {redblue::words(queries), redblue::words(keys), redblue::words(words),
          static_cast<Index>(most)};
}

}  // namespace redblue
