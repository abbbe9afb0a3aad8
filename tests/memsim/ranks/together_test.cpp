// All threads start, or none: if the system refuses one, no task begins and no thread remains.

#include "memsim/ranks/together.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string>
#include <system_error>
#include <thread>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "memsim/errors.hpp"
#include "memsim/ranks/local_transport.hpp"

namespace redblue {
namespace {

TEST(Together, EachHasAThreadAndAllWorkAtTheSameTime) {
  constexpr Index kCount = 7;
  std::atomic<Index> arrived = 0;
  std::mutex mutex;
  std::set<std::thread::id> threads;
  run_together(kCount, "rank", [&](Index) {
    ++arrived;
    while (arrived < kCount) {
      std::this_thread::yield();
    }
    const std::lock_guard lock(mutex);
    threads.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(threads.size(), static_cast<std::size_t>(kCount));
  EXPECT_TRUE(threads.contains(std::this_thread::get_id()));
}

// Runs in its own process, with a limit on threads. Prints the exception on standard error. The
// limit does not bind root.
template <class Start>
[[noreturn]] void start_limited(rlim_t most, const Start& start) {
  constexpr unsigned kNobody = 65534;
  const rlimit limit{most, most};
  if ((::geteuid() == 0 && (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0)) ||
      ::setrlimit(RLIMIT_NPROC, &limit) != 0) {
    std::_Exit(3);
  }
  std::atomic<Index> begun = 0;
  try {
    start(begun);
  } catch (const std::exception& error) {
    std::fputs(error.what(), stderr);
    std::_Exit(begun == 0 ? 0 : 2);
  }
  std::_Exit(1);
}

constexpr const char* kRefused =
    "no thread can be started for rank [0-9]+ of 1000: ask for fewer, or raise the limit of "
    "processes \\(ulimit -u\\): Resource temporarily unavailable";

// With 0 the first thread is refused. With 20 some start before one is refused.
TEST(Together, AThreadThatIsRefusedIsAnErrorAndNobodyBegins) {
  for (const rlim_t most : {0U, 20U}) {
    EXPECT_EXIT(start_limited(most,
                              [](std::atomic<Index>& begun) {
                                run_together(1000, "rank", [&](Index) { ++begun; });
                              }),
                testing::ExitedWithCode(0), kRefused);
    EXPECT_EXIT(
        start_limited(
            most, [](std::atomic<Index>& begun) { run_ranks(1000, [&](Transport&) { ++begun; }); }),
        testing::ExitedWithCode(0), kRefused);
  }
}

}  // namespace
}  // namespace redblue
