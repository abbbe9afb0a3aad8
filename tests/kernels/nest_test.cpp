// The loop nest of a plan moves the words of the formula, phase by phase, and its resident words
// fit.

#include "kernels/nest.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "memsim/errors.hpp"
#include "runtime/report/nest_report.hpp"
#include "tests/support/run_kernel.hpp"

namespace redblue {
namespace {

constexpr NestLine::Kind kLoop = NestLine::Kind::loop;

// ------------------------------------------------------------------------------- every kernel

// The words that one phase moves, and the most words that stay in one of its loops and the loops
// around it.
struct PhaseOfNest {
  Words reads, writes, stays;
};

std::map<std::string, PhaseOfNest> phases_of(const Nest& nest) {
  std::map<std::string, PhaseOfNest> phases;
  std::vector<Words> staying;  // by depth
  for (const NestLine& line : nest) {
    PhaseOfNest& phase = phases[line.phase];
    phase.reads += line.reads;
    phase.writes += line.writes;
    staying.resize(static_cast<std::size_t>(line.depth), 0);
    Words all = 0;
    for (const Words words : staying) {
      all += words;
    }
    if (line.kind == kLoop) {
      Words own = 0;
      for (const NestLine::Stay& stay : line.stays) {
        own += stay.words;
      }
      staying.push_back(own);
      all += own;
    }
    phase.stays = std::max(phase.stays, all);
  }
  return phases;
}

void check(const Plan& plan) {
  SCOPED_TRACE(to_string(plan));
  const Nest nest = report_nest(plan).lines;
  std::map<std::string, PhaseOfNest> phases = phases_of(nest);
  for (const PhaseCost& cost : plan.phases) {
    ASSERT_TRUE(phases.contains(cost.path)) << cost.path;
    const PhaseOfNest& found = phases.at(cost.path);
    EXPECT_EQ(found.reads.value(), cost.reads.value()) << "reads of " << cost.path;
    EXPECT_EQ(found.writes.value(), cost.writes.value()) << "writes of " << cost.path;
    EXPECT_LE(found.stays.value(), cost.peak.value()) << "what stays in " << cost.path;
    phases.erase(cost.path);
  }
  for (const auto& [path, left] : phases) {  // a loop around several phases
    EXPECT_EQ(left.reads + left.writes, Words(0)) << "in no phase: '" << path << "'";
  }
  Index deepest = 0;
  for (const NestLine& line : nest) {
    Words reads, writes;
    for (const NestLine::Move& move : line.moves) {
      reads += move.reads;
      writes += move.writes;
    }
    EXPECT_EQ(line.reads, reads) << "by matrix: " << line.text;
    EXPECT_EQ(line.writes, writes) << "by matrix: " << line.text;
    EXPECT_LE(line.depth, deepest) << line.text << " is in no loop";
    deepest = line.depth + (line.kind == kLoop ? 1 : 0);
    EXPECT_FALSE(line.text.empty());
    EXPECT_EQ(line.trips > 0 && line.block > 0, line.kind == kLoop) << line.text;
  }
}

class NestOf : public testing::TestWithParam<std::string> {};

// Sizes: 1, primes, blocks that do not divide, the least M, and more than the problem.
TEST_P(NestOf, MovesWhatTheFormulaSays) {
  const TestedKernel kernel = tested_kernel(GetParam());
  int plans = 0;
  for (const Shape& shape :
       {Shape{1, 1, 1}, Shape{1, 7, 3}, Shape{7, 1, 3}, Shape{5, 3, 1}, Shape{13, 13, 5},
        Shape{17, 29, 11}, Shape{64, 64, 8}, Shape{100, 37, 16}, Shape{31, 101, 23},
        Shape{257, 129, 33}, Shape{1000, 1000, 48}, Shape{40, 50, 7, 12}, Shape{53, 41, 16, 3}}) {
    const auto [n, m, d] = shape;
    if (shape.dv != d && !kernel.takes_dv()) {
      continue;
    }
    for (const Index prefetch : {1, 2, 3}) {
      if (prefetch > 1 && !kernel.streams_keys()) {
        continue;
      }
      const Index least = kernel.least_M(shape, prefetch);
      const Index everything = least + 4 * (n * d + m * d + d * d + n * m);
      for (const Index M : {least, least + 1, least + d, 2 * least, 3 * least + 7, 8 * least,
                            (least + everything) / 2, everything, 10 * everything}) {
        check(kernel.plan(shape, M, Objective::words, prefetch));
        check(kernel.plan(shape, M, Objective::time, prefetch));
        plans += 2;
      }
    }
  }
  EXPECT_GE(plans, 100);
}

// Any blocks, including blocks larger than the problem.
TEST_P(NestOf, MovesWhatTheFormulaSaysWithAnyBlocks) {
  const TestedKernel kernel = tested_kernel(GetParam());
  std::mt19937_64 random(1);
  const auto up_to = [&](Index most) {
    return 1 + static_cast<Index>(random() % static_cast<std::uint64_t>(most));
  };
  for (int k = 0; k < 500; ++k) {
    const Shape shape{up_to(40), up_to(40), up_to(20)};
    const Index most = 2 * std::max({shape.n, shape.m, shape.d});
    // At a larger M a plan may have more blocks, of products made before.
    const Index M = up_to(4 * kernel.least_M(shape));
    const Objective objective = k % 5 == 0 ? Objective::time : Objective::words;
    Blocks blocks = kernel.blocks(shape, M, objective, kernel.streams_keys() ? up_to(3) : 1);
    for (const OptionalBlock& optional : kernel.kernel->fitting.optional_blocks) {
      if (!blocks.contains(optional.name) && k % 2 == 0) {
        blocks.add(std::string(optional.name), 1);
      }
    }
    for (const auto& [name, size] : Blocks(blocks)) {
      blocks.set(name, up_to(k % 3 == 0 ? 4 : most));
    }
    check(kernel.plan(shape, 1, blocks));
  }
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const TestedKernel& kernel : tested_kernels()) {
    all.push_back(kernel.name);
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Registry, NestOf, testing::ValuesIn(names()),
                         [](const auto& tested) { return test_name(tested.param); });

// ----------------------------------------------------------------------------------- a writer

// Returns the words of the only step inside these loops.
template <class Loops>
Words read_of(const NestTile& tile, const Loops& loops) {
  NestWriter nest;
  const auto enter = [&](const auto& self, std::size_t next) -> void {
    if (next == loops.size()) {
      nest.read({tile});
    } else {
      nest.loop(loops[next], [&] { self(self, next + 1); });
    }
  };
  enter(enter, 0);
  return nest.lines().back().reads;
}

// 10 rows in blocks of 4, 4, 2 and 7 keys in blocks of 3, 3, 1: counted by hand.
TEST(NestTile, MovesInEachPassOfTheLoopsThatDoNotChooseIt) {
  const NestLoop I("I", "queries", 10, 4);
  const NestLoop J("J", "keys", 7, 3);
  const NestLoop P = I.pieces("P", 3);  // 3, 1, 3, 1, 2
  const std::vector<NestLoop> both = {I, J};
  EXPECT_EQ(read_of({"S", I, 5}, both), Words(3) * 50);
  EXPECT_EQ(read_of({"A", J, 5}, both), Words(3) * 35);
  EXPECT_EQ(read_of({"s", I, J}, both), Words(70));
  EXPECT_EQ(read_of({"x", 2, 5}, both), Words(9) * 10);
  EXPECT_EQ(read_of(NestTile("S", I, 5).once(J), both), Words(50));
  EXPECT_EQ(read_of(NestTile("S", I, 5).but_once(J), both), Words(2) * 50);
  EXPECT_EQ(read_of(NestTile("A", J, 5).once(J), both), Words(3) * 15);
  EXPECT_EQ(read_of(NestTile("A", J, 5).but_once(J), both), Words(3) * 20);
  EXPECT_EQ(read_of({"S", P, 5}, std::vector{I, J, P}), Words(3) * 50);
  EXPECT_THROW(static_cast<void>(read_of({"A", J, 5}, std::vector{I, J, P})), ShapeMismatch);
  EXPECT_EQ(NestTile("s", P, J).text(), "s_PJ");
  EXPECT_EQ(NestTile("s", P, J).largest(), Words(9));
  EXPECT_EQ(NestTile("g", 5, 5).text(), "g");
}

TEST(NestWriter, WritesLinesInTheShapeOfTheLoops) {
  const NestLoop I("I", "queries", 10, 4);
  const NestLoop P = I.pieces("P", 3);
  const NestLoop none("K", "columns", 0, 4);
  NestWriter nest;
  nest.phase("phase1", [&] {
    nest.loop(I, [&] {
      nest.phase("S", [&] {
        nest.loop(P, {{"S", I, 5}, {"L", I}, {"empty", I, 0}}, [&] {
          nest.step("s_P", {{"A", P, 2}}, {{"s", P}});
        });
      });
      nest.loop(none, [&] { nest.step("never"); });
      nest.write({{"S", I, 5}, {"L", I}});
    });
  });
  const Nest& lines = nest.lines();
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[0].text, "for I in queries");
  EXPECT_EQ(lines[0].phase, "phase1");
  EXPECT_EQ(lines[0].trips, 3);
  EXPECT_EQ(lines[0].block, 4);
  EXPECT_EQ(lines[1].text, "for P in I");
  EXPECT_EQ(lines[1].phase, "phase1/S");
  EXPECT_EQ(lines[1].depth, 1);
  EXPECT_EQ(lines[1].trips, 2);
  EXPECT_EQ(lines[1].block, 3);
  ASSERT_EQ(lines[1].stays.size(), 2U);
  EXPECT_EQ(lines[1].stays[0].name, "S_I");
  EXPECT_EQ(lines[1].stays[0].words, Words(20));
  EXPECT_EQ(lines[1].stays[1].words, Words(4));
  EXPECT_EQ(lines[2].depth, 2);
  EXPECT_EQ(lines[2].reads, Words(20));
  EXPECT_EQ(lines[2].writes, Words(10));
  EXPECT_EQ(lines[3].text, "write S_I, L_I");
  EXPECT_EQ(lines[3].phase, "phase1");
  EXPECT_EQ(lines[3].writes, Words(60));
}

}  // namespace
}  // namespace redblue
