// Tests that seconds go to the innermost phase at the time.

#include "runtime/trace/phase_clock.hpp"

#include <chrono>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include "tests/support/phase_without_room.hpp"

namespace redblue {
namespace {

constexpr double kNap = 0.005;

void nap() {
  std::this_thread::sleep_for(std::chrono::duration<double>(kNap));
}

TEST(PhaseClock, TheInnermostPhaseHasTheTime) {
  Machine machine(10);
  const PhaseClock clock(machine);
  {
    const Phase outer(machine, "outer");
    nap();
    {
      const Phase inner(machine, "inner");
      nap();
      nap();
      nap();
    }
    nap();
  }
  const double outer = clock.seconds("outer");
  const double inner = clock.seconds("outer/inner");
  EXPECT_GE(outer, 2 * kNap);
  EXPECT_GE(inner, 3 * kNap);
  EXPECT_GE(clock.total(), outer + inner);
  EXPECT_EQ(clock.seconds("inner"), 0) << "paths, not names";
}

TEST(PhaseClock, APhaseEnteredAgainAccumulates) {
  Machine machine(10);
  const PhaseClock clock(machine);
  double before = 0;
  for (int i = 0; i < 3; ++i) {
    {
      const Phase phase(machine, "again");
      nap();
    }
    EXPECT_GE(clock.seconds("again"), before + kNap);
    before = clock.seconds("again");
  }
}

TEST(PhaseClock, TimeOutsideOfPhasesIsInTheTotalAlone) {
  Machine machine(10);
  const PhaseClock clock(machine);
  nap();
  { const Phase phase(machine, "short"); }
  nap();
  EXPECT_GE(clock.total(), 2 * kNap);
  EXPECT_LE(clock.seconds("short"), clock.total() - 2 * kNap);
  EXPECT_EQ(clock.seconds("never"), 0);
}

TEST(PhaseClock, MovesDoNotCount) {
  Machine machine(10);
  const PhaseClock clock(machine);
  const Phase phase(machine, "open");
  const Tile tile = machine.initialize("tile", 2, 5);
  nap();
  EXPECT_EQ(clock.seconds("open"), 0) << "booked when the phase ends or another begins";
}

// A listener may not throw. A phase without room is reported later.
TEST(PhaseClock, SaysAfterwardsThatItHadNoRoom) {
  Machine machine(10);
  PhaseClock clock(machine);
  clock.on(phase_without_room());
  EXPECT_THROW(static_cast<void>(clock.seconds("")), std::length_error);
}

TEST(PhaseClock, ListensWhileItLives) {
  Machine machine(10);
  {
    const PhaseClock first(machine);
    const Phase phase(machine, "seen");
  }
  const Phase phase(machine, "unseen");  // has no listener, and no pointer dangles
  const PhaseClock second(machine);
  EXPECT_EQ(second.seconds("seen"), 0);
}

// Two clocks on one machine do not disturb each other.
TEST(PhaseClock, Several) {
  Machine machine(10);
  const PhaseClock first(machine);
  nap();
  const PhaseClock second(machine);
  {
    const Phase phase(machine, "both");
    nap();
  }
  EXPECT_GE(first.seconds("both"), kNap);
  EXPECT_GE(second.seconds("both"), kNap);
  EXPECT_GE(first.total(), second.total());
}

}  // namespace
}  // namespace redblue
