// Loops over rows of panels by vectors, for source files that are compiled once for each
// instruction set. The guard includes this header once for each set (see Highway's
// foreach_target.h).
#if defined(REDBLUE_KERNELS_PANELS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef REDBLUE_KERNELS_PANELS_INL_HPP
#undef REDBLUE_KERNELS_PANELS_INL_HPP
#else
#define REDBLUE_KERNELS_PANELS_INL_HPP
#endif

#include <algorithm>

#include <hwy/highway.h>

#include "memsim/tile.hpp"
#include "memsim/unchecked.hpp"

// Without vector instructions, unrolling makes more code but no more speed.
#undef REDBLUE_UNROLL
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
#define REDBLUE_UNROLL(times)
#else
#define REDBLUE_UNROLL(times) HWY_UNROLL(times)
#endif

HWY_BEFORE_NAMESPACE();
namespace redblue::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Lanes = hn::CappedTag<float, kPanel>;
using Vector = hn::Vec<Lanes>;
constexpr Lanes kLanes;
constexpr Index kWidth = hn::MaxLanes(kLanes);
constexpr int kVectors = kPanel / kWidth;  // in a row of a panel

// The rows of one panel.
template <class Word>
struct Lines {
  Word* first;
  Index stride;
  HWY_INLINE Word* operator[](Index i) const { return first + i * stride; }
};

template <class Word>
HWY_INLINE Lines<Word> lines(const BasicView<Word>& part, Index p) {
  return {Unchecked(part).at(0, p), Unchecked(part).stride(p)};
}

// Returns the words of a column tile (r x 1), which are consecutive.
template <class Word>
HWY_INLINE Word* words_of_column(const BasicView<Word>& column) {
  return Unchecked(column).at(0, 0);
}

// Returns the number of used lanes of vector v in a row of a panel with `cols` columns.
HWY_INLINE Index lanes_in(Index cols, int v) {
  return std::min(cols - v * kWidth, kWidth);
}

// May read words beyond a narrow panel, which are not used. The end of an arena has slack for that.
HWY_INLINE Vector load(const float* row, int v) {
  return hn::LoadU(kLanes, row + v * kWidth);
}

HWY_INLINE void store(Vector value, float* row, int v, Index lanes) {
  if (HWY_LIKELY(lanes == kWidth)) {
    hn::StoreU(value, kLanes, row + v * kWidth);
  } else if constexpr (HWY_ARCH_X86) {
    hn::BlendedStore(value, hn::FirstN(kLanes, static_cast<std::size_t>(lanes)), kLanes,
                     row + v * kWidth);
  } else {
    // ARM has no masked store: Highway would read the words beyond and write them back. They may
    // belong to a thread that prefetches.
    float words[kWidth];
    hn::StoreU(value, kLanes, words);
    std::copy_n(words, lanes, row + v * kWidth);
  }
}

// Returns the vector with `neutral` in the lanes outside the panel.
HWY_INLINE Vector only(Vector value, Index lanes, Vector neutral) {
  return lanes == kWidth
             ? value
             : hn::IfThenElse(hn::FirstN(kLanes, static_cast<std::size_t>(lanes)), value, neutral);
}

// c = map(i, v) for all vectors of all rows, panel after panel. Each panel requests its own map.
template <class MapOfPanel>
HWY_INLINE void for_vectors(const View& c, const MapOfPanel& map_of_panel) {
  for (Index p = 0; p < c.panels(); ++p) {
    const auto map = map_of_panel(p);
    const Lines<float> to = lines(c, p);
    const Index cols = Unchecked(c).panel_cols(p);
    if (cols == kPanel) {
      for (Index i = 0; i < c.rows(); ++i) {
        REDBLUE_UNROLL(16)
        for (int v = 0; v < kVectors; ++v) {
          hn::StoreU(map(i, v), kLanes, to[i] + v * kWidth);
        }
      }
    } else {
      for (Index i = 0; i < c.rows(); ++i) {
        for (int v = 0; v * kWidth < cols; ++v) {
          store(map(i, v), to[i], v, lanes_in(cols, v));
        }
      }
    }
  }
}

// c = map(i): one vector of a column tile, from word i on.
template <class Map>
HWY_INLINE void for_column(const View& c, const Map& map) {
  float* const to = words_of_column(c);
  for (Index i = 0; i < c.rows(); i += kWidth) {
    store(map(i), to + i, 0, lanes_in(c.rows() - i, 0));
  }
}

HWY_INLINE bool are_columns(const ConstView& a, const ConstView& b) {
  return Unchecked(a).stride(0) == 1 && Unchecked(b).stride(0) == 1;
}

// Calls finish(i, folded) for each row i. fold() combines vectors lane by lane, and finish() must
// combine the lanes.
template <class Folded, class Fold, class Finish>
HWY_INLINE void for_rows(const ConstView& a, const Folded& neutral, const Fold& fold,
                         const Finish& finish) {
  for (Index i = 0; i < a.rows(); ++i) {
    Folded result = neutral;
    for (Index p = 0; p < a.panels(); ++p) {
      const Index cols = Unchecked(a).panel_cols(p);
      for (int v = 0; v * kWidth < cols; ++v) {
        result = fold(result, i, p, v, lanes_in(cols, v));
      }
    }
    finish(i, result);
  }
}

// Same, down the columns. Each lane is a column, so finish() need not combine lanes.
template <class Folded, class FoldOfPanel, class Finish>
HWY_INLINE void for_columns(const ConstView& a, const Folded& neutral,
                            const FoldOfPanel& fold_of_panel, const Finish& finish) {
  for (Index p = 0; p < a.panels(); ++p) {
    const auto fold = fold_of_panel(p);
    const Index cols = Unchecked(a).panel_cols(p);
    Folded result[kVectors];
    std::fill_n(result, kVectors, neutral);
    if (cols == kPanel) {
      for (Index i = 0; i < a.rows(); ++i) {
        REDBLUE_UNROLL(16)
        for (int v = 0; v < kVectors; ++v) {
          result[v] = fold(result[v], i, v);
        }
      }
    } else {
      for (int v = 0; v * kWidth < cols; ++v) {
        for (Index i = 0; i < a.rows(); ++i) {
          result[v] = fold(result[v], i, v);
        }
      }
    }
    for (int v = 0; v * kWidth < cols; ++v) {
      finish(p, v, lanes_in(cols, v), result[v]);
    }
  }
}

}  // namespace
}  // namespace redblue::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
