// Pictures of a sweep have every point that fits, once; the bound that the library proves; and say
// what is missing where there is nothing to draw.

#include "runtime/figures.hpp"

#include <sstream>

#include <gtest/gtest.h>

#include "runtime/bounds.hpp"

namespace redblue {
namespace {

Swept swept(const std::string& subject, Index d, Index M, Index words, bool fits = true) {
  Swept made{.point = {subject, {}},
             .kernel = subject,
             .blocks = "B=1",
             .fits = fits,
             .total = {.path = {}, .reads = words, .flops = 10 * words},
             .phases = {{.path = "a", .reads = words - 3}, {.path = "b", .reads = 3}},
             .bound = 1,
             .speed = std::nullopt};
  for (const auto& [name, value] :
       {std::pair("n", Index{100}), {"m", Index{50}}, {"d", d}, {"M", M}, {"threads", Index{1}}}) {
    made.point.arguments.set(name, value);
  }
  return made;
}

Sweep example() {
  Sweep sweep{.how = "run", .suite = {}, .points = {}};
  for (const Index d : {8, 40}) {
    for (const Index M : {4096, 1024, 2048}) {  // in no order
      sweep.points.push_back(swept("backward/small", d, M, 100000 * d / M));
      sweep.points.push_back(swept("backward/flash", d, M, 300000 * d / M, M > 1024));
    }
  }
  return sweep;
}

std::string data(const Picture& picture, const std::string& name) {
  for (const auto& [block, lines] : picture.data) {
    if (block == name) {
      return lines;
    }
  }
  ADD_FAILURE() << "no block " << name;
  return "";
}

TEST(Figures, ASliceDiffersInNothingButSubjectAndM) {
  const Sweep sweep = example();
  const std::vector<Slice> all = slices(sweep);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].arguments, "n=100 m=50 d=8");
  EXPECT_EQ(all[0].points.size(), 6U);
  EXPECT_EQ(subjects_of(all[0]), (std::vector<std::string>{"backward/small", "backward/flash"}));
  EXPECT_EQ(only(all[1], "backward/flash").points.size(), 3U);
  ASSERT_EQ(slices(sweep, {{"d", "40"}}).size(), 1U);
  EXPECT_EQ(slices(sweep, {{"d", "40"}, {"M", "1024"}}).front().points.size(), 2U);
  EXPECT_TRUE(slices(sweep, {{"d", "17"}}).empty());
}

TEST(Figures, Figure1HasEveryPointThatFitsAndTheBound) {
  const Sweep sweep = example();
  const Picture picture = figure1_picture(slices(sweep, {{"d", "40"}}).front());
  std::istringstream bounds(data(picture, "$bound"));
  std::istringstream small(data(picture, "$curve0"));
  for (const Index M : {1024, 2048, 4096}) {
    Index at = 0, words = 0;
    double ratio = 0;
    bounds >> at >> words >> ratio;
    EXPECT_EQ(at, M);
    const Index bound =
        largest(lower_bounds({.pass = Pass::backward, .shape = {100, 50, 40}, .M = M})).words;
    EXPECT_EQ(words, bound);
    EXPECT_EQ(ratio, 1);
    small >> at >> words >> ratio;
    EXPECT_EQ(at, M);
    EXPECT_EQ(words, 100000 * 40 / M);
    EXPECT_NEAR(ratio, static_cast<double>(words) / static_cast<double>(bound), 1e-12 * ratio);
  }
  const std::string flash = data(picture, "$curve1");
  EXPECT_EQ(std::ranges::count(flash, '\n'), 2) << "what does not fit is not drawn";
  EXPECT_NE(picture.commands.find("from 1600, graph 0"), std::string::npos) << "M = d^2";
}

// The bound is of one machine and one head: words of others would lie below it, or far above.
TEST(Figures, Figure1IsOfOneThreadAndOneHead) {
  for (const char* several : {"threads", "heads"}) {
    Sweep sweep = example();
    for (Swept& point : sweep.points) {
      point.point.arguments.set(several, Index{2});
    }
    EXPECT_THROW(figure1_picture(slices(sweep, {{"d", "8"}}).front()), InputError) << several;
  }
}

// What reads A2 and A3 as one is no curve over the bound of those that do not; alone it has its
// own.
TEST(Figures, Figure1KeepsKernelsOfOneSourceApart) {
  Sweep sweep{.how = "run", .suite = {}, .points = {}};
  for (const Index M : {1024, 2048}) {
    sweep.points.push_back(swept("backward/rows-shared", 8, M, 100000));
  }
  const Picture shared = figure1_picture(slices(sweep).front());
  EXPECT_FALSE(data(shared, "$curve0").empty());
  Index at = 0, words = 0;
  std::istringstream(data(shared, "$bound")) >> at >> words;
  const Task task{.pass = Pass::backward, .shape = {100, 50, 8}, .M = 1024};
  EXPECT_LT(words, largest(lower_bounds(task)).words);
  EXPECT_GT(words, 0);

  for (const Index M : {1024, 2048}) {
    sweep.points.push_back(swept("backward/rows", 8, M, 200000));
  }
  const Picture mixed = figure1_picture(slices(sweep).front());
  ASSERT_EQ(mixed.data.size(), 2U) << "a curve and the bound";
  EXPECT_TRUE(data(mixed, "$curve0").starts_with("1024 200000 "));
  std::istringstream(data(mixed, "$bound")) >> at >> words;
  EXPECT_EQ(words, largest(lower_bounds(task)).words);
}

TEST(Figures, PhasesAddUpToTheWords) {
  const Sweep sweep = example();
  const Picture picture =
      phases_picture(only(slices(sweep, {{"d", "8"}}).front(), "backward/small"));
  std::istringstream lines(data(picture, "$words"));
  for (const Index M : {1024, 2048, 4096}) {
    Index at = 0, a = 0, b = 0;
    lines >> at >> a >> b;
    EXPECT_EQ(at, M);
    EXPECT_EQ(a + b, 100000 * 8 / M);
  }
}

TEST(Figures, RooflineIsOfWhatWasTimed) {
  Sweep sweep = example();
  EXPECT_THROW(roofline_picture(slices(sweep)), InputError);
  double peak = 100;
  for (Swept& point : sweep.points) {
    point.speed = Speed{.gflops = 5, .peak_gflops = peak++, .words_per_second = 2e9};
  }
  const Picture picture = roofline_picture(slices(sweep));
  EXPECT_TRUE(data(picture, "$points0").starts_with("0.1 5\n")) << "10 flops a word";
  EXPECT_NE(picture.commands.find("106 GF/s"), std::string::npos) << "the median";
}

// A report of what several threads were timed with does without, and has its other figures.
TEST(Figures, RooflineIsOfOneThread) {
  Sweep sweep = example();
  for (Swept& point : sweep.points) {
    point.speed = Speed{.gflops = 5, .peak_gflops = 100, .words_per_second = 2e9};
  }
  EXPECT_EQ(figures_of(sweep, 0).size(), 2U + 1U);
  for (Swept& point : sweep.points) {
    point.point.arguments.set("threads", Index{2});
  }
  EXPECT_THROW(roofline_picture(slices(sweep)), InputError);
  EXPECT_EQ(figures_of(sweep, 4).size(), 4U) << "of phases";
  sweep.points.front().point.arguments.set("threads", Index{1});
  EXPECT_EQ(figures_of(sweep, 0).size(), 1U);
}

TEST(Figures, SayWhatIsMissing) {
  Sweep sweep{.how = "run", .suite = {}, .points = {}};
  sweep.points.push_back(swept("forward/small", 8, 1024, 10));
  sweep.points.push_back(swept("backward/small", 8, 1024, 10));
  EXPECT_THROW(figure1_picture(slices(sweep).front()), InputError) << "one size of M is no curve";
  EXPECT_THROW(phases_picture(slices(sweep).front()), InputError) << "of one kernel";
  EXPECT_TRUE(figures_of(sweep, 9).empty());
}

TEST(Figures, AllThatASweepHasThePointsFor) {
  const Sweep sweep = example();
  EXPECT_EQ(figures_of(sweep, 9).size(), 2U + 4U);
  EXPECT_EQ(figures_of(sweep, 1).size(), 2U + 1U);
}

}  // namespace
}  // namespace redblue
