#include "kernels/arithmetic/accounting-inl.hpp"
#include "kernels/arithmetic/arithmetic.hpp"
#include "memsim/machine.hpp"

// The lines between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE are compiled once for each
// instruction set, and the other lines once.
#include "kernels/arithmetic/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/arithmetic/multiply.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h comes first.
#include <hwy/highway.h>

#include "kernels/arithmetic/products-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace redblue::HWY_NAMESPACE {
namespace {

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

}  // namespace redblue
#endif
