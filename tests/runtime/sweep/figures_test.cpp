// Tests pictures of a sweep. They have every point that fits, once, over the size that varies, and
// the bound that the library proves. If there is no point to draw, a message gives the reason.

#include <sstream>

#include <gtest/gtest.h>

#include "runtime/subjects/kernel_figures.hpp"
#include "runtime/theory/bounds.hpp"
#include "tests/support/phase_counts.hpp"

namespace redblue {
namespace {

Swept swept(const std::string& subject, const Shape& shape, Index M, Index words,
            bool fits = true) {
  Swept made{.point = {subject, {}},
             .kernel = subject,
             .blocks = "B=1",
             .fits = fits,
             .total = {.counts = phase_counts("", words, 0, 0), .formula = {}},
             .phases = {{.counts = phase_counts("a", words - 3, 0, 0), .formula = {}},
                        {.counts = phase_counts("b", 3, 0, 0), .formula = {}}},
             .bound = 1,
             .speed = std::nullopt};
  made.total.counts.operations.flops = 10 * words;
  for (const auto& [name, value] :
       {std::pair("n", shape.n), {"m", shape.m}, {"d", shape.d}, {"M", M}, {"threads", Index{1}}}) {
    made.point.arguments.set(name, value);
  }
  return made;
}

Swept swept(const std::string& subject, Index d, Index M, Index words, bool fits = true) {
  return swept(subject, Shape{100, 50, d}, M, words, fits);
}

// Returns the only slice over that size, for points with these arguments.
Slice slice_of(const Sweep& sweep, const std::map<std::string, std::string>& where = {},
               std::string_view over = "M") {
  std::vector<Slice> found = slices(points_of(sweep, where), over, kernel_family());
  EXPECT_EQ(found.size(), 1U);
  return found.front();
}

Sweep example() {
  Sweep sweep{.how = "run", .suite = {}, .points = {}};
  for (const Index d : {8, 40}) {
    for (const Index M : {4096, 1024, 2048}) {  // out of order
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

TEST(Figures, ASliceDiffersInNothingButSubjectAndItsAxis) {
  const Sweep sweep = example();
  const std::vector<Slice> all = slices(points_of(sweep), "M", kernel_family());
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(to_string(all[0].common), "n=100 m=50 d=8");
  EXPECT_EQ(all[0].points.size(), 6U);
  EXPECT_EQ(subjects_of(all[0].points),
            (std::vector<std::string>{"backward/small", "backward/flash"}));
  EXPECT_EQ(only(all[1].points, "backward/flash").size(), 3U);
  EXPECT_EQ(points_of(sweep, {{"d", "40"}, {"M", "1024"}}).size(), 2U);
  EXPECT_TRUE(points_of(sweep, {{"d", "17"}}).empty());

  const std::vector<Slice> over_d = slices(points_of(sweep), "d", kernel_family());
  ASSERT_EQ(over_d.size(), 3U);
  EXPECT_EQ(to_string(over_d[0].common), "n=100 m=50 M=4096");
  EXPECT_EQ(over_d[0].points.size(), 4U);
  const std::vector<Differing> differ = differing(points_of(sweep), kernel_family());
  ASSERT_EQ(differ.size(), 2U);
  EXPECT_EQ(differ[0].name, "d");
  EXPECT_EQ(differ[0].values, (std::vector<std::string>{"8", "40"}));
  EXPECT_EQ(differ[1].name, "M");
}

// If m = n at all points, the keys grow with n. Otherwise m is fixed.
TEST(Figures, KeysGrowWithQueries) {
  Sweep sweep{.how = "run", .suite = {}, .points = {}};
  for (const Index n : {64, 128, 256}) {
    sweep.points.push_back(swept("backward/small", {n, n, 8}, 1024, 1000 * n));
  }
  EXPECT_EQ(differing(points_of(sweep), kernel_family()).size(), 1U);
  Slice slice = slice_of(sweep, {}, "n");
  EXPECT_EQ(to_string(slice.common), "d=8 M=1024");
  EXPECT_EQ(figure1_picture(slice).x_label, "n = m, queries and keys");

  sweep.points.push_back(swept("backward/small", {128, 64, 8}, 1024, 100));
  EXPECT_EQ(differing(points_of(sweep), kernel_family()).size(), 2U) << "n and m";
  slice = slice_of(sweep, {{"m", "64"}}, "n");
  EXPECT_EQ(to_string(slice.common), "m=64 d=8 M=1024");
  EXPECT_EQ(figure1_picture(slice).x_label, "n, queries");
}

TEST(Figures, Figure1HasEveryPointThatFitsAndTheBound) {
  const Sweep sweep = example();
  const Picture picture = figure1_picture(slice_of(sweep, {{"d", "40"}}));
  std::istringstream bounds(data(picture, "$bound")), once(data(picture, "$once"));
  std::istringstream small(data(picture, "$curve0"));
  for (const Index M : {1024, 2048, 4096}) {
    Index at = 0, words = 0;
    double ratio = 0;
    bounds >> at >> words >> ratio;
    EXPECT_EQ(at, M);
    const std::vector<Bound> all =
        lower_bounds({.pass = Pass::backward, .problem = {100, 50, 40}, .memory = M});
    const Index bound = largest(all).words;
    EXPECT_EQ(words, bound);
    EXPECT_EQ(ratio, 1);
    once >> at >> words >> ratio;
    EXPECT_EQ(at, M);
    EXPECT_EQ(words, largest(all, {.recomputes = false}).words);
    EXPECT_NEAR(ratio, static_cast<double>(words) / static_cast<double>(bound), 1e-12 * ratio);
    small >> at >> words >> ratio;
    EXPECT_EQ(at, M);
    EXPECT_EQ(words, 100000 * 40 / M);
    EXPECT_NEAR(ratio, static_cast<double>(words) / static_cast<double>(bound), 1e-12 * ratio);
  }
  const std::string flash = data(picture, "$curve1");
  EXPECT_EQ(std::ranges::count(flash, '\n'), 2) << "what does not fit is not drawn";
  EXPECT_NE(picture.commands.find("from 1600, graph 0"), std::string::npos) << "M = d^2";
}

// The same picture over n and over d, with the bound of each shape, and a line where d^2 = M.
TEST(Figures, Figure1OverQueriesAndOverD) {
  Sweep sweep{.how = "run", .suite = {}, .points = {}};
  for (const Index size : {16, 32, 64}) {
    sweep.points.push_back(swept("backward/small", {100 * size, 50, 8}, 1024, 1000000));
    sweep.points.push_back(swept("backward/small", {100, 50, size}, 1024, 1000000));
  }
  for (const auto& [over, where] : {std::pair<std::string, std::string>{"n", "d"}, {"d", "n"}}) {
    const std::string fixed = over == "n" ? "8" : "100";
    const Picture picture = figure1_picture(slice_of(sweep, {{where, fixed}}, over));
    EXPECT_TRUE(picture.x_label.starts_with(over + ", ")) << picture.x_label;
    EXPECT_EQ(picture.title.find(over + " ="), std::string::npos) << picture.title;
    EXPECT_NE(picture.title.find("M = 1K"), std::string::npos) << picture.title;
    std::istringstream bounds(data(picture, "$bound"));
    for (const Index size : {16, 32, 64}) {
      const Shape shape = over == "n" ? Shape{100 * size, 50, 8} : Shape{100, 50, size};
      Index at = 0, words = 0, ratio = 0;
      bounds >> at >> words >> ratio;
      EXPECT_EQ(at, over == "n" ? shape.n : shape.d);
      EXPECT_EQ(
          words,
          largest(lower_bounds({.pass = Pass::backward, .problem = Problem(shape), .memory = 1024}))
              .words);
    }
    EXPECT_EQ(picture.commands.find("from 32, graph 0") != std::string::npos, over == "d");
    EXPECT_EQ(picture.commands.find("'d^{2} = M'") != std::string::npos, over == "d");
  }
}

// The planner's choice matters most, so it comes first and has the line without dashes.
TEST(Figures, Figure1BeginsWithAuto) {
  Sweep sweep{.how = "run", .suite = {}, .points = {}};
  for (const Index M : {1024, 2048}) {
    sweep.points.push_back(swept("backward/small", 8, M, 300000));
    sweep.points.push_back(swept("backward/auto", 8, M, 200000));
  }
  const Picture picture = figure1_picture(slice_of(sweep));
  EXPECT_TRUE(data(picture, "$curve0").starts_with("1024 200000 "));
  EXPECT_LT(picture.commands.find("'auto'"), picture.commands.find("'small'"));
}

// The axis above the plot has the multiples of d^2 within its range.
TEST(Figures, MIsAlsoInUnitsOfDSquared) {
  const Sweep sweep = example();
  const Picture picture = figure1_picture(slice_of(sweep, {{"d", "40"}}));
  EXPECT_TRUE(picture.words_above);
  EXPECT_NE(picture.commands.find("'d^{2}' at first 1600,"), std::string::npos);
  EXPECT_EQ(picture.commands.find("'4 d^{2}'"), std::string::npos) << "6400 is outside";
  EXPECT_NE(
      figure1_picture(slice_of(sweep, {{"d", "8"}})).commands.find("'16 d^{2}' at first 1024"),
      std::string::npos);
}

// Powers of two have labels. Measured sizes between them have none.
TEST(Figures, TicsArePowersOfTwo) {
  Sweep sweep{.how = "run", .suite = {}, .points = {}};
  for (const Index M : {2896, 4096, 5793, 8192, 11585}) {
    sweep.points.push_back(swept("backward/small", 8, M, 100000));
  }
  const Slice slice = slice_of(sweep);
  for (const Picture& picture : {phases_picture(slice), figure1_picture(slice)}) {
    EXPECT_NE(picture.commands.find("set xtics ('4K' 4096, '8K' 8192)"), std::string::npos)
        << picture.commands;
    EXPECT_EQ(picture.commands.find("5793'"), std::string::npos);
  }
}

// The bound holds for one machine and one head. The words of several would lie below it, or far
// above.
TEST(Figures, Figure1IsOfOneThreadAndOneHead) {
  for (const char* several : {"threads", "heads"}) {
    Sweep sweep = example();
    for (Swept& point : sweep.points) {
      point.point.arguments.set(several, Index{2});
    }
    EXPECT_THROW(figure1_picture(slice_of(sweep, {{"d", "8"}})), InputError) << several;
  }
}

// A kernel that reads A2 = A3 once is not drawn over the bound for two matrices. Alone, it has its
// own bound.
TEST(Figures, Figure1KeepsKernelsOfOneSourceApart) {
  Sweep sweep{.how = "run", .suite = {}, .points = {}};
  for (const Index M : {1024, 2048}) {
    sweep.points.push_back(swept("backward/rows-shared", 8, M, 100000));
  }
  const Picture shared = figure1_picture(slice_of(sweep));
  EXPECT_FALSE(data(shared, "$curve0").empty());
  Index at = 0, words = 0;
  std::istringstream(data(shared, "$bound")) >> at >> words;
  const Task task{.pass = Pass::backward, .problem = {100, 50, 8}, .memory = 1024};
  EXPECT_LT(words, largest(lower_bounds(task)).words);
  EXPECT_GT(words, 0);

  for (const Index M : {1024, 2048}) {
    sweep.points.push_back(swept("backward/rows", 8, M, 200000));
  }
  const Picture mixed = figure1_picture(slice_of(sweep));
  ASSERT_EQ(mixed.data.size(), 3U) << "a curve and two bounds";
  EXPECT_TRUE(data(mixed, "$curve0").starts_with("1024 200000 "));
  std::istringstream(data(mixed, "$bound")) >> at >> words;
  EXPECT_EQ(words, largest(lower_bounds(task)).words);
}

TEST(Figures, PhasesAddUpToTheWords) {
  const Sweep sweep = example();
  const Picture picture = phases_picture(
      slices(only(points_of(sweep, {{"d", "8"}}), "backward/small"), "M", kernel_family()).front());
  std::istringstream lines(data(picture, "$words"));
  for (const Index M : {1024, 2048, 4096}) {
    double at = 0, begin = 0, end = 0;
    Index none = -1, first = 0, both = 0;
    lines >> at >> begin >> end >> none >> first >> both;
    EXPECT_EQ(at, M);
    EXPECT_LT(begin, at);
    EXPECT_GT(end, at);
    EXPECT_EQ(none, 0);
    EXPECT_EQ(first, 100000 * 8 / M - 3);
    EXPECT_EQ(both, 100000 * 8 / M);
  }
}

TEST(Figures, RooflineIsOfWhatWasTimed) {
  Sweep sweep = example();
  EXPECT_THROW(roofline_picture(points_of(sweep)), InputError);
  double peak = 100;
  for (Swept& point : sweep.points) {
    point.speed = Speed{.gflops = 5, .peak_gflops = peak++, .words_per_second = 2e9};
  }
  const Picture picture = roofline_picture(points_of(sweep));
  EXPECT_TRUE(data(picture, "$points0").starts_with("0.1 5\n")) << "10 flops a word";
  EXPECT_NE(picture.commands.find("106 GF/s"), std::string::npos) << "the median";
}

// A report of points that were timed with several threads has no roofline, but its other figures.
TEST(Figures, RooflineIsOfOneThread) {
  Sweep sweep = example();
  for (Swept& point : sweep.points) {
    point.speed = Speed{.gflops = 5, .peak_gflops = 100, .words_per_second = 2e9};
  }
  EXPECT_EQ(figures_of(sweep, 0).size(), 2U + 1U);
  for (Swept& point : sweep.points) {
    point.point.arguments.set("threads", Index{2});
  }
  EXPECT_THROW(roofline_picture(points_of(sweep)), InputError);
  EXPECT_EQ(figures_of(sweep, 4).size(), 4U) << "of phases";
  sweep.points.front().point.arguments.set("threads", Index{1});
  EXPECT_EQ(figures_of(sweep, 0).size(), 1U);
}

TEST(Figures, SayWhatIsMissing) {
  Sweep sweep{.how = "run", .suite = {}, .points = {}};
  sweep.points.push_back(swept("forward/small", 8, 1024, 10));
  sweep.points.push_back(swept("backward/small", 8, 1024, 10));
  EXPECT_THROW(figure1_picture(slice_of(sweep)), InputError) << "one size of M is no curve";
  EXPECT_THROW(phases_picture(slice_of(sweep)), InputError) << "of one kernel";
  EXPECT_TRUE(figures_of(sweep, 9).empty());
}

// For a grid, the figures are over the size with the most values. A suite may have figures over two
// sizes.
TEST(Figures, AReportHasFiguresOverWhatVariesMost) {
  Sweep sweep{.how = "run", .suite = {}, .points = {}};
  for (const char* subject : {"backward/small", "backward/flash"}) {
    for (const Index n : {64, 128, 256, 512}) {
      for (const Index M : {1024, 2048}) {
        sweep.points.push_back(swept(subject, {n, n, 8}, M, 10000 * n));
      }
    }
    for (const Index d : {4, 16, 32}) {
      sweep.points.push_back(swept(subject, {100, 50, d}, 4096, 10000));
    }
  }
  const std::vector<Picture> figures = figures_of(sweep, 0);
  ASSERT_EQ(figures.size(), 3U);
  EXPECT_EQ(figures[0].title, "Words of backward passes: d = 8, M = 1K");
  EXPECT_EQ(figures[1].title, "Words of backward passes: d = 8, M = 2K");
  EXPECT_EQ(figures[2].title, "Words of backward passes: n = 100, m = 50, M = 4K");
}

TEST(Figures, AllThatASweepHasThePointsFor) {
  const Sweep sweep = example();
  EXPECT_EQ(figures_of(sweep, 9).size(), 2U + 4U);
  EXPECT_EQ(figures_of(sweep, 1).size(), 2U + 1U);
}

// A size that only one kernel has is an axis for the points of that kernel alone.
TEST(Figures, AKernelMayLackASizeOfAnother) {
  Sweep sweep{.how = "run", .suite = {}, .points = {}};
  for (const Index M : {1024, 2048}) {
    sweep.points.push_back(swept("plain", 8, M, 1000));
    for (const Index Bc : {4, 16}) {
      sweep.points.push_back(swept("blocked", 8, M, 1000 + Bc));
      sweep.points.back().point.arguments.set("Bc", Bc);
    }
  }
  EXPECT_FALSE(plain_figures(sweep, 4).empty());
  for (const Slice& slice : slices(points_of(sweep), "Bc", plain_family())) {
    EXPECT_EQ(subjects_of(slice.points), std::vector<std::string>{"blocked"});
  }
}

// Marks and tics stay finite, however far a size is from d^2 and from its neighbour.
TEST(Figures, EndAtAnySize) {
  constexpr Index kHuge = INT64_MAX / 2, kWords = Index{1} << 58;
  Sweep sweep{.how = "run", .suite = {}, .points = {}};
  for (const Index M : {Index{1}, kHuge - 1, kHuge}) {
    sweep.points.push_back(swept("backward/small", 1, M, kWords));
    sweep.points.push_back(swept("backward/flash", 1, M, kWords));
  }
  EXPECT_FALSE(figures_of(sweep, 4).empty());
}

}  // namespace
}  // namespace redblue
