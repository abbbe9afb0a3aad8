// Tests operands and results in a caller's memory, and runs that a caller stops.

#include "runtime/run/arrays.hpp"

#include <atomic>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/run/attention.hpp"
#include "runtime/run/input_file.hpp"
#include "runtime/run/run.hpp"
#include "runtime/system/input_error.hpp"
#include "tests/support/thrown.hpp"

namespace redblue {
namespace {

constexpr Index kN = 20, kD = 6, kM = 400;

// Q, K and V of one head.
struct Given {
  Given() {
    for (std::size_t k = 0; k < Q.size(); ++k) {
      const auto x = static_cast<float>(k);
      Q[k] = std::sin(x);
      K[k] = std::cos(x);
      V[k] = std::sin(x / 3);
    }
  }
  [[nodiscard]] Arrays arrays() const {
    Arrays arrays;
    arrays.in["Q"] = {{kN, kD}, Q};
    arrays.in["K"] = {{kN, kD}, K};
    arrays.in["V"] = {{kN, kD}, V};
    return arrays;
  }
  std::vector<float> Q = std::vector<float>(kN * kD), K = Q, V = Q;
};

Request request_of(Arrays& arrays) {
  Request request;
  request.kernel = "attention/rows";
  request.M = kM;
  request.objective = Objective::time;
  request.arrays = &arrays;
  return request;
}

// Shapes come from the arrays. Results have the bits of attention(), in new arrays or in the
// caller's.
TEST(Arrays, HaveTheBitsOfOneCall) {
  const Given given;
  std::vector<float> O(kN * kD), L(kN), own(kN * kD);
  attention({.shape = {kN, kN, kD}}, {.Q = given.Q, .K = given.K, .V = given.V}, {.O = O, .L = L},
            {.M = kM, .kernel = "attention/rows"});

  Arrays arrays = given.arrays();
  arrays.out["O"] = {{kN, kD}, own};
  const Report report = run(request_of(arrays));
  EXPECT_EQ(report.kernel.plan.problem.shape.n, kN);
  EXPECT_EQ(report.operands.at("Q"), Origin::array);
  EXPECT_EQ(own, O);
  EXPECT_EQ(arrays.results.size(), 1U);
  EXPECT_EQ(arrays.results.at("L").words, L);
  EXPECT_EQ(arrays.results.at("L").shape, std::vector<Index>{kN});
}

// Arrays are checked like files, and refused before a result is touched.
TEST(Arrays, AreHeldToWhatFilesAre) {
  Given given;
  std::vector<float> own(kN * kD, 7);
  given.K[kD + 2] = std::numeric_limits<float>::quiet_NaN();
  Arrays arrays = given.arrays();
  arrays.out["O"] = {{kN, kD}, own};
  EXPECT_EQ(thrown<InputError>([&] { run(request_of(arrays)); }),
            "K of an array: nan at row 1, column 2; expected finite float32 numbers");
  EXPECT_EQ(own, std::vector<float>(own.size(), 7));

  const std::vector<float> narrow(kN * (kD - 1));
  arrays = given.arrays();
  arrays.in["K"] = {{kN, kD - 1}, narrow};
  EXPECT_EQ(thrown<InputError>([&] { run(request_of(arrays)); }),
            "Q of an array makes d = 6, but K of an array makes d = 5");
}

// A fault in a slice names the row of the whole array.
TEST(Arrays, PlacesInSlicesAreThoseOfTheArray) {
  const Index rows = 100;
  std::vector<float> words(rows, 1.0F);
  words[70] = std::numeric_limits<float>::quiet_NaN();
  const InputFile file(LentArray<const float>{{rows, 1}, words});
  std::vector<float> some(10);
  EXPECT_EQ(thrown<InputError>([&] {
              file.read_rows({65, 75}, some);
            }),
            "an array: nan at row 70, column 0; expected finite float32 numbers");
}

// An operand is an array or made by a rule, not both.
TEST(Arrays, AreTheOnlySource) {
  const std::vector<float> X(kD * kD, 1.0F);
  Arrays arrays;
  arrays.in["X"] = {{kD, kD}, X};
  Request request = request_of(arrays);
  request.kernel = "forward/rows";
  request.n = kN;
  request.make["X"] = parse_rule("identity");
  EXPECT_EQ(thrown<UsageError>([&] { run(request); }),
            "--make X=identity: X is an array, too: give one of them");
}

// A run does not return arrays of an earlier run.
TEST(Arrays, OfAnEarlierRunAreForgotten) {
  const Given given;
  Arrays arrays = given.arrays();
  arrays.results["old"] = {{1}, {1.0F}};
  run(request_of(arrays));
  EXPECT_EQ(arrays.results.size(), 2U);
  EXPECT_FALSE(arrays.results.contains("old"));
}

// stop() is called by all workers, before each move, and by the verification. Its exception leaves
// run().
TEST(Arrays, RunsEndWhenTheirCallerAsks) {
  for (const Index threads : {1, 3}) {
    for (const int most : {0, 5, 50}) {
      Request request;
      request.kernel = "gradients/flash";
      request.n = request.d = 16;
      request.heads = 3;
      request.M = 500;
      request.threads = threads;
      std::atomic<int> asked = 0;
      request.stop = [&] {
        if (++asked > most) {
          throw std::runtime_error("enough");
        }
      };
      EXPECT_EQ(thrown<std::runtime_error>([&] { run(request); }), "enough");
      EXPECT_GT(asked, most);
      EXPECT_LE(asked, most + threads);
    }
  }
}

}  // namespace
}  // namespace redblue
