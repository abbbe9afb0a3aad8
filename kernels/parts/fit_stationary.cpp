// Chooses the blocks of products with one resident block.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/fit.hpp"
#include "kernels/parts/descent.hpp"
#include "kernels/parts/stationary.hpp"

namespace redblue {
namespace {

Words words(const PhaseCost& cost) {
  return cost.reads + cost.writes;
}

// The even block sizes that a search tries: all sizes up to `all`. Larger sizes shrink in steps of
// 1 / `parts` of the size, because more sizes would make plans slow and hardly better.
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

// The sides of the resident block, `first` by `second`. Slices of the third extent stream past it.
template <class B>
struct SidesOf {
  Index B::*first;
  Index B::*second;
  Index B::*slice;
  Index ProductShape::*first_extent;
  Index ProductShape::*second_extent;
  Index ProductShape::*slice_extent;
};
template <class B>
SidesOf<B> sides_of(Stays what) {
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
using Sides = SidesOf<StationaryBlocks>;
Sides sides(Stays what) {
  return sides_of<StationaryBlocks>(what);
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

  // Not more words than M.
  const auto most_rows = [&](const Sides& tried, Index second) {
    return std::min(of.*tried.first_extent, std::max<Index>(M / second, 1));
  };
  const auto narrowest = [&](const Sides& tried, Index second) {
    StationaryBlocks by{.piece = std::min(slice, kWidePiece)};
    by.*tried.second = second;
    by.*tried.slice = std::min(slice, of.*tried.slice_extent);
    return by;
  };
  // The largest first side that fits with this second side; empty if none fits.
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
    // After even() a smaller tile may be held along its other side, with larger pieces. So it is
    // checked again.
    return fits(by) ? std::optional(by) : std::nullopt;
  };

  constexpr Stays kAll[] = {Stays::C, Stays::A, Stays::B};
  // Squares move few words. Blocks that cannot move as few words as a square are not searched.
  std::optional<Words> enough;
  for (const Stays what : kAll) {
    const Sides tried = sides(what);
    const Index side = square_side(M, what == Stays::C ? of.sum_words : 1);
    const Index second = even(of.*tried.second_extent, std::min(of.*tried.second_extent, side));
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
  // The free words of M go to slices and pieces.
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

// ---- inner levels ------------------------------------------------------------------------------

namespace {

// Chooses the blocks of all levels, from the innermost out; the machine is the last.
class StationaryFit {
 public:
  StationaryFit(const ProductShape& of, const Memory& memory, Stays what,
                const StationaryLevelCost& cost)
      : of_(of), memory_(memory), cost_(cost), sides_(sides_of<ProductBlocks>(what)) {}

  // Chooses the blocks with these sizes of the streaming extent at each level. Returns their words.
  double fit(const std::vector<Index>& passing) {
    const ProductBlocks all{of_.rows, of_.cols, of_.depth};
    by_ = {.rows = of_.rows,
           .cols = of_.cols,
           .depth = of_.depth,
           .piece = std::max({of_.rows, of_.cols, of_.depth}),
           .inner = ProductLevels(memory_.inner.size(), all)};
    for (std::size_t level = 0; level < passing.size(); ++level) {
      // Blocks of an inner level are multiples of blocks of the level inside, so that cuts
      // coincide.
      const bool outermost = level == memory_.inner.size();
      const ProductBlocks inside = level == 0 || outermost ? ProductBlocks{1, 1, 1} : at(level - 1);
      ProductBlocks by = inside;
      const auto raise = [&](Index most, const auto& with) {
        by = with(largest(most, [&](Index tried) { return fits(level, with(tried)); }));
      };
      raise(passing[level], [&](Index size) {
        ProductBlocks deeper = inside;
        deeper.*sides_.slice = multiple(size, inside.*sides_.slice);
        return deeper;
      });
      raise(std::max(of_.*sides_.first_extent, of_.*sides_.second_extent), [&](Index side) {
        ProductBlocks square = by;
        square.*sides_.first =
            multiple(std::min(side, of_.*sides_.first_extent), inside.*sides_.first);
        square.*sides_.second =
            multiple(std::min(side, of_.*sides_.second_extent), inside.*sides_.second);
        return square;
      });
      for (const auto& [side, extent] : {std::pair(sides_.first, sides_.first_extent),
                                         std::pair(sides_.second, sides_.second_extent)}) {
        raise(of_.*extent, [&, before = by, side = side](Index size) {
          ProductBlocks longer = before;
          longer.*side = std::max(before.*side, multiple(size, inside.*side));
          return longer;
        });
      }
      set(level, by);
    }
    return words();
  }
  [[nodiscard]] const StationaryBlocks& blocks() const { return by_; }
  [[nodiscard]] bool fits() const {
    bool all = true;
    for (std::size_t level = 0; level < memory_.levels(); ++level) {
      all = all && cost_(by_, level).peak <= Words(memory_.words(level));
    }
    return all;
  }

 private:
  static Index multiple(Index size, Index step) { return std::max(size / step, Index{1}) * step; }
  [[nodiscard]] ProductBlocks at(std::size_t level) const {
    return level < by_.inner.size() ? by_.inner[level]
                                    : ProductBlocks{by_.rows, by_.cols, by_.depth};
  }
  // The pieces of the machine are blocks of the level inside, along the longer side of the resident
  // block.
  void set(std::size_t level, const ProductBlocks& by) {
    if (level < by_.inner.size()) {
      by_.inner[level] = by;
      return;
    }
    by_.rows = by.rows;
    by_.cols = by.cols;
    by_.depth = by.depth;
    const bool first = std::min(by.*sides_.first, of_.*sides_.first_extent) >=
                       std::min(by.*sides_.second, of_.*sides_.second_extent);
    by_.piece = by_.inner.back().*(first ? sides_.first : sides_.second);
  }
  // The levels around it have blocks already, or the whole extents.
  [[nodiscard]] bool fits(std::size_t level, const ProductBlocks& by) {
    const StationaryBlocks before = by_;
    set(level, by);
    const bool fits = cost_(by_, level).peak <= Words(memory_.words(level));
    by_ = before;
    return fits;
  }
  [[nodiscard]] double words() const {
    return weighted_words(memory_, [&](std::size_t level) { return cost_(by_, level); });
  }

  const ProductShape& of_;
  const Memory& memory_;
  const StationaryLevelCost& cost_;
  SidesOf<ProductBlocks> sides_;
  StationaryBlocks by_;
};

}  // namespace

// If a square stays in each of two levels, of M and of more words M', both move few words if (M
// M')^(1/4) of the third extent pass the second level together. The search starts there.
StationaryBlocks fit_stationary_levels(const ProductShape& of, const Memory& memory,
                                       Objective objective, std::initializer_list<Stays> what,
                                       const StationaryLevelCost& cost) {
  std::optional<StationaryBlocks> best;
  bool fits = false;
  double least = 0;
  for (const Stays tried : what) {
    StationaryFit fit(of, memory, tried, cost);
    const Index extent = of.*sides_of<ProductBlocks>(tried).slice_extent;
    std::vector<Index> passing = {objective == Objective::time ? narrow_slice(memory.inner.front())
                                                               : 1};
    for (std::size_t level = 1; level <= memory.inner.size(); ++level) {
      const double product =
          static_cast<double>(memory.words(level - 1)) * static_cast<double>(memory.words(level));
      passing.push_back(std::clamp<Index>(std::llround(std::pow(product, 0.25)), 1, extent));
    }
    descend(passing, 1, extent, [&](const std::vector<Index>& some) { return fit.fit(some); });
    const double words = fit.fit(passing);
    if (!best || (fit.fits() && (!fits || words < least))) {
      best = fit.blocks();
      fits = fit.fits();
      least = words;
    }
  }
  return *best;
}

}  // namespace redblue
