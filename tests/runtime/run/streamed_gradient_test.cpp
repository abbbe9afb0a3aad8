// Tests the program that compares a gradient with a double-precision one. It must be right itself,
// report errors, need no more memory for more rows or keys, and refuse files that are not
// gradients.
//
// It prints max |g - G| and max |g|. If G is the reference's g rounded to float32, the first is at
// most 2^-24 max |g|. Both equal the reference's values, up to the rounding of doubles.

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "memsim/sanitized.hpp"
#include "runtime/run/inputs.hpp"
#include "runtime/system/npy.hpp"
#include "runtime/theory/reference.hpp"
#include "tests/programs/normal_exp.hpp"
#include "tests/support/json.hpp"
#include "tests/support/npy_bytes.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temporary_directory.hpp"

namespace redblue {
namespace {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;
using Size = std::size_t;

constexpr double kUnit = 0x1p-53;  // half the distance from 1 to the next double

struct Gradient {
  Shape shape;
  std::map<std::string, Floats> given;

  [[nodiscard]] Index rows(const std::string& name) const {
    return name == "A1" || name == "dO" ? shape.n : name[0] == 'A' ? shape.m : shape.d;
  }
  void set_column(const std::string& name, Index col, const std::function<double(Index)>& word) {
    for (Index i = 0; i < rows(name); ++i) {
      given.at(name)[static_cast<Size>(i * shape.d + col)] = static_cast<float>(word(i));
    }
  }
};

// Returns a problem with scores of the standard deviation `scale`. All other numbers are of size 1.
Gradient random_problem(Shape shape, double scale = 1) {
  Gradient problem{shape, {}};
  for (const char* name : {"A1", "A2", "A3", "X", "Y", "dO"}) {
    Floats& words = problem.given[name];
    words.resize(static_cast<Size>(problem.rows(name) * shape.d));
    fill_input(name, Problem(shape), 11, scale, 0, problem.rows(name), words);
  }
  return problem;
}

// s_ij = step j + a random part.
Gradient with_slope(Shape shape, double step) {
  Gradient problem = random_problem(shape);
  for (Index k = 0; k < shape.d; ++k) {
    problem.set_column("X", k, [=](Index i) { return i == k ? 1 : 0; });
  }
  problem.set_column("A1", 0, [](Index) { return 8; });
  problem.set_column("A2", 0, [=](Index j) { return step / 8 * static_cast<double>(j); });
  return problem;
}

Doubles exact_g(Gradient problem) {
  std::map<std::string, Floats>& of = problem.given;
  return evaluate({.shape = problem.shape,
                   .A1 = of["A1"],
                   .A2 = of["A2"],
                   .A3 = of["A3"],
                   .X = of["X"],
                   .Y = of["Y"],
                   .dO = of["dO"],
                   .O = {},
                   .L = {},
                   .results = {"g"}})
      .at("g")
      .value;
}

std::string text(const Shape& shape) {
  return fmt::format("n={} m={} d={}", shape.n, shape.m, shape.d);
}

Floats rounded(const Doubles& values) {
  return {values.begin(), values.end()};
}

double largest(const Doubles& values) {
  double result = 0;
  for (const double value : values) {
    result = std::max(result, std::abs(value));
  }
  return result;
}

double largest_error(const Doubles& g, const Floats& G) {
  Doubles errors(g);
  std::ranges::transform(g, G, errors.begin(), std::minus());
  return largest(errors);
}

class StreamedGradient : public ::testing::Test {
 protected:
  void write(const std::string& name, Index rows, Index cols, const Floats& words) const {
    directory_.write(name, npy_bytes(rows, cols, words));
  }
  void write(const Gradient& problem) const {
    for (const auto& [name, words] : problem.given) {
      write(name + ".npy", problem.rows(name), problem.shape.d, words);
    }
  }
  [[nodiscard]] Outcome run(const std::vector<std::string>& words,
                            std::vector<std::string> before = {}) const {
    before.emplace_back(REDBLUE_STREAMED_GRADIENT);
    before.insert(before.end(), words.begin(), words.end());
    return Process{.words = before, .environment = {}, .directory = directory_.path()}.run();
  }
  // Returns the program's answer for G and the problem that was written.
  [[nodiscard]] Json answer(Index d, const Floats& G, Index threads = 1) const {
    write("G.npy", d, d, G);
    const Outcome outcome = run({".", "G.npy", std::to_string(threads)});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    return Json::parse(outcome.out);
  }
  // Compares the answer with g. Doubles may lose `lost` times the largest word of g.
  static void expect_errors(const Json& answer, const Doubles& g, const Floats& G, double lost) {
    const double max_g = largest(g);
    EXPECT_NEAR(answer["max_error"].get<double>(), largest_error(g, G), lost * max_g);
    EXPECT_NEAR(answer["max_g"].get<double>(), max_g, lost * max_g);
    EXPECT_EQ(answer["relative"].get<double>(),
              answer["max_error"].get<double>() / answer["max_g"].get<double>());
  }
  // Checks for exit code 1 with one line, which names the file and has these words.
  void expect_refusal(const std::string& file, const std::string& words,
                      const std::string& threads = "1") const {
    const Outcome outcome = run({".", "G.npy", threads});
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.out, "");
    EXPECT_TRUE(outcome.err.starts_with("streamed_gradient: ")) << outcome.err;
    EXPECT_NE(outcome.err.find(file), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find(words), std::string::npos) << outcome.err << " lacks " << words;
    EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
  }

  TemporaryDirectory directory_;
};

// ---- The exp of the program

// Over the whole domain, and near the ends of the intervals with the same k.
TEST(NormalExp, IsThatOfTheLibrary) {
  std::vector<double> all = {0.0, -0.0, -1e-300, -0x1p-60, -700};
  std::mt19937_64 random(1);
  for (int i = 0; i < 100'000; ++i) {
    const double u = static_cast<double>(random() >> 11U) * 0x1p-53;
    all.insert(all.end(), {-700 * u, -u, -std::exp(-40 * u)});
  }
  for (int halves = 1; halves <= 2019; ++halves) {
    const double x = halves * -0.34657359027997264;
    all.insert(all.end(), {std::nextafter(x, 0), x, std::nextafter(x, -700)});
  }
  double largest_relative = 0;
  for (const double x : all) {
    const long double exact = std::exp(static_cast<long double>(x));
    const auto error = static_cast<double>(std::abs(normal_exp(x) - exact) / exact);
    largest_relative = std::max(largest_relative, error);
  }
  EXPECT_LT(largest_relative, 2e-16);
  EXPECT_EQ(normal_exp(0), 1);
}

// ---- The result is right

// G is g rounded to float32, so |g - G| <= 2^-24 |g| for each word. Two evaluations in doubles,
// with rounding unit u, differ by about d u S in scores of size S, and by as much, relatively, in
// e. In q of size Q they differ by d u Q. All other numbers are of size 1. The tolerance is 32
// times both, for sums that cancel. This is far below 2^-24.
TEST_F(StreamedGradient, IsTheReference) {
  struct Case {
    std::string what;
    Gradient problem;
    double sizes;  // S + Q
  };
  std::vector<Case> cases;
  for (const Shape& shape :
       {Shape{1, 2, 1}, Shape{1, 7, 3}, Shape{7, 2, 3}, Shape{5, 7, 1}, Shape{31, 257, 13},
        Shape{257, 31, 17}, Shape{64, 128, 8}, Shape{33, 129, 64}, Shape{2048, 5, 2},
        Shape{2051, 131, 7}, Shape{4099, 3, 5}}) {
    cases.push_back({"random", random_problem(shape), 4});
  }
  cases.push_back({"large scores", random_problem({300, 200, 5}, 1000), 5000});
  cases.push_back({"rising scores", with_slope({70, 1031, 4}, 1), 1031});
  cases.push_back({"falling scores", with_slope({70, 1031, 4}, -1), 1031});
  Gradient same_scores = with_slope({300, 200, 5}, 0);  // s_ij = 8 * 512 + a random part
  same_scores.set_column("A2", 0, [](Index) { return 512; });
  cases.push_back({"scores of a common size", same_scores, 4096});
  Gradient same_q = random_problem({300, 200, 5});  // q_ij = 4096 (dO Y^T)_i0 + a random part
  same_q.set_column("A3", 0, [](Index) { return 4096; });
  cases.push_back({"q of a common size", same_q, 8192});

  for (const auto& [what, problem, sizes] : cases) {
    SCOPED_TRACE(what + ", " + text(problem.shape));
    const double lost = 32 * static_cast<double>(problem.shape.d) * kUnit * sizes;
    const Doubles g = exact_g(problem);
    const Floats G = rounded(g);
    write(problem);
    for (const Index threads : {1, 2, 3}) {
      const Json found = answer(problem.shape.d, G, threads);
      EXPECT_EQ(keys(found),
                (Keys{"n", "m", "d", "max_error", "max_g", "relative", "seconds", "peak_bytes"}));
      EXPECT_EQ(found["n"], problem.shape.n);
      EXPECT_EQ(found["m"], problem.shape.m);
      EXPECT_EQ(found["d"], problem.shape.d);
      expect_errors(found, g, G, lost);
      EXPECT_LE(found["relative"].get<double>(), 0x1p-24 + lost);
    }
  }
}

// X = 0 makes f = 1/m. With d = 1, g = y sum_i(a1_i dO_i) (mean(a3 a2) - mean(a3) mean(a2)). With
// integers, and m a power of 2, the result is exact in any order.
TEST_F(StreamedGradient, OfIntegersIsExact) {
  Gradient problem = random_problem({2051, 256, 1});
  for (auto& [name, words] : problem.given) {
    std::ranges::transform(words, words.begin(), [](float x) { return std::round(3 * x); });
  }
  problem.given["X"] = {0};
  problem.given["Y"] = {3};
  write(problem);
  const auto dot = [&](const char* a, const char* b) {
    const Floats& words = problem.given[a];
    return std::inner_product(words.begin(), words.end(), problem.given[b].begin(), 0.0);
  };
  problem.given["1"] = Floats(256, 1.0F);
  const double covariance = dot("A3", "A2") / 256 - (dot("A3", "1") / 256) * (dot("A2", "1") / 256);
  const Doubles g = {3 * dot("A1", "dO") * covariance};
  ASSERT_NE(g[0], 0);
  for (const Floats& G : {rounded(g), {0.0F}}) {
    for (const Index threads : {1, 2, 3}) {
      expect_errors(answer(1, G, threads), g, G, 0);
    }
  }
}

// One row, two keys, d = 1: g = a f1 f2 (q1 - q2) (b1 - b2), with f1 = 1 / (1 + exp(s2 - s1)). The
// rounding error is of size a (q1 - q2) (b1 - b2), as in any program that subtracts v from q in
// doubles.
TEST_F(StreamedGradient, OfTwoKeysIsTheOneMadeByHand) {
  for (const double x : {0.0, 0.25, -2.0, 4.0, -4.0, 64.0}) {
    SCOPED_TRACE(x);
    write({{1, 2, 1},
           {{"A1", {1.5F}},
            {"A2", {2, -0.5F}},
            {"A3", {3, 7}},
            {"X", {static_cast<float>(x)}},
            {"Y", {0.5F}},
            {"dO", {-3}}}});
    const double difference = std::abs(1.5 * x * 2.5);  // between the scores
    const double ratio = std::exp(-difference);
    const double size = 1.5 * (-3 * 0.5 * (3 - 7)) * 2.5;
    const Doubles g = {size * ratio / (1 + ratio) / (1 + ratio)};
    expect_errors(answer(1, {0.0F}), g, {0.0F}, 8 * (1 + difference * ratio) * kUnit * size / g[0]);
  }
}

// m = 1: f = 1, v = q, p = 0. If g is 0, the relative error is 0 for G = 0 and undefined for any
// other G.
TEST_F(StreamedGradient, OfOneKeyIsZero) {
  for (const Shape& shape : {Shape{1, 1, 1}, Shape{1, 1, 5}, Shape{2051, 1, 3}}) {
    write(random_problem(shape));
    Floats G(static_cast<Size>(shape.d * shape.d));
    const Json right = answer(shape.d, G);
    EXPECT_EQ(right["max_error"], 0);
    EXPECT_EQ(right["max_g"], 0);
    EXPECT_EQ(right["relative"], 0);
    G.back() = -0.75F;
    const Json wrong = answer(shape.d, G);
    EXPECT_EQ(wrong["max_error"], 0.75);
    EXPECT_EQ(wrong["max_g"], 0);
    EXPECT_TRUE(wrong["relative"].is_null());
  }
}

// A fixed number of threads adds the same sums in the same order, so the bits are the same. More
// threads than row blocks are not needed.
TEST_F(StreamedGradient, IsTheSameEveryTime) {
  const Gradient problem = random_problem({4099, 30, 3});
  const Floats G = rounded(exact_g(problem));
  write(problem);
  for (const Index threads : {1, 3}) {
    const Json first = answer(3, G, threads);
    const Json second = answer(3, G, threads);
    EXPECT_EQ(first["max_error"], second["max_error"]);
    EXPECT_EQ(first["max_g"], second["max_g"]);
  }
  const Gradient small = random_problem({2, 30, 3});
  const Doubles g = exact_g(small);
  write(small);
  expect_errors(answer(3, G, std::numeric_limits<Index>::max()), g, G, 1e-13);
}

// ---- It reports wrong words

// If one word of G differs by more than float32 rounding, max_error is its distance from g.
TEST_F(StreamedGradient, ShowsTheErrorOfOneWord) {
  const Gradient problem = random_problem({37, 150, 3});
  const Doubles g = exact_g(problem);
  write(problem);
  for (Size at = 0; at < g.size(); ++at) {
    for (const double error : {-1.0, 1e-3, 1e-6}) {
      Floats G = rounded(g);
      G[at] = static_cast<float>(g[at] + error * largest(g));
      const Json found = answer(3, G);
      expect_errors(found, g, G, 1e-13);
      EXPECT_NEAR(found["relative"].get<double>(), std::abs(error), 0x1p-23);
    }
  }
}

// ---- It needs no more memory for larger problems

TEST_F(StreamedGradient, HoldsNoMoreForMore) {
  if (kSanitized) {
    GTEST_SKIP() << "a sanitizer keeps what is freed";
  }
  // The peak memory of a process is at least the peak of its parent, which is a shell here.
  const auto peak = [&](Index n, Index m) {
    constexpr Index d = 16;
    Gradient problem{{n, m, d}, {}};
    for (const char* name : {"A1", "A2", "A3", "X", "Y", "dO"}) {
      const Index rows = problem.rows(name);
      NpyWriter file(directory_ / (std::string(name) + ".npy"), {rows, d});
      for (const Range range : blocks(rows, 4096)) {
        Floats words(static_cast<Size>(range.size() * d));
        fill_input(name, Problem(problem.shape), 3, 1, range.begin, range.size(), words);
        file.append(words);
      }
      file.commit();
    }
    write("G.npy", d, d, Floats(d * d));
    const Outcome outcome =
        run({".", "G.npy", "2"}, {"/bin/sh", "-c", "\"$@\"; exit $?", "/bin/sh"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(outcome.out)["peak_bytes"].get<Index>();
  };
  constexpr Index kFew = 16'384;
  constexpr Index kMany = 131'072;  // 8 MiB in each of two files
  EXPECT_LE(peak(kMany, 1), peak(kFew, 1) + (Index{2} << 20));
  EXPECT_LE(peak(1, kMany), peak(1, kFew) + (Index{2} << 20));
}

// ---- It refuses other files

TEST_F(StreamedGradient, RefusesAnotherCommandLine) {
  write(random_problem({2, 3, 2}));
  write("G.npy", 2, 2, Floats(4));
  ASSERT_EQ(run({".", "G.npy"}).code, 0);  // a thread for each processor
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {},
           {"."},
           {".", "G.npy", "1", "1"},
           {".", "G.npy", ""},
           {".", "G.npy", "0"},
           {".", "G.npy", "-1"},
           {".", "G.npy", "+1"},
           {".", "G.npy", "1.5"},
           {".", "G.npy", "2x"},
           {".", "G.npy", " 2"},
           {".", "G.npy", "9223372036854775808"},
       }) {
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err, "usage: streamed_gradient DIR G.npy [threads]\n");
  }
}

TEST_F(StreamedGradient, RefusesBadFiles) {
  constexpr Shape kShape{5, 300, 2};
  Gradient problem = random_problem(kShape);
  problem.given["G"] = Floats(4);
  const auto mend = [&] { write(problem); };
  mend();
  ASSERT_EQ(run({".", "G.npy"}).code, 0);
  for (const auto& [name, words] : problem.given) {
    SCOPED_TRACE(name);
    const std::string file = name + ".npy";
    const Index rows = problem.rows(name);
    std::filesystem::remove(directory_ / file);
    expect_refusal(file, "No such file or directory");
    directory_.write(file, npy_bytes(rows, 2, words, {.float64 = true}));
    expect_refusal(file, "2-D float64; expected");
    directory_.write(file, npy_bytes({1, rows, 2}, words));
    expect_refusal(file, "3-D float32; expected");
    directory_.write(file, npy_bytes(2 * rows, 0, words));
    expect_refusal(file, "1-D float32; expected");
    std::string bytes = npy_bytes(rows, 2, words);
    bytes.pop_back();
    directory_.write(file, bytes);
    expect_refusal(file, "truncated: " + std::to_string(8 * rows - 1) + " bytes of data");
    for (const float bad :
         {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
      Floats broken = words;
      broken.back() = bad;  // among the keys after the first block
      write(file, rows, 2, broken);
      for (const char* threads : {"1", "2"}) {
        expect_refusal(file, fmt::format("{} at row {}, column 1", bad, rows - 1), threads);
      }
    }
    mend();
  }
  // n comes from A1, m from A2, and d from the columns of A1.
  for (const auto& [name, rows, cols, told] :
       std::vector<std::tuple<std::string, Index, Index, std::string>>{
           {"A3", 299, 2, "299 rows of 2, 2-D float32; expected 300 rows of 2, 2-D float32"},
           {"A2", 300, 3, "300 rows of 3, 2-D float32; expected 300 rows of 2, 2-D float32"},
           {"X", 3, 2, "3 rows of 2, 2-D float32; expected 2 rows of 2, 2-D float32"},
           {"Y", 2, 1, "2 rows of 1, 2-D float32; expected 2 rows of 2, 2-D float32"},
           {"dO", 6, 2, "6 rows of 2, 2-D float32; expected 5 rows of 2, 2-D float32"},
           {"G", 3, 3, "3 rows of 3, 2-D float32; expected 2 rows of 2, 2-D float32"},
       }) {
    write(name + ".npy", rows, cols, Floats(static_cast<Size>(rows * cols)));
    expect_refusal(name + ".npy", told);
    mend();
  }
}

TEST_F(StreamedGradient, SaysThatItsAnswerWasNotTaken) {
  write(random_problem({2, 3, 2}));
  write("G.npy", 2, 2, Floats(4));
  Process process{.words = {REDBLUE_STREAMED_GRADIENT, ".", "G.npy"}, .environment = {}};
  process.directory = directory_.path();
  process.standard_output = "/dev/full";
  const Outcome outcome = process.run();
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, "streamed_gradient: standard output: No space left on device\n");
}

}  // namespace
}  // namespace redblue
