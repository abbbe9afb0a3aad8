// Tests the line with a run's progress: the share of all words that has moved, whichever part moved
// it. The line disappears at the end.

#include "runtime/run/progress.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/run/run.hpp"

namespace redblue {
namespace {

using std::chrono::milliseconds;

// Keeps the lines that are shown.
class Screen {
 public:
  Progress::Sink sink() {
    return [this](std::string_view line) {
      const std::lock_guard lock(mutex_);
      lines_.emplace_back(line);
      changed_.notify_all();
    };
  }
  // Waits until the current line starts with this text.
  void expect(const std::string& start) {
    std::unique_lock lock(mutex_);
    const auto shown = [&] { return !lines_.empty() && lines_.back().starts_with(start); };
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::seconds(30), shown))
        << "not: " << start << "\nbut: " << (lines_.empty() ? "nothing" : lines_.back());
  }
  // Requires: no thread writes any more.
  [[nodiscard]] const std::vector<std::string>& lines() const { return lines_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> lines_;
};

// A part of 100 words.
Part some_part() {
  Part part;
  part.plan.kernel = "some/kernel";
  part.plan.phases = {
      {.path = "one", .reads = 40, .writes = 10, .peak = 50, .flops = 0},
      {.path = "two/deep", .reads = 30, .writes = 20, .peak = 50, .flops = 0},
  };
  part.formula = part.plan.phases;
  return part;
}

class ProgressTest : public testing::Test {
 protected:
  const Part part_ = some_part();
  std::vector<float> words_ = std::vector<float>(100);
  SlowMatrix matrix_ = borrow("A", words_.data(), 10, 10);
  Screen screen_;
  const Progress progress_{screen_.sink(), milliseconds(0)};
};

// Reads and writes count, and initialising does not. The phase is the last one that was entered.
TEST_F(ProgressTest, IsTheShareOfTheFormula) {
  Machine machine(100);
  progress_.during(part_, [&](const RunHook& around) {
    screen_.expect("some/kernel: 0% of words, one, ");
    around(machine, part_.plan, [&] {
      {
        const Phase one(machine, "one");
        static_cast<void>(machine.read(matrix_.block({0, 5}, {0, 4})));
        screen_.expect("some/kernel: 20% of words, one, ");
      }
      const Phase two(machine, "two");
      screen_.expect("some/kernel: 20% of words, one, ");  // not a phase of the plan
      const Phase deep(machine, "deep");
      screen_.expect("some/kernel: 20% of words, two/deep, ");
      const Tile tile = machine.initialize("B", 1, 7);
      machine.write(tile, matrix_.block({2, 3}, {1, 8}));
      screen_.expect("some/kernel: 27% of words, two/deep, ");
    });
    const Tile unheard = machine.read(matrix_.block({0, 10}, {0, 10}));
    std::this_thread::sleep_for(milliseconds(500));
    screen_.expect("some/kernel: 27% of words, two/deep, ");
  });
  EXPECT_EQ(screen_.lines().back(), "");
  EXPECT_EQ(std::ranges::count(screen_.lines(), ""), 1);
}

TEST_F(ProgressTest, AddsUpWhatTheWorkersMove) {
  progress_.during(part_, [&](const RunHook& around) {
    const auto read = [&](Index rows) {
      Machine machine(100);
      around(machine, part_.plan, [&] {
        static_cast<void>(machine.read(matrix_.block({0, rows}, {0, 10})));
      });
    };
    std::thread other(read, 3);
    std::thread third(read, 1);
    read(5);
    other.join();
    third.join();
    screen_.expect("some/kernel: 90% of words");
  });
}

TEST_F(ProgressTest, TellsTheSecondsOfTheRun) {
  progress_.during(part_,
                   [&](const RunHook&) { screen_.expect("some/kernel: 0% of words, one, 1 s"); });
  progress_.during(part_,
                   [&](const RunHook&) { screen_.expect("some/kernel: 0% of words, one, 1 s"); });
}

// The message of a failure then has its own line.
TEST_F(ProgressTest, IsGoneBeforeAFailureGetsOut) {
  try {
    progress_.during(part_, [&](const RunHook&) {
      screen_.expect("some/kernel");
      throw std::runtime_error("the store broke");
    });
    ADD_FAILURE();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "the store broke");
    EXPECT_EQ(screen_.lines().back(), "");
  }
}

// A short run writes no line, not even one to erase, and does not wait for the delay.
TEST(Progress, NobodyHearsOfAShortRun) {
  Screen screen;
  const Part part = some_part();
  const Progress progress(screen.sink(), std::chrono::hours(1));
  progress.during(part, [](const RunHook&) { std::this_thread::sleep_for(milliseconds(300)); });
  EXPECT_TRUE(screen.lines().empty());
}

// Progress adds no listener to the machine: the thread that shows the line looks at the machine
// instead. So the measured seconds are the time of the run alone.
TEST_F(ProgressTest, PutsNoListenerIntoWhatIsTimed) {
  progress_.during(part_, [&](const RunHook& around) {
    Machine machine(100);
    around(machine, part_.plan, [&] {
      EXPECT_FALSE(machine.is_told());
      static_cast<void>(machine.read(matrix_.block({0, 5}, {0, 4})));
      screen_.expect("some/kernel: 20% of words");
      EXPECT_FALSE(machine.is_told());
    });
    // A worker uses its machine again for another part of its work.
    around(machine, part_.plan, [&] {
      static_cast<void>(machine.read(matrix_.block({0, 5}, {0, 4})));
      screen_.expect("some/kernel: 40% of words");
    });
  });
}

// A slow screen does not delay the run. This sink waits until the run has ended.
TEST(Progress, ASlowScreenHoldsUpNothing) {
  std::promise<void> ended;
  std::atomic<bool> shows = false;
  const Part part = some_part();
  const Progress progress(
      [&, ended = std::make_shared<std::shared_future<void>>(ended.get_future())](auto) {
        shows = true;
        ended->wait();
      },
      milliseconds(0));
  Index moved = 0;
  progress.during(part, [&](const RunHook& around) {
    while (!shows) {
      std::this_thread::yield();
    }
    std::vector<float> words(100);
    const SlowMatrix matrix = borrow("A", words.data(), 10, 10);
    Machine machine(100);
    around(machine, part.plan, [&] { static_cast<void>(machine.read(matrix.whole())); });
    moved = machine.moved();
    ended.set_value();
  });
  EXPECT_EQ(moved, 100);
}

// With or without progress, the counts are the same. A run with progress still reports its peak
// speed.
TEST(Progress, ChangesNothingOfARun) {
  for (const auto& [kernel, heads, threads] :
       {std::tuple("backward/large", 3, 2), std::tuple("backward/rows", 1, 3)}) {
    Request request;
    request.kernel = kernel;
    request.n = 300;
    request.d = 16;
    request.M = 4096;
    request.heads = heads;
    request.threads = threads;
    Screen screen;
    const Progress progress(screen.sink(), milliseconds(0));
    const Report watched = run(request, Topology(), {.progress = &progress});
    const Report unwatched = run(request);
    EXPECT_EQ(watched.kernel.counted->phases, unwatched.kernel.counted->phases);
    EXPECT_EQ(watched.kernel.io(), count(request).kernel.io());
    EXPECT_GT(watched.kernel.peak_gflops, 0);
    for (const std::string& line : screen.lines()) {
      EXPECT_TRUE(line.empty() || line.starts_with(std::string(kernel) + ": ") ||
                  line.starts_with(unwatched.forward->plan.kernel + ": "))
          << line;
    }
  }
}

}  // namespace
}  // namespace redblue
