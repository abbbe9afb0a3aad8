// Threads: tasks begin in order, up to the limit at the same time, and every task is done.

#include "memsim/store/threads.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <numeric>
#include <set>
#include <system_error>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "memsim/sanitized.hpp"

namespace redblue {
namespace {

using namespace std::chrono_literals;

// A point where `members` threads meet. A thread that waits too long gives up.
class Meeting {
 public:
  explicit Meeting(int members) : missing_(members) {}
  bool join() {
    std::unique_lock lock(mutex_);
    if (--missing_ == 0) {
      all_.notify_all();
    }
    return all_.wait_for(lock, 20s, [&] { return missing_ <= 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable all_;
  int missing_;
};

TEST(Threads, DoOneThingAfterTheOtherInTheOrderInWhichItIsGiven) {
  constexpr int kTasks = 500;
  std::vector<int> done;
  {
    Threads threads(1);
    for (int k = 0; k < kTasks; ++k) {
      threads.give([&, k] { done.push_back(k); });  // one thread, so no lock
    }
  }
  std::vector<int> order(kTasks);
  std::iota(order.begin(), order.end(), 0);
  EXPECT_EQ(done, order);
}

TEST(Threads, DoAsMuchAtTheSameTimeAsThereIs) {
  for (const int members : {1, 2, 7, 20}) {
    Meeting meeting(members);
    std::atomic<int> met = 0;
    {
      Threads threads;
      for (int k = 0; k < members; ++k) {
        threads.give([&] { met += meeting.join() ? 1 : 0; });
      }
    }
    EXPECT_EQ(met, members);
  }
}

// A task never waits for another task that waits for it, even if some threads are idle and others
// busy.
TEST(Threads, ThatAreIdleAreNotCountedOnTwice) {
  Threads threads;
  for (int round = 0; round < 200; ++round) {
    const auto meeting = std::make_shared<Meeting>(4);  // three tasks and their giver
    for (int k = 0; k < 3; ++k) {
      threads.give([meeting] { EXPECT_TRUE(meeting->join()); });
    }
    ASSERT_TRUE(meeting->join());
    if (round % 3 == 0) {
      std::this_thread::sleep_for(100us);  // some threads are idle
    }
  }
}

// Every task is done, even if no task follows it, whichever threads are idle or just ending.
TEST(Threads, DoWhatTheyAreGivenAlsoWhereNothingFollows) {
  constexpr int kRounds = kSanitized ? 2000 : 10000;
  std::mutex mutex;
  std::condition_variable done;
  int missing = 0;
  Threads threads(4);
  for (int round = 0; round < kRounds; ++round) {
    const int tasks = 1 + round % 6;
    {
      const std::lock_guard lock(mutex);
      missing = tasks;
    }
    for (int k = 0; k < tasks; ++k) {
      threads.give([&] {
        const std::lock_guard lock(mutex);
        if (--missing == 0) {
          done.notify_one();
        }
      });
    }
    std::unique_lock lock(mutex);
    ASSERT_TRUE(done.wait_for(lock, 20s, [&] { return missing == 0; })) << "round " << round;
  }
}

TEST(Threads, AreAtMostSoMany) {
  constexpr int kThreads = 3;
  std::mutex mutex;
  std::set<std::thread::id> seen;
  int now = 0;
  int most = 0;
  Meeting meeting(kThreads);
  {
    Threads threads(kThreads);
    for (int k = 0; k < 60; ++k) {
      threads.give([&, k] {
        {
          const std::lock_guard lock(mutex);
          seen.insert(std::this_thread::get_id());
          most = std::max(most, ++now);
        }
        if (k < kThreads) {
          EXPECT_TRUE(meeting.join());
        }
        std::this_thread::sleep_for(100us);
        const std::lock_guard lock(mutex);
        --now;
      });
    }
  }
  EXPECT_EQ(most, kThreads);
  EXPECT_EQ(static_cast<int>(seen.size()), kThreads);
}

// If the system refuses more threads, the existing ones do all the work. Without any thread, that
// is an error. Runs in its own process, which may have no further threads.
TEST(Threads, ThatCannotBeStartedAreDoneWithout) {
  const auto refuse_more = [] {
    constexpr unsigned kNobody = 65534;  // the limit does not hold for root
    const rlimit none{0, 0};
    if ((::geteuid() == 0 && (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0)) ||
        ::setrlimit(RLIMIT_NPROC, &none) != 0) {
      std::_Exit(3);
    }
  };
  const auto with_one = [&] {
    std::atomic<int> done = 0;
    {
      Threads threads;
      threads.give([&] {
        std::this_thread::sleep_for(20ms);
        ++done;
      });
      refuse_more();
      for (int k = 0; k < 50; ++k) {
        threads.give([&] { ++done; });
      }
    }
    std::_Exit(done == 51 ? 0 : 1);
  };
  EXPECT_EXIT(with_one(), testing::ExitedWithCode(0), "");
  const auto with_none = [&] {
    refuse_more();
    Threads threads;
    try {
      threads.give([] {});
    } catch (const std::system_error& error) {
      std::fputs(error.what(), stderr);
      std::_Exit(0);
    }
    std::_Exit(1);
  };
  EXPECT_EXIT(with_none(), testing::ExitedWithCode(0),
              "no thread can be started for transfers of words: .*Resource temporarily");
}

TEST(Threads, HaveDoneAllWhenTheyDie) {
  for (const std::size_t most : {1U, 4U, 1000U}) {
    std::atomic<int> done = 0;
    {
      Threads threads(most);
      for (int k = 0; k < 50; ++k) {
        threads.give([&] {
          std::this_thread::sleep_for(20us);
          ++done;
        });
      }
    }
    EXPECT_EQ(done, 50);
  }
  const Threads without_work;
}

}  // namespace
}  // namespace redblue
