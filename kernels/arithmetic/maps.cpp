#include <algorithm>
#include <cstring>

#include "kernels/arithmetic/accounting-inl.hpp"
#include "kernels/arithmetic/arithmetic.hpp"
#include "memsim/machine.hpp"
#include "memsim/unchecked.hpp"

// The lines between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE are compiled once for each
// instruction set, and the other lines once.
#include "kernels/arithmetic/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/arithmetic/maps.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h comes first.
#include <hwy/highway.h>

#include "kernels/arithmetic/exp-inl.hpp"
#include "kernels/arithmetic/panels-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace redblue::HWY_NAMESPACE {
namespace {

void exponentiate(const ConstView& s, const ConstView& row, const View& f) {
  for_vectors(f, [&](Index p) HWY_ATTR {
    return [s = lines(s, p), shift = words_of_column(row)](Index i, int v)
               HWY_ATTR { return exp(kLanes, hn::Sub(load(s[i], v), hn::Set(kLanes, shift[i]))); };
  });
}

void exponentiate_transposed(const View& s_t, const ConstView& row) {
  for_vectors(s_t, [&](Index p) HWY_ATTR {
    return [s = lines(s_t, p), shift = words_of_column(row) + p * kPanel](Index j, int v)
               HWY_ATTR { return exp(kLanes, hn::Sub(load(s[j], v), load(shift, v))); };
  });
}

// Rows with a factor of 1 are skipped. After the maxima have settled, most factors are 1.
void scale_rows(const View& a, const ConstView& factor) {
  const float* const factors = words_of_column(factor);
  if (are_columns(a, factor)) {
    return for_column(a, [to = words_of_column(a), factors](Index i) HWY_ATTR {
      const Vector old = load(to + i, 0), by = load(factors + i, 0);
      return hn::IfThenElse(hn::Eq(by, hn::Set(kLanes, 1)), old, hn::Mul(old, by));
    });
  }
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

void divide_unless_0(const View& a, const ConstView& divisor) {
  const Vector zero = hn::Zero(kLanes);
  const auto divided = [zero](Vector x, Vector by)
                           HWY_ATTR { return hn::IfThenElse(hn::Eq(by, zero), x, hn::Div(x, by)); };
  const float* const divisors = words_of_column(divisor);
  if (are_columns(a, divisor)) {
    return for_column(a, [&, a = words_of_column(a)](Index i)
                             HWY_ATTR { return divided(load(a + i, 0), load(divisors + i, 0)); });
  }
  for_vectors(a, [&](Index p) HWY_ATTR {
    return [&, a = lines(a, p)](Index i, int v)
               HWY_ATTR { return divided(load(a[i], v), hn::Set(kLanes, divisors[i])); };
  });
}

void keep_words(const View& a, const std::uint64_t* kept, float value) {
  constexpr Index kPanels = 64 / kPanel;  // in each number
  for_vectors(a, [&](Index p) HWY_ATTR {
    return [a = lines(a, p), kept = kept + p / kPanels * a.rows(), first = p % kPanels * kPanel,
            other = hn::Set(kLanes, value)](Index i, int v) HWY_ATTR {
      const std::uint64_t bits = kept[i] >> (first + v * kWidth);
      std::uint8_t bytes[sizeof(bits)];  // LoadMaskBits() reads as many
      std::memcpy(bytes, &bits, sizeof(bits));
      return hn::IfThenElse(hn::LoadMaskBits(kLanes, bytes), load(a[i], v), other);
    };
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

}  // namespace
}  // namespace redblue::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace redblue {
namespace {

HWY_EXPORT(exponentiate);
HWY_EXPORT(exponentiate_transposed);
HWY_EXPORT(scale_rows);
HWY_EXPORT(scale);
HWY_EXPORT(multiply_words);
HWY_EXPORT(subtract_rows);
HWY_EXPORT(subtract_rows_transposed);
HWY_EXPORT(subtract_scaled_rows);
HWY_EXPORT(divide_rows);
HWY_EXPORT(keep_words);
HWY_EXPORT(add);
HWY_EXPORT(divide_unless_0);
HWY_EXPORT(softmax_gradient);
HWY_EXPORT(softmax_gradient_transposed);

}  // namespace

void exponentiate(const ConstView& s, const ConstView& row, const View& f) {
  require(is_column_of(row, s.rows()) && same_shape(f, s), "f = exp(s - row): the tiles conform");
  HWY_DYNAMIC_DISPATCH(exponentiate)(s, row, f);
  account(elementwise(2 * f.words()), f, [&] {
    tell_all({maps("exp_difference", f, kOverwritten, {s, of_rows(row)})});
  });
}

void exponentiate(const Transposed<View>& s_t, const ConstView& row) {
  require(is_column_of(row, s_t.of.cols()), "f = exp(s - row): one word a row");
  HWY_DYNAMIC_DISPATCH(exponentiate_transposed)(s_t.of, row);
  account(elementwise(2 * s_t.of.words()), s_t.of,
          [&] { tell_all({maps("exp_difference", s_t.of, kTaken, {of_columns(row)})}); });
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
  HWY_DYNAMIC_DISPATCH(divide_unless_0)(a, divisor);
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
  require(row < a_t.of.cols() && columns.end <= a_t.of.rows(), "the words are in the tile");
  float* const words = Unchecked(a_t.of).at(0, row / kPanel) + row % kPanel;
  const Index stride = Unchecked(a_t.of).stride(row / kPanel);
  for (Index j = columns.begin; j < columns.end; ++j) {
    words[j * stride] = value;
  }
  account(Operations{}, a_t.of, [&] {
    tell_all({maps("fill", ToldPart(a_t.of, columns, {row, row + 1}), kOverwritten, {}, value)});
  });
}

void keep_words(const View& a, std::span<const std::uint64_t> kept, float value) {
  require(std::ssize(kept) == ceil_div(a.cols(), Index{64}) * a.rows(), "one bit a word");
  HWY_DYNAMIC_DISPATCH(keep_words)(a, kept.data(), value);
  account(Operations{}, a, [] { require(false, "a listener hears fill_in_row() instead"); });
}

void add(const View& a, const ConstView& b) {
  require(same_shape(a, b), "a += b: the tiles conform");
  HWY_DYNAMIC_DISPATCH(add)(a, b);
  account(elementwise(a.words()), a, [&] { tell_all({maps("add", a, kTaken, {b})}); });
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
