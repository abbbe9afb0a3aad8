// Kernels that stream keys, with several key blocks in fast memory at once. With row blocks of Br,
// key blocks of Bc and a prefetch of P, each matrix of keys has min(P Bc, m) d words in fast
// memory, instead of min(Bc, m) d. The moves, the operations and their order do not change.

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "memsim/errors.hpp"
#include "tests/kernels/contract.hpp"
#include "tests/support/print.hpp"
#include "tests/support/run_kernel.hpp"

namespace redblue {
namespace {

constexpr Index kPrefetches[] = {2, 3, 5};

// 1, primes, fewer keys than the prefetch, more queries than keys, and more keys than queries.
constexpr Shape kStreamedShapes[] = {{1, 1, 1},   {1, 2, 1},   {2, 1, 3},   {7, 3, 5},
                                     {13, 17, 2}, {31, 37, 4}, {64, 48, 8}, {5, 101, 3}};

std::vector<TestedKernel> streaming() {
  std::vector<TestedKernel> found;
  for (const TestedKernel& kernel : tested_kernels()) {
    if (kernel.streams_keys()) {
      found.push_back(kernel);
    }
  }
  return found;
}

Index sources(const TestedKernel& kernel) {
  return takes(kernel, "A3") || takes(kernel, "V") ? 2 : 1;
}

// Returns M from the least M to more than the whole problem.
std::vector<Index> some_M(const TestedKernel& kernel, const Shape& shape, Index prefetch) {
  const auto [n, m, d] = shape;
  const Index least = kernel.least_M(shape, prefetch);
  const Index everything = least + 4 * (n * d + m * d + d * d + n * m);
  return {least, least + 1, least + d, 2 * least, 5 * least, everything, 10 * everything};
}

TEST(Prefetch, IsOfTheKernelsThatPassOverKeysOnce) {
  std::vector<std::string> names;
  for (const TestedKernel& kernel : streaming()) {
    names.push_back(kernel.name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"forward/rows", "attention/rows", "backward/rows",
                                             "backward/rows-onepass", "forward/rows-shared",
                                             "attention/rows-shared", "backward/rows-shared",
                                             "backward/rows-onepass-shared"}));
}

TEST(Prefetch, OfOneIsNone) {
  for (const TestedKernel& kernel : tested_kernels()) {
    const Shape shape{13, 11, 4};
    const Index M = 3 * kernel.least_M(shape);
    const Plan plan = kernel.plan(shape, M, Objective::words, 1);
    EXPECT_EQ(plan.blocks, kernel.plan(shape, M).blocks);
    EXPECT_FALSE(plan.blocks.contains(kPrefetch));
    EXPECT_EQ(prefetch_of(plan.blocks), 1);
    EXPECT_EQ(kernel.least_M(shape, 1), kernel.least_M(shape));
  }
}

TEST(Prefetch, IsRefusedWhereNoKeysAreStreamed) {
  const Shape shape{13, 11, 4};
  for (const TestedKernel& kernel : tested_kernels()) {
    EXPECT_THROW(static_cast<void>(kernel.plan(shape, 10000, Objective::words, 0)), ShapeMismatch);
    if (kernel.streams_keys()) {
      continue;
    }
    EXPECT_THROW(static_cast<void>(kernel.plan(shape, 10000, Objective::words, 2)), ShapeMismatch);
    EXPECT_THROW(static_cast<void>(kernel.least_M(shape, 2)), ShapeMismatch);
    Plan plan = kernel.plan(shape, 10000);
    plan.blocks.add(std::string(kPrefetch), 2);
    EXPECT_THROW(static_cast<void>(kernel.plan(shape, 10000, plan.blocks)), ShapeMismatch);
    const TestProblem problem = make_problem(kernel, shape, 1);
    try {
      static_cast<void>(run_kernel(kernel, plan, problem));
      ADD_FAILURE() << kernel.name << " runs with a prefetch";
    } catch (const ShapeMismatch& error) {
      EXPECT_NE(std::string(error.what()).find(kernel.name), std::string::npos) << error.what();
    }
  }
}

// The core's peak matches, to the word, formulas written down independently of the code. Every
// other phase moves and holds the same words as without prefetch.
TEST(Prefetch, ChangesThePeakOfTheCoreAlone) {
  for (const TestedKernel& kernel : streaming()) {
    for (const Shape& shape : kStreamedShapes) {
      const auto [n, m, d] = shape;
      for (const Index prefetch : kPrefetches) {
        for (const Index M : some_M(kernel, shape, prefetch)) {
          const Plan plan = kernel.plan(shape, M, Objective::words, prefetch);
          SCOPED_TRACE(to_string(plan));
          const Plan in_turn = kernel.plan(shape, M, without_prefetch(plan.blocks));
          ASSERT_EQ(plan.phases.size(), in_turn.phases.size());
          const Index c = plan.blocks["Bc"];
          const Index more = sources(kernel) * d * (std::min(prefetch * c, m) - std::min(c, m));
          for (std::size_t k = 0; k < plan.phases.size(); ++k) {
            const PhaseCost& ahead = plan.phases[k];
            const PhaseCost& alone = in_turn.phases[k];
            EXPECT_EQ(ahead.path, alone.path);
            EXPECT_EQ(ahead.reads, alone.reads);
            EXPECT_EQ(ahead.writes, alone.writes);
            EXPECT_EQ(ahead.flops, alone.flops);
            EXPECT_EQ(ahead.peak.value(), alone.peak.value() + (ahead.path == "core" ? more : 0));
          }
          const auto expected = moved_by_contract<Index>(kernel.name, shape, plan.blocks);
          EXPECT_EQ(total(plan.phases).reads.value(), expected.reads);
          EXPECT_EQ(total(plan.phases).writes.value(), expected.writes);
        }
      }
    }
  }
}

// The least M adds to the least M without prefetch one key of each matrix for each further block.
TEST(Prefetch, OfTheLeastMIsOneKeyABlock) {
  for (const TestedKernel& kernel : streaming()) {
    for (const Shape& shape : kStreamedShapes) {
      for (const Index prefetch : kPrefetches) {
        EXPECT_EQ(
            kernel.least_M(shape, prefetch),
            kernel.least_M(shape) + sources(kernel) * shape.d * (std::min(prefetch, shape.m) - 1));
        EXPECT_NO_THROW(static_cast<void>(
            kernel.plan(shape, kernel.least_M(shape, prefetch), Objective::words, prefetch)));
      }
    }
  }
}

// Each matrix of keys takes up to a sixteenth of M, but at least one key in a block. The row blocks
// are as few as the rest of M allows.
TEST(Prefetch, TakesTheLargestRowBlocksBesideASixteenthOfM) {
  for (const TestedKernel& kernel : streaming()) {
    for (const Shape& shape : kStreamedShapes) {
      const auto [n, m, d] = shape;
      for (const Index prefetch : kPrefetches) {
        for (const Index M : some_M(kernel, shape, prefetch)) {
          const Plan plan = kernel.plan(shape, M, Objective::words, prefetch);
          SCOPED_TRACE(to_string(plan));
          const Index c = plan.blocks["Bc"];
          EXPECT_TRUE(c == 1 || prefetch * c * d * 16 <= M);
          EXPECT_TRUE(c == m || prefetch * (c + 1) * d * 16 > M);
          EXPECT_LE(total(plan.phases).peak.value(), M);
          const Index T = (n + plan.blocks["Br"] - 1) / plan.blocks["Br"];
          Blocks tried = plan.blocks;
          if (tried.contains("Bw")) {
            tried.set("Bw", 1);
          }
          for (Index r = 1; r <= n; ++r) {
            tried.set("Br", r);
            if (total(kernel.cost(shape, tried)).peak <= Words(M)) {
              EXPECT_LE(T, (n + r - 1) / r);
            }
          }
          EXPECT_EQ(kernel.plan(shape, M, Objective::time, prefetch).blocks, plan.blocks);
        }
      }
    }
  }
}

// Published plans: blocks, words read and written, and the largest peak.
TEST(Prefetch, PlansAsPublished) {
  struct Published {
    const char* kernel;
    Index prefetch, Br, Bc, Bw, reads, writes, peak;
  };
  const Published published[] = {
      {"forward/rows", 2, 86, 8, 16, 147584, 10200, 3868},
      {"forward/rows", 3, 86, 5, 16, 147584, 10200, 3692},
      {"forward/rows", 5, 100, 3, 16, 127872, 10200, 3944},
      {"backward/rows", 2, 55, 8, 16, 258392, 2816, 4030},
      {"backward/rows", 3, 60, 5, 16, 238424, 2560, 3960},
      {"backward/rows", 5, 67, 3, 16, 218456, 2304, 3926},
      {"backward/rows-onepass", 2, 40, 8, 16, 328064, 3840, 3912},
      {"backward/rows-onepass", 3, 43, 5, 16, 308096, 3584, 3877},
      {"backward/rows-onepass", 5, 50, 3, 16, 268160, 3072, 3958},
      {"forward/rows-shared", 2, 100, 8, 16, 70272, 10200, 4088},
      {"forward/rows-shared", 3, 100, 5, 16, 70272, 10200, 3928},
      {"forward/rows-shared", 5, 100, 3, 16, 70272, 10200, 3704},
      {"backward/rows-shared", 2, 60, 8, 16, 142424, 2560, 4024},
      {"backward/rows-shared", 3, 67, 5, 16, 132056, 2304, 4070},
      {"backward/rows-shared", 5, 75, 3, 16, 121688, 2048, 4086},
      {"backward/rows-onepass-shared", 2, 43, 8, 16, 173696, 3584, 3911},
      {"backward/rows-onepass-shared", 3, 47, 5, 16, 163328, 3328, 3953},
      {"backward/rows-onepass-shared", 5, 55, 3, 16, 142592, 2816, 4053},
  };
  for (const Published& row : published) {
    const Plan plan =
        tested_kernel(row.kernel).plan({600, 600, 16}, 4096, Objective::words, row.prefetch);
    EXPECT_EQ(plan.blocks,
              (Blocks{{"Br", row.Br}, {"Bc", row.Bc}, {"Bw", row.Bw}, {"prefetch", row.prefetch}}));
    const PhaseCost all = total(plan.phases);
    EXPECT_EQ(all.reads.value(), row.reads) << row.kernel;
    EXPECT_EQ(all.writes.value(), row.writes) << row.kernel;
    EXPECT_EQ(all.peak.value(), row.peak) << row.kernel;
  }
}

// Counts the reads ahead of a store in which they arrive only when they are awaited: on their way
// now, the most at once, and all.
struct Ways {
  Index now = 0, most = 0, all = 0;
};

class LateBacking final : public Backing {
 public:
  LateBacking(std::unique_ptr<Backing> words, Ways& ways) : words_(std::move(words)), ways_(ways) {}
  void read(Range rows, Range columns, std::span<float> to) const override {
    words_->read(rows, columns, to);
  }
  void write(Range rows, Range columns, std::span<const float> from) override {
    words_->write(rows, columns, from);
  }
  std::unique_ptr<Fetch> fetch_tile(Range rows, Range columns, Orientation orientation,
                                    std::span<float> to) const override {
    ways_.most = std::max(ways_.most, ++ways_.now);
    ++ways_.all;
    return std::make_unique<Late>([this, rows, columns, orientation, to] {
      words_->read_tile(rows, columns, orientation, to);
      --ways_.now;
    });
  }

 private:
  class Late final : public Fetch {
   public:
    explicit Late(std::function<void()> arrive) : arrive_(std::move(arrive)) {}
    void wait() noexcept override {
      if (auto arrive = std::exchange(arrive_, nullptr)) {
        arrive();
      }
    }
    void finish() override { wait(); }

   private:
    std::function<void()> arrive_;
  };

  std::unique_ptr<Backing> words_;
  Ways& ways_;
};

// A run matches its formulas and has the bits of the same blocks without prefetch, whether words
// arrive at once or late. All reads with room begin before one is awaited.
TEST(Prefetch, RunsAsItsFormulasSayToTheSameBits) {
  for (const TestedKernel& kernel : streaming()) {
    for (const Shape& shape : kStreamedShapes) {
      const TestProblem problem = make_problem(kernel, shape, 17);
      for (const Index prefetch : kPrefetches) {
        for (const Index M : some_M(kernel, shape, prefetch)) {
          const Plan plan = kernel.plan(shape, M, Objective::words, prefetch);
          SCOPED_TRACE(to_string(plan));
          const Result result = run_kernel(kernel, plan, problem);
          EXPECT_EQ(without_elementwise(result.phases), as_counted(plan.phases));
          EXPECT_LE(result.all.peak, M);
          EXPECT_EQ(result.live, 0);
          const Verified verdict = verify(kernel, plan, problem, result.returned);
          EXPECT_TRUE(verdict.ok) << verdict.text;

          Ways ways;
          const Result late = run_kernel(
              kernel, plan, problem, [&](std::string_view, std::unique_ptr<Backing> words) {
                return std::make_unique<LateBacking>(std::move(words), ways);
              });
          EXPECT_EQ(late.phases, result.phases);
          EXPECT_TRUE(same_bits(late.returned, result.returned));
          const Index key_blocks = ceil_div(shape.m, plan.blocks["Bc"]);
          const Index row_blocks = ceil_div(shape.n, plan.blocks["Br"]);
          EXPECT_EQ(ways.most, sources(kernel) * std::min(prefetch, key_blocks));
          EXPECT_EQ(ways.all, sources(kernel) * key_blocks * row_blocks);
          EXPECT_EQ(ways.now, 0);

          const Plan in_turn = kernel.plan(shape, M, without_prefetch(plan.blocks));
          const Result alone = run_kernel(kernel, in_turn, problem);
          EXPECT_EQ(alone.all.io, result.all.io);
          EXPECT_EQ(alone.all.operations, result.all.operations);
          EXPECT_TRUE(same_bits(alone.returned, result.returned));
        }
      }
    }
  }
}

TEST(Prefetch, IsPartOfThePlansText) {
  const Plan plan = tested_kernel("backward/rows").plan({600, 600, 16}, 4096, Objective::words, 2);
  EXPECT_EQ(to_string(plan), "backward/rows n=600 m=600 d=16 M=4096: Br=55 Bc=8 Bw=16 prefetch=2");
}

}  // namespace
}  // namespace redblue
