// Tests calls of attention.hpp that are not possible: they name the fault and touch no result.

#include <algorithm>
#include <cmath>
#include <regex>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/called.hpp"
#include "tests/support/thrown.hpp"

namespace redblue {
namespace {

// Makes one fault in each call and checks its message. The results stay as they were.
TEST(AttentionRefusal, RefusesBeforeItTouchesAnything) {
  const AttentionProblem problem{.shape = {10, 12, 3}, .heads = 4, .kv_heads = 2};
  const AttentionOptions options{.M = 500};
  const auto refused = [&](const auto& change, bool backward) {
    Called own(problem, backward);
    AttentionOptions its = options;
    change(own, its);
    std::string said = "nothing";
    try {
      own.call(its);
    } catch (const std::invalid_argument& error) {
      said = error.what();
    } catch (const std::runtime_error& error) {
      said = std::string("runtime: ") + error.what();
    }
    EXPECT_TRUE(own.untouched()) << said;
    return said;
  };
  const auto forward = [&](const auto& change) { return refused(change, false); };
  const auto backward = [&](const auto& change) { return refused(change, true); };
  using Options = AttentionOptions;

  EXPECT_EQ(forward([](Called& own, Options&) { own.given["K"].pop_back(); }),
            "K has 71 words, expected 72: 2 heads of 12 x 3");
  EXPECT_EQ(forward([](Called& own, Options&) { own.results["L"].push_back(kUntouched); }),
            "L has 41 words, expected 40: 4 heads of 10");
  EXPECT_EQ(backward([](Called& own, Options&) { own.results["dV"].clear(); }),
            "dV has 0 words, expected 72: 2 heads of 12 x 3");
  EXPECT_EQ(backward([](Called& own, Options&) { own.given["O"] = own.given["Q"]; }),
            "O without L, or L without O: give both, or neither");
  EXPECT_EQ(forward([](Called& own, Options&) { own.problem.kv_heads = 3; }),
            "kv_heads 3 does not divide heads 4: as many heads of queries share each head of keys");
  EXPECT_TRUE(contains(forward([](Called& own, Options&) { own.problem.shape.d = 0; }),
                       "d: \"0\" is zero; expected a positive whole number"));
  EXPECT_TRUE(contains(forward([](Called&, Options& its) { its.M = 0; }), "M: \"0\" is zero"));
  EXPECT_TRUE(contains(forward([](Called&, Options& its) { its.threads = -1; }),
                       "threads: \"-1\" is not a positive whole number"));
  EXPECT_TRUE(contains(forward([](Called& own, Options&) { own.problem.softmax_scale = -1; }),
                       "softmax_scale: \"-1\" is not a positive finite number"));
  EXPECT_EQ(forward([](Called& own, Options&) { own.problem.softmax_scale = 1e30F; }),
            "softmax_scale 1e+30: expected 2^-60 to 2^60");
  EXPECT_EQ(forward([](Called& own, Options&) { own.problem.mask = Mask::causal(12, 12); }),
            "mask is of 12 queries and 12 keys, but shape makes n = 10 and m = 12");
  EXPECT_TRUE(contains(forward([](Called& own, Options&) { own.problem.mask = "casual"; }),
                       "mask 'casual': casual is no mask"));
  EXPECT_EQ(forward([](Called& own, Options&) { own.problem.sharing = Sharing::kv; }),
            "V is given, but keys are shared, so that V is K: leave it empty");
  EXPECT_EQ(forward([](Called& own, Options&) { own.problem.activation = Activation::relu; }),
            "L is of a softmax, and activation is relu: leave it empty");
  EXPECT_EQ(forward([](Called&, Options& its) { its.kernel = "gradients/flash"; }),
            "kernel gradients/flash: expected one of attention/*");
  EXPECT_EQ(
      forward([](Called&, Options& its) { its.kernel = "attention/fast"; }),
      "no kernel is called 'attention/fast': did you mean attention/auto or attention/rows or "
      "attention/tiles? (redblue list)");
  EXPECT_EQ(backward([](Called& own, Options&) { own.given["dO"][40] = NAN; }),
            "runtime: dO: nan at head 1, row 3, column 1; expected finite float32 numbers");
  EXPECT_EQ(forward([](Called& own, Options&) { own.problem.shape.n = Index{1} << 60; }),
            "runtime: the words of every kernel that fits pass 63 bits: the sizes are too large");
}

TEST(AttentionRefusal, ResultsHaveTheirOwnWords) {
  Called own({.shape = {8, 8, 4}});
  const AttentionOperands given{.Q = own.given["Q"], .K = own.given["K"], .V = own.given["V"]};
  std::vector<float> words(40, kUntouched);
  const std::span<float> all(words);
  EXPECT_EQ(thrown<ShapeMismatch>([&] {
              attention(own.problem, given, {.O = all.first(32), .L = all.subspan(31, 8)},
                        {.M = 500});
            }),
            "L overlaps O in memory");
  EXPECT_EQ(thrown<ShapeMismatch>([&] {
              attention(own.problem, given, {.O = own.given["V"], .L = all.first(8)}, {.M = 500});
            }),
            "O overlaps V in memory");
  EXPECT_EQ(std::ranges::count(words, kUntouched), 40);
  attention(own.problem, given, {.O = all.first(32), .L = all.last(8)}, {.M = 500});
}

// The message states the least M. With it the call runs, and with one word less it does not.
TEST(AttentionRefusal, TheLeastMIsInTheMessage) {
  for (const std::string mask : {"", "causal"}) {
    for (const bool backward : {false, true}) {
      for (const std::string kernel : {"", backward ? "gradients/rows-keys" : "attention/rows"}) {
        for (const Index threads : {1, 3}) {
          const AttentionProblem problem{.shape = {20, 30, 7}, .mask = mask};
          const auto said = [&](Index M) {
            Called own(problem, backward);
            std::string text = thrown<FastMemoryTooSmall>(
                [&] { own.call({.M = M, .threads = threads, .kernel = kernel}); });
            EXPECT_TRUE(own.untouched());
            return text;
          };
          const std::string text = said(2);
          std::smatch least;
          ASSERT_TRUE(std::regex_search(text, least, std::regex("at least ([0-9]+)"))) << text;
          const Index M = std::stoll(least[1]);
          EXPECT_TRUE(contains(said(M - 1), "at least " + least[1].str())) << text;
          Called own(problem, backward);
          EXPECT_NO_THROW(own.call({.M = M, .threads = threads, .kernel = kernel})) << text;
        }
      }
    }
  }
}

TEST(AttentionRefusal, ResultsThatAreNotFiniteAreSaid) {
  Called own({.shape = {4, 4, 2}});
  std::ranges::fill(own.given["Q"], 3e38F);
  std::ranges::fill(own.given["K"], 3e38F);
  EXPECT_THROW(own.call({.M = 500}), std::runtime_error);
}

}  // namespace
}  // namespace redblue
