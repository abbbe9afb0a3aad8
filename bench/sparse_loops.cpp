#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

#include "bench/sparse_peers.hpp"

namespace redblue {
namespace {

using Size = std::ptrdiff_t;

struct Csr {
  std::vector<Size> offsets = {0};
  std::vector<std::int32_t> columns;
  std::vector<float> values;
};

Csr csr_of(const BlockPattern& of, const float* values) {
  return {{of.offsets.begin(), of.offsets.end()},
          {of.columns.begin(), of.columns.end()},
          {values, values + of.stored()}};
}

Csr transposed(const Csr& of, Size columns) {
  Csr found;
  found.offsets.assign(static_cast<std::size_t>(columns) + 1, 0);
  for (const std::int32_t column : of.columns) {
    ++found.offsets[static_cast<std::size_t>(column) + 1];
  }
  for (std::size_t k = 1; k < found.offsets.size(); ++k) {
    found.offsets[k] += found.offsets[k - 1];
  }
  found.columns.resize(of.columns.size());
  found.values.resize(of.columns.size());
  std::vector<Size> next = found.offsets;
  for (std::size_t row = 0; row + 1 < of.offsets.size(); ++row) {
    for (Size e = of.offsets[row]; e < of.offsets[row + 1]; ++e) {
      const Size at = next[static_cast<std::size_t>(of.columns[static_cast<std::size_t>(e)])]++;
      found.columns[static_cast<std::size_t>(at)] = static_cast<std::int32_t>(row);
      found.values[static_cast<std::size_t>(at)] = of.values[static_cast<std::size_t>(e)];
    }
  }
  return found;
}

// Returns A B by Gustavson's algorithm. It keeps a row of sums and flags for the sums present. The
// first pass counts entries, the second fills them.
Csr product(const Csr& A, const Csr& B, Size columns, int threads) {
  const Size rows = std::ssize(A.offsets) - 1;
  Csr C;
  C.offsets.assign(static_cast<std::size_t>(rows) + 1, 0);
#pragma omp parallel num_threads(threads)
  {
    std::vector<std::uint8_t> there(static_cast<std::size_t>(columns));
#pragma omp for schedule(dynamic, 64)
    for (Size i = 0; i < rows; ++i) {
      std::ranges::fill(there, std::uint8_t{0});
      for (Size a = A.offsets[i]; a < A.offsets[i + 1]; ++a) {
        for (Size b = B.offsets[A.columns[a]]; b < B.offsets[A.columns[a] + 1]; ++b) {
          there[B.columns[b]] = 1;
        }
      }
      Size count = 0;
      for (const std::uint8_t is : there) {
        count += is;
      }
      C.offsets[i + 1] = count;
    }
  }
  for (Size i = 0; i < rows; ++i) {
    C.offsets[i + 1] += C.offsets[i];
  }
  C.columns.resize(static_cast<std::size_t>(C.offsets.back()));
  C.values.resize(C.columns.size());
#pragma omp parallel num_threads(threads)
  {
    std::vector<std::uint8_t> there(static_cast<std::size_t>(columns));
    std::vector<float> sums(static_cast<std::size_t>(columns));
#pragma omp for schedule(dynamic, 64)
    for (Size i = 0; i < rows; ++i) {
      std::ranges::fill(there, std::uint8_t{0});
      std::ranges::fill(sums, 0.0F);
      for (Size a = A.offsets[i]; a < A.offsets[i + 1]; ++a) {
        const float factor = A.values[a];
        for (Size b = B.offsets[A.columns[a]]; b < B.offsets[A.columns[a] + 1]; ++b) {
          there[B.columns[b]] = 1;
          sums[B.columns[b]] += factor * B.values[b];
        }
      }
      Size at = C.offsets[i];
      for (Size j = 0; j < columns; ++j) {
        if (there[j] != 0) {
          C.columns[at] = static_cast<std::int32_t>(j);
          C.values[at++] = sums[j];
        }
      }
    }
  }
  return C;
}

class Loops final : public SparsePeer {
 public:
  void forward(const SparseOperands& of, int threads) override {
    score(of, threads);
    const Size n = of.where.A1().rows;
    O.assign(static_cast<std::size_t>(n * d_), 0);
#pragma omp parallel for schedule(dynamic, 64) num_threads(threads)
    for (Size i = 0; i < n; ++i) {
      float* const o = &O[i * d_];
      for (Size e = f_.offsets[i]; e < f_.offsets[i + 1]; ++e) {
        const float f = f_.values[e];
        const float* const h = &h_[f_.columns[e] * d_];
#pragma omp simd
        for (Size l = 0; l < d_; ++l) {
          o[l] += f * h[l];
        }
      }
    }
  }

  // Computes v as rowsum(f q), so that O is not needed.
  void gradient(const SparseOperands& of, int threads) override {
    score(of, threads);
    const Size n = of.where.A1().rows;
    const Csr A1 = csr_of(of.where.A1(), of.A1);
    const Csr A2 = csr_of(of.where.A2(), of.A2);
    W_.assign(static_cast<std::size_t>(n * d_), 0);
#pragma omp parallel num_threads(threads)
    {
      std::vector<float> q;
#pragma omp for schedule(dynamic, 64)
      for (Size i = 0; i < n; ++i) {
        const float* const dO = of.dO + i * d_;
        q.resize(static_cast<std::size_t>(f_.offsets[i + 1] - f_.offsets[i]));
        float v = 0;
        for (Size e = f_.offsets[i]; e < f_.offsets[i + 1]; ++e) {
          const float* const h = &h_[f_.columns[e] * d_];
          float dot = 0;
#pragma omp simd reduction(+ : dot)
          for (Size l = 0; l < d_; ++l) {
            dot += dO[l] * h[l];
          }
          q[e - f_.offsets[i]] = dot;
          v += f_.values[e] * dot;
        }
        for (Size e = f_.offsets[i]; e < f_.offsets[i + 1]; ++e) {
          const float p = f_.values[e] * (q[e - f_.offsets[i]] - v);
          const Size j = f_.columns[e];
          for (Size a = A2.offsets[j]; a < A2.offsets[j + 1]; ++a) {
            W_[i * d_ + A2.columns[a]] += p * A2.values[a];
          }
        }
      }
    }
    g.assign(static_cast<std::size_t>(d_ * d_), 0);
    const Csr A1_t = transposed(A1, d_);
#pragma omp parallel for schedule(dynamic, 4) num_threads(threads)
    for (Size k = 0; k < d_; ++k) {
      for (Size e = A1_t.offsets[k]; e < A1_t.offsets[k + 1]; ++e) {
        const float a = A1_t.values[e];
        const float* const w = &W_[A1_t.columns[e] * d_];
#pragma omp simd
        for (Size l = 0; l < d_; ++l) {
          g[k * d_ + l] += a * w[l];
        }
      }
    }
  }

 private:
  // Computes f over the live scores, and h = A3 Y.
  void score(const SparseOperands& of, int threads) {
    d_ = of.where.A1().cols;
    const Size m = of.where.A2().rows;
    const Csr S = product(csr_of(of.where.A1(), of.A1), csr_of(of.where.X(), of.X), d_, threads);
    f_ = product(S, transposed(csr_of(of.where.A2(), of.A2), d_), m, threads);
    const Size n = std::ssize(f_.offsets) - 1;
#pragma omp parallel for schedule(dynamic, 64) num_threads(threads)
    for (Size i = 0; i < n; ++i) {
      const std::span row(f_.values.data() + f_.offsets[i], f_.values.data() + f_.offsets[i + 1]);
      float largest = std::numeric_limits<float>::lowest();
      for (const float s : row) {
        largest = std::max(largest, s);
      }
      float sum = 0;
      for (float& s : row) {
        s = std::exp(s - largest);
        sum += s;
      }
      for (float& s : row) {
        s /= sum;
      }
    }
    h_.assign(static_cast<std::size_t>(m * d_), 0);
#pragma omp parallel for schedule(dynamic, 64) num_threads(threads)
    for (Size j = 0; j < m; ++j) {
      for (Size k = 0; k < d_; ++k) {
        const float a = of.A3[j * d_ + k];
#pragma omp simd
        for (Size l = 0; l < d_; ++l) {
          h_[j * d_ + l] += a * of.Y[k * d_ + l];
        }
      }
    }
  }

  Size d_ = 0;
  Csr f_;
  std::vector<float> h_, W_;
};

}  // namespace

std::unique_ptr<SparsePeer> sparse_loops() {
  return std::make_unique<Loops>();
}

}  // namespace redblue
