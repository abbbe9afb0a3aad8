#include "runtime/ranks/dealing.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

#include "memsim/share.hpp"

namespace redblue {
namespace {

using Shares = std::vector<std::vector<Index>>;

void add(Shares& shares, std::size_t share, Range things) {
  for (Index thing = things.begin; thing < things.end; ++thing) {
    shares[share].push_back(thing);
  }
}

Shares in_a_row(Index things, Index shares) {
  Shares all(static_cast<std::size_t>(shares));
  for (Index share = 0; share < shares; ++share) {
    add(all, static_cast<std::size_t>(share), share_of(things, share, shares));
  }
  return all;
}

Shares as_zigzag(Index things, Index shares) {
  Shares all(static_cast<std::size_t>(shares));
  for (Index run = 0; run < 2 * shares; ++run) {
    add(all, static_cast<std::size_t>(std::min(run, 2 * shares - 1 - run)),
        share_of(things, run, 2 * shares));
  }
  return all;
}

Shares largest_first(const std::vector<Words>& sizes, Index shares) {
  std::vector<Index> order(sizes.size());
  std::iota(order.begin(), order.end(), Index{0});
  std::ranges::stable_sort(order, std::greater<>(),
                           [&](Index thing) { return sizes[static_cast<std::size_t>(thing)]; });
  using Share = std::pair<Words, Index>;
  std::priority_queue<Share, std::vector<Share>, std::greater<>> smallest;
  for (Index share = 0; share < shares; ++share) {
    smallest.emplace(Words(), share);
  }
  Shares all(static_cast<std::size_t>(shares));
  for (const Index thing : order) {
    auto [size, share] = smallest.top();
    smallest.pop();
    all[static_cast<std::size_t>(share)].push_back(thing);
    smallest.emplace(size + sizes[static_cast<std::size_t>(thing)], share);
  }
  for (std::vector<Index>& share : all) {
    std::ranges::sort(share);
  }
  return all;
}

Words largest(const Shares& shares, const std::vector<Words>& sizes) {
  Words largest;
  for (const std::vector<Index>& share : shares) {
    Words sum;
    for (const Index thing : share) {
      sum += sizes[static_cast<std::size_t>(thing)];
    }
    largest = std::max(largest, sum);
  }
  return largest;
}

}  // namespace

std::vector<std::vector<Index>> dealt_out(const std::vector<Words>& sizes, Index shares) {
  const Index things = std::ssize(sizes);
  std::array<Shares, 3> ways = {in_a_row(things, shares), as_zigzag(things, shares),
                                largest_first(sizes, shares)};
  std::array<Words, 3> sums;
  std::ranges::transform(ways, sums.begin(),
                         [&](const Shares& way) { return largest(way, sizes); });
  const Words least = *std::ranges::min_element(sums);
  const auto first =
      std::ranges::find_if(sums, [&](Words sum) { return Words(100) * sum <= Words(101) * least; });
  return std::move(ways[static_cast<std::size_t>(first - sums.begin())]);
}

std::vector<std::vector<Index>> dealt_in_turn(Index things, Index shares) {
  Shares all(static_cast<std::size_t>(shares));
  for (Index thing = 0; thing < things; ++thing) {
    all[static_cast<std::size_t>(thing % shares)].push_back(thing);
  }
  return all;
}

}  // namespace redblue
