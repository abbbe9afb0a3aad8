// Compares a gradient of attention from redblue with one that this program computes in double
// precision:
//
//   S = A1 X,  s = S A2^T,  f = softmax of s by rows,  h = A3 Y,  q = dO h^T,
//   v = rowsum(f o q),  p = f o (q - v),  g = A1^T p A2
//
// The program shares only the reading of files with the kernels and their reference. It holds a few
// rows and keys, so its memory does not grow with n and m.
//
//   streamed_gradient DIR G.npy [threads]
//
// DIR holds A1.npy, A2.npy, A3.npy, X.npy, Y.npy and dO.npy. The answer is a line of JSON, and the
// caller judges whether the error is small enough. Exit 0: compared, 1: not, 2: usage.
//
// One pass over the keys is enough, with e = exp(s - the row's maximum so far) and l = rowsum(e):
//
//   W = p A2 = (U - v Z) / l,  U = (e o q) A2,  Z = e A2,  v = rowsum(e o q) / l
//
// U and v Z cancel if the values q of a row are nearly equal. Therefore q - c replaces q, where c
// is the row's first q; this changes no p. The remaining cancellation is no larger than the spread
// of q. In doubles it loses no digit that a gradient in float32 could show.

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <future>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <sys/resource.h>

#include "memsim/range.hpp"
#include "runtime/system/npy.hpp"
#include "runtime/system/system_call.hpp"
#include "runtime/text/json.hpp"
#include "tests/programs/normal_exp.hpp"

// Sanitizers start too late for target_clones: the linker chooses a clone before they are ready.
#if defined(__x86_64__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define CLONES [[gnu::target_clones("arch=x86-64-v3", "default")]]
#else
#define CLONES
#endif

using namespace redblue;

namespace {

constexpr Index kRows = 2048;   // rows of A1 in memory; each range of them reads all keys again
constexpr Index kKeys = 128;    // keys in work
constexpr Index kQueries = 32;  // rows in work: with d = 64, all this is 512 KiB
constexpr Index kTileRows = 4;  // rows of a product's tile in registers
constexpr Index kTileCols = 8;

constexpr Index filled_up(Index extent, Index tile) {
  return ceil_div(extent, tile) * tile;
}

// A row-major matrix. Zeros pad rows and columns to whole tiles.
class Matrix {
 public:
  Matrix(Index rows, Index cols)
      : rows_(rows),
        cols_(cols),
        step_(filled_up(cols, kTileCols)),
        words_(static_cast<std::size_t>(filled_up(rows, kTileRows) * step_)) {}

  [[nodiscard]] Index rows() const { return rows_; }
  [[nodiscard]] Index cols() const { return cols_; }
  [[nodiscard]] Index step() const { return step_; }
  double* row(Index i) { return words_.data() + i * step_; }
  [[nodiscard]] const double* row(Index i) const { return words_.data() + i * step_; }
  void clear() { std::ranges::fill(words_, 0); }
  Matrix& operator+=(const Matrix& other) {
    std::ranges::transform(words_, other.words_, words_.begin(), std::plus());
    return *this;
  }

 private:
  Index rows_, cols_, step_;
  std::vector<double> words_;
};

// A left factor, or its transpose, from a given row: A(i, k) = words[i * row_step + k * col_step].
struct Left {
  const double* words;
  Index row_step;
  Index col_step;
};
Left left(const Matrix& A, Index first = 0) {
  return {A.row(first), A.step(), 1};
}
Left left_transposed(const Matrix& A) {
  return {A.row(0), 1, A.step()};
}

// A right factor in the order in which a product uses it: all rows of the first tile's columns,
// then all rows of the next tile's columns.
class Right {
 public:
  [[nodiscard]] Index rows() const { return rows_; }
  [[nodiscard]] const double* panel(Index col) const { return words_.data() + col * rows_; }

  static Right of(const Matrix& B) {
    return {B.rows(), B.cols(), [&](Index k, Index j) { return B.row(k)[j]; }};
  }
  static Right transposed(const Matrix& B) {
    return {B.cols(), B.rows(), [&](Index k, Index j) { return B.row(j)[k]; }};
  }

 private:
  template <class Word>
  Right(Index rows, Index cols, Word word)
      : rows_(rows), words_(static_cast<std::size_t>(filled_up(cols, kTileCols) * rows)) {
    for (Index j = 0; j < cols; ++j) {
      const Index in_tile = j % kTileCols;
      double* const column = words_.data() + (j - in_tile) * rows + in_tile;
      for (Index k = 0; k < rows; ++k) {
        column[k * kTileCols] = word(k, j);
      }
    }
  }

  Index rows_;
  std::vector<double> words_;
};

// Adds A B to the first `rows` rows of C from row `first`.
CLONES void add_product(Left A, const Right& B, Index rows, Matrix& C, Index first = 0) {
  for (Index j = 0; j < C.cols(); j += kTileCols) {
    for (Index i = 0; i < rows; i += kTileRows) {
      const double* a = A.words + i * A.row_step;
      const double* b = B.panel(j);
      double sum[kTileRows][kTileCols] = {};
      for (Index k = 0; k < B.rows(); ++k) {
        for (Index r = 0; r < kTileRows; ++r) {
#pragma omp simd
          for (Index t = 0; t < kTileCols; ++t) {
            sum[r][t] += a[r * A.row_step] * b[t];
          }
        }
        a += A.col_step;
        b += kTileCols;
      }
      for (Index r = 0; r < kTileRows; ++r) {
        double* const c = C.row(first + i + r) + j;
        for (Index t = 0; t < kTileCols; ++t) {
          c[t] += sum[r][t];
        }
      }
    }
  }
}

Matrix product(const Matrix& A, const Right& B, Index cols) {
  Matrix C(A.rows(), cols);
  add_product(left(A), B, A.rows(), C);
  return C;
}

// The state of a row after the keys so far.
struct Softmax {
  double centre = 0;  // c
  double top = -std::numeric_limits<double>::infinity();
  double e = 0;   // sum of e
  double eq = 0;  // sum of e (q - c)
};

// Replaces the scores of a row with the next keys by e, and their q by e (q - c). Returns the
// factor for sums over earlier keys, because the maximum may have grown.
CLONES double weigh(Index keys, double* scores, double* q, Softmax& row) {
  constexpr double kLeast = -700;
  double top = row.top;
#pragma omp simd reduction(max : top)
  for (Index j = 0; j < keys; ++j) {
    top = top < scores[j] ? scores[j] : top;  // std::max works on references and does not vectorise
  }
  // exp(-700) is negligible against exp(0). In the next loop, this choice would be a branch.
  for (Index j = 0; j < keys; ++j) {
    const double x = scores[j] - top;
    scores[j] = x < kLeast ? kLeast : x;
  }
  const double centre = row.centre;
  double sum_e = 0;
  double sum_eq = 0;
#pragma omp simd reduction(+ : sum_e, sum_eq)
  for (Index j = 0; j < keys; ++j) {
    scores[j] = normal_exp(scores[j]);
    q[j] = scores[j] * (q[j] - centre);
    sum_e += scores[j];
    sum_eq += q[j];
  }
  const double rescale = std::exp(row.top - top);
  row = {centre, top, row.e * rescale + sum_e, row.eq * rescale + sum_eq};
  return rescale;
}

Matrix read(const NpyReader& file, Range rows) {
  std::vector<float> words(static_cast<std::size_t>(rows.size() * file.cols()));
  file.read_rows(rows, words);
  Matrix matrix(rows.size(), file.cols());
  for (Index i = 0; i < matrix.rows(); ++i) {
    std::copy_n(words.data() + i * file.cols(), file.cols(), matrix.row(i));
  }
  return matrix;
}

Matrix read(const NpyReader& file) {
  return read(file, {0, file.rows()});
}

void expect(const NpyReader& file, Index rows, Index cols) {
  const bool matrix = file.shape().size() == 2 && file.type() == ElementType::float32;
  if (!matrix || file.rows() != rows || file.cols() != cols) {
    throw InputError(fmt::format("{}: {} rows of {}, {}-D {}; expected {} rows of {}, 2-D float32",
                                 file.path().string(), file.rows(), file.cols(),
                                 file.shape().size(), to_string(file.type()), rows, cols));
  }
}

struct Problem {
  explicit Problem(const std::filesystem::path& directory)
      : A1(directory / "A1.npy"),
        A2(directory / "A2.npy"),
        A3(directory / "A3.npy"),
        X(directory / "X.npy"),
        Y(directory / "Y.npy"),
        dO(directory / "dO.npy"),
        n(A1.rows()),
        m(A2.rows()),
        d(A1.cols()) {
    expect(A1, n, d);
    expect(A2, m, d);
    expect(A3, m, d);
    expect(X, d, d);
    expect(Y, d, d);
    expect(dO, n, d);
  }

  NpyReader A1, A2, A3, X, Y, dO;
  Index n, m, d;
};

// Adds the contribution of the rows of A1 and dO in `rows` to g.
void add_gradient(const Problem& problem, const Right& X, const Right& Y, Range rows, Matrix& g) {
  const Index d = problem.d;
  const Matrix A1 = read(problem.A1, rows);
  const Matrix dO = read(problem.dO, rows);
  const Matrix S = product(A1, X, d);
  std::vector<Softmax> softmax(static_cast<std::size_t>(rows.size()));
  Matrix U(rows.size(), d);
  Matrix Z(rows.size(), d);

  for (const Range keys : blocks(problem.m, kKeys)) {
    const Matrix A2 = read(problem.A2, keys);
    const Matrix h = product(read(problem.A3, keys), Y, d);
    const Right A2_right = Right::of(A2);
    const Right A2_transposed = Right::transposed(A2);
    const Right h_transposed = Right::transposed(h);
    Matrix s(kQueries, keys.size());
    Matrix q(kQueries, keys.size());
    for (const Range queries : blocks(rows.size(), kQueries)) {
      const Index first = queries.begin;
      s.clear();
      q.clear();
      add_product(left(S, first), A2_transposed, queries.size(), s);
      add_product(left(dO, first), h_transposed, queries.size(), q);
      for (Index i = 0; i < queries.size(); ++i) {
        Softmax& row = softmax[static_cast<std::size_t>(first + i)];
        if (keys.begin == 0) {
          row.centre = q.row(i)[0];
        }
        const double rescale = weigh(keys.size(), s.row(i), q.row(i), row);
        if (rescale != 1) {
          for (Index k = 0; k < d; ++k) {
            U.row(first + i)[k] *= rescale;
            Z.row(first + i)[k] *= rescale;
          }
        }
      }
      add_product(left(q), A2_right, queries.size(), U, first);
      add_product(left(s), A2_right, queries.size(), Z, first);
    }
  }

  Matrix W(rows.size(), d);
  for (Index i = 0; i < rows.size(); ++i) {
    const Softmax& row = softmax[static_cast<std::size_t>(i)];
    for (Index k = 0; k < d; ++k) {
      W.row(i)[k] = (U.row(i)[k] - row.eq / row.e * Z.row(i)[k]) / row.e;
    }
  }
  add_product(left_transposed(A1), Right::of(W), d, g);
}

// For a given number of threads, the order of the sums is fixed, whichever thread ends first.
Matrix gradient(const Problem& problem, Index threads) {
  const Right X = Right::of(read(problem.X));
  const Right Y = Right::of(read(problem.Y));
  const BlockRanges all = blocks(problem.n, std::min(kRows, ceil_div(problem.n, threads)));
  const auto share = [&](Index first) {
    Matrix g(problem.d, problem.d);
    for (Index k = first; k < all.size(); k += threads) {
      add_gradient(problem, X, Y, all[k], g);
    }
    return g;
  };
  std::vector<std::future<Matrix>> parts;
  for (Index k = 0; k < std::min(threads, all.size()); ++k) {
    parts.push_back(std::async(std::launch::async, share, k));
  }
  Matrix g(problem.d, problem.d);
  for (std::future<Matrix>& part : parts) {
    g += part.get();
  }
  return g;
}

void check(const std::filesystem::path& directory, const std::filesystem::path& path,
           Index threads) {
  const auto start = std::chrono::steady_clock::now();
  const Problem problem(directory);
  const NpyReader file(path);
  expect(file, problem.d, problem.d);
  const Matrix G = read(file);
  const Matrix g = gradient(problem, std::min(threads, problem.n));
  double max_error = 0;
  double max_g = 0;
  for (Index i = 0; i < problem.d; ++i) {
    for (Index j = 0; j < problem.d; ++j) {
      const double exact = g.row(i)[j];
      if (!std::isfinite(exact)) {  // no float32 input causes this; a maximum would hide a NaN
        throw std::logic_error(fmt::format("g is not finite at row {}, column {}", i, j));
      }
      max_g = std::max(max_g, std::abs(exact));
      max_error = std::max(max_error, std::abs(exact - G.row(i)[j]));
    }
  }
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  const Json answer = {
      {"n", problem.n},
      {"m", problem.m},
      {"d", problem.d},
      {"max_error", max_error},
      {"max_g", max_g},
      {"relative", max_error == 0 ? 0 : max_error / max_g},  // null if g is 0 and G is not
      {"seconds", seconds.count()},
      {"peak_bytes", usage.ru_maxrss * 1024},  // at least the peak of the parent process
  };
  fmt::print("{}\n", answer.dump());
  if (std::fflush(stdout) != 0) {
    fail("standard output");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string_view> words(argv + 1, argv + argc);
  Index threads = std::max(1U, std::thread::hardware_concurrency());
  bool understood = words.size() == 2;
  if (words.size() == 3) {
    const char* const end = words[2].data() + words[2].size();
    const auto [at, error] = std::from_chars(words[2].data(), end, threads);
    understood = at == end && error == std::errc() && threads > 0;
  }
  if (!understood) {
    fmt::print(stderr, "usage: streamed_gradient DIR G.npy [threads]\n");
    return 2;
  }
  try {
    check(words[0], words[1], threads);
  } catch (const std::exception& error) {
    fmt::print(stderr, "streamed_gradient: {}\n", error.what());
    return 1;
  }
}
