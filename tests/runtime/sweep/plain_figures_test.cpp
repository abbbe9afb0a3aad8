// Tests pictures of kernels that have only counts. They have every point, over any size, and
// neither bounds nor d^2.

#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/sweep/figures.hpp"
#include "tests/support/phase_counts.hpp"

namespace redblue {
namespace {

Swept plain_swept(const std::string& subject, Index rows, Index columns, Index M, Index words) {
  Swept made{.point = {subject, {}},
             .kernel = subject,
             .blocks = {},
             .total = {.counts = phase_counts("", words, 0, 0)},
             .phases = {{.counts = phase_counts("a", words - 1, 0, 0)},
                        {.counts = phase_counts("b", 1, 0, 0)}},
             .bound = std::nullopt,
             .speed = std::nullopt};
  made.point.arguments.set("rows", rows);
  made.point.arguments.set("columns", columns);
  made.point.arguments.set("M", M);
  return made;
}

Slice plain_slice(const Sweep& sweep, const std::string& over,
                  const std::map<std::string, std::string>& where = {}) {
  const std::vector<Slice> found = slices(points_of(sweep, where), over, plain_family());
  EXPECT_EQ(found.size(), 1U);
  return found.front();
}

Sweep plain_grid() {
  Sweep sweep{.how = "run", .suite = "{}", .points = {}};
  for (const Index rows : {4, 8}) {
    for (const Index M : {10, 30, 70}) {
      sweep.points.push_back(plain_swept("copy/rows", rows, 5, M, 1000 * rows / M));
      sweep.points.push_back(plain_swept("copy/all", rows, 5, M, 2000 * rows / M));
    }
  }
  return sweep;
}

TEST(PlainFigures, HaveTheWordsOfEveryKernel) {
  const Sweep sweep = plain_grid();
  const Picture picture = words_picture(plain_slice(sweep, "M", {{"rows", "8"}}));
  EXPECT_EQ(picture.title, "Words of 2 kernels: rows = 8, columns = 5");
  EXPECT_EQ(picture.x_label, "M, words of fast memory");
  ASSERT_EQ(picture.data.size(), 2U);
  EXPECT_EQ(picture.data[0].second, "10 800 0\n30 266 0\n70 114 0\n");
  EXPECT_EQ(picture.data[1].second, "10 1600 0\n30 533 0\n70 228 0\n");
  for (const char* none : {"bound", "d^", "once"}) {
    EXPECT_EQ(picture.commands.find(none), std::string::npos) << none;
  }
}

TEST(PlainFigures, AreOverAnySize) {
  const Sweep sweep = plain_grid();
  const Picture picture = words_picture(plain_slice(sweep, "rows", {{"M", "10"}}));
  EXPECT_EQ(picture.x_label, "rows");
  EXPECT_EQ(picture.title, "Words of 2 kernels: columns = 5, M = 10");
  EXPECT_EQ(picture.data[0].second, "4 400 0\n8 800 0\n");
  EXPECT_EQ(plain_family().axes(points_of(sweep)), (std::vector<std::string>{"M", "rows"}));

  // A size that always equals another one shares its axis.
  Sweep square{.how = "run", .suite = "{}", .points = {}};
  for (const Index n : {4, 8, 16}) {
    square.points.push_back(plain_swept("copy/rows", n, n, 10, n * n));
  }
  const Slice slice = plain_slice(square, "rows");
  EXPECT_EQ(slice.points.size(), 3U);
  EXPECT_EQ(words_picture(slice).x_label, "rows = columns");
  EXPECT_EQ(words_picture(slice).title, "Words of copy/rows: M = 10");
  EXPECT_EQ(differing(points_of(square), plain_family()).size(), 1U);
}

TEST(PlainFigures, LeaveOutWhatDoesNotFit) {
  Sweep sweep = plain_grid();
  for (Swept& point : sweep.points) {
    point.fits = point.size("M") > 10;
  }
  const Picture picture = words_picture(plain_slice(sweep, "M", {{"rows", "8"}}));
  EXPECT_EQ(picture.data[0].second, "30 266 0\n70 114 0\n");
  for (Swept& point : sweep.points) {
    point.fits = point.size("M") > 30;
  }
  EXPECT_THROW(words_picture(plain_slice(sweep, "M", {{"rows", "8"}})), InputError)
      << "one size is no curve";
}

// Each slice has a picture of its words, and one for each kernel by phase.
TEST(PlainFigures, OfAReportAreAllThatThePointsAllow) {
  const Sweep sweep = plain_grid();
  EXPECT_EQ(plain_figures(sweep, 0).size(), 2U);
  const std::vector<Picture> figures = plain_figures(sweep, 3);
  ASSERT_EQ(figures.size(), 2U + 3U);
  EXPECT_EQ(figures[2].title, "Where the words of copy/rows go: rows = 4, columns = 5");
}

}  // namespace
}  // namespace redblue
