#include "bench/materialised.hpp"

#include <algorithm>
#include <array>
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

// Never touches the words after these lanes: they may be in the next row, which belongs to another
// thread.
HWY_INLINE void store(Vector value, float* words, Index lanes) {
  if (lanes == kWidth) {
    hn::StoreU(value, kLanes, words);
  } else {
    std::array<float, kWidth> all;  // g++ 12 does not see that lanes < kWidth
    hn::StoreU(value, kLanes, all.data());
    std::copy_n(all.data(), std::min(lanes, kWidth), words);
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

// C (rows x cols) = factor A B. Either factor may be transposed. With `adds`, the product is added
// to C.
void product(CBLAS_TRANSPOSE a, CBLAS_TRANSPOSE b, Index rows, Index cols, Index depth,
             const float* A, const float* B, float* C, float factor = 1, bool adds = false) {
  const auto lda = static_cast<int>(a == CblasNoTrans ? depth : rows);
  const auto ldb = static_cast<int>(b == CblasNoTrans ? cols : depth);
  cblas_sgemm(CblasRowMajor, a, b, static_cast<int>(rows), static_cast<int>(cols),
              static_cast<int>(depth), factor, A, lda, B, ldb, adds ? 1 : 0, C,
              static_cast<int>(cols));
}

std::size_t size(Index rows, Index cols) {
  return static_cast<std::size_t>(rows * cols);
}

}  // namespace

Materialised::Materialised(const Shape& shape, bool causal, Index rows, int threads)
    : O(size(shape.n, shape.d)),
      g(size(shape.d, shape.d)),
      dQ(size(shape.n, shape.d)),
      dK(size(shape.m, shape.d)),
      dV(size(shape.m, shape.d)),
      shape_(shape),
      causal_(causal),
      rows_(std::min(rows, shape.n)),
      threads_(threads),
      S_(size(shape.n, shape.d)),
      h_(size(shape.m, shape.d)),
      W_(size(shape.n, shape.d)),
      l_(size(shape.n, 1)) {
  require(!causal || shape.n == shape.m, "a causal mask has n = m");
}

template <class Body>
void Materialised::for_blocks(const Body& body) {
  openblas_set_num_threads(threads_);
  e_.resize(size(rows_, shape_.m));
  for (Index first = 0; first < shape_.n; first += rows_) {
    const Index last = std::min(first + rows_, shape_.n);
    body(Block{{first, last}, causal_ ? last : shape_.m});
  }
}

void Materialised::exponentials(const Block& block, const float* rows, const float* keys,
                                float scale) {
  const Index d = shape_.d, width = block.keys, first = block.rows.begin;
  product(CblasNoTrans, CblasTrans, block.rows.size(), width, d, rows + first * d, keys, e_.data(),
          scale);
#pragma omp parallel for num_threads(threads_) schedule(static)
  for (Index i = first; i < block.rows.end; ++i) {
    float* const e = e_.data() + (i - first) * width;
    const Index live = causal_ ? i + 1 : width;
    l_[static_cast<std::size_t>(i)] = HWY_DYNAMIC_DISPATCH(exponentiate_row)(e, live);
    std::fill(e + live, e + width, 0.0F);
  }
}

template <bool keeps_f>
void Materialised::derivatives(const Block& block, const float* dO, const float* values) {
  const Index d = shape_.d, width = block.keys, first = block.rows.begin;
  q_.resize(e_.size());
  product(CblasNoTrans, CblasTrans, block.rows.size(), width, d, dO + first * d, values, q_.data());
#pragma omp parallel for num_threads(threads_) schedule(static)
  for (Index i = first; i < block.rows.end; ++i) {
    const Index at = (i - first) * width, live = causal_ ? i + 1 : width;
    const float l = l_[static_cast<std::size_t>(i)];
    if constexpr (keeps_f) {
      HWY_DYNAMIC_DISPATCH(gradient_row_with_f)(e_.data() + at, q_.data() + at, l, live);
    } else {
      HWY_DYNAMIC_DISPATCH(gradient_row)(e_.data() + at, q_.data() + at, l, live);
    }
    std::fill(q_.data() + at + live, q_.data() + at + width, 0.0F);
  }
}

void Materialised::attention(const float* Q, const float* K, const float* V, float scale) {
  const Index d = shape_.d;
  for_blocks([&](const Block& block) {
    exponentials(block, Q, K, scale);
    float* const o = O.data() + block.rows.begin * d;
    product(CblasNoTrans, CblasNoTrans, block.rows.size(), d, block.keys, e_.data(), V, o);
  });
#pragma omp parallel for num_threads(threads_) schedule(static)
  for (Index i = 0; i < shape_.n; ++i) {
    HWY_DYNAMIC_DISPATCH(scale_row)(O.data() + i * d, 1 / l_[static_cast<std::size_t>(i)], d);
  }
}

void Materialised::gradient(const float* A1, const float* A2, const float* A3, const float* X,
                            const float* Y, const float* dO) {
  const auto [n, m, d] = shape_;
  openblas_set_num_threads(threads_);
  product(CblasNoTrans, CblasNoTrans, n, d, d, A1, X, S_.data());
  product(CblasNoTrans, CblasNoTrans, m, d, d, A3, Y, h_.data());
  for_blocks([&, width = d](const Block& block) {
    exponentials(block, S_.data(), A2, 1);
    derivatives<false>(block, dO, h_.data());
    product(CblasNoTrans, CblasNoTrans, block.rows.size(), width, block.keys, q_.data(), A2,
            W_.data() + block.rows.begin * width);
  });
  product(CblasTrans, CblasNoTrans, d, d, n, A1, W_.data(), g.data());
}

void Materialised::gradients(const float* Q, const float* K, const float* V, const float* dO,
                             float scale) {
  const Index d = shape_.d;
  std::ranges::fill(dK, 0.0F);
  std::ranges::fill(dV, 0.0F);
  for_blocks([&](const Block& block) {
    const Index rows = block.rows.size(), first = block.rows.begin * d;
    exponentials(block, Q, K, scale);
    derivatives<true>(block, dO, V);
    product(CblasNoTrans, CblasNoTrans, rows, d, block.keys, q_.data(), K, dQ.data() + first,
            scale);
    product(CblasTrans, CblasNoTrans, block.keys, d, rows, q_.data(), Q + first, dK.data(), scale,
            true);
    product(CblasTrans, CblasNoTrans, block.keys, d, rows, e_.data(), dO + first, dV.data(), 1,
            true);
  });
}

}  // namespace redblue
#endif
