// Tests event counters. Counts belong to the innermost phase at the time. An event of cache lines
// is believed only within the stated band. Without counters, the reason is given.

#include "runtime/observe/counters.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memsim/sanitized.hpp"
#include "tests/support/phase_without_room.hpp"

namespace redblue {
namespace {

constexpr Index kPages = 300;
constexpr Index kStray = 30;  // page faults of the bookkeeping
// Address sanitizer keeps a byte for each eight bytes. Thread sanitizer keeps two words for each.
// The shadow of a stray page needs a separate page.
constexpr Index most_faults(Index pages) {
  return pages + kStray +
         (kThreadSanitized ? 2 * (pages + kStray)
          : kSanitized     ? pages / 8 + kStray
                           : 0);
}

// Pages that are still untouched, each mapped separately.
class FreshPages {
 public:
  explicit FreshPages(Index pages)
      : page_(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))),
        bytes_(static_cast<std::size_t>(pages) * page_),
        start_(
            ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    ::madvise(start_, bytes_, MADV_NOHUGEPAGE);
  }
  FreshPages(const FreshPages&) = delete;
  FreshPages& operator=(const FreshPages&) = delete;
  ~FreshPages() { ::munmap(start_, bytes_); }
  void touch(Index first, Index last) {
    for (Index page = first; page < last; ++page) {
      static_cast<volatile char*>(start_)[static_cast<std::size_t>(page) * page_] = 1;
    }
  }

 private:
  std::size_t page_, bytes_;
  void* start_;
};

// Counts page faults. Every Linux counts them, virtual or not, unless it forbids all counters.
class PageFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!counters_.unavailable().empty()) {
      EXPECT_TRUE(counters_.events().empty());
      GTEST_SKIP() << counters_.unavailable();
    }
    ASSERT_EQ(counters_.events().size(), 1U);
    EXPECT_EQ(counters_.events().front().name, "perf::PAGE-FAULTS");
    EXPECT_EQ(counters_.events().front().lines_into, std::nullopt);
  }
  static void expect_about(Index count, Index pages) {
    EXPECT_GE(count, pages);
    EXPECT_LE(count, most_faults(pages));
  }

  const Counters counters_{Topology{}, {"perf::PAGE-FAULTS"}};
};

TEST_F(PageFaults, AreCountedFromTheBeginning) {
  FreshPages pages(kPages);
  const Index before = counters_.read().front();
  pages.touch(0, kPages);
  expect_about(counters_.read().front() - before, kPages);
}

TEST_F(PageFaults, GoToTheInnermostPhase) {
  FreshPages pages(6 * kPages);
  Machine machine(10);
  const PhaseCounters phases(machine, counters_);
  {
    const Phase outer(machine, "outer");
    pages.touch(0, kPages);
    {
      const Phase inner(machine, "inner");
      pages.touch(kPages, 4 * kPages);
    }
    { const Phase idle(machine, "idle"); }
  }
  pages.touch(4 * kPages, 5 * kPages);
  {
    const Phase outer(machine, "outer");  // adds to the outer phase
    pages.touch(5 * kPages, 6 * kPages);
  }
  expect_about(phases.of("outer").front(), 2 * kPages);
  expect_about(phases.of("outer/inner").front(), 3 * kPages);
  expect_about(phases.of("outer/idle").front(), 0);
  expect_about(phases.total().front(), 6 * kPages);
  EXPECT_EQ(phases.of("inner").front(), 0) << "paths, not names";
}

// A listener may not throw. A phase without room is reported later.
TEST_F(PageFaults, SayAfterwardsThatAPhaseHadNoRoom) {
  Machine machine(10);
  PhaseCounters phases(machine, counters_);
  phases.on(phase_without_room());
  EXPECT_THROW(static_cast<void>(phases.of("")), std::length_error);
}

// A thread has one active set of counters. A second set reports that, and the first continues.
TEST_F(PageFaults, AreCountedOnce) {
  const Counters second(Topology{}, {"perf::PAGE-FAULTS"});
  EXPECT_NE(second.unavailable(), "");
  FreshPages pages(kPages);
  const Index before = counters_.read().front();
  pages.touch(0, kPages);
  expect_about(counters_.read().front() - before, kPages);
}

TEST(Counters, SeveralEventsStandSideBySide) {
  const Counters two(Topology{}, {"perf::PAGE-FAULTS", "perf::CONTEXT-SWITCHES"});
  if (!two.unavailable().empty()) {
    GTEST_SKIP() << two.unavailable();
  }
  FreshPages pages(kPages);
  Machine machine(10);
  const PhaseCounters phases(machine, two);
  {
    const Phase phase(machine, "touch");
    pages.touch(0, kPages);
  }
  ASSERT_EQ(phases.of("touch").size(), 2U);
  EXPECT_GE(phases.of("touch")[0], kPages);
  EXPECT_LE(phases.of("touch")[0], most_faults(kPages));
  EXPECT_LT(phases.of("touch")[1], kPages);
}

TEST(Counters, AnEventThatThereIsNotIsNamed) {
  const Counters none(Topology{}, {"perf::PAGE-FAULTS", "perf::NO-SUCH-EVENT"});
  EXPECT_TRUE(none.events().empty());
  EXPECT_THROW(static_cast<void>(none.read()), std::runtime_error);
  if (papi_version()) {
    EXPECT_NE(none.unavailable().find("perf::"), std::string::npos) << none.unavailable();
  } else {
    EXPECT_EQ(none.unavailable(), "built without PAPI");
  }
}

// On any machine, the result is a list of believed events or a reason.
TEST(Counters, CacheLinesOrTheReason) {
  const Counters lines(read_topology());
  EXPECT_EQ(lines.events().empty(), !lines.unavailable().empty());
  for (const CounterEvent& event : lines.events()) {
    EXPECT_TRUE(event.lines_into) << event.name;
  }
  EXPECT_EQ(lines.unavailable().find('\n'), std::string::npos) << lines.unavailable();
}

TEST(SelfTest, WithinTheBandItIsBelieved) {
  EXPECT_EQ(disbelief({.lines = 1000, .streamed = 1000, .touches = 1000, .resident = 0}), "");
  EXPECT_EQ(disbelief({.lines = 1000, .streamed = 750, .touches = 1000, .resident = 20}), "");
  EXPECT_EQ(disbelief({.lines = 1000, .streamed = 1500, .touches = 1000, .resident = 0}), "");
}

// Three bad counters: one always stays 0, as in many virtual machines. One misses prefetched lines,
// and one counts every access.
TEST(SelfTest, OutsideOfTheBandTheFiguresAreSaid) {
  EXPECT_EQ(disbelief({.lines = 1000, .streamed = 0, .touches = 1000, .resident = 0}),
            "not believed: for 1000 lines read in order from a buffer larger than the cache it "
            "counted 0, expected 750 to 1500");
  EXPECT_NE(disbelief({.lines = 1000, .streamed = 749, .touches = 1000, .resident = 0}), "");
  EXPECT_NE(disbelief({.lines = 1000, .streamed = 1501, .touches = 1000, .resident = 0}), "");
  EXPECT_EQ(disbelief({.lines = 1000, .streamed = 1000, .touches = 1000, .resident = 1000}),
            "not believed: for 1000 touches of lines that stay in the cache it counted 1000, "
            "expected at most 20");
}

}  // namespace
}  // namespace redblue
