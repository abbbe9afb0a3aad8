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

  // Not more words than there are in M.
  const auto most_rows = [&](const Sides& tried, Index second) {
    return std::min(of.*tried.first_extent, std::max<Index>(M / second, 1));
  };
  const auto narrowest = [&](const Sides& tried, Index second) {
    StationaryBlocks by{.piece = std::min(slice, kWidePiece)};
    by.*tried.second = second;
    by.*tried.slice = std::min(slice, of.*tried.slice_extent);
    return by;
  };
  // The most of the first side beside so many of the second; nothing where these do not fit.
  const auto fitted = [&](const Sides& tried, Index second) -> std::optional<StationaryBlocks> {
    StationaryBlocks by = narrowest(tried, second);
    if (!fits(by)) {
      return std::nullopt;
    }
    StationaryBlocks larger = by;
    by.*tried.first =
        even(of.*tried.first_extent, largest(most_rows(tried, second), [&](Index size) {
               larger.*tried.first = size;
               return fits(larger);
             }));
    // A tile made smaller may be held along its other side, and its pieces be larger.
    return fits(by) ? std::optional(by) : std::nullopt;
  };

  constexpr Stays kAll[] = {Stays::C, Stays::A, Stays::B};
  // Squares move few words: what cannot move as few as one of them is not searched.
  std::optional<Words> enough;
  for (const Stays what : kAll) {
    const Sides tried = sides(what);
    const Index second =
        even(of.*tried.second_extent, std::min(of.*tried.second_extent, square_side(M, 1)));
    if (const auto by = masked ? std::nullopt : fitted(tried, second)) {
      enough = std::min(enough.value_or(words(cost(*by))), words(cost(*by)));
    }
  }

  std::optional<StationaryBlocks> best;
  Sides side = sides(Stays::C);
  Words least = 0;
  for (const Stays what : kAll) {
    const Sides tried = sides(what);
    for_even_sizes(of.*tried.second_extent, M, masked ? kFew : kMany, [&](Index second) {
      if (!masked && (best || enough)) {
        StationaryBlocks most = narrowest(tried, second);
        most.*tried.first = most_rows(tried, second);
        const Words fewest = words(cost(most));
        if ((best && fewest >= least) || (enough && fewest > *enough)) {
          return;
        }
      }
      const std::optional<StationaryBlocks> by = fitted(tried, second);
      if (!by) {
        return;
      }
      if (const Words moved = words(cost(*by)); !best || moved < least) {
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
