// Every registered kernel, for hundreds of random n, m, d and M:
//
//   - It moves and holds exactly the words of its formulas, phase by phase, and never more than M.
//   - It runs at its least M and is refused one below.
//   - It leaves no words live, reads only written words, and writes every word of its results.
//   - It returns results within the bound of the double-precision evaluation. They have the same
//     bits each time, with or without keys fetched ahead.
//
// Two witnesses confirm the counts, and share no code with the counters: the store's own tally, and
// a listener that adds up tiles by their numbers.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>

#include <gtest/gtest.h>

#include "memsim/errors.hpp"
#include "memsim/events.hpp"
#include "tests/support/cases.hpp"
#include "tests/support/print.hpp"
#include "tests/support/run_kernel.hpp"

namespace redblue {
namespace {

// ------------------------------------------------------------------------------- witnesses

struct Tally {
  IoCount io;
  Index ahead = 0;    // words of reads ahead
  bool sound = true;  // windows inside their matrices, spans of their size
};

class MeteredBacking final : public Backing {
 public:
  MeteredBacking(Tally& tally, Buffer& words, Index rows, Index cols)
      : tally_(tally), store_(words.data(), cols), rows_(rows), cols_(cols) {}
  void read(Range rows, Range columns, std::span<float> to) const override {
    check(rows, columns, to.size());
    tally_.io.reads += static_cast<Index>(to.size());
    store_.read(rows, columns, to);
  }
  void write(Range rows, Range columns, std::span<const float> from) override {
    check(rows, columns, from.size());
    tally_.io.writes += static_cast<Index>(from.size());
    store_.write(rows, columns, from);
  }
  // Arrives only when it is awaited.
  std::unique_ptr<Fetch> fetch_tile(Range rows, Range columns, Orientation orientation,
                                    std::span<float> to) const override {
    return std::make_unique<Late>(tally_, *this, rows, columns, orientation, to);
  }

 private:
  class Late final : public Fetch {
   public:
    Late(Tally& tally, const Backing& store, Range rows, Range columns, Orientation orientation,
         std::span<float> to)
        : tally_(tally),
          store_(store),
          rows_(rows),
          columns_(columns),
          orientation_(orientation),
          to_(to) {
      tally_.ahead += static_cast<Index>(to_.size());
    }
    void wait() noexcept override {
      if (!here_) {
        store_.read_tile(rows_, columns_, orientation_, to_);
        here_ = true;
      }
    }
    void finish() override {
      wait();
      tally_.ahead -= static_cast<Index>(to_.size());
    }

   private:
    Tally& tally_;
    const Backing& store_;
    Range rows_, columns_;
    Orientation orientation_;
    std::span<float> to_;
    bool here_ = false;
  };

  void check(Range rows, Range columns, std::size_t words) const {
    tally_.sound = tally_.sound && 0 <= rows.begin && rows.begin < rows.end && rows.end <= rows_ &&
                   0 <= columns.begin && columns.begin < columns.end && columns.end <= cols_ &&
                   static_cast<Index>(words) == rows.size() * columns.size();
  }

  Tally& tally_;
  BorrowedBacking store_;
  Index rows_, cols_;
};

class MeteredWorkspace final : public Workspace {
 public:
  explicit MeteredWorkspace(Tally& tally) : tally_(tally) {}
  SlowMatrix matrix(std::string name, Index rows, Index cols,
                    std::optional<Window> /* mostly */) override {
    Buffer& words = buffers_.emplace_back(static_cast<std::size_t>(rows * cols),
                                          std::numeric_limits<float>::quiet_NaN());
    return {std::move(name), rows, cols,
            std::make_unique<MeteredBacking>(tally_, words, rows, cols)};
  }

 private:
  Tally& tally_;
  std::deque<Buffer> buffers_;
};

// Adds up live tiles from the events, and reads still on their way from the store.
class Audit final : public Listener {
 public:
  explicit Audit(const Tally& tally) : tally_(tally) {}
  void on(const Event& event) noexcept override {
    const Index words = event.rows * event.cols;
    switch (event.kind) {
      case Event::Kind::read:
      case Event::Kind::initialize:
        sound_ = tiles_.emplace(event.tile, words).second && sound_;
        live_ += words;
        break;
      case Event::Kind::remove:
        sound_ = tiles_.erase(event.tile) == 1 && sound_;
        live_ -= words;
        break;
      case Event::Kind::write:
        sound_ = tiles_.contains(event.tile) && sound_;
        break;
      case Event::Kind::enter_phase:
      case Event::Kind::leave_phase:
        break;
    }
    const Index live = live_ + tally_.ahead;
    peak_ = std::max(peak_, live);
    sound_ = sound_ && event.live == live;
  }
  [[nodiscard]] bool sound() const {
    return sound_ && tiles_.empty() && live_ == 0 && tally_.ahead == 0;
  }
  [[nodiscard]] Index peak() const { return peak_; }

 private:
  const Tally& tally_;
  std::unordered_map<std::uint64_t, Index> tiles_;
  Index live_ = 0;
  Index peak_ = 0;
  bool sound_ = true;
};

struct Witnessed {
  Buffers given, returned;  // after the run
  Tally tally;
  IoCount counted;
  Index peak = 0, audited_peak = 0;
  bool sound = false;
};

Witnessed run_witnessed(const TestedKernel& kernel, const Plan& plan, const TestProblem& problem) {
  Witnessed run;
  run.given = problem.given;
  run.returned = fresh_results(kernel, plan.problem.shape);
  Machine machine(plan.M);
  Audit audit(run.tally);
  machine.listen(audit);
  {
    MeteredWorkspace workspace(run.tally);
    std::deque<SlowMatrix> matrices;
    Operands io;
    const auto metered = [&](const Signature& operand, Buffers& buffers) -> SlowMatrix& {
      const Index rows = operand.rows_of(plan.problem.shape);
      const Index cols = operand.cols_of(plan.problem.shape);
      std::string name(operand.name);
      Buffer& words = buffers.at(name);
      return matrices.emplace_back(std::move(name), rows, cols,
                                   std::make_unique<MeteredBacking>(run.tally, words, rows, cols));
    };
    for (const Signature& operand : kernel.given) {
      io.give(metered(operand, run.given));
    }
    for (const Signature& operand : kernel.returns) {
      io.take(metered(operand, run.returned));
    }
    kernel.kernel->run(machine, plan, io, workspace);
  }
  run.counted = total(machine.phases()).io;
  run.peak = total(machine.phases()).peak;
  run.audited_peak = audit.peak();
  run.sound = run.tally.sound && audit.sound();
  return run;
}

// --------------------------------------------------------------------------------- one case

void check_case(const TestedKernel& kernel, const Plan& plan, std::uint64_t seed, double scale) {
  const TestProblem problem = make_problem(kernel, plan.problem.shape, seed, scale);
  const Result result = run_kernel(kernel, plan, problem);

  // Counts and peaks match the formulas, phase by phase, in order.
  EXPECT_EQ(without_elementwise(result.phases), as_counted(plan.phases));
  EXPECT_EQ(result.all.peak, total(plan.phases).peak.value());
  EXPECT_LE(result.all.peak, plan.M);
  EXPECT_LE(result.span, plan.M + plan.M / 8 + 16384);
  EXPECT_GE(result.span, result.all.peak);

  // No words are left live, and the store held exactly the intermediates.
  EXPECT_EQ(result.live, 0);
  EXPECT_EQ(result.workspace_live, 0);
  EXPECT_EQ(result.workspace_peak, kernel.kernel->intermediates(plan).value());

  // Every word is written, and is within its bound.
  for (const auto& [name, words] : result.returned) {
    EXPECT_TRUE(std::ranges::none_of(words, [](float word) { return std::isnan(word); })) << name;
  }
  const Verified verdict = verify(kernel, plan, problem, result.returned);
  EXPECT_TRUE(verdict.ok) << verdict.text;

  // The witnesses agree, no input changed, and a second run gives the same bits.
  const Witnessed again = run_witnessed(kernel, plan, problem);
  EXPECT_TRUE(again.sound);
  EXPECT_EQ(again.tally.io, again.counted);
  EXPECT_EQ(again.counted, result.all.io);
  EXPECT_EQ(again.audited_peak, again.peak);
  EXPECT_EQ(again.peak, result.all.peak);
  EXPECT_TRUE(same_bits(again.given, problem.given)) << "an input was changed";
  EXPECT_TRUE(same_bits(again.returned, result.returned)) << "two runs differ";

  // Fetching ahead reads the same words.
  if (prefetch_of(plan.blocks) > 1) {
    const Plan in_turn = kernel.plan(plan.problem.shape, plan.M, without_prefetch(plan.blocks));
    const Result other = run_kernel(kernel, in_turn, problem);
    EXPECT_EQ(other.all.io, result.all.io);
    EXPECT_EQ(other.all.operations, result.all.operations);
    EXPECT_TRUE(same_bits(other.returned, result.returned)) << "fetching ahead changes results";
  }
}

// With one word less, the plan is refused, and the message gives the least M.
void check_refusal(const TestedKernel& kernel, const Shape& shape, Index prefetch) {
  const Index least = kernel.least_M(shape, prefetch);
  ASSERT_GE(least, 2);
  try {
    static_cast<void>(kernel.plan(shape, least - 1, Objective::words, prefetch));
    ADD_FAILURE() << "planned below the least M " << least;
  } catch (const FastMemoryTooSmall& error) {
    const std::string message = error.what();
    for (const std::string& part :
         {std::string(kernel.name), "at least " + std::to_string(least),
          "M = " + std::to_string(least - 1), "n = " + std::to_string(shape.n),
          "m = " + std::to_string(shape.m), "d = " + std::to_string(shape.d)}) {
      EXPECT_NE(message.find(part), std::string::npos) << part << " is not in: " << message;
    }
  }
}

// --------------------------------------------------------------------------------- all cases

using Random = std::mt19937_64;

Index below(Random& random, Index limit) {
  return static_cast<Index>(random() % static_cast<std::uint64_t>(limit));
}

// Returns a size of any kind: 1, primes, powers of two and their neighbours, and others.
Index draw_extent(Random& random) {
  static constexpr Index kSpecial[] = {1, 1, 2, 3, 5, 7, 8, 9, 11, 13, 16, 17, 23, 31, 32, 37};
  switch (below(random, 4)) {
    case 0:
      return kSpecial[below(random, std::size(kSpecial))];
    case 1:
      return 1 + below(random, 5);
    case 2:
      return 1 + below(random, 16);
    default:
      return 1 + below(random, 44);
  }
}

// Returns the least M, a little more, up to room for everything, or more than that.
Index draw_M(Random& random, const TestedKernel& kernel, const Shape& shape, Index prefetch) {
  const auto& [n, m, d] = shape;
  const Index least = kernel.least_M(shape, prefetch);
  const Index everything = least + 4 * (n * d + m * d + d * d + n * m);
  switch (below(random, 6)) {
    case 0:
      return least;
    case 1:
      return least + 1 + below(random, 2 * d + 2);
    case 2:
      return everything + below(random, everything);
    default: {
      const double spread = static_cast<double>(below(random, 1000)) / 1000;
      return least + static_cast<Index>(std::pow(static_cast<double>(everything - least), spread));
    }
  }
}

// Half of the plans of a kernel that streams keys fetch ahead.
Index draw_prefetch(Random& random, const TestedKernel& kernel) {
  static constexpr Index kDepths[] = {1, 1, 1, 2, 3, 5};
  return kernel.streams_keys() ? kDepths[below(random, std::size(kDepths))] : 1;
}

// Returns mostly a kernel's plan for fewest words. Others are for least time, balanced, or in
// multiples, or have any blocks, even larger than the problem, with just the M that they take.
Plan draw_plan(Random& random, const TestedKernel& kernel, const Shape& shape) {
  const Index prefetch = draw_prefetch(random, kernel);
  const auto M = [&] { return draw_M(random, kernel, shape, prefetch); };
  switch (below(random, 8)) {
    case 0:
      return kernel.plan(shape, M(), Objective::time, prefetch);
    case 1:
      return kernel.plan(shape, M(), Objective::balanced, prefetch);
    case 2: {
      Memory memory{M(), prefetch};
      memory.multiple = 1 + below(random, 16);
      const Problem problem = kernel.problem(shape);
      memory.M = std::max(memory.M, kernel.kernel->least_M(problem, prefetch, memory.multiple));
      return kernel.kernel->plan(problem, memory,
                                 below(random, 2) == 0 ? Objective::words : Objective::balanced);
    }
    case 3: {
      Blocks blocks = kernel.blocks(shape, M(), Objective::words, prefetch);
      for (const OptionalBlock& optional : kernel.kernel->fitting.optional_blocks) {
        if (!blocks.contains(optional.name) && below(random, 2) == 0) {
          blocks.add(std::string(optional.name), 1);
        }
      }
      for (const auto& [name, size] : Blocks(blocks)) {
        blocks.set(name, 1 + below(random, 2 * std::max({shape.n, shape.m, shape.d})));
      }
      const Plan plan = kernel.plan(shape, 1, blocks);
      return kernel.plan(shape, total(plan.phases).peak.value(), blocks);
    }
    default:
      return kernel.plan(shape, M(), Objective::words, prefetch);
  }
}

class EveryKernel : public testing::TestWithParam<std::string> {};

// A problem and a plan that is fast enough for a test. One in twelve is as wide as real heads, d =
// 64 or 128, with an M that its blocks fill.
struct Case {
  Shape shape;
  Plan plan;
};
Case draw_case(Random& random, const TestedKernel& kernel) {
  const bool wide = below(random, 12) == 0;
  const Index most_products = wide ? 400'000 : 12'000;
  const Index most_words = wide ? 600'000 : 60'000;
  while (true) {
    Shape shape{draw_extent(random), draw_extent(random), draw_extent(random)};
    if (wide) {
      shape.d = shape.dv = 64 + 64 * below(random, 2);
    }
    if (below(random, 4) == 0) {
      shape.m = shape.n;
    }
    if (kernel.takes_dv() && below(random, 3) == 0) {
      shape.dv = draw_extent(random);
    }
    shape = kernel.shape(shape);
    if (shape.n * shape.m * shape.d > most_products) {
      continue;
    }
    Plan plan = draw_plan(random, kernel, shape);
    const PhaseCost cost = total(plan.phases);
    if ((cost.reads + cost.writes).value() <= most_words) {
      return {shape, std::move(plan)};
    }
  }
}

TEST_P(EveryKernel, MovesAndComputesWhatItsFormulasSay) {
  const std::int64_t count = cases(kUsualCases);
  const TestedKernel kernel = tested_kernel(GetParam());
  std::int64_t at_least = 0, ahead = 0, wide = 0;
  Index words = 0;
  int differences = 0;
  for (std::int64_t k = 0; k < count && differences < 5; ++k) {  // 5 are enough
    SCOPED_TRACE(reproduced_by(k));
    Random random(seed_of_case(k));
    const auto [shape, plan] = draw_case(random, kernel);
    const PhaseCost cost = total(plan.phases);
    words += (cost.reads + cost.writes).value();
    const Index prefetch = prefetch_of(plan.blocks);
    at_least += plan.M == kernel.least_M(shape, prefetch) ? 1 : 0;
    ahead += prefetch > 1 ? 1 : 0;
    wide += shape.d >= 64 ? 1 : 0;
    const double scale = std::pow(10.0, static_cast<double>(below(random, 200)) / 100 - 1);
    const auto failures = [] {
      return testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count();
    };
    const int before = failures();
    {
      SCOPED_TRACE(to_string(plan) + " scale=" + std::to_string(scale));
      check_case(kernel, plan, random(), scale);
      check_refusal(kernel, shape, prefetch);
    }
    differences += failures() != before ? 1 : 0;
  }
  if (differences == 0) {  // the cases are of every kind
    EXPECT_GE(at_least, count / 60);
    EXPECT_GE(ahead, kernel.streams_keys() ? count / 4 : 0);
    EXPECT_GE(wide, count / 60);
  }
  std::cout << kernel.name << ": " << count << " shapes (" << at_least << " at the least M, "
            << ahead << " ahead, " << wide << " of d >= 64), " << words
            << " words each way of counting, " << differences << " differences\n";
}

std::vector<std::string> all_names() {
  std::vector<std::string> all;
  for (const TestedKernel& kernel : tested_kernels()) {
    all.emplace_back(kernel.name);
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryKernel, testing::ValuesIn(all_names()),
                         [](const auto& tested) { return test_name(tested.param); });

}  // namespace
}  // namespace redblue
