// The blocks of products with one that stays.

#include <algorithm>
#include <optional>

#include "kernels/fit.hpp"
#include "kernels/parts/stationary.hpp"

namespace redblue {
namespace {

Words words(const PhaseCost& cost) {
  return cost.reads + cost.writes;
}

// Which sizes that cut an extent evenly are tried: all small ones, and of large ones some in each
// so many, for more would make plans slow and hardly better.
struct SizesTried {
  Index all, parts;
};
constexpr SizesTried kMany{.all = 4096, .parts = 512};
constexpr SizesTried kFew{.all = 8, .parts = 4};

template <class Try>
void for_even_sizes(Index extent, Index most, const SizesTried& which, const Try& tried) {
  for (Index size = std::min(extent, most); size > 0;
       size -= size <= which.all ? 1 : size / which.parts) {
    size = even(extent, size);
    tried(size);
  }
}

// The block that stays is `first` by `second` of its own rows and columns (or depth).
struct Sides {
  Index StationaryBlocks::*first;
  Index StationaryBlocks::*second;
  Index StationaryBlocks::*slice;
  Index ProductShape::*first_extent;
  Index ProductShape::*second_extent;
  Index ProductShape::*slice_extent;
};
Sides sides(Stays what) {
  using B = StationaryBlocks;
  using E = ProductShape;
  switch (what) {
    case Stays::A:
      return {&B::rows, &B::depth, &B::cols, &E::rows, &E::depth, &E::cols};
    case Stays::B:
      return {&B::cols, &B::depth, &B::rows, &E::cols, &E::depth, &E::rows};
    case Stays::C:
      break;
  }
  return {&B::rows, &B::cols, &B::depth, &E::rows, &E::cols, &E::depth};
}

}  // namespace

Index narrow_slice(Index M) {
  Index slice = 32;
  while (slice > 1 && Words(slice) * slice * 64 > Words(M)) {
    slice /= 2;
  }
  return slice;
}

StationaryBlocks fit_stationary(const ProductShape& of, Index M, Objective objective,
                                const StationaryCost& cost, const StationaryCost& all_live) {
  constexpr Index kWidePiece = 24;
  const bool masked = all_live != nullptr;
  const auto fits = [&](const StationaryBlocks& by) {
    return (masked ? all_live : cost)(by).peak <= Words(M);
  };
  const Index slice = objective == Objective::time ? narrow_slice(M) : 1;

  std::optional<StationaryBlocks> best;
  Sides side = sides(Stays::C);
  Words least = 0;
  for (const Stays what : {Stays::C, Stays::A, Stays::B}) {
    const Sides tried = sides(what);
    for_even_sizes(of.*tried.second_extent, M, masked ? kFew : kMany, [&](Index second) {
      StationaryBlocks by{.piece = std::min(slice, kWidePiece)};
      by.*tried.second = second;
      by.*tried.slice = std::min(slice, of.*tried.slice_extent);
      if (!fits(by)) {
        return;
      }
      // Not more words than there are in M, and then fewer than so far.
      StationaryBlocks most = by;
      most.*tried.first = std::min(of.*tried.first_extent, std::max<Index>(M / second, 1));
      if (best && !masked && words(cost(most)) >= least) {
        return;
      }
      by.*tried.first = even(of.*tried.first_extent, largest(most.*tried.first, [&](Index size) {
                               most.*tried.first = size;
                               return fits(most);
                             }));
      // A tile made smaller may be held along its other side, and its pieces be larger.
      if (!fits(by)) {
        return;
      }
      if (const Words moved = words(cost(by)); !best || moved < least) {
        best = by;
        side = tried;
        least = moved;
      }
    });
  }
  if (!best) {
    return {};
  }
  // What is left of M goes to slices and pieces.
  for (Index wide = kWidestSlice; wide > 0; --wide) {
    StationaryBlocks by = *best;
    by.*side.slice = std::max(by.*side.slice, std::min(wide, of.*side.slice_extent));
    by.piece = std::max(by.piece, wide);
    if (const PhaseCost wider = cost(by); wider.peak <= Words(M) && words(wider) <= least) {
      return by;
    }
  }
  return *best;
}

}  // namespace redblue
