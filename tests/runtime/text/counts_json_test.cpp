// Tests that counts come back unchanged from their JSON, and that unknown counts have no keys.

#include "runtime/text/counts_json.hpp"

#include <gtest/gtest.h>

namespace redblue {
namespace {

TEST(CountsJson, IsTheCountsAgain) {
  RunCounts counts{
      .phases = {{"one", {1000, 200}, {7, 8}, 50, {9, 1}}, {"two/deep", {301, 0}, {0, 9}, 40}},
      .total = {"", {1301, 200}, {7, 17}, 50, {9, 1}}};
  EXPECT_EQ(counts_json(counts).dump(),
            R"({"phases":[["one",1000,200,50,7,8,9,1],["two/deep",301,0,40,0,9,0,0]],)"
            R"("total":["",1301,200,50,7,17,9,1]})");
  EXPECT_EQ(parse_run_counts(counts_json(counts)), counts);
  counts.largest = 1501;
  counts.span = 64;
  counts.seconds = RunCounts::Seconds{.phases = {0.1, 1.0 / 3}, .total = 0.5};
  EXPECT_EQ(counts_json(counts).dump(),
            R"({"phases":[["one",1000,200,50,7,8,9,1],["two/deep",301,0,40,0,9,0,0]],)"
            R"("seconds":[0.1,0.3333333333333333],"total":["",1301,200,50,7,17,9,1],)"
            R"("largest":1501,"total_seconds":0.5,"span":64})");
  EXPECT_EQ(parse_run_counts(counts_json(counts)), counts);
}

}  // namespace
}  // namespace redblue
