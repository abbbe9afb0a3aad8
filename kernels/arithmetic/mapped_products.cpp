#include <algorithm>

#include "kernels/arithmetic/accounting-inl.hpp"
#include "kernels/arithmetic/arithmetic.hpp"
#include "memsim/machine.hpp"

// The lines between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE are compiled once for each
// instruction set, and the other lines once.
#include "kernels/arithmetic/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/arithmetic/mapped_products.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h comes first.
#include <hwy/highway.h>

#include "kernels/arithmetic/exp-inl.hpp"
#include "kernels/arithmetic/products-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace redblue::HWY_NAMESPACE {
namespace {

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

}  // namespace
}  // namespace redblue::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace redblue {
namespace {

HWY_EXPORT(exponentiated_product);
HWY_EXPORT(shifted_product);
HWY_EXPORT(softmax_gradient_product);
HWY_EXPORT(multiplied_product);

}  // namespace

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

}  // namespace redblue
#endif
