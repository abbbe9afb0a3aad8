// Products of tiles with their sums in registers, for source files that are compiled once for each
// instruction set.
#if defined(REDBLUE_KERNELS_PRODUCTS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef REDBLUE_KERNELS_PRODUCTS_INL_HPP
#undef REDBLUE_KERNELS_PRODUCTS_INL_HPP
#else
#define REDBLUE_KERNELS_PRODUCTS_INL_HPP
#endif

#include <algorithm>
#include <array>
#include <span>
#include <type_traits>

#include <hwy/highway.h>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/arithmetic/panels-inl.hpp"
#include "kernels/arithmetic/register_tile.hpp"
#include "memsim/range.hpp"

HWY_BEFORE_NAMESPACE();
namespace redblue::HWY_NAMESPACE {
namespace {

// The shape of the tile that registers hold: rows_of(G) rows of G panels, for G up to kPanels. With
// a sanitizer, compiling every access of every unrolled shape takes minutes, so its builds define
// REDBLUE_FEW_SHAPES. The shape does not change the bits of a result, because each sum has its
// terms in the same order.
#if defined(REDBLUE_FEW_SHAPES)
constexpr int kPanels = 1;
constexpr int rows_of(int) {
  return 2;
}
#else
// AVX-512 and 64-bit ARM have 32 vector registers, in every version. On x86 a better instruction
// set has a lower bit. All other sets count as 16 registers.
constexpr bool kManyRegisters =
    HWY_ARCH_X86 ? HWY_TARGET <= HWY_AVX3 : HWY_ARCH_ARM_A64 && HWY_TARGET != HWY_EMU128;
constexpr RegisterTile kTile{.registers = kManyRegisters ? 32 : 16, .vectors = kVectors};
constexpr int kPanels = kTile.panels();
constexpr int rows_of(int panels) {
  return kTile.rows(panels);
}
#endif

using One = std::integral_constant<Index, 1>;
using Panel = std::integral_constant<Index, kPanel>;

// R rows of the broadcast factor, at a fixed distance.
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
  REDBLUE_UNROLL(4)
  for (Index k = 0; k < length; ++k) {
    Vector words[G * kVectors];
    REDBLUE_UNROLL(16)
    for (int v = 0; v < G * kVectors; ++v) {
      words[v] = load(line[v / kVectors] + k * stride, v % kVectors);
    }
    REDBLUE_UNROLL(16)
    for (int r = 0; r < R; ++r) {
      const Vector factor = hn::Set(kLanes, row[r][k * step]);
      REDBLUE_UNROLL(16)
      for (int v = 0; v < G * kVectors; ++v) {
        sum[r][v] = hn::MulAdd(factor, words[v], sum[r][v]);
      }
    }
  }
}

// The broadcast factor `a`, not transposed. A row runs through all panels, and the last panel may
// be narrow.
class Straight {
 public:
  explicit Straight(const ConstView& a)
      : a_(a),
        whole_(a.cols() / kPanel),
        rest_(a.cols() % kPanel),
        next_(a.panels() > 1 ? Unchecked(a).at(0, 1) - Unchecked(a).at(0, 0) : 0) {}
  [[nodiscard]] Index rows() const { return a_.rows(); }
  // Returns the number of rows that have the same distance between words: here all rows.
  [[nodiscard]] Index alike() const { return a_.rows(); }
  template <int R, int G, class Stride>
  HWY_INLINE void times(const float* const (&of_b)[G], Stride stride, Index i,
                        Vector (&sum)[R][G * kVectors]) const {
    const float* const row = Unchecked(a_).at(i, 0);
    const auto line_from = [&](const float*(&line)[G], Index k) HWY_ATTR {
      REDBLUE_UNROLL(16)
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

// The broadcast factor a^T. Its rows are columns of `a`, which are side by side in a panel.
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
      REDBLUE_UNROLL(16)
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

// The map from the sums and the old words of c to the new words of c. Each panel requests its own
// map.
struct Keep {
  static constexpr bool kAdds = false;
  HWY_INLINE auto of_panel(Index) const {
    return [](Vector sum, const float*, int) HWY_ATTR { return sum; };
  }
};
// The sums start with the words of c, so registers hold no second copy of c.
struct Accumulate : Keep {
  static constexpr bool kAdds = true;
};

// Panels p .. p + G of b and c.
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

// Computes rows i .. i + R of the panels. All sums stay in registers.
template <int R, int G, class Left, class Finish>
HWY_INLINE void register_tile(const Left& a, const Passed<G>& of, Index i, const Finish& finish) {
  Vector sum[R][G * kVectors];
  REDBLUE_UNROLL(16)
  for (int g = 0; g < G; ++g) {
    const float* const row = of.to[g][i];
    const Index stride = of.wide ? kPanel : of.to[g].stride;
    REDBLUE_UNROLL(16)
    for (int r = 0; r < R; ++r) {
      REDBLUE_UNROLL(16)
      for (int v = 0; v < kVectors; ++v) {
        sum[r][g * kVectors + v] = Finish::kAdds ? load(row + r * stride, v) : hn::Zero(kLanes);
      }
    }
  }
  if (G > 1 || HWY_LIKELY(of.stride == kPanel)) {  // several panels have the usual stride
    a.template times<R, G>(of.line, Panel(), i, sum);
  } else {
    a.template times<R, G>(of.line, of.stride, i, sum);
  }
  REDBLUE_UNROLL(16)
  for (int g = 0; g < G; ++g) {
    const auto map = finish.of_panel(of.first + g);
    float* row = of.to[g][i];
    if (HWY_LIKELY(of.wide)) {
      REDBLUE_UNROLL(16)
      for (int r = 0; r < R; ++r) {
        REDBLUE_UNROLL(16)
        for (int v = 0; v < kVectors; ++v) {
          hn::StoreU(map(sum[r][g * kVectors + v], row + r * kPanel, v), kLanes,
                     row + r * kPanel + v * kWidth);
        }
      }
    } else {
      REDBLUE_UNROLL(16)
      for (int r = 0; r < R; ++r) {
        REDBLUE_UNROLL(16)
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

// Computes some groups of panels for some rows. The panels of b stay in the nearest cache while
// rows of `a` stream: as many together as registers hold, then fewer.
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

// Returns the number of panels for the next step, if `left` remain and at most `most` fit. With
// `most` above two, the last step never has only one panel.
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

// Returns the number of panels with the usual stride. A narrow panel, always the last, has another
// stride.
HWY_INLINE Index wide_panels(const ConstView& b) {
  return b.panels() - (Unchecked(b).stride(b.panels() - 1) == kPanel ? 0 : 1);
}

// `most`: the largest number of panels in one step.
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

// Streams `a` through all panels, at most `rows` rows together, or all rows if one step takes all
// panels.
template <class Finish>
void product_of_passing(const ConstView& a, Index rows, const ConstView& b, const View& c,
                        const Finish& finish) {
  const Index wide = wide_panels(b), count = wide > 0 ? together(wide, kPanels) : 1;
  if (rows >= a.rows() || count == b.panels()) {
    return product(Straight{a}, b, c, finish);
  }
  constexpr Index kFew = 4;
  if (kPanels == 1 && b.panels() <= kFew) {  // set up before rows stream
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

}  // namespace
}  // namespace redblue::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
