// Tests workers: the share of each, that no result depends on their number, and that their counts
// equal the formulas.

#include "runtime/run/workers.hpp"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <deque>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/masked.hpp"
#include "memsim/errors.hpp"
#include "tests/support/print.hpp"
#include "tests/support/random_masks.hpp"
#include "tests/support/run_kernel.hpp"

namespace redblue {
namespace {

// ----------------------------------------------------------------------------- shares

// The shares are [0, total), cut at total w / p: in order, without gap or overlap. Their sizes
// differ by at most one.
TEST(Workers, SharesCoverTheWholeOnce) {
  constexpr Index kLargest = std::numeric_limits<Index>::max();
  for (const Index total : {Index{0}, Index{1}, Index{2}, Index{7}, Index{64}, Index{1000003},
                            kLargest / 4096, kLargest - 1, kLargest}) {
    for (const Index workers : {Index{1}, Index{2}, Index{3}, Index{7}, Index{64}, kMostWorkers}) {
      Index end = 0;
      for (Index worker = 0; worker < workers; ++worker) {
        const Range share = share_of(total, worker, workers);
        ASSERT_EQ(share.begin, end) << worker << " of " << workers << " of " << total;
        ASSERT_GE(share.size(), total / workers);
        ASSERT_LE(share.size(), total / workers + (total % workers == 0 ? 0 : 1));
        end = share.end;
      }
      EXPECT_EQ(end, total);
    }
  }
}

// ----------------------------------------------------------------------------- in parallel

constexpr Index kTeams[] = {1, 2, 3, 7};

TEST(Workers, DoTheirWorkOnceEach) {
  for (const Index workers : kTeams) {
    std::vector<std::atomic<int>> times(static_cast<std::size_t>(workers));
    std::vector<std::thread::id> threads(static_cast<std::size_t>(workers));
    static_cast<void>(in_parallel(workers, Topology(), [&](Index worker) {
      ++times.at(static_cast<std::size_t>(worker));
      threads.at(static_cast<std::size_t>(worker)) = std::this_thread::get_id();
    }));
    for (const auto& count : times) {
      EXPECT_EQ(count, 1);
    }
    EXPECT_EQ(std::set<std::thread::id>(threads.begin(), threads.end()).size(),
              static_cast<std::size_t>(workers))
        << "each has a thread of its own";
  }
}

// All workers run at the same time: each waits for all others.
TEST(Workers, WorkAtTheSameTime) {
  constexpr int kWorkers = 7;
  std::atomic<int> arrived = 0;
  static_cast<void>(in_parallel(kWorkers, Topology(), [&](Index) {
    ++arrived;
    while (arrived < kWorkers) {
      std::this_thread::yield();
    }
  }));
  EXPECT_EQ(arrived, kWorkers);
}

TEST(Workers, SayWhyTheyAreNotPinned) {
  const Topology nowhere{.unpinnable = "this is a drawing"};
  for (const Index workers : kTeams) {
    EXPECT_EQ(in_parallel(workers, nowhere, [](Index) {}), "this is a drawing");
  }
  // The default of run(): the topology is unknown.
  EXPECT_EQ(in_parallel(2, Topology(), [](Index) {}), "the cores are not known");
}

std::set<std::thread::id> threads_of(Index workers) {
  std::vector<std::thread::id> threads(static_cast<std::size_t>(workers));
  static_cast<void>(in_parallel(workers, Topology(), [&](Index worker) {
    threads.at(static_cast<std::size_t>(worker)) = std::this_thread::get_id();
  }));
  return {threads.begin(), threads.end()};
}

// A thread of one team works for later ones, whoever calls.
TEST(Workers, StayForLaterTeams) {
  std::set<std::thread::id> first = threads_of(4);
  first.erase(std::this_thread::get_id());
  for (const Index workers : {2, 3, 4}) {
    std::thread([&] {
      std::set<std::thread::id> later = threads_of(workers);
      later.erase(std::this_thread::get_id());
      EXPECT_EQ(later.size(), static_cast<std::size_t>(workers - 1));
      EXPECT_TRUE(std::ranges::includes(first, later));
    }).join();
  }
}

TEST(Workers, OfAChildAreItsOwn) {
  static_cast<void>(threads_of(3));
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::alarm(60);  // a child that waits for threads of its parent never ends
    ::_exit(threads_of(3).size() == 3 ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// They take no signal that is meant for a thread of the caller, and have its cores, although an
// earlier team was pinned.
TEST(Workers, LeaveSignalsAndHaveTheCallersCores) {
  static_cast<void>(in_parallel(2, read_topology(), [](Index) {}));
  cpu_set_t ours;
  ASSERT_EQ(::sched_getaffinity(0, sizeof ours, &ours), 0);
  static_cast<void>(in_parallel(2, Topology(), [&](Index worker) {
    cpu_set_t theirs;
    EXPECT_EQ(::sched_getaffinity(0, sizeof theirs, &theirs), 0);
    EXPECT_TRUE(CPU_EQUAL(&ours, &theirs)) << worker;
    sigset_t blocked;
    EXPECT_EQ(::pthread_sigmask(SIG_SETMASK, nullptr, &blocked), 0);
    EXPECT_EQ(::sigismember(&blocked, SIGUSR1), worker == 0 ? 0 : 1);
    EXPECT_EQ(::sigismember(&blocked, SIGSEGV), 0);
  }));
}

template <class Error, class Throw>
void expect_thrown_intact(const std::string& text, const Throw& fail) {
  for (const Index workers : kTeams) {
    std::atomic<Index> ended = 0;
    try {
      static_cast<void>(in_parallel(workers, Topology(), [&](Index worker) {
        if (worker == workers - 1) {
          fail();
        }
        ++ended;
      }));
      ADD_FAILURE() << "nothing was thrown: " << text;
    } catch (const Error& error) {
      EXPECT_EQ(typeid(error), typeid(Error));
      EXPECT_EQ(std::string(error.what()), text);
    }
    EXPECT_EQ(ended, workers - 1) << "the others go on to their end";
  }
}

TEST(Workers, LetWhatOneThrowsOutAsItIs) {
  expect_thrown_intact<FastMemoryOverflow>(
      "7 words are missing", [] { throw FastMemoryOverflow("7 words are missing", 7); });
  expect_thrown_intact<ShapeMismatch>("a mismatch", [] { throw ShapeMismatch("a mismatch"); });
  expect_thrown_intact<std::runtime_error>("a store", [] { throw std::runtime_error("a store"); });
  expect_thrown_intact<std::bad_alloc>(std::bad_alloc().what(), [] { throw std::bad_alloc(); });
  const std::error_code full = std::make_error_code(std::errc::no_space_on_device);
  expect_thrown_intact<std::system_error>(std::system_error(full, "g.npy").what(),
                                          [&] { throw std::system_error(full, "g.npy"); });
  // If several workers throw, one exception leaves.
  EXPECT_THROW(static_cast<void>(
                   in_parallel(7, Topology(), [](Index) { throw ShapeMismatch("everybody's"); })),
               ShapeMismatch);
}

// ----------------------------------------------------------------------------- kernels

// Operands in buffers. On request, the k-th read of the store fails.
class HeldOperands {
 public:
  HeldOperands(const TestedKernel& kernel, const TestProblem& problem,
               std::atomic<int>* reads_left = nullptr)
      : returned_(fresh_results(kernel, problem.shape)) {
    for (const Signature& operand : kernel.given) {
      const Buffer& words = problem.given.at(std::string(operand.name));
      const Index cols = operand.cols_of(problem.shape);
      io_.give(matrices_.emplace_back(
          SlowMatrix(std::string(operand.name), operand.rows_of(problem.shape), cols,
                     std::make_unique<Fragile>(words.data(), cols, reads_left))
              .holding(operand.holds)));
    }
    for (const Signature& operand : kernel.returns) {
      io_.take(matrices_.emplace_back(
          borrow(std::string(operand.name), returned_.at(std::string(operand.name)).data(),
                 operand.rows_of(problem.shape), operand.cols_of(problem.shape))
              .holding(operand.holds)));
    }
  }
  [[nodiscard]] const Operands& io() const { return io_; }
  [[nodiscard]] const Buffers& returned() const { return returned_; }
  [[nodiscard]] Buffers& returned() { return returned_; }

 private:
  class Fragile final : public BorrowedBacking {
   public:
    Fragile(const float* words, Index cols, std::atomic<int>* reads_left)
        : BorrowedBacking(words, cols), reads_left_(reads_left) {}
    void read_tile(Range rows, Range columns, Orientation orientation,
                   std::span<float> to) const override {
      if (reads_left_ != nullptr && --*reads_left_ == 0) {
        throw std::runtime_error("the store broke");
      }
      BorrowedBacking::read_tile(rows, columns, orientation, to);
    }

   private:
    std::atomic<int>* reads_left_;
  };

  Buffers returned_;
  std::deque<SlowMatrix> matrices_;
  Operands io_;
};

struct Case {
  Shape shape;
  Index spare;  // words above the least M, in percent of it
};
// Many row blocks, few, and one, also fewer than workers. Widths are below one panel and above two.
constexpr Case kCases[] = {
    {{97, 37, 11}, 40}, {{41, 33, 35}, 0}, {{5, 9, 3}, 0}, {{40, 23, 17}, 900}, {{1, 1, 1}, 10}};

// The parameter is a kernel, planned for the fewest words. With " in groups", its keys are in
// groups.
constexpr std::string_view kInGroups = " in groups";

class Teams : public testing::TestWithParam<std::string> {
 protected:
  static std::string name() { return GetParam().substr(0, GetParam().find(kInGroups)); }
  const TestedKernel kernel_ = tested_kernel(name());
  [[nodiscard]] Plan plan_of(const Case& tested) const { return plan_of(kernel_, tested); }
  static Plan plan_of(const TestedKernel& kernel, const Case& tested) {
    const Index least = kernel.least_M(tested.shape);
    return in_groups(kernel, kernel.plan(tested.shape, least + least * tested.spare / 100));
  }
  // Returns the plan in five groups, if its units are groups of rows or groups of keys are
  // requested.
  static Plan in_groups(const TestedKernel& kernel, const Plan& plan) {
    return plan.blocks.contains("groups") || GetParam().ends_with(kInGroups)
               ? kernel.in_groups(plan, 5)
               : plan;
  }
  [[nodiscard]] Index units_of(const Plan& plan) const { return kernel_.kernel->units(plan); }
  [[nodiscard]] Index units_that_sum(const Plan& plan) const {
    return kernel_.split()->stages.back().units(plan.problem, plan.blocks);
  }
};

// For any number of workers, the results have the bits of one worker, the counts equal the formulas
// in each phase, and no machine exceeds M.
TEST_P(Teams, ComputeTheSameBitsAndCountWhatTheFormulasSay) {
  bool fewer_blocks_than_workers = false;
  bool more_blocks_than_workers = false;
  for (const Case& tested : kCases) {
    const Plan plan = plan_of(tested);
    const TestProblem problem = make_problem(kernel_, tested.shape, 3);
    Buffers of_one;
    Index elementwise = 0;
    for (const Index workers : kTeams) {
      SCOPED_TRACE(to_string(plan) + " workers=" + std::to_string(workers));
      fewer_blocks_than_workers |= units_of(plan) < workers;
      more_blocks_than_workers |= units_of(plan) > workers && workers > 1;
      const Team team{.workers = workers, .heads = 1, .unwritten = Unwritten::nan};
      const HeldOperands store(kernel_, problem);
      const RunCounts counted = run_on_team(kernel_, plan, team, {store.io()}, Topology()).counts;

      EXPECT_EQ(without_elementwise(counted.phases), as_counted(cost_of_team(kernel_, plan, team)));
      const PhaseCost all = total(cost_of_team(kernel_, plan, team));
      EXPECT_EQ(counted.total.io, (IoCount{all.reads.value(), all.writes.value()}));
      EXPECT_EQ(counted.total.operations.flops, all.flops.value());
      EXPECT_EQ(counted.total.peak, all.peak.value());
      EXPECT_LE(counted.total.peak, plan.M);
      EXPECT_GE(counted.span, counted.total.peak);
      EXPECT_EQ(counted.largest, largest_io(kernel_, plan, team).value());
      ASSERT_TRUE(counted.seconds);
      EXPECT_EQ(counted.seconds->phases.size(), counted.phases.size());
      for (const double seconds : counted.seconds->phases) {
        EXPECT_GE(seconds, 0);
        EXPECT_LE(seconds, counted.seconds->total);
      }

      const Verified verdict = verify(kernel_, plan, problem, store.returned());
      EXPECT_TRUE(verdict.ok) << verdict.text;
      if (workers == 1) {
        of_one = store.returned();
        elementwise = counted.total.operations.elementwise;
        EXPECT_TRUE(same_bits(of_one, run_kernel(kernel_, plan, problem).returned))
            << "one worker is the kernel itself";
      }
      EXPECT_TRUE(same_bits(store.returned(), of_one)) << "other bits than of one worker";
      EXPECT_GE(counted.total.operations.elementwise, elementwise);
    }
  }
  EXPECT_TRUE(fewer_blocks_than_workers);
  EXPECT_TRUE(more_blocks_than_workers);
}

// One worker comes late to each stage, so the others take its blocks. The words of a block still
// count for its owner, and the results have the same bits.
TEST_P(Teams, CountTheSameBesideALateWorker) {
  for (const Case& tested : kCases) {
    const Plan plan = plan_of(tested);
    SCOPED_TRACE(to_string(plan));
    const TestProblem problem = make_problem(kernel_, tested.shape, 3);
    const Team team{.workers = 3, .heads = 1, .unwritten = Unwritten::nan};
    const HeldOperands store(kernel_, problem);
    std::atomic<int> entered = 0;
    const auto late = [&](Machine&, const Plan&, const auto& go) {
      if (entered++ % 3 == 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(3));
      }
      go();
    };
    const RunCounts counted =
        run_on_team(kernel_, plan, team, {store.io()}, Topology(), late).counts;
    EXPECT_EQ(without_elementwise(counted.phases), as_counted(cost_of_team(kernel_, plan, team)));
    EXPECT_EQ(counted.largest, largest_io(kernel_, plan, team).value());
    EXPECT_TRUE(same_bits(store.returned(), run_kernel(kernel_, plan, problem).returned));
  }
}

// Sums that weigh two words weigh two in the formulas of all shares. The results have the same
// bits.
TEST_P(Teams, CountWiderSumsAsTheFormulasSay) {
  TestedKernel kernel = kernel_;
  kernel.sum_words = 2;
  for (const Case& tested : kCases) {
    const Plan plan = plan_of(kernel, tested);
    const TestProblem problem = make_problem(kernel, tested.shape, 3);
    Buffers of_one;
    for (const Index workers : kTeams) {
      SCOPED_TRACE(to_string(plan) + " workers=" + std::to_string(workers));
      const Team team{.workers = workers, .heads = 1, .unwritten = Unwritten::nan};
      const HeldOperands store(kernel, problem);
      const RunCounts counted = run_on_team(kernel, plan, team, {store.io()}, Topology()).counts;
      EXPECT_EQ(without_elementwise(counted.phases), as_counted(cost_of_team(kernel, plan, team)));
      EXPECT_EQ(counted.largest, largest_io(kernel, plan, team).value());
      EXPECT_LE(counted.total.peak, plan.M);
      if (workers == 1) {
        of_one = store.returned();
      }
      EXPECT_TRUE(same_bits(store.returned(), of_one)) << "other bits than of one worker";
    }
  }
}

// One query has one row block. With keys in groups, each worker has a share of the keys. Shares
// differ by at most one group.
TEST(Workers, ShareTheKeysOfOneQuery) {
  const TestedKernel kernel = tested_kernel("attention/rows");
  const Plan plan = kernel.plan({1, 65536, 128}, 98304, Objective::time);
  ASSERT_TRUE(plan.blocks.contains("groups")) << to_string(plan);
  const Index groups = plan.blocks["groups"];
  EXPECT_GE(groups, 32);
  const Words keys = plan.problem.key_words() * 65536;
  for (const Index workers : {Index{1}, Index{2}, Index{7}, Index{32}}) {
    const Team team{.workers = workers, .heads = 1, .unwritten = Unwritten::nan};
    for (Index worker = 0; worker < workers; ++worker) {
      const PhaseCost all = total(cost_of_worker(kernel, plan, team, worker));
      const auto share = static_cast<double>(all.reads.value()) / static_cast<double>(keys.value());
      EXPECT_NEAR(share, 1 / static_cast<double>(workers), 1.1 / static_cast<double>(groups));
    }
  }
}

// The same under masks, with row blocks dealt by their live pairs. In some cases, some or all
// queries meet no key, or rows are clustered.
TEST_P(Teams, ComputeTheSameBitsUnderMasks) {
  const Shape shape = kernel_.shape({61, 23, 9});
  const auto [n, m, d] = shape;
  const Mask pattern = RandomMasks(9).blocks(n, m, false).mask;
  for (const Mask& mask :
       {Mask::causal(n, m), Mask::window(n, m, 4, 3), Mask::causal(n, m) | Mask::prefix(n, m, 2),
        Mask::window(n, m, 4, 3) & Mask::prefix(n, m, 5), Mask::prefix(n, m, 0), pattern}) {
    if (!kernel_.kernel->takes(mask)) {
      continue;
    }
    TestedKernel kernel = kernel_;
    kernel.mask = mask;
    Plan plan = in_groups(kernel, kernel.plan(shape, kernel.least_M(shape) + 120));
    if (mask == pattern && has_row_block(plan.blocks) && !plan.blocks.contains(kClustered) &&
        !kernel.kernel->of_one_source) {
      plan.blocks.add(std::string(kClustered), 11);
      plan = kernel.plan(shape, 2 * plan.M, plan.blocks);
    }
    const TestProblem problem = make_problem(kernel, shape, 3);
    const Buffers alone = run_kernel(kernel, plan, problem).returned;
    for (const Index workers : {Index{1}, Index{2}, Index{3}, Index{7}}) {
      SCOPED_TRACE(to_string(plan) + " workers=" + std::to_string(workers));
      const Team team{.workers = workers, .heads = 1, .unwritten = Unwritten::nan};
      const HeldOperands store(kernel, problem);
      const RunCounts counted = run_on_team(kernel, plan, team, {store.io()}, Topology()).counts;
      const std::vector<PhaseCost> formula = cost_of_team(kernel, plan, team);
      ASSERT_EQ(counted.phases.size(), formula.size());
      for (std::size_t k = 0; k < formula.size(); ++k) {
        EXPECT_EQ(counted.phases[k].path, formula[k].path);
        EXPECT_EQ(Words(counted.phases[k].io.reads), formula[k].reads);
        EXPECT_EQ(Words(counted.phases[k].io.writes), formula[k].writes);
        EXPECT_LE(Words(counted.phases[k].peak), formula[k].peak);
      }
      EXPECT_EQ(counted.largest, largest_io(kernel, plan, team).value());
      EXPECT_TRUE(same_bits(store.returned(), alone)) << "other bits than of one worker";
    }
    const Verified verdict = verify(kernel, plan, problem, alone);
    EXPECT_TRUE(verdict.ok) << verdict.text;
  }
}

// Any choice of a layer's results, with products together and separate.
TEST(Workers, ShareWhatIsWantedOfALayer) {
  const Shape shape{61, 23, 35};  // three panels
  for (const Wanted& wanted : {Wanted{"dX"}, Wanted{"dA2"}, Wanted{"dA3"}, Wanted{"dY", "dA1"},
                               Wanted{"dX", "dA1", "dA2"}, Wanted()}) {
    for (const Mask& mask : {Mask(), Mask::window(61, 23, 4, 3) & Mask::prefix(61, 23, 9)}) {
      TestedKernel kernel = tested_kernel("layer/rows-keys");
      kernel.want(wanted);
      kernel.mask = mask;
      for (const Index M : {kernel.least_M(shape) + 20, Index{3000}}) {
        const Plan plan = kernel.plan(shape, M);
        const TestProblem problem = make_problem(kernel, shape, 3);
        const Buffers alone = run_kernel(kernel, plan, problem).returned;
        for (const Index workers : {Index{2}, Index{3}, Index{7}}) {
          SCOPED_TRACE(to_string(plan) + " workers=" + std::to_string(workers));
          const Team team{.workers = workers, .heads = 1, .unwritten = Unwritten::nan};
          const HeldOperands store(kernel, problem);
          const RunCounts counted =
              run_on_team(kernel, plan, team, {store.io()}, Topology()).counts;
          const PhaseCost all = total(cost_of_team(kernel, plan, team));
          EXPECT_EQ(counted.total.io, (IoCount{all.reads.value(), all.writes.value()}));
          EXPECT_LE(Words(counted.total.peak), all.peak);
          EXPECT_TRUE(same_bits(store.returned(), alone)) << "other bits than of one worker";
        }
      }
    }
  }
}

// Keeps the results of a run's stages for the runs that resume it.
class LastingWorkspace final : public Workspace {
 public:
  SlowMatrix matrix(std::string name, Index rows, Index cols, std::optional<Window>) override {
    Buffer& words = words_[name];
    words.resize(static_cast<std::size_t>(rows * cols), std::numeric_limits<float>::quiet_NaN());
    return borrow(std::move(name), words.data(), rows, cols);
  }
  [[nodiscard]] Buffers& words() { return words_; }

 private:
  Buffers words_;
};

// Ends a run some reads after its first checkpoint, resumes it, and repeats this until it is
// complete.
void expect_to_go_on(const TestedKernel& kernel, const Plan& plan) {
  SCOPED_TRACE(to_string(plan));
  const TestProblem problem = make_problem(kernel, plan.problem.shape, 3);
  const Result whole = run_kernel(kernel, plan, problem);
  std::atomic<int> reads_left = 0;
  HeldOperands store(kernel, problem, &reads_left);
  LastingWorkspace lasting;
  const bool sums = kernel.split()->reduce != nullptr && !kernel.split()->begins_anew("g", plan, 0);
  Buffers sum = store.returned();  // at the last checkpoint
  Steps next;
  std::optional<RunCounts> counted;
  while (!counted) {
    Steps steps = next;
    if (sums) {
      for (auto& [name, words] : store.returned()) {
        std::ranges::copy(sum.at(name), words.begin());
      }
    }
    for (Buffers* buffers : {&store.returned(), &lasting.words()}) {
      for (auto& [name, words] : *buffers) {
        if (kernel.split()->begins_anew(name, plan, steps.first)) {
          std::ranges::fill(words, std::numeric_limits<float>::quiet_NaN());
        }
      }
    }
    steps.as_results = &lasting;
    steps.after = [&](Index done, const RunCounts& counts, std::vector<float> left) {
      if (reads_left <= 0) {
        reads_left = 1 + static_cast<int>(done % 5);
      }
      next = {.first = done, .before = counts, .left = std::move(left)};
      if (sums) {
        sum = store.returned();
      }
    };
    try {
      RamWorkspace workspace;
      reads_left = 0;
      counted = run_alone(*kernel.kernel, plan, store.io(), workspace, nullptr, steps);
    } catch (const std::runtime_error& error) {
      ASSERT_STREQ(error.what(), "the store broke");
    }
  }
  EXPECT_TRUE(same_bits(store.returned(), whole.returned));
  EXPECT_EQ(without_elementwise(counted->phases), without_elementwise(whole.phases));
}

// A run that is ended in any unit resumes from the last checkpoint and from the words on disk.
// Results that a step writes from the start may hold anything. The run ends with the bits and the
// counts of an undisturbed run.
TEST_P(Teams, GoOnAfterEachUnit) {
  const Shape shape = kernel_.shape({40, 23, 17});
  const Index n = shape.n, m = shape.m;
  const Mask with_dead_rows = Mask::window(n, m, 4, 3) & Mask::prefix(n, m, 9);
  for (const Mask& mask : {Mask(), Mask::causal(n, m), with_dead_rows}) {
    TestedKernel kernel = kernel_;
    kernel.mask = mask;
    if (!kernel.kernel->takes(mask)) {
      continue;
    }
    for (const Index spare : {Index{20}, Index{1000}}) {
      const Plan fitted = kernel.plan(shape, kernel.least_M(shape) + spare);
      expect_to_go_on(kernel, fitted);
      if (const Plan grouped = in_groups(kernel, fitted); grouped.blocks != fitted.blocks) {
        expect_to_go_on(kernel, grouped);
      }
    }
  }
}

// dQ, dV and dA2 of one group are written in one step. A run that is ended in this step starts them
// again. With several groups, a part of dQ is there after the first group.
TEST(Workers, BeginAnewWhatOneStepWrites) {
  const TestedKernel kernel = tested_kernel("layer/score-rows");
  const Split& split = *kernel.split();
  Plan plan = kernel.plan({60, 50, 8}, 3000);
  ASSERT_EQ(plan.blocks["groups"], 1);
  const Index before =  // units of Q and V
      split.stages[0].units(plan.problem, plan.blocks) +
      split.stages[1].units(plan.problem, plan.blocks);
  const auto anew = [&](const char* matrix, Index units) {
    return split.begins_anew(matrix, plan, units);
  };
  for (const char* matrix : {"dQ", "dV", "dA2"}) {
    EXPECT_TRUE(split.in_one_step(matrix, plan)) << matrix;
    EXPECT_TRUE(anew(matrix, 0) && anew(matrix, before)) << matrix;
    EXPECT_FALSE(anew(matrix, before + 1)) << matrix;
  }
  for (const char* matrix : {"Q", "V", "dX", "dA1", "dY", "dA3"}) {
    EXPECT_TRUE(split.in_one_step(matrix, plan)) << matrix;
  }
  EXPECT_FALSE(anew("Q", before));
  EXPECT_TRUE(anew("dX", before + 1));
  plan = kernel.in_groups(plan, 3);
  ASSERT_GT(plan.blocks["groups"], 1);
  EXPECT_FALSE(split.in_one_step("dQ", plan));
  EXPECT_TRUE(anew("dQ", before));
  EXPECT_FALSE(anew("dQ", before + 1));
}

// Under a causal mask, later queries meet more keys. Two workers have about half of the pairs each,
// not half of the row blocks.
TEST(Workers, DealRowBlocksByTheirPairs) {
  TestedKernel kernel = tested_kernel("attention/rows");
  kernel.mask = Mask::causal(4096, 4096);
  const Plan plan = kernel.plan({4096, 4096, 8}, 1000);
  const Team team{.workers = 2, .heads = 1, .unwritten = Unwritten::nan};
  const auto flops = [&](Index worker) {
    return static_cast<double>(total(cost_of_worker(kernel, plan, team, worker)).flops.value());
  };
  EXPECT_NEAR(flops(0) / flops(1), 1, 0.05);
}

TEST_P(Teams, ComputeTheSameBitsEachTime) {
  const Plan plan = plan_of(kCases[0]);
  const TestProblem problem = make_problem(kernel_, plan.problem.shape, 5);
  const HeldOperands first(kernel_, problem);
  static_cast<void>(run_on_team(kernel_, plan, {.workers = 1}, {first.io()}, Topology()));
  for (const Index workers : {Index{2}, Index{7}}) {
    for (int repetition = 0; repetition < 20; ++repetition) {
      const HeldOperands store(kernel_, problem);
      static_cast<void>(run_on_team(kernel_, plan, {.workers = workers}, {store.io()}, Topology()));
      ASSERT_TRUE(same_bits(store.returned(), first.returned()))
          << workers << " workers, repetition " << repetition;
    }
  }
}

// The cost of one worker equals the plan. Among several workers, a worker without a share moves no
// words.
TEST_P(Teams, CostsAddUp) {
  for (const Case& tested : kCases) {
    const Plan plan = plan_of(tested);
    SCOPED_TRACE(to_string(plan));
    const Team alone{.workers = 1, .heads = 1};
    EXPECT_EQ(as_counted(cost_of_team(kernel_, plan, alone)), as_counted(plan.phases));
    EXPECT_EQ(as_counted(cost_of_worker(kernel_, plan, alone, 0)), as_counted(plan.phases));
    EXPECT_EQ(partials_of(kernel_, plan, alone), Words(0));
    for (const Index workers : {Index{2}, Index{7}, Index{100}}) {
      const Team team{.workers = workers, .heads = 1, .unwritten = Unwritten::nan};
      const Index d = plan.problem.shape.d;
      EXPECT_EQ(partials_of(kernel_, plan, team), kernel_.split()->reduce == nullptr
                                                      ? Words(0)
                                                      : Words(units_that_sum(plan)) * d * d);
      Words sum;
      Words most;
      for (Index worker = 0; worker < workers; ++worker) {
        const PhaseCost own = total(cost_of_worker(kernel_, plan, team, worker));
        sum = sum + own.reads + own.writes;
        most = std::max(most, own.reads + own.writes);
        EXPECT_LE(own.peak, Words(plan.M));
      }
      const PhaseCost all = total(cost_of_team(kernel_, plan, team));
      EXPECT_EQ(sum, all.reads + all.writes);
      EXPECT_EQ(most, largest_io(kernel_, plan, team));
    }
  }
}

// A failure on one worker's machine leaves run_on_team, and no other worker crashes.
TEST_P(Teams, LetAFailingStoreOut) {
  const Plan plan = plan_of(kCases[0]);
  const TestProblem problem = make_problem(kernel_, plan.problem.shape, 5);
  for (const Index workers : kTeams) {
    for (const int at : {1, 2, 10}) {
      std::atomic<int> reads_left = at;
      const HeldOperands store(kernel_, problem, &reads_left);
      try {
        static_cast<void>(
            run_on_team(kernel_, plan, {.workers = workers}, {store.io()}, Topology()));
        ADD_FAILURE() << "read " << at << " failed";
      } catch (const std::runtime_error& error) {
        EXPECT_EQ(std::string(error.what()), "the store broke");
      }
    }
  }
}

// Each worker is slow in a different phase. The sum of the slowest of each phase would be twice the
// time.
TEST(Workers, SecondsOfPhasesAddUpToAtMostTheTotal) {
  class SlowIn final : public Listener {
   public:
    explicit SlowIn(std::string phase) : phase_(std::move(phase)) {}
    void on(const Event& event) noexcept override {
      if (event.kind == Event::Kind::enter_phase && event.name == phase_) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
      }
    }

   private:
    std::string phase_;
  };
  const TestedKernel kernel = tested_kernel("forward/flash");
  const Plan plan = kernel.plan({16, 16, 4}, 1000);
  const TestProblem problem = make_problem(kernel, plan.problem.shape, 1);
  std::deque<HeldOperands> stores;
  std::vector<Operands> heads;
  for (int head = 0; head < 2; ++head) {
    heads.push_back(stores.emplace_back(kernel, problem).io());
  }
  std::atomic<int> machines = 0;
  std::barrier both(2);  // so that no worker takes both heads
  const TeamRun run = run_on_team(kernel, plan, {.workers = 2, .heads = 2}, heads, Topology(),
                                  [&](Machine& machine, const Plan&, const auto& go) {
                                    both.arrive_and_wait();
                                    SlowIn slow(machines++ == 0 ? "S" : "core");
                                    machine.listen(slow);
                                    go();
                                    machine.silence(slow);
                                  });
  ASSERT_TRUE(run.counts.seconds);
  const auto& [seconds, total] = *run.counts.seconds;
  ASSERT_EQ(seconds.size(), 3U);
  EXPECT_GE(seconds[0], 0.05);
  EXPECT_GE(seconds[2], 0.05);
  EXPECT_LE(seconds[0] + seconds[1] + seconds[2], total);
}

// Each head goes to one worker. It has the results of a run alone, whichever worker has it, and
// some workers have no head.
TEST_P(Teams, TakeHeadsWhole) {
  const Plan plan = plan_of(kCases[1]);
  constexpr Index kHeads = 5;
  std::vector<TestProblem> problems;
  for (Index head = 0; head < kHeads; ++head) {
    problems.push_back(
        make_problem(kernel_, plan.problem.shape, 11 + static_cast<std::uint64_t>(head)));
  }
  for (const Index workers : {Index{1}, Index{2}, Index{7}}) {
    const Team team{.workers = workers, .heads = kHeads, .unwritten = Unwritten::nan};
    std::deque<HeldOperands> stores;
    std::vector<Operands> heads;
    for (const TestProblem& problem : problems) {
      heads.push_back(stores.emplace_back(kernel_, problem).io());
    }
    const RunCounts counted = run_on_team(kernel_, plan, team, heads, Topology()).counts;
    EXPECT_EQ(without_elementwise(counted.phases), as_counted(cost_of_team(kernel_, plan, team)));
    EXPECT_EQ(counted.largest, largest_io(kernel_, plan, team).value());
    const PhaseCost one = total(plan.phases);
    EXPECT_EQ(Words(counted.total.io.reads), kHeads * one.reads);
    EXPECT_EQ(Words(counted.total.io.writes), kHeads * one.writes);
    EXPECT_EQ(counted.total.peak, one.peak.value());
    for (std::size_t head = 0; head < stores.size(); ++head) {
      EXPECT_TRUE(
          same_bits(stores[head].returned(), run_kernel(kernel_, plan, problems[head]).returned))
          << head;
    }
  }
}

std::vector<std::string> split_kernels() {
  std::vector<std::string> names;
  for (const TestedKernel& kernel : tested_kernels()) {
    if (kernel.split()) {
      names.emplace_back(kernel.name);
    }
  }
  return names;
}

TEST(Workers, TheseKernelsSplit) {
  EXPECT_EQ(split_kernels(), (std::vector<std::string>{"forward/rows",
                                                       "attention/rows",
                                                       "backward/rows",
                                                       "backward/rows-onepass",
                                                       "backward/score-rows",
                                                       "gradients/rows-keys",
                                                       "gradients/rows-keys-onepass",
                                                       "gradients/score-rows",
                                                       "gradients/sources",
                                                       "layer/rows-keys",
                                                       "layer/score-rows",
                                                       "linear/products",
                                                       "linear-gradient/products",
                                                       "forward/rows-shared",
                                                       "attention/rows-shared",
                                                       "backward/rows-shared",
                                                       "backward/rows-onepass-shared",
                                                       "gradients/rows-keys-shared",
                                                       "gradients/rows-keys-onepass-shared",
                                                       "gradients/score-rows-shared"}));
}

std::vector<std::string> teams() {
  std::vector<std::string> names = split_kernels();
  for (const TestedKernel& kernel : tested_kernels()) {
    if (kernel.groups_keys()) {
      names.push_back(std::string(kernel.name).append(kInGroups));
    }
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Split, Teams, testing::ValuesIn(teams()), [](const auto& tested) {
  std::string name = test_name(tested.param);
  std::ranges::replace(name, ' ', '_');
  return name;
});

}  // namespace
}  // namespace redblue
