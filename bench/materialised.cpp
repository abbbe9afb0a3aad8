#include "bench/materialised.hpp"

#include <limits>

#include <cblas.h>

#include "kernels/arithmetic/simd_targets.hpp"
#include "memsim/errors.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/materialised.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h must come first.
#include <hwy/highway.h>

#include "kernels/arithmetic/exp-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace redblue::HWY_NAMESPACE {
namespace {

constexpr hn::CappedTag<float, 16> kLanes;
using Vector = hn::Vec<decltype(kLanes)>;
constexpr Index kWidth = hn::MaxLanes(kLanes);

// Calls `body` for whole vectors, then for the rest of the row, which it must mask.
template <class Body>
HWY_INLINE void for_row(Index words, const Body& body) {
  Index j = 0;
  for (; j + kWidth <= words; j += kWidth) {
    body(j, kWidth);
  }
  if (j < words) {
    body(j, words - j);
  }
}

HWY_INLINE Vector load(const float* words, Index lanes, Vector neutral) {
  return lanes == kWidth
             ? hn::LoadU(kLanes, words)
             : hn::IfThenElse(hn::FirstN(kLanes, static_cast<std::size_t>(lanes)),
                              hn::MaskedLoad(hn::FirstN(kLanes, static_cast<std::size_t>(lanes)),
                                             kLanes, words),
                              neutral);
}

HWY_INLINE void store(Vector value, float* words, Index lanes) {
  if (lanes == kWidth) {
    hn::StoreU(value, kLanes, words);
  } else {
    hn::BlendedStore(value, hn::FirstN(kLanes, static_cast<std::size_t>(lanes)), kLanes, words);
  }
}

// s = exp(s - max s); returns the sum.
float exponentiate_row(float* s, Index m) {
  const Vector lowest = hn::Set(kLanes, -std::numeric_limits<float>::infinity());
  Vector top = lowest;
  for_row(m,
          [&](Index j, Index lanes) HWY_ATTR { top = hn::Max(top, load(s + j, lanes, lowest)); });
  const Vector maximum = hn::MaxOfLanes(kLanes, top);
  Vector sum = hn::Zero(kLanes);
  for_row(m, [&](Index j, Index lanes) HWY_ATTR {
    const Vector e = exp(kLanes, hn::Sub(load(s + j, lanes, lowest), maximum));
    sum = hn::Add(sum, e);
    store(e, s + j, lanes);
  });
  return hn::GetLane(hn::SumOfLanes(kLanes, sum));
}

// q = e / l * (q - v) with v = sum e q / l. If f is kept, also e = e / l.
template <bool keeps_f>
HWY_INLINE void gradient_of_row(float* e, float* q, float l, Index m) {
  const Vector zero = hn::Zero(kLanes);
  Vector dots = zero;
  for_row(m, [&](Index j, Index lanes) HWY_ATTR {
    dots = hn::MulAdd(load(e + j, lanes, zero), load(q + j, lanes, zero), dots);
  });
  const Vector inverse = hn::Set(kLanes, 1 / l);
  const Vector v = hn::Mul(hn::SumOfLanes(kLanes, dots), inverse);
  for_row(m, [&](Index j, Index lanes) HWY_ATTR {
    const Vector f = hn::Mul(load(e + j, lanes, zero), inverse);
    if constexpr (keeps_f) {
      store(f, e + j, lanes);
    }
    store(hn::Mul(f, hn::Sub(load(q + j, lanes, zero), v)), q + j, lanes);
  });
}

void gradient_row(float* e, float* q, float l, Index m) {
  gradient_of_row<false>(e, q, l, m);
}

void gradient_row_with_f(float* e, float* q, float l, Index m) {
  gradient_of_row<true>(e, q, l, m);
}

void scale_row(float* row, float by, Index d) {
  const Vector zero = hn::Zero(kLanes);
  for_row(d, [&](Index j, Index lanes) HWY_ATTR {
    store(hn::Mul(load(row + j, lanes, zero), hn::Set(kLanes, by)), row + j, lanes);
  });
}

}  // namespace
}  // namespace redblue::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace redblue {
namespace {

HWY_EXPORT(exponentiate_row);
HWY_EXPORT(gradient_row);
HWY_EXPORT(gradient_row_with_f);
HWY_EXPORT(scale_row);

// C (rows x cols) = factor A B. Either factor may be transposed.
void product(CBLAS_TRANSPOSE a, CBLAS_TRANSPOSE b, Index rows, Index cols, Index depth,
             const float* A, const float* B, float* C, float factor = 1) {
  const auto lda = static_cast<int>(a == CblasNoTrans ? depth : rows);
  const auto ldb = static_cast<int>(b == CblasNoTrans ? cols : depth);
  cblas_sgemm(CblasRowMajor, a, b, static_cast<int>(rows), static_cast<int>(cols),
              static_cast<int>(depth), factor, A, lda, B, ldb, 0, C, static_cast<int>(cols));
}

std::size_t size(Index rows, Index cols) {
  return static_cast<std::size_t>(rows * cols);
}

}  // namespace

// Rows must be whole vectors. Otherwise a store to the end of a row would touch the next row, which
// belongs to another thread.
Materialised::Materialised(const Shape& shape)
    : O((require(shape.m % 16 == 0 && shape.d % 16 == 0, "m and d are multiples of 16"),
         size(shape.n, shape.d))),
      g(size(shape.d, shape.d)),
      dQ(size(shape.n, shape.d)),
      dK(size(shape.m, shape.d)),
      dV(size(shape.m, shape.d)),
      shape_(shape),
      S_(size(shape.n, shape.d)),
      h_(size(shape.m, shape.d)),
      W_(size(shape.n, shape.d)),
      e_(size(shape.n, shape.m)),
      q_(size(shape.n, shape.m)),
      l_(size(shape.n, 1)) {}

void Materialised::forward(const float* A1, const float* A2, const float* A3, const float* X,
                           const float* Y, int threads) {
  const auto [n, m, d] = shape_;
  openblas_set_num_threads(threads);
  product(CblasNoTrans, CblasNoTrans, n, d, d, A1, X, S_.data());
  product(CblasNoTrans, CblasTrans, n, m, d, S_.data(), A2, e_.data());
  const Index rows = n, keys = m, width = d;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (Index i = 0; i < rows; ++i) {
    l_[static_cast<std::size_t>(i)] =
        HWY_DYNAMIC_DISPATCH(exponentiate_row)(e_.data() + i * keys, keys);
  }
  product(CblasNoTrans, CblasNoTrans, m, d, d, A3, Y, h_.data());
  product(CblasNoTrans, CblasNoTrans, n, d, m, e_.data(), h_.data(), O.data());
#pragma omp parallel for num_threads(threads) schedule(static)
  for (Index i = 0; i < rows; ++i) {
    HWY_DYNAMIC_DISPATCH(scale_row)
    (O.data() + i * width, 1 / l_[static_cast<std::size_t>(i)], width);
  }
}

void Materialised::gradient(const float* A1, const float* A2, const float* A3, const float* X,
                            const float* Y, const float* dO, int threads) {
  const auto [n, m, d] = shape_;
  openblas_set_num_threads(threads);
  product(CblasNoTrans, CblasNoTrans, n, d, d, A1, X, S_.data());
  product(CblasNoTrans, CblasTrans, n, m, d, S_.data(), A2, e_.data());
  product(CblasNoTrans, CblasNoTrans, m, d, d, A3, Y, h_.data());
  product(CblasNoTrans, CblasTrans, n, m, d, dO, h_.data(), q_.data());
  const Index rows = n, keys = m;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (Index i = 0; i < rows; ++i) {
    float* const e = e_.data() + i * keys;
    const float l = HWY_DYNAMIC_DISPATCH(exponentiate_row)(e, keys);
    HWY_DYNAMIC_DISPATCH(gradient_row)(e, q_.data() + i * keys, l, keys);
  }
  product(CblasNoTrans, CblasNoTrans, n, d, m, q_.data(), A2, W_.data());
  product(CblasTrans, CblasNoTrans, d, d, n, A1, W_.data(), g.data());
}

void Materialised::gradients(const float* Q, const float* K, const float* V, const float* dO,
                             float scale, int threads) {
  const auto [n, m, d] = shape_;
  openblas_set_num_threads(threads);
  product(CblasNoTrans, CblasTrans, n, m, d, Q, K, e_.data(), scale);
  product(CblasNoTrans, CblasTrans, n, m, d, dO, V, q_.data());
  const Index rows = n, keys = m;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (Index i = 0; i < rows; ++i) {
    float* const e = e_.data() + i * keys;
    const float l = HWY_DYNAMIC_DISPATCH(exponentiate_row)(e, keys);
    HWY_DYNAMIC_DISPATCH(gradient_row_with_f)(e, q_.data() + i * keys, l, keys);
  }
  product(CblasNoTrans, CblasNoTrans, n, d, m, q_.data(), K, dQ.data(), scale);
  product(CblasTrans, CblasNoTrans, m, d, n, q_.data(), Q, dK.data(), scale);
  product(CblasTrans, CblasNoTrans, m, d, n, e_.data(), dO, dV.data());
}

}  // namespace redblue
#endif
