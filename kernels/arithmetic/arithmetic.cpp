#include "kernels/arithmetic/arithmetic.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <span>
#include <type_traits>

#include "kernels/arithmetic/register_tile.hpp"
#include "kernels/arithmetic/telling.hpp"
#include "memsim/machine.hpp"
#include "memsim/unchecked.hpp"

// This file is compiled once for each instruction set: what is between
// HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE many times, the rest once.
#include "kernels/arithmetic/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/arithmetic/arithmetic.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h comes first.
#include <hwy/highway.h>

#include "kernels/arithmetic/exp-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace redblue::HWY_NAMESPACE {
namespace {

using Lanes = hn::CappedTag<float, kPanel>;
using Vector = hn::Vec<Lanes>;
constexpr Lanes kLanes;
constexpr Index kWidth = hn::MaxLanes(kLanes);
constexpr int kVectors = kPanel / kWidth;  // to a row of a panel

// The tile of a product that registers hold: rows_of(G) rows of G panels, which are at most
// kPanels. A sanitizer checks each access of each unrolled shape, which takes minutes to compile:
// its builds define REDBLUE_FEW_SHAPES. The bits of a result do not depend on the shape, in which
// each sum has its terms in the same order.
#if defined(REDBLUE_FEW_SHAPES)
constexpr int kPanels = 1;
constexpr int rows_of(int) {
  return 2;
}
#else
// AVX-512 and 64-bit ARM have 32 vector registers, in every version of them: on x86 a better
// instruction set has a lower bit. Others count as 16.
constexpr bool kManyRegisters =
    HWY_ARCH_X86 ? HWY_TARGET <= HWY_AVX3 : HWY_ARCH_ARM_A64 && HWY_TARGET != HWY_EMU128;
constexpr RegisterTile kTile{.registers = kManyRegisters ? 32 : 16, .vectors = kVectors};
constexpr int kPanels = kTile.panels();
constexpr int rows_of(int panels) {
  return kTile.rows(panels);
}
#endif

// ---- rows of panels, a vector at a time --------------------------------------------------

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

// The words of a column tile (r x 1) lie one after the other.
template <class Word>
HWY_INLINE Word* words_of_column(const BasicView<Word>& column) {
  return Unchecked(column).at(0, 0);
}

// The lanes of vector v in a row of a panel of `cols` columns, from 1 to all.
HWY_INLINE Index lanes_in(Index cols, int v) {
  return std::min(cols - v * kWidth, kWidth);
}

// What lies behind a narrow panel is read along and never used; arenas end in slack.
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
    // ARM has no masked store: Highway reads the words behind and writes them back. They may belong
    // to a thread that fetches ahead.
    float words[kWidth];
    hn::StoreU(value, kLanes, words);
    std::copy_n(words, lanes, row + v * kWidth);
  }
}

// The vector with `neutral` in the lanes that are not the panel's.
HWY_INLINE Vector only(Vector value, Index lanes, Vector neutral) {
  return lanes == kWidth
             ? value
             : hn::IfThenElse(hn::FirstN(kLanes, static_cast<std::size_t>(lanes)), value, neutral);
}

// c = map(i, v) for all vectors of all rows, panel after panel; each panel asks for its map.
template <class MapOfPanel>
HWY_INLINE void for_vectors(const View& c, const MapOfPanel& map_of_panel) {
  for (Index p = 0; p < c.panels(); ++p) {
    const auto map = map_of_panel(p);
    const Lines<float> to = lines(c, p);
    const Index cols = Unchecked(c).panel_cols(p);
    if (cols == kPanel) {
      for (Index i = 0; i < c.rows(); ++i) {
        HWY_UNROLL(16)
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

// c = map(i) for the words of a column tile from i on, a vector at a time.
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

// finish(i, fold over row i): lanes are folded here, and into one another there.
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

// The same down the columns: each lane is a column, and nothing is left to do at the end.
template <class Folded, class FoldOfPanel, class Finish>
HWY_INLINE void for_columns(const ConstView& a, const Folded& neutral,
                            const FoldOfPanel& fold_of_panel, const Finish& finish) {
  for (Index p = 0; p < a.panels(); ++p) {
    const auto fold = fold_of_panel(p);
    const Index cols = Unchecked(a).panel_cols(p);
    for (int v = 0; v * kWidth < cols; ++v) {
      Folded result = neutral;
      for (Index i = 0; i < a.rows(); ++i) {
        result = fold(result, i, v);
      }
      finish(p, v, lanes_in(cols, v), result);
    }
  }
}

// ---- products ----------------------------------------------------------------------------

using One = std::integral_constant<Index, 1>;
using Panel = std::integral_constant<Index, kPanel>;

// R rows of the broadcast factor, each from a start on, so far apart.
template <class Distance>
struct RowsApart {
  const float* first;
  Distance distance;
  HWY_INLINE const float* operator[](int r) const { return first + r * distance; }
};

// sum += row[r][k step] line_g[k stride] for k = 0 .. length. Distances, steps and strides that the
// compiler knows become displacements.
template <int R, int G, class Rows, class Step, class Stride>
HWY_INLINE void accumulate(Vector (&sum)[R][G * kVectors], const Rows& row,
                           const float* const (&line)[G], Index length, Step step, Stride stride) {
  HWY_UNROLL(4)
  for (Index k = 0; k < length; ++k) {
    Vector words[G * kVectors];
    HWY_UNROLL(16)
    for (int v = 0; v < G * kVectors; ++v) {
      words[v] = load(line[v / kVectors] + k * stride, v % kVectors);
    }
    HWY_UNROLL(16)
    for (int r = 0; r < R; ++r) {
      const Vector factor = hn::Set(kLanes, row[r][k * step]);
      HWY_UNROLL(16)
      for (int v = 0; v < G * kVectors; ++v) {
        sum[r][v] = hn::MulAdd(factor, words[v], sum[r][v]);
      }
    }
  }
}

// The broadcast factor, by its rows: each runs through panels, of which the last may be narrow.
class Straight {
 public:
  explicit Straight(const ConstView& a)
      : a_(a),
        whole_(a.cols() / kPanel),
        rest_(a.cols() % kPanel),
        next_(a.panels() > 1 ? Unchecked(a).at(0, 1) - Unchecked(a).at(0, 0) : 0) {}
  [[nodiscard]] Index rows() const { return a_.rows(); }
  // The rows of which words are so far apart; here all.
  [[nodiscard]] Index alike() const { return a_.rows(); }
  template <int R, int G, class Stride>
  HWY_INLINE void times(const float* const (&of_b)[G], Stride stride, Index i,
                        Vector (&sum)[R][G * kVectors]) const {
    const float* const row = Unchecked(a_).at(i, 0);
    const auto line_from = [&](const float*(&line)[G], Index k) HWY_ATTR {
      HWY_UNROLL(16)
      for (int g = 0; g < G; ++g) {
        line[g] = of_b[g] + k * stride;
      }
    };
    const float* line[G];
    for (Index panel = 0; panel < whole_; ++panel) {
      line_from(line, panel * kPanel);
      accumulate<R, G>(sum, RowsApart<Panel>{row + panel * next_, {}}, line, kPanel, One(), stride);
    }
    if (rest_ > 0) {
      line_from(line, whole_ * kPanel);
      const RowsApart<Index> rest{Unchecked(a_).at(i, whole_), Unchecked(a_).stride(whole_)};
      accumulate<R, G>(sum, rest, line, rest_, One(), stride);
    }
  }

 private:
  const ConstView& a_;
  Index whole_, rest_;
  Index next_;  // from a whole panel to the next
};

// By its columns, which lie side by side in a panel.
class Turned {
 public:
  explicit Turned(const ConstView& a)
      : a_(a),
        alike_(Unchecked(a).stride(a.panels() - 1) == kPanel ? a.cols()
                                                             : a.cols() / kPanel * kPanel),
        next_(a.panels() > 1 ? Unchecked(a).at(0, 1) - Unchecked(a).at(0, 0) : 0) {}
  [[nodiscard]] Index rows() const { return a_.cols(); }
  [[nodiscard]] Index alike() const { return alike_; }
  template <int R, int G, class Stride>
  HWY_INLINE void times(const float* const (&line)[G], Stride stride, Index i,
                        Vector (&sum)[R][G * kVectors]) const {
    const Index panel = i / kPanel, first = i % kPanel;
    const float* const row = Unchecked(a_).at(0, panel) + first;
    if (i >= alike_) {
      accumulate<R, G>(sum, RowsApart<One>{row, {}}, line, a_.rows(), Unchecked(a_).stride(panel),
                       stride);
    } else if (first + R <= kPanel) {
      accumulate<R, G>(sum, RowsApart<One>{row, {}}, line, a_.rows(), Panel(), stride);
    } else {
      const float* rows[R];
      HWY_UNROLL(16)
      for (int r = 0; r < R; ++r) {
        rows[r] = row + r + (first + r < kPanel ? 0 : next_ - kPanel);
      }
      accumulate<R, G>(sum, rows, line, a_.rows(), Panel(), stride);
    }
  }

 private:
  const ConstView& a_;
  Index alike_, next_;
};

// What becomes of the sums: c, from them and from what was in c; a panel asks for its map.
struct Keep {
  static constexpr bool kAdds = false;
  HWY_INLINE auto of_panel(Index) const {
    return [](Vector sum, const float*, int) HWY_ATTR { return sum; };
  }
};
// The sums begin with what is in c: registers hold it, and nothing beside it.
struct Accumulate : Keep {
  static constexpr bool kAdds = true;
};
struct Exponentiate {
  static constexpr bool kAdds = false;
  const float* L;
  HWY_INLINE auto of_panel(Index p) const {
    return [L = L + p * kPanel](Vector sum, const float*, int v)
               HWY_ATTR { return exp(kLanes, hn::Sub(sum, load(L, v))); };
  }
};
struct Shift {
  static constexpr bool kAdds = false;
  const float* shift;
  HWY_INLINE auto of_panel(Index p) const {
    return [shift = shift + p * kPanel](Vector sum, const float*, int v)
               HWY_ATTR { return hn::Sub(sum, load(shift, v)); };
  }
};
struct Multiply {
  static constexpr bool kAdds = false;
  HWY_INLINE auto of_panel(Index) const {
    return [](Vector sum, const float* row, int v) HWY_ATTR { return hn::Mul(load(row, v), sum); };
  }
};
struct SoftmaxGradient {
  static constexpr bool kAdds = false;
  const float* shift;
  HWY_INLINE auto of_panel(Index p) const {
    return [shift = shift + p * kPanel](Vector sum, const float* row, int v)
               HWY_ATTR { return hn::Mul(load(row, v), hn::Sub(sum, load(shift, v))); };
  }
};

// Panels p .. p + G of b and of c.
template <int G>
struct Passed {
  Passed() = default;
  Passed(const ConstView& b, const View& c, Index p) : first(p), stride(Unchecked(b).stride(p)) {
    for (int g = 0; g < G; ++g) {
      line[g] = Unchecked(b).at(0, p + g);
      to[g] = lines(c, p + g);
      cols[g] = Unchecked(c).panel_cols(p + g);
      wide = wide && to[g].stride == kPanel && cols[g] == kPanel;
    }
  }
  Index first;
  const float* line[G];
  Index stride;
  Lines<float> to[G];
  Index cols[G];
  bool wide = true;
};

// Rows i .. i + R of the panels: all sums stay in registers.
template <int R, int G, class Left, class Finish>
HWY_INLINE void register_tile(const Left& a, const Passed<G>& of, Index i, const Finish& finish) {
  Vector sum[R][G * kVectors];
  HWY_UNROLL(16)
  for (int g = 0; g < G; ++g) {
    const float* const row = of.to[g][i];
    const Index stride = of.wide ? kPanel : of.to[g].stride;
    HWY_UNROLL(16)
    for (int r = 0; r < R; ++r) {
      HWY_UNROLL(16)
      for (int v = 0; v < kVectors; ++v) {
        sum[r][g * kVectors + v] = Finish::kAdds ? load(row + r * stride, v) : hn::Zero(kLanes);
      }
    }
  }
  if (HWY_LIKELY(of.stride == kPanel)) {
    a.template times<R, G>(of.line, Panel(), i, sum);
  } else {
    a.template times<R, G>(of.line, of.stride, i, sum);
  }
  HWY_UNROLL(16)
  for (int g = 0; g < G; ++g) {
    const auto map = finish.of_panel(of.first + g);
    float* row = of.to[g][i];
    if (HWY_LIKELY(of.wide)) {
      HWY_UNROLL(16)
      for (int r = 0; r < R; ++r) {
        HWY_UNROLL(16)
        for (int v = 0; v < kVectors; ++v) {
          hn::StoreU(map(sum[r][g * kVectors + v], row + r * kPanel, v), kLanes,
                     row + r * kPanel + v * kWidth);
        }
      }
    } else {
      HWY_UNROLL(16)
      for (int r = 0; r < R; ++r) {
        HWY_UNROLL(16)
        for (int v = 0; v < kVectors; ++v) {
          if (v * kWidth < of.cols[g]) {
            store(map(sum[r][g * kVectors + v], row, v), row, v, lanes_in(of.cols[g], v));
          }
        }
        row += of.to[g].stride;
      }
    }
  }
}

template <int R, int G, class Left, class Finish>
HWY_INLINE void tiles_of_rows(const Left& a, std::span<const Passed<G>> groups, Index i,
                              const Finish& finish) {
  for (const Passed<G>& of : groups) {
    register_tile<R, G>(a, of, i, finish);
  }
}

// Some groups of panels for some rows: the panels of b stay in the nearest cache, a passes, as many
// rows at a time as registers hold, then fewer.
template <int G, class Left, class Finish>
void panels(const Left& a, std::span<const Passed<G>> groups, Range rows, const Finish& finish) {
  constexpr int kRows = rows_of(G);
  static_assert(kRows * G * kPanel <= kRegisterCharge && kRows <= kRegisterRows);
  Index i = rows.begin;
  for (const Index end : {std::min(a.alike(), rows.end), rows.end}) {
    for (; end - i >= kRows; i += kRows) {
      tiles_of_rows<kRows>(a, groups, i, finish);
    }
    for (; kRows > 4 && end - i >= 4; i += 4) {
      tiles_of_rows < kRows<4 ? 1 : 4>(a, groups, i, finish);
    }
    for (; kRows > 2 && end - i >= 2; i += 2) {
      tiles_of_rows < kRows<2 ? 1 : 2>(a, groups, i, finish);
    }
    for (; i < end; ++i) {
      tiles_of_rows<1>(a, groups, i, finish);
    }
  }
}

// As many of the panels that are left as go together, at most so many: none of more than two is
// left over alone.
constexpr Index together(Index left, Index most) {
  return left > most && left < 2 * most - 1 ? most - 1 : std::min(left, most);
}

template <int G, class Left, class Finish>
void panels_together(Index count, const Left& a, const ConstView& b, const View& c, Index p,
                     Range rows, const Finish& finish) {
  if constexpr (G > 1) {
    if (count < G) {
      return panels_together<G - 1>(count, a, b, c, p, rows, finish);
    }
  }
  const Passed<G> group(b, c, p);
  panels<G>(a, std::span(&group, 1), rows, finish);
}

// The panels of the same stride: a narrow one, which is the last, has another.
HWY_INLINE Index wide_panels(const ConstView& b) {
  return b.panels() - (Unchecked(b).stride(b.panels() - 1) == kPanel ? 0 : 1);
}

// By at most so many panels at a time.
template <class Left, class Finish>
HWY_INLINE void product_of_rows(const Left& a, const ConstView& b, const View& c, Range rows,
                                Index most, const Finish& finish) {
  const Index wide = wide_panels(b);
  for (Index p = 0; p < b.panels();) {
    const Index count = p < wide ? together(wide - p, most) : 1;
    panels_together<kPanels>(count, a, b, c, p, rows, finish);
    p += count;
  }
}

template <class Left, class Finish>
void product(const Left& a, const ConstView& b, const View& c, const Finish& finish,
             Index columns = kAllOfIt) {
  product_of_rows(a, b, c, {0, a.rows()}, std::min<Index>(kPanels, columns / kPanel), finish);
}

// At most so many rows of a at a time, by all panels, unless all go together in any case.
template <class Finish>
void product_of_passing(const ConstView& a, Index rows, const ConstView& b, const View& c,
                        const Finish& finish) {
  const Index wide = wide_panels(b), count = wide > 0 ? together(wide, kPanels) : 1;
  if (rows >= a.rows() || count == b.panels()) {
    return product(Straight{a}, b, c, finish);
  }
  constexpr Index kFew = 4;
  if (kPanels == 1 && b.panels() <= kFew) {  // known before rows come
    std::array<Passed<1>, kFew> groups;
    for (Index p = 0; p < b.panels(); ++p) {
      groups[static_cast<std::size_t>(p)] = Passed<1>(b, c, p);
    }
    const std::span<const Passed<1>> all(groups.data(), static_cast<std::size_t>(b.panels()));
    return panels<1>(Straight{a}, all, {0, a.rows()}, finish);
  }
  const Index in_registers = rows_of(static_cast<int>(count));
  for (const Range some : blocks(a.rows(), rows / in_registers * in_registers)) {
    product_of_rows(Straight{a}, b, c, some, kPanels, finish);
  }
}

// ---- what is dispatched ------------------------------------------------------------------

void multiply_add(const ConstView& a, const ConstView& b, const View& c) {
  product(Straight{a}, b, c, Accumulate{});
}

void multiply_add_transposed(const ConstView& a, const ConstView& b, const View& c, Index columns) {
  product(Turned{a}, b, c, Accumulate{}, columns);
}

void multiply(const ConstView& a, const ConstView& b, const View& c, Index rows) {
  product_of_passing(a, rows, b, c, Keep{});
}

void multiply_transposed(const ConstView& a, const ConstView& b, const View& c) {
  product(Turned{a}, b, c, Keep{});
}

void exponentiated_product(const ConstView& a, const ConstView& b, const ConstView& L,
                           const View& f_t, Index rows) {
  product_of_passing(a, rows, b, f_t, Exponentiate{words_of_column(L)});
}

void shifted_product(const ConstView& a, const ConstView& b, const ConstView& shift, const View& c,
                     Index rows) {
  product_of_passing(a, rows, b, c, Shift{words_of_column(shift)});
}

void softmax_gradient_product(const ConstView& a, const ConstView& b, const ConstView& v,
                              const View& f_t, Index rows) {
  product_of_passing(a, rows, b, f_t, SoftmaxGradient{words_of_column(v)});
}

void multiplied_product(const ConstView& a, const ConstView& b, const View& p_t, Index rows) {
  product_of_passing(a, rows, b, p_t, Multiply{});
}

// The largest of what came by. Max may lose a NaN, on some processors, in some places; all bits
// of `nan` are set where there was one.
struct Top {
  Vector largest, nan;
};
HWY_INLINE Top nothing_yet() {
  return {hn::Set(kLanes, -std::numeric_limits<float>::infinity()), hn::Zero(kLanes)};
}
HWY_INLINE Top higher(const Top& top, Vector x) {
  return {hn::Max(top.largest, x), hn::Or(top.nan, hn::VecFromMask(kLanes, hn::IsNaN(x)))};
}

void raise_maximum(const ConstView& s, const View& maximum) {
  const Vector lowest = hn::Set(kLanes, -std::numeric_limits<float>::infinity());
  float* const known = words_of_column(maximum);
  for_rows(
      s, nothing_yet(),
      [&](const Top& top, Index i, Index p, int v, Index lanes)
          HWY_ATTR { return higher(top, only(load(Unchecked(s).at(i, p), v), lanes, lowest)); },
      [&](Index i, const Top& top) HWY_ATTR {
        known[i] = hn::AllFalse(kLanes, hn::MaskFromVec(top.nan))
                       ? std::max(known[i], hn::GetLane(hn::MaxOfLanes(kLanes, top.largest)))
                       : std::numeric_limits<float>::quiet_NaN();
      });
}

void raise_maximum_transposed(const ConstView& s_t, const View& maximum) {
  for_columns(
      s_t, nothing_yet(),
      [&](Index p) HWY_ATTR {
        return [s = lines(s_t, p)](const Top& top, Index j, int v)
                   HWY_ATTR { return higher(top, load(s[j], v)); };
      },
      [&](Index p, int v, Index lanes, const Top& top) HWY_ATTR {
        float* const known = words_of_column(maximum) + p * kPanel;
        const Top both = higher(top, load(known, v));
        store(hn::Or(both.largest, both.nan), known, v, lanes);
      });
}

void exponentiate(const ConstView& s, const ConstView& row, const View& f) {
  for_vectors(f, [&](Index p) HWY_ATTR {
    return [s = lines(s, p), shift = words_of_column(row)](Index i, int v)
               HWY_ATTR { return exp(kLanes, hn::Sub(load(s[i], v), hn::Set(kLanes, shift[i]))); };
  });
}

// With a word of everything for each column; q_t is read where `kDots` says so.
template <bool kDots>
HWY_INLINE void exponentiate_columns(const View& s_t, const ConstView& row, const View& sum,
                                     const ConstView& q_t, const View& dots) {
  for (Index p = 0; p < s_t.panels(); ++p) {
    const Lines<float> s = lines(s_t, p);
    const Lines<const float> q = lines(q_t, p);
    const Index cols = Unchecked(s_t).panel_cols(p);
    for (int v = 0; v * kWidth < cols; ++v) {
      const Index lanes = lanes_in(cols, v);
      const Vector shift = load(words_of_column(row) + p * kPanel, v);
      float* const all = words_of_column(sum) + p * kPanel;
      float* const all_dots = words_of_column(dots) + p * kPanel;
      Vector sums = load(all, v);
      Vector products = load(all_dots, v);
      for (Index j = 0; j < s_t.rows(); ++j) {
        const Vector e = exp(kLanes, hn::Sub(load(s[j], v), shift));
        store(e, s[j], v, lanes);
        sums = hn::Add(sums, e);
        if constexpr (kDots) {
          products = hn::MulAdd(e, load(q[j], v), products);
        }
      }
      store(sums, all, v, lanes);
      if constexpr (kDots) {
        store(products, all_dots, v, lanes);
      }
    }
  }
}

void exponentiate_transposed(const View& s_t, const ConstView& row, const View& sum) {
  exponentiate_columns<false>(s_t, row, sum, s_t, sum);
}

void exponentiate_and_dot(const View& s_t, const ConstView& row, const View& sum,
                          const ConstView& q_t, const View& dots) {
  exponentiate_columns<true>(s_t, row, sum, q_t, dots);
}

// from_i = exp(from_i - less_i).
void exponentiate_differences(const View& from, const ConstView& less) {
  for_column(from, [to = words_of_column(from), shift = words_of_column(less)](Index i) HWY_ATTR {
    return exp(kLanes, hn::Sub(load(to + i, 0), load(shift + i, 0)));
  });
}

void add_row_sums(const ConstView& a, const View& sum) {
  const Vector zero = hn::Zero(kLanes);
  float* const known = words_of_column(sum);
  for_rows(
      a, zero,
      [&](Vector sums, Index i, Index p, int v, Index lanes)
          HWY_ATTR { return hn::Add(sums, only(load(Unchecked(a).at(i, p), v), lanes, zero)); },
      [&](Index i, Vector sums)
          HWY_ATTR { known[i] += hn::GetLane(hn::SumOfLanes(kLanes, sums)); });
}

void add_row_dots(const ConstView& a, const ConstView& b, const View& sum) {
  const Vector zero = hn::Zero(kLanes);
  float* const known = words_of_column(sum);
  for_rows(
      a, zero,
      [&](Vector sums, Index i, Index p, int v, Index lanes) HWY_ATTR {
        const Vector products =
            hn::Mul(load(Unchecked(a).at(i, p), v), load(Unchecked(b).at(i, p), v));
        return hn::Add(sums, only(products, lanes, zero));
      },
      [&](Index i, Vector sums)
          HWY_ATTR { known[i] += hn::GetLane(hn::SumOfLanes(kLanes, sums)); });
}

void add_row_dots_transposed(const ConstView& a_t, const ConstView& b_t, const View& sum) {
  for_columns(
      a_t, hn::Zero(kLanes),
      [&](Index p) HWY_ATTR {
        return [a = lines(a_t, p), b = lines(b_t, p)](Vector sums, Index j, int v)
                   HWY_ATTR { return hn::MulAdd(load(a[j], v), load(b[j], v), sums); };
      },
      [&](Index p, int v, Index lanes, Vector sums) HWY_ATTR {
        float* const known = words_of_column(sum) + p * kPanel;
        store(hn::Add(load(known, v), sums), known, v, lanes);
      });
}

// A factor of 1, which is most of them once the maxima have settled, costs nothing.
void scale_rows(const View& a, const ConstView& factor) {
  const float* const factors = words_of_column(factor);
  for (Index i = 0; i < a.rows(); ++i) {
    if (factors[i] == 1) {
      continue;
    }
    const Vector by = hn::Set(kLanes, factors[i]);
    for (Index p = 0; p < a.panels(); ++p) {
      float* const row = Unchecked(a).at(i, p);
      const Index cols = Unchecked(a).panel_cols(p);
      for (int v = 0; v * kWidth < cols; ++v) {
        store(hn::Mul(load(row, v), by), row, v, lanes_in(cols, v));
      }
    }
  }
}

void scale(const View& a, float factor) {
  for_vectors(a, [&](Index p) HWY_ATTR {
    return [a = lines(a, p), by = hn::Set(kLanes, factor)](Index i, int v)
               HWY_ATTR { return hn::Mul(load(a[i], v), by); };
  });
}

void multiply_words(const View& a, const ConstView& b) {
  for_vectors(a, [&](Index p) HWY_ATTR {
    return [a = lines(a, p), b = lines(b, p)](Index i, int v)
               HWY_ATTR { return hn::Mul(load(a[i], v), load(b[i], v)); };
  });
}

void subtract_rows(const View& a, const ConstView& row) {
  for_vectors(a, [&](Index p) HWY_ATTR {
    return [a = lines(a, p), less = words_of_column(row)](Index i, int v)
               HWY_ATTR { return hn::Sub(load(a[i], v), hn::Set(kLanes, less[i])); };
  });
}

void subtract_rows_transposed(const View& a_t, const ConstView& row) {
  for_vectors(a_t, [&](Index p) HWY_ATTR {
    return [a = lines(a_t, p), less = words_of_column(row) + p * kPanel](Index j, int v)
               HWY_ATTR { return hn::Sub(load(a[j], v), load(less, v)); };
  });
}

void subtract_scaled_rows(const View& a, const ConstView& factor, const ConstView& b) {
  for_vectors(a, [&](Index p) HWY_ATTR {
    return [a = lines(a, p), b = lines(b, p), factor = words_of_column(factor)](Index i, int v)
               HWY_ATTR {
                 return hn::NegMulAdd(hn::Set(kLanes, factor[i]), load(b[i], v), load(a[i], v));
               };
  });
}

void divide_rows(const ConstView& a, const ConstView& divisor, const View& f) {
  if (are_columns(a, f)) {
    return for_column(f, [a = words_of_column(a), by = words_of_column(divisor)](Index i)
                             HWY_ATTR { return hn::Div(load(a + i, 0), load(by + i, 0)); });
  }
  for_vectors(f, [&](Index p) HWY_ATTR {
    return [a = lines(a, p), divisor = words_of_column(divisor)](Index i, int v)
               HWY_ATTR { return hn::Div(load(a[i], v), hn::Set(kLanes, divisor[i])); };
  });
}

void add(const View& a, const ConstView& b) {
  if (are_columns(a, b)) {
    return for_column(a, [to = words_of_column(a), b = words_of_column(b)](Index i)
                             HWY_ATTR { return hn::Add(load(to + i, 0), load(b + i, 0)); });
  }
  for_vectors(a, [&](Index p) HWY_ATTR {
    return [a = lines(a, p), b = lines(b, p)](Index i, int v)
               HWY_ATTR { return hn::Add(load(a[i], v), load(b[i], v)); };
  });
}

void softmax_gradient(const ConstView& f, const ConstView& q, const ConstView& v, const View& p) {
  for_vectors(p, [&](Index panel) HWY_ATTR {
    return [f = lines(f, panel), q = lines(q, panel), shift = words_of_column(v)](Index i, int k)
               HWY_ATTR {
                 return hn::Mul(load(f[i], k), hn::Sub(load(q[i], k), hn::Set(kLanes, shift[i])));
               };
  });
}

void softmax_gradient_transposed(const ConstView& f_t, const ConstView& v, const View& q_t) {
  for_vectors(q_t, [&](Index p) HWY_ATTR {
    return [f = lines(f_t, p), q = lines(q_t, p), shift = words_of_column(v) + p * kPanel](Index j,
                                                                                           int k)
               HWY_ATTR { return hn::Mul(load(f[j], k), hn::Sub(load(q[j], k), load(shift, k))); };
  });
}

// sigmoid(s) and sigmoid(-s), whose exponential is of what is not above 0: neither overflows, and
// neither is a difference.
struct Sigmoids {
  Vector of_s, of_minus_s;
};
HWY_INLINE Sigmoids sigmoids(Vector s) {
  const Vector one = hn::Set(kLanes, 1);
  const Vector e = exp(kLanes, hn::Neg(hn::Abs(s)));
  const Vector larger = hn::Div(one, hn::Add(one, e));
  const Vector smaller = hn::Mul(e, larger);
  const auto negative = hn::Lt(s, hn::Zero(kLanes));
  return {hn::IfThenElse(negative, smaller, larger), hn::IfThenElse(negative, larger, smaller)};
}

// A function and its derivative. What is not a number stays so.
struct Relu {
  static HWY_INLINE Vector value(Vector s) {
    return hn::IfThenZeroElse(hn::Le(s, hn::Zero(kLanes)), s);
  }
  static HWY_INLINE Vector slope(Vector s) {
    const Vector above = hn::IfThenElse(hn::IsNaN(s), s, hn::Set(kLanes, 1));
    return hn::IfThenZeroElse(hn::Le(s, hn::Zero(kLanes)), above);
  }
};
struct Sigmoid {
  static HWY_INLINE Vector value(Vector s) { return sigmoids(s).of_s; }
  static HWY_INLINE Vector slope(Vector s) {
    const Sigmoids of = sigmoids(s);
    return hn::Mul(of.of_s, of.of_minus_s);
  }
};
struct Silu {
  static HWY_INLINE Vector value(Vector s) { return hn::Mul(s, sigmoids(s).of_s); }
  static HWY_INLINE Vector slope(Vector s) {
    const Sigmoids of = sigmoids(s);
    return hn::Mul(of.of_s, hn::MulAdd(s, of.of_minus_s, hn::Set(kLanes, 1)));
  }
};

template <class Phi>
HWY_INLINE void activate_as(const ConstView& s, const View& f) {
  for_vectors(f, [&](Index p) HWY_ATTR {
    return [s = lines(s, p)](Index i, int v) HWY_ATTR { return Phi::value(load(s[i], v)); };
  });
}

template <class Phi>
HWY_INLINE void slope_as(const ConstView& s, const View& slope) {
  for_vectors(slope, [&](Index p) HWY_ATTR {
    return [s = lines(s, p)](Index i, int v) HWY_ATTR { return Phi::slope(load(s[i], v)); };
  });
}

template <class Phi>
HWY_INLINE void gradient_as(const ConstView& s, const ConstView& q, const View& p) {
  for_vectors(p, [&](Index panel) HWY_ATTR {
    return [s = lines(s, panel), q = lines(q, panel)](Index i, int v)
               HWY_ATTR { return hn::Mul(Phi::slope(load(s[i], v)), load(q[i], v)); };
  });
}

// Calls work with a value of the function's type.
template <class Work>
HWY_INLINE void with_function(Activation phi, const Work& work) {
  switch (phi) {
    case Activation::relu:
      return work(Relu());
    case Activation::sigmoid:
      return work(Sigmoid());
    case Activation::silu:
      return work(Silu());
    case Activation::softmax:
      break;
  }
  refuse_activation(phi);
}

void activate(Activation phi, const ConstView& s, const View& f) {
  with_function(phi, [&](auto of) HWY_ATTR { activate_as<decltype(of)>(s, f); });
}

void activation_slope(Activation phi, const ConstView& s, const View& slope) {
  with_function(phi, [&](auto of) HWY_ATTR { slope_as<decltype(of)>(s, slope); });
}

void activation_gradient(Activation phi, const ConstView& s, const ConstView& q, const View& p) {
  with_function(phi, [&](auto of) HWY_ATTR { gradient_as<decltype(of)>(s, q, p); });
}

}  // namespace
}  // namespace redblue::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace redblue {
namespace {

HWY_EXPORT(multiply_add);
HWY_EXPORT(multiply_add_transposed);
HWY_EXPORT(multiply);
HWY_EXPORT(multiply_transposed);
HWY_EXPORT(exponentiated_product);
HWY_EXPORT(softmax_gradient_product);
HWY_EXPORT(raise_maximum);
HWY_EXPORT(raise_maximum_transposed);
HWY_EXPORT(exponentiate);
HWY_EXPORT(exponentiate_transposed);
HWY_EXPORT(exponentiate_and_dot);
HWY_EXPORT(exponentiate_differences);
HWY_EXPORT(add_row_sums);
HWY_EXPORT(add_row_dots);
HWY_EXPORT(add_row_dots_transposed);
HWY_EXPORT(scale_rows);
HWY_EXPORT(scale);
HWY_EXPORT(multiply_words);
HWY_EXPORT(subtract_rows);
HWY_EXPORT(subtract_rows_transposed);
HWY_EXPORT(subtract_scaled_rows);
HWY_EXPORT(divide_rows);
HWY_EXPORT(add);
HWY_EXPORT(softmax_gradient);
HWY_EXPORT(softmax_gradient_transposed);
HWY_EXPORT(shifted_product);
HWY_EXPORT(multiplied_product);
HWY_EXPORT(activate);
HWY_EXPORT(activation_slope);
HWY_EXPORT(activation_gradient);

bool same_shape(const ConstView& a, const ConstView& b) {
  return a.rows() == b.rows() && a.cols() == b.cols();
}

// A column of a wider panel has its words apart.
bool is_column_of(const ConstView& column, Index rows) {
  return column.cols() == 1 && Unchecked(column).stride(0) == 1 && column.rows() == rows;
}

// Throws unless registers hold no more of what passes than is there.
void check_passing(Index there, Index in_registers) {
  require(there >= in_registers, "what passes is there in as many lines as registers hold");
}

// Throws unless c can be the product of a rows x depth and a depth x cols factor.
void check_product(const ConstView& c, Index rows, Index depth, const ConstView& b,
                   const char* what) {
  require(depth == b.rows() && c.rows() == rows && c.cols() == b.cols(), what);
}

// Where every function of this file ends: how many operations changed c; and in which steps, which
// are put together only where somebody hears them.
template <class Tell>
void account(Operations operations, const View& c, const Tell& tell_steps) {
  c.machine().computed(operations);
  if (c.machine().is_heard()) [[unlikely]] {
    tell_steps();
  }
}

void tell_all(std::initializer_list<ToldStep> steps) {
  for (const ToldStep& step : steps) {
    tell(step);
  }
}

// Steps, whose operands live as long as the expression that names them.
constexpr Old kTaken = Old::taken;
constexpr Old kOverwritten = Old::overwritten;
ToldStep products(const ToldPart& c, Old old, std::initializer_list<ToldPart> factors) {
  return {Operation::Form::product, "product", c, old, factors};
}
ToldStep maps(std::string_view name, const ToldPart& c, Old old,
              std::initializer_list<ToldPart> operands, float constant = 0) {
  return {Operation::Form::map, name, c, old, operands, constant};
}
ToldStep folds(std::string_view name, const ToldPart& c, std::initializer_list<ToldPart> operands) {
  return {Operation::Form::fold, name, c, kTaken, operands};
}

Operations product(const View& c, Index depth, Index elementwise = 0) {
  return {.flops = 2 * c.words() * depth, .elementwise = elementwise * c.words()};
}

Operations elementwise(Index operations) {
  return {.elementwise = operations};
}

}  // namespace

void multiply_add(const ConstView& a, const ConstView& b, const View& c) {
  check_product(c, a.rows(), a.cols(), b, "c += a b: the tiles conform");
  HWY_DYNAMIC_DISPATCH(multiply_add)(a, b, c);
  account(product(c, a.cols()), c, [&] { tell_all({products(c, kTaken, {a, b})}); });
}

void multiply_add(const Transposed<ConstView>& a, const ConstView& b, const View& c,
                  Index columns) {
  check_passing(columns, kRegisterColumns);
  check_product(c, a.of.cols(), a.of.rows(), b, "c += a^T b: the tiles conform");
  HWY_DYNAMIC_DISPATCH(multiply_add_transposed)(a.of, b, c, columns);
  account(product(c, a.of.rows()), c, [&] { tell_all({products(c, kTaken, {a, b})}); });
}

void multiply(const ConstView& a, const ConstView& b, const View& c, Index rows) {
  check_passing(rows, kRegisterRows);
  check_product(c, a.rows(), a.cols(), b, "c = a b: the tiles conform");
  HWY_DYNAMIC_DISPATCH(multiply)(a, b, c, rows);
  account(product(c, a.cols()), c, [&] { tell_all({products(c, kOverwritten, {a, b})}); });
}

void multiply(const Transposed<ConstView>& a, const ConstView& b, const View& c) {
  check_product(c, a.of.cols(), a.of.rows(), b, "c = a^T b: the tiles conform");
  HWY_DYNAMIC_DISPATCH(multiply_transposed)(a.of, b, c);
  account(product(c, a.of.rows()), c, [&] { tell_all({products(c, kOverwritten, {a, b})}); });
}

void exponentiated_product(const ConstView& a, const ConstView& b, const ConstView& L,
                           const View& f_t, Index rows) {
  check_passing(rows, kRegisterRows);
  check_product(f_t, a.rows(), a.cols(), b, "f^T = exp(a b - L): the tiles conform");
  require(is_column_of(L, f_t.cols()), "f^T = exp(a b - L): one L a column");
  HWY_DYNAMIC_DISPATCH(exponentiated_product)(a, b, L, f_t, rows);
  account(product(f_t, a.cols(), 2), f_t, [&] {
    tell_all({products(f_t, kOverwritten, {a, b}),
              maps("exp_difference", f_t, kTaken, {of_columns(L)})});
  });
}

void shifted_product(const ConstView& a, const ConstView& b, const ConstView& shift, const View& c,
                     Index rows) {
  check_passing(rows, kRegisterRows);
  check_product(c, a.rows(), a.cols(), b, "c = a b - shift: the tiles conform");
  require(is_column_of(shift, c.cols()), "c = a b - shift: one shift a column");
  HWY_DYNAMIC_DISPATCH(shifted_product)(a, b, shift, c, rows);
  account(product(c, a.cols(), 1), c, [&] {
    tell_all({products(c, kOverwritten, {a, b}), maps("subtract", c, kTaken, {of_columns(shift)})});
  });
}

void softmax_gradient_product(const ConstView& a, const ConstView& b, const ConstView& v,
                              const View& f_t, const Tile& registers, Index rows) {
  check_passing(rows, kRegisterRows);
  check_product(f_t, a.rows(), a.cols(), b, "p^T = f^T (a b - v): the tiles conform");
  require(is_column_of(v, f_t.cols()), "p^T = f^T (a b - v): one v a column");
  require(registers.words() >= std::min(kRegisterCharge, f_t.words()),
          "p^T = f^T (a b - v): the sums in registers are charged");
  HWY_DYNAMIC_DISPATCH(softmax_gradient_product)(a, b, v, f_t, rows);
  account(product(f_t, a.cols(), 2), f_t, [&] {
    tell(Homefuls{"softmax_gradient", a, b, f_t, registers, &v});
  });
}

void raise_maximum(const ConstView& s, const View& maximum) {
  require(is_column_of(maximum, s.rows()), "one maximum a row");
  HWY_DYNAMIC_DISPATCH(raise_maximum)(s, maximum);
  account(elementwise(s.words()), maximum, [&] { tell_all({folds("maximum", maximum, {s})}); });
}

void raise_maximum(const Transposed<ConstView>& s_t, const View& maximum) {
  require(is_column_of(maximum, s_t.of.cols()), "one maximum a row");
  HWY_DYNAMIC_DISPATCH(raise_maximum_transposed)(s_t.of, maximum);
  account(elementwise(s_t.of.words()), maximum,
          [&] { tell_all({folds("maximum", maximum, {s_t})}); });
}

void raise_maximum(const ConstView& s, const View& maximum, const View& rescale) {
  require(is_column_of(maximum, s.rows()) && is_column_of(rescale, s.rows()),
          "one maximum and factor a row");
  std::copy_n(Unchecked(maximum).at(0, 0), maximum.rows(), Unchecked(rescale).at(0, 0));
  HWY_DYNAMIC_DISPATCH(raise_maximum)(s, maximum);
  HWY_DYNAMIC_DISPATCH(exponentiate_differences)(rescale, maximum);
  account(elementwise(s.words() + 2 * rescale.words()), maximum, [&] {
    tell_all({maps("copy", rescale, kOverwritten, {maximum}), folds("maximum", maximum, {s}),
              maps("exp_difference", rescale, kTaken, {maximum})});
  });
}

void raise_maximum(const Transposed<ConstView>& s_t, const View& maximum, const View& rescale) {
  require(is_column_of(maximum, s_t.of.cols()) && is_column_of(rescale, s_t.of.cols()),
          "one maximum and factor a row");
  std::copy_n(Unchecked(maximum).at(0, 0), maximum.rows(), Unchecked(rescale).at(0, 0));
  HWY_DYNAMIC_DISPATCH(raise_maximum_transposed)(s_t.of, maximum);
  HWY_DYNAMIC_DISPATCH(exponentiate_differences)(rescale, maximum);
  account(elementwise(s_t.of.words() + 2 * rescale.words()), maximum, [&] {
    tell_all({maps("copy", rescale, kOverwritten, {maximum}), folds("maximum", maximum, {s_t}),
              maps("exp_difference", rescale, kTaken, {maximum})});
  });
}

void exponentiate(const ConstView& s, const ConstView& row, const View& f) {
  require(is_column_of(row, s.rows()) && same_shape(f, s), "f = exp(s - row): the tiles conform");
  HWY_DYNAMIC_DISPATCH(exponentiate)(s, row, f);
  account(elementwise(2 * f.words()), f, [&] {
    tell_all({maps("exp_difference", f, kOverwritten, {s, of_rows(row)})});
  });
}

void exponentiate(const Transposed<View>& s_t, const ConstView& row, const View& sum) {
  require(is_column_of(row, s_t.of.cols()) && is_column_of(sum, s_t.of.cols()),
          "f = exp(s - row), sum += rowsum(f): the tiles conform");
  HWY_DYNAMIC_DISPATCH(exponentiate_transposed)(s_t.of, row, sum);
  account(elementwise(3 * s_t.of.words()), sum, [&] {
    tell_all({maps("exp_difference", s_t.of, kTaken, {of_columns(row)}), folds("sum", sum, {s_t})});
  });
}

void exponentiate(const Transposed<View>& s_t, const ConstView& row, const View& sum,
                  const Transposed<ConstView>& q_t, const View& dots) {
  require(is_column_of(row, s_t.of.cols()) && is_column_of(sum, s_t.of.cols()) &&
              is_column_of(dots, s_t.of.cols()) && same_shape(q_t.of, s_t.of),
          "f = exp(s - row), dots += rowsum(f * q): the tiles conform");
  HWY_DYNAMIC_DISPATCH(exponentiate_and_dot)(s_t.of, row, sum, q_t.of, dots);
  account(elementwise(5 * s_t.of.words()), sum, [&] {
    tell_all({maps("exp_difference", s_t.of, kTaken, {of_columns(row)}), folds("sum", sum, {s_t}),
              folds("dot", dots, {s_t, q_t})});
  });
}

void add_row_sums(const ConstView& a, const View& sum) {
  require(is_column_of(sum, a.rows()), "one sum a row");
  HWY_DYNAMIC_DISPATCH(add_row_sums)(a, sum);
  account(elementwise(a.words()), sum, [&] { tell_all({folds("sum", sum, {a})}); });
}

void add_row_dots(const ConstView& a, const ConstView& b, const View& sum) {
  require(same_shape(a, b) && is_column_of(sum, a.rows()),
          "sum += rowsum(a * b): the tiles conform");
  HWY_DYNAMIC_DISPATCH(add_row_dots)(a, b, sum);
  account(elementwise(2 * a.words()), sum, [&] { tell_all({folds("dot", sum, {a, b})}); });
}

void add_row_dots(const Transposed<ConstView>& a_t, const Transposed<ConstView>& b_t,
                  const View& sum) {
  require(same_shape(a_t.of, b_t.of) && is_column_of(sum, a_t.of.cols()),
          "sum += rowsum(a * b): the tiles conform");
  HWY_DYNAMIC_DISPATCH(add_row_dots_transposed)(a_t.of, b_t.of, sum);
  account(elementwise(2 * a_t.of.words()), sum, [&] { tell_all({folds("dot", sum, {a_t, b_t})}); });
}

void scale_rows(const View& a, const ConstView& factor) {
  require(is_column_of(factor, a.rows()), "one factor a row");
  HWY_DYNAMIC_DISPATCH(scale_rows)(a, factor);
  account(elementwise(a.words()), a,
          [&] { tell_all({maps("multiply", a, kTaken, {of_rows(factor)})}); });
}

void scale(const View& a, float factor) {
  HWY_DYNAMIC_DISPATCH(scale)(a, factor);
  account(elementwise(a.words()), a, [&] { tell_all({maps("scale", a, kTaken, {}, factor)}); });
}

void multiply_words(const View& a, const ConstView& b) {
  require(same_shape(a, b), "a *= b: the tiles conform");
  HWY_DYNAMIC_DISPATCH(multiply_words)(a, b);
  account(elementwise(a.words()), a, [&] { tell_all({maps("multiply", a, kTaken, {b})}); });
}

void subtract_rows(const View& a, const ConstView& row) {
  require(is_column_of(row, a.rows()), "a -= row: one word a row");
  HWY_DYNAMIC_DISPATCH(subtract_rows)(a, row);
  account(elementwise(a.words()), a,
          [&] { tell_all({maps("subtract", a, kTaken, {of_rows(row)})}); });
}

void subtract_rows(const Transposed<View>& a_t, const ConstView& row) {
  require(is_column_of(row, a_t.of.cols()), "a -= row: one word a row");
  HWY_DYNAMIC_DISPATCH(subtract_rows_transposed)(a_t.of, row);
  account(elementwise(a_t.of.words()), a_t.of,
          [&] { tell_all({maps("subtract", a_t.of, kTaken, {of_columns(row)})}); });
}

void subtract_scaled_rows(const View& a, const ConstView& factor, const ConstView& b) {
  require(is_column_of(factor, a.rows()) && same_shape(a, b), "a -= factor b: the tiles conform");
  HWY_DYNAMIC_DISPATCH(subtract_scaled_rows)(a, factor, b);
  account(elementwise(2 * a.words()), a, [&] {
    tell_all({maps("subtract_scaled", a, kTaken, {of_rows(factor), b})});
  });
}

void divide_rows(const ConstView& a, const ConstView& divisor, const View& f) {
  require(is_column_of(divisor, a.rows()) && same_shape(f, a),
          "f = a / divisor: the tiles conform");
  HWY_DYNAMIC_DISPATCH(divide_rows)(a, divisor, f);
  account(elementwise(f.words()), f, [&] {
    tell_all({maps("divide", f, kOverwritten, {a, of_rows(divisor)})});
  });
}

void divide_unless_0(const View& a, const ConstView& divisor) {
  require(is_column_of(divisor, a.rows()), "a /= divisor: one divisor a row");
  for (Index i = 0; i < a.rows(); ++i) {
    const float by = *Unchecked(divisor).at(i, 0);
    for (Index p = 0; p < (by == 0 ? 0 : a.panels()); ++p) {
      float* const words = Unchecked(a).at(i, p);
      std::transform(words, words + a.panel_cols(p), words, [by](float x) { return x / by; });
    }
  }
  account(elementwise(a.words()), a,
          [&] { tell_all({maps("divide_unless_0", a, kTaken, {of_rows(divisor)})}); });
}

void copy(const ConstView& a, const View& b) {
  require(same_shape(a, b), "b = a: the tiles conform");
  for (Index p = 0; p < a.panels(); ++p) {
    for (Index i = 0; i < a.rows(); ++i) {
      std::copy_n(a.at(i, p), a.panel_cols(p), b.at(i, p));
    }
  }
  account(Operations{}, b, [&] { tell_all({maps("copy", b, kOverwritten, {a})}); });
}

void fill_in_row(const View& a, Index row, Range columns, float value) {
  for (Index j = columns.begin; j < columns.end; ++j) {
    a(row, j) = value;
  }
  account(Operations{}, a, [&] {
    tell_all({maps("fill", ToldPart(a, {row, row + 1}, columns), kOverwritten, {}, value)});
  });
}

void fill_in_row(const Transposed<View>& a_t, Index row, Range columns, float value) {
  for (Index j = columns.begin; j < columns.end; ++j) {
    a_t.of(j, row) = value;
  }
  account(Operations{}, a_t.of, [&] {
    tell_all({maps("fill", ToldPart(a_t.of, columns, {row, row + 1}), kOverwritten, {}, value)});
  });
}

void add(const View& a, const ConstView& b) {
  require(same_shape(a, b), "a += b: the tiles conform");
  HWY_DYNAMIC_DISPATCH(add)(a, b);
  account(elementwise(a.words()), a, [&] { tell_all({maps("add", a, kTaken, {b})}); });
}

void add_logarithm(const View& maximum, const ConstView& sum) {
  require(is_column_of(maximum, sum.rows()) && is_column_of(sum, sum.rows()), "one sum a maximum");
  for (Index i = 0; i < sum.rows(); ++i) {
    *Unchecked(maximum).at(i, 0) += std::log(*Unchecked(sum).at(i, 0));
  }
  account(elementwise(2 * maximum.words()), maximum,
          [&] { tell_all({maps("add_logarithm", maximum, kTaken, {sum})}); });
}

void softmax_gradient(const ConstView& f, const ConstView& q, const ConstView& v, const View& p) {
  require(same_shape(f, q) && same_shape(p, q) && is_column_of(v, q.rows()),
          "p = f (q - v): the tiles conform");
  HWY_DYNAMIC_DISPATCH(softmax_gradient)(f, q, v, p);
  account(elementwise(2 * p.words()), p, [&] {
    tell_all({maps("softmax_gradient", p, kOverwritten, {f, q, of_rows(v)})});
  });
}

void softmax_gradient(const Transposed<ConstView>& f_t, const ConstView& v,
                      const Transposed<View>& q_t) {
  require(same_shape(f_t.of, q_t.of) && is_column_of(v, q_t.of.cols()),
          "p = f (q - v): the tiles conform");
  HWY_DYNAMIC_DISPATCH(softmax_gradient_transposed)(f_t.of, v, q_t.of);
  account(elementwise(2 * q_t.of.words()), q_t.of, [&] {
    tell_all({maps("softmax_gradient", q_t.of, kOverwritten, {f_t.of, q_t.of, of_columns(v)})});
  });
}

namespace {

// An exponential and a division count as one operation each, as elsewhere.
struct ActivationOperations {
  Index value, slope;
  std::string_view value_name, slope_name, gradient_name;
};
ActivationOperations operations_of(Activation phi) {
  switch (phi) {
    case Activation::relu:
      return {1, 1, "relu", "relu_slope", "relu_gradient"};
    case Activation::sigmoid:
      return {4, 5, "sigmoid", "sigmoid_slope", "sigmoid_gradient"};
    case Activation::silu:
      return {5, 7, "silu", "silu_slope", "silu_gradient"};
    case Activation::softmax:
      break;
  }
  refuse_activation(phi);
}

}  // namespace

void activate(Activation phi, const ConstView& s, const View& f) {
  require(same_shape(s, f), "f = phi(s): the tiles conform");
  const ActivationOperations of = operations_of(phi);
  HWY_DYNAMIC_DISPATCH(activate)(phi, s, f);
  account(elementwise(of.value * f.words()), f,
          [&] { tell_all({maps(of.value_name, f, kOverwritten, {s})}); });
}

void activation_slope(Activation phi, const ConstView& s, const View& slope) {
  require(same_shape(s, slope), "slope = phi'(s): the tiles conform");
  const ActivationOperations of = operations_of(phi);
  HWY_DYNAMIC_DISPATCH(activation_slope)(phi, s, slope);
  account(elementwise(of.slope * slope.words()), slope,
          [&] { tell_all({maps(of.slope_name, slope, kOverwritten, {s})}); });
}

void activation_gradient(Activation phi, const ConstView& s, const ConstView& q, const View& p) {
  require(same_shape(s, q) && same_shape(s, p), "p = phi'(s) q: the tiles conform");
  const ActivationOperations of = operations_of(phi);
  HWY_DYNAMIC_DISPATCH(activation_gradient)(phi, s, q, p);
  account(elementwise((of.slope + 1) * p.words()), p, [&] {
    tell_all({maps(of.gradient_name, p, kOverwritten, {s, q})});
  });
}

void multiplied_product(const ConstView& a, const ConstView& b, const View& p_t,
                        const Tile& registers, Index rows) {
  check_passing(rows, kRegisterRows);
  check_product(p_t, a.rows(), a.cols(), b, "p^T *= a b: the tiles conform");
  require(registers.words() >= std::min(kRegisterCharge, p_t.words()),
          "p^T *= a b: the sums in registers are charged");
  HWY_DYNAMIC_DISPATCH(multiplied_product)(a, b, p_t, rows);
  account(product(p_t, a.cols(), 1), p_t, [&] {
    tell(Homefuls{"multiply", a, b, p_t, registers});
  });
}

void transpose(const ConstView& a, const View& t) {
  require(t.rows() == a.cols() && t.cols() == a.rows(), "t = a^T: the tiles conform");
  for (Index p = 0; p < t.panels(); ++p) {
    for (Index k = 0; k < t.rows(); ++k) {
      for (Index i = 0; i < Unchecked(t).panel_cols(p); ++i) {
        Unchecked(t).at(k, p)[i] = Unchecked(a).at(p * kPanel + i, k / kPanel)[k % kPanel];
      }
    }
  }
  account(Operations{}, t, [&] { tell_all({maps("copy", t, kOverwritten, {transposed(a)})}); });
}

}  // namespace redblue
#endif
