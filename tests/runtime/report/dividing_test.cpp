// Tests the M above which kernels by rows move fewer words than kernels by tiles, next to the M of
// Remark 4.7. Computes each point again from the kernels.

#include "runtime/report/dividing.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "runtime/run/rules.hpp"

namespace redblue {
namespace {

Problem family(const std::string& rule, Index n, Index d) {
  const auto rows = [&](const char* name) {
    return pattern_by_rule(parse_rule(rule), name, 1, n, d);
  };
  const BlockPattern X = pattern_by_rule(parse_rule("identity"), "X", 1, d, d);
  return Problem(n, n, d).with_sparsity({rows("A1"), X, rows("A2")});
}

// Remark 4.7 is right within a factor of sqrt(2) if supports mix. For a band, it is right if
// regrouping is not counted. For clusters, it is off by about their number.
TEST(Dividing, RemarkIsRightWhereSupportsMix) {
  struct Measured {
    const char* rule;
    Index remark, measured, without_prepare;
  };
  for (const auto& [rule, remark, measured, without_prepare] :
       {Measured{"random:16", 391, 362, 362}, Measured{"random:32", 1035, 1024, 1024},
        Measured{"random:64", 4096, 4096, 5792}, Measured{"powerlaw:32", 1024, 1024, 1024},
        Measured{"banded:32", 3920, 2048, 4096}, Measured{"clusters:24:8", 4608, 512, 724}}) {
    SCOPED_TRACE(rule);
    const Dividing report = report_dividing(family(rule, 1024, 256), {});
    ASSERT_TRUE(report.measured && report.remark);
    EXPECT_EQ(std::llround(*report.remark), remark);
    // A better plan may change it by one step.
    const auto steps = [](Index found, Index expected) {
      return std::abs(2 * std::log2(static_cast<double>(found) / static_cast<double>(expected)));
    };
    EXPECT_LE(steps(*report.measured, measured), 1.01) << *report.measured;
    ASSERT_TRUE(report.measured_without_prepare.has_value());
    EXPECT_LE(steps(*report.measured_without_prepare, without_prepare), 1.01)
        << *report.measured_without_prepare;
  }
}

TEST(Dividing, PointsAreWhatKernelsMove) {
  const Problem problem = family("random:6", 90, 24);
  const Dividing report = report_dividing(problem, {});
  Index M = 0, tiles_fit = 0, rows_fit = 0;
  bool fewer = false;
  for (const Dividing::Point& point : report.points) {
    EXPECT_EQ(point.M,
              static_cast<Index>(std::sqrt(std::pow(2.0, 14 + (&point - report.points.data())))));
    EXPECT_GT(point.M, M);
    M = point.M;
    const auto expect_words = [&](const std::optional<Dividing::Moved>& moved,
                                  std::string_view name) {
      const Kernel& kernel = find_kernel(name);
      ASSERT_EQ(moved.has_value(), kernel.least_M(problem) <= M);
      if (moved) {
        const PhaseCost all = total(kernel.plan(problem, M).phases);
        EXPECT_EQ(moved->words, (all.reads + all.writes).value());
        EXPECT_EQ(moved->index, (all.index_reads + all.index_writes).value());
      }
    };
    expect_words(point.tiles, kDividingTiles);
    expect_words(point.rows, kDividingRows);
    tiles_fit += point.tiles ? 1 : 0;
    rows_fit += point.rows ? 1 : 0;
    if (!fewer && point.tiles && point.rows && point.rows->words < point.tiles->words) {
      fewer = true;
      EXPECT_EQ(report.measured, M);
    }
  }
  EXPECT_TRUE(fewer);
  EXPECT_GE(M, 8 * *report.measured);
  EXPECT_GT(tiles_fit, 3);
  EXPECT_GT(rows_fit, 3);
  EXPECT_DOUBLE_EQ(*report.remark,
                   540. * 540. / static_cast<double>(problem.sparsity.pairs().value()));
}

// Without a live pair, the report ends and states no dividing point.
TEST(Dividing, WithoutAPair) {
  const BlockPattern none{5, 4, 1, 1, {0, 0, 0, 0, 0, 0}, {}};
  const BlockPattern X = pattern_by_rule(parse_rule("identity"), "X", 1, 4, 4);
  const Dividing report = report_dividing(Problem(5, 5, 4).with_sparsity({none, X, none}), {});
  EXPECT_EQ(report.remark, std::nullopt);
  EXPECT_LT(report.points.size(), 20U);
}

}  // namespace
}  // namespace redblue
