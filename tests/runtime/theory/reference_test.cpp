// Tests the double-precision reference. Its results equal the definitions in long double. Its
// allowed error is a few roundings of float32. It has the same bits on any number of threads.
// Planted faults and right kernels are in tests/kernels/planted_faults_test.cpp and
// false_alarms_test.cpp.

#include "runtime/theory/reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <omp.h>

#include "memsim/errors.hpp"

namespace redblue {
namespace {

using Floats = std::vector<float>;
using Real = long double;
using Reals = std::vector<Real>;
using Size = std::size_t;

struct ReferenceProblem {
  Shape shape;
  Floats A1, A2, A3, X, Y, dO, O, L;
  Mask mask = {};
  Activation activation = Activation::softmax;
  Sharing sharing = Sharing::none;
  float scale = 1;

  [[nodiscard]] AttentionInput input(std::vector<std::string_view> results) const {
    return {.shape = shape,
            .A1 = A1,
            .A2 = A2,
            .A3 = sharing == Sharing::none ? A3 : A2,
            .X = X,
            .Y = Y,
            .dO = dO,
            .O = O,
            .L = L,
            .scale = scale,
            .mask = mask,
            .activation = activation,
            .sharing = sharing,
            .results = std::move(results)};
  }
};

Floats centred(std::mt19937& random, Index count, double scale) {
  Floats words(static_cast<Size>(count));
  for (float& word : words) {
    word = static_cast<float>(scale * (static_cast<double>(random()) * 0x1p-31 - 1));
  }
  return words;
}

// Returns a problem with X and Y, or plain. With X, values are as wide as keys.
ReferenceProblem some_problem(std::mt19937& random, Shape shape, bool weighted) {
  const auto& [n, m, d] = shape;
  const Index dv = shape.dv;
  ReferenceProblem problem{.shape = shape,
                           .A1 = centred(random, n * d, 1),
                           .A2 = centred(random, m * d, 1),
                           .A3 = centred(random, m * dv, 1),
                           .X = {},
                           .Y = {},
                           .dO = centred(random, n * dv, 1),
                           .O = {},
                           .L = {}};
  if (weighted) {
    const double size = 1 / std::sqrt(static_cast<double>(d));  // scores of about 1
    problem.X = centred(random, d * d, size);
    problem.Y = centred(random, d * d, size);
  } else {
    problem.scale = 0.7F;
  }
  return problem;
}

// C (rows x cols) = A B, with either factor transposed if needed.
Reals times(Index rows, Index depth, Index cols, auto A, auto B) {
  Reals C;
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < cols; ++j) {
      Real sum = 0;
      for (Index k = 0; k < depth; ++k) {
        sum += A(i, k) * B(k, j);
      }
      C.push_back(sum);
    }
  }
  return C;
}
template <class Words>
auto rows_of(const Words& words, Index cols) {
  return [&words, cols](Index i, Index k) {
    return static_cast<Real>(words[static_cast<Size>(i * cols + k)]);
  };
}
template <class Words>
auto flipped(const Words& words, Index cols) {
  return [&words, cols](Index k, Index j) {
    return static_cast<Real>(words[static_cast<Size>(j * cols + k)]);
  };
}

// f and phi' of a row of scores. Dead scores have 0.
struct RowOfF {
  Reals f, slope;
  Real L = -std::numeric_limits<Real>::infinity();
};
RowOfF row_of_f(const ReferenceProblem& in, Index i, const Real* s) {
  const Index m = in.shape.m;
  RowOfF row{Reals(static_cast<Size>(m)), Reals(static_cast<Size>(m))};
  const auto live = [&](Index j) {
    return in.mask.full() || in.mask.pairs({i, i + 1}, {j, j + 1}) > Words(0);
  };
  Real sum = 0;
  for (Index j = 0; j < m; ++j) {
    sum += live(j) ? std::exp(s[j]) : 0;
  }
  row.L = in.L.empty() ? std::log(sum) : static_cast<Real>(in.L[static_cast<Size>(i)]);
  for (Index j = 0; j < m; ++j) {
    const auto at = static_cast<Size>(j);
    const Real sigmoid = 1 / (1 + std::exp(-s[j]));
    if (!live(j)) {
      continue;
    }
    switch (in.activation) {
      case Activation::softmax:
        row.f[at] = row.slope[at] = std::exp(s[j] - row.L);
        break;
      case Activation::relu:
        row.f[at] = std::max<Real>(s[j], 0);
        row.slope[at] = s[j] > 0 ? 1 : 0;
        break;
      case Activation::sigmoid:
        row.f[at] = sigmoid;
        row.slope[at] = sigmoid * (1 - sigmoid);
        break;
      case Activation::silu:
        row.f[at] = s[j] * sigmoid;
        row.slope[at] = sigmoid * (1 + s[j] * (1 - sigmoid));
        break;
    }
  }
  return row;
}

std::map<std::string, Reals> literally(const ReferenceProblem& in) {
  const auto [n, m, d] = in.shape;
  const Index dv = in.shape.dv;
  const bool weighted = !in.X.empty();
  const Floats& A3 = in.sharing == Sharing::none ? in.A3 : in.A2;
  Reals S(in.A1.begin(), in.A1.end()), h(A3.begin(), A3.end());
  if (weighted) {
    S = times(n, d, d, rows_of(in.A1, d), rows_of(in.X, d));
    h = times(m, d, d, rows_of(A3, d), rows_of(in.Y, d));
  }
  for (Real& word : S) {
    word *= static_cast<Real>(in.scale);
  }
  const Reals s = times(n, d, m, rows_of(S, d), flipped(in.A2, d));
  const Reals q = times(n, dv, m, rows_of(in.dO, dv), flipped(h, dv));
  std::map<std::string, Reals> found;
  Reals f, p;
  for (Index i = 0; i < n; ++i) {
    const RowOfF row = row_of_f(in, i, s.data() + i * m);
    found["L"].push_back(row.L);
    Real v = 0;
    for (Index j = 0; j < m; ++j) {
      v += row.f[static_cast<Size>(j)] * q[static_cast<Size>(i * m + j)];
    }
    if (!in.O.empty()) {
      v = 0;
      for (Index k = 0; k < dv; ++k) {
        v += rows_of(in.dO, dv)(i, k) * rows_of(in.O, dv)(i, k);
      }
    }
    for (Index j = 0; j < m; ++j) {
      const auto at = static_cast<Size>(j);
      const Real q_ij = q[static_cast<Size>(i * m + j)];
      f.push_back(row.f[at]);
      p.push_back(row.slope[at] * (in.activation == Activation::softmax ? q_ij - v : q_ij));
    }
  }
  found["O"] = times(n, m, dv, rows_of(f, m), rows_of(h, dv));
  Reals W = times(n, m, d, rows_of(p, m), rows_of(in.A2, d));
  found["dK"] = times(m, n, d, flipped(p, m), rows_of(S, d));
  found["dV"] = times(m, n, dv, flipped(f, m), rows_of(in.dO, dv));
  if (weighted) {
    found["g"] = found["dX"] = times(d, n, d, flipped(in.A1, d), rows_of(W, d));
    found["dA1"] = times(n, d, d, rows_of(W, d), flipped(in.X, d));
    found["dA3"] = times(m, d, d, rows_of(found["dV"], d), flipped(in.Y, d));
    found["dY"] = times(d, m, d, flipped(A3, d), rows_of(found["dV"], d));
    found["dA2"] = found["dK"];
  }
  const auto add = [](Reals& to, const Reals& more) {
    std::ranges::transform(to, more, to.begin(), std::plus());
  };
  if (in.sharing != Sharing::none) {
    weighted ? add(found["dA2"], found["dA3"]) : add(found["dK"], found["dV"]);
  }
  for (Real& word : W) {
    word *= static_cast<Real>(in.scale);
  }
  found["dQ"] = W;
  return found;
}

// Compares double with long double. The difference must be far below the allowed error, and the
// allowed error must be small.
void expect_same(const Reals& exact, const Expected& found, const std::string& what) {
  ASSERT_EQ(exact.size(), found.value.size()) << what;
  Real largest = 0;
  for (const Real word : exact) {
    largest = std::isinf(word) ? largest : std::max(largest, std::abs(word));
  }
  for (Size k = 0; k < exact.size(); ++k) {
    const Real value = static_cast<Real>(found.value[k]);
    if (std::isinf(exact[k])) {
      EXPECT_EQ(exact[k], value) << what << ' ' << k;
      continue;
    }
    EXPECT_LE(std::abs(exact[k] - value), 1e-13L * largest + 1e-17L) << what << ' ' << k;
    EXPECT_LE(static_cast<Real>(found.allowed[k]), 1e-4L * (largest + 1)) << what << ' ' << k;
    EXPECT_GE(found.allowed[k], 0) << what << ' ' << k;
  }
}

void expect_definitions(const ReferenceProblem& problem,
                        const std::vector<std::string_view>& results) {
  const std::map<std::string, Reals> exact = literally(problem);
  const ExpectedResults found = evaluate(problem.input(results));
  EXPECT_EQ(found.size(), results.size());
  for (const std::string_view name : results) {
    expect_same(exact.at(std::string(name)), found.at(std::string(name)), std::string(name));
  }
}

TEST(Reference, EvaluatesTheDefinitions) {
  std::mt19937 random(1);
  for (const Activation activation : kActivations) {
    for (const Shape& shape :
         {Shape{1, 1, 1}, Shape{7, 5, 3}, Shape{61, 130, 9}, Shape{130, 61, 20}}) {
      const auto& [n, m, d] = shape;
      for (const Mask& mask :
           {Mask(), Mask::causal(n, m), Mask::window(n, m, 2, 1) | Mask::prefix(n, m, 1)}) {
        SCOPED_TRACE(std::string(to_string(activation)) + " " + std::to_string(m));
        const bool softmax = activation == Activation::softmax;
        ReferenceProblem problem = some_problem(random, shape, true);
        problem.mask = mask;
        problem.activation = activation;
        expect_definitions(problem, softmax ? std::vector<std::string_view>{"O", "L"}
                                            : std::vector<std::string_view>{"O"});
        expect_definitions(problem, {"g"});
        expect_definitions(problem, {"g", "dQ", "dK", "dV"});
        expect_definitions(problem, {"dX", "dA1", "dA2", "dA3", "dY"});
        problem.sharing = Sharing::kv;
        expect_definitions(problem, {"dX", "dA1", "dA2", "dY"});

        problem = some_problem(random, {n, m, d, d + 4}, false);
        problem.mask = mask;
        problem.activation = activation;
        expect_definitions(problem, {"O"});
        expect_definitions(problem, {"dQ", "dK", "dV"});
        problem = some_problem(random, shape, false);
        problem.sharing = Sharing::kv;
        problem.activation = activation;
        expect_definitions(problem, {"dQ", "dK"});
      }
    }
  }
}

TEST(Reference, TakesGivenOAndLAsTheyAre) {
  std::mt19937 random(2);
  ReferenceProblem problem = some_problem(random, {40, 60, 7}, true);
  problem.O = centred(random, 40 * 7, 1);
  problem.L = centred(random, 40, 1);
  for (float& L : problem.L) {
    L += 4;
  }
  expect_definitions(problem, {"g", "dQ", "dK", "dV"});
}

TEST(Reference, OfLinearAttentionIsThatOfTheScores) {
  std::mt19937 random(3);
  for (const Shape& shape : {Shape{9, 5, 3}, Shape{30, 70, 4}, Shape{20, 20, 6}}) {
    const Index n = shape.n, m = shape.m, d = shape.d;
    for (const Mask& mask : {Mask(), Mask::causal(n, m)}) {
      ReferenceProblem problem = some_problem(random, shape, true);
      problem.mask = mask;
      const auto live = [&](const Reals& of) {
        Reals some;
        for (Index i = 0; i < n; ++i) {
          for (Index j = 0; j < m; ++j) {
            some.push_back(mask.full() || j <= i + m - n ? of[static_cast<Size>(i * m + j)] : 0);
          }
        }
        return some;
      };
      const Reals h = times(m, d, d, rows_of(problem.A3, d), rows_of(problem.Y, d));
      const Reals S = times(n, d, d, rows_of(problem.A1, d), rows_of(problem.X, d));
      const Reals s = live(times(n, d, m, rows_of(S, d), flipped(problem.A2, d)));
      const Reals q = live(times(n, d, m, rows_of(problem.dO, d), flipped(h, d)));
      const Reals W = times(n, m, d, rows_of(q, m), rows_of(problem.A2, d));
      AttentionInput input = problem.input({"g"});
      expect_same(times(d, n, d, flipped(problem.A1, d), rows_of(W, d)), evaluate_linear(input),
                  "g");
      input.dO = {};
      expect_same(times(n, m, d, rows_of(s, m), rows_of(h, d)), evaluate_linear(input), "O");
    }
  }
}

TEST(Reference, OfAProductIsTheProduct) {
  std::mt19937 random(4);
  const Floats A = centred(random, 50 * 7, 1), B = centred(random, 7 * 61, 1);
  expect_same(times(50, 7, 61, rows_of(A, 7), rows_of(B, 61)), evaluate_product(50, 61, 7, A, B),
              "C");
}

TEST(Reference, HasTheSameBitsOnAnyNumberOfThreads) {
  std::mt19937 random(5);
  const ReferenceProblem problem = some_problem(random, {700, 150, 6}, true);
  const int before = omp_get_max_threads();
  std::vector<ExpectedResults> found;
  for (const int threads : {1, 2, 5}) {
    omp_set_num_threads(threads);
    found.push_back(evaluate(problem.input({"g", "dQ", "dK", "dV"})));
  }
  omp_set_num_threads(before);
  for (const auto& [name, exact] : found[0]) {
    for (const ExpectedResults& other : found) {
      EXPECT_EQ(exact.value, other.at(name).value) << name;
      EXPECT_EQ(exact.allowed, other.at(name).allowed) << name;
    }
  }
}

TEST(Reference, SaysHowMuchIsDoneAndEndsWhereItIsToldTo) {
  std::mt19937 random(6);
  const ReferenceProblem problem = some_problem(random, {900, 20, 3}, false);
  AttentionInput input = problem.input({"O"});
  double last = 0;
  input.step = [&](double done) {
    EXPECT_GE(done, last);
    EXPECT_LE(done, 1);
    last = done;
  };
  EXPECT_EQ(evaluate(input).size(), 1U);
  EXPECT_GT(last, 0);
  struct Stop {};
  input.step = [](double) { throw Stop(); };
  EXPECT_THROW(static_cast<void>(evaluate(input)), Stop);
}

TEST(Compare, RefusesWhatIsNotFiniteOrNotStated) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  const Expected two{{1, 2}, {0.5, 0.5}};
  const Deviation good = compare(Floats{1.25F, 2.125F}, two);
  EXPECT_TRUE(good.ok);
  EXPECT_EQ(good.index, 0);
  EXPECT_EQ(good.error, 0.25);
  EXPECT_EQ(good.allowed, 0.5);
  EXPECT_EQ(good.part(), 0.5);
  EXPECT_EQ(good.largest, 2);
  EXPECT_EQ(good.relative, 0.125);
  EXPECT_TRUE(compare(Floats{1, 2.5F}, two).ok);
  for (const float bad : {kInfinity, -kInfinity, kNaN, 2.75F}) {
    const Deviation comparison = compare(Floats{1.25F, bad}, two);
    EXPECT_FALSE(comparison.ok) << bad;
    EXPECT_EQ(comparison.index, 1) << bad;
  }
  const Expected unstated{{1, 2}, {0.5, kInfinity}};
  EXPECT_FALSE(compare(Floats{1, 2}, unstated).ok);
  EXPECT_FALSE(compare(Floats{1, kInfinity}, unstated).ok);
  EXPECT_FALSE(compare(Floats{1, 2}, Expected{{1, kNaN}, {0.5, 0.5}}).ok);
  const Expected tight{{1, 2}, {0, 0}};
  EXPECT_TRUE(compare(Floats{1, 2}, tight).ok);
  EXPECT_FALSE(compare(Floats{1, std::nextafter(2.0F, 3.0F)}, tight).ok);
  EXPECT_FALSE(compare(Floats{}, Expected{}).ok);
  EXPECT_THROW(static_cast<void>(compare(Floats{1}, two)), ShapeMismatch);

  const Expected zero{{0, 0}, {1, 1}};
  EXPECT_EQ(compare(Floats{0, 0}, zero).relative, 0);
  EXPECT_EQ(compare(Floats{0, 0.5F}, zero).relative, std::numeric_limits<double>::infinity());
}

// Scores of 10^12 have errors far beyond the range of exp.
TEST(Allowed, IsInfiniteWhereNothingCanBeStated) {
  std::mt19937 random(12);
  ReferenceProblem problem = some_problem(random, {4, 6, 5}, true);
  std::ranges::for_each(problem.X, [](float& word) { word *= 1e12F; });
  for (const std::string_view result : {"O", "g", "dQ", "dK", "dV"}) {
    const Expected found = evaluate(problem.input({result})).at(std::string(result));
    const Floats rounded(found.value.begin(), found.value.end());
    EXPECT_FALSE(compare(rounded, found).ok) << result;
  }
}

TEST(Reference, RefusesSizesThatDoNotFit) {
  std::mt19937 random(13);
  const ReferenceProblem good = some_problem(random, {4, 6, 5}, true);
  const auto refuses = [&](Floats ReferenceProblem::*which, Index size) {
    ReferenceProblem bad = good;
    (bad.*which).resize(static_cast<Size>(size));
    EXPECT_THROW(static_cast<void>(evaluate(bad.input({"g"}))), ShapeMismatch);
  };
  refuses(&ReferenceProblem::A1, 19);
  refuses(&ReferenceProblem::A2, 20);
  refuses(&ReferenceProblem::A3, 31);
  refuses(&ReferenceProblem::X, 24);
  refuses(&ReferenceProblem::Y, 24);
  refuses(&ReferenceProblem::dO, 21);
  refuses(&ReferenceProblem::O, 20);  // without L
  refuses(&ReferenceProblem::L, 4);   // without O
  AttentionInput bad = good.input({"g"});
  bad.scale = 0.5F;
  EXPECT_THROW(static_cast<void>(evaluate(bad)), ShapeMismatch) << "the scale is in X";
  EXPECT_THROW(static_cast<void>(evaluate_product(2, 2, 2, good.A1, good.A2)), ShapeMismatch);
}

}  // namespace
}  // namespace redblue
