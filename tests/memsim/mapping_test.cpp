// Kept memory is used again, the oldest is dropped first, and huge pages begin at 2 MiB.

#include "memsim/mapping.hpp"

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <thread>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace redblue {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

std::unique_ptr<Mapping> mapping(std::size_t bytes, bool huge = false) {
  return std::make_unique<Mapping>(bytes, huge, Mapping::Room::is_sure);
}

// Sizes are rounded up to pages, so 4095 bytes less are the same size. Huge pages are another kind.
TEST(Mapping, IsUsedAgainForTheSameSize) {
  const std::size_t bytes = 3 * kMiB;
  auto first = mapping(bytes);
  float* const words = first->words();
  words[7] = 42;
  first.reset();
  EXPECT_NE(mapping(bytes, true)->words(), words);
  EXPECT_NE(mapping(bytes + 1)->words(), words);
  auto second = mapping(bytes - 4095);
  EXPECT_EQ(second->words(), words);
  EXPECT_EQ(second->words()[7], 42);
  EXPECT_NE(mapping(bytes)->words(), words);  // the first one is in use
}

// 64 MiB are kept. Mappings of 30, 31 and 32 MiB end in this order. So the first one is dropped,
// and the next mapping of its size has new pages, which are 0.
TEST(Mapping, TheOldestIsDropped) {
  for (const std::size_t size : {30, 31, 32}) {
    mapping(size * kMiB)->words()[size] = 1;
  }
  EXPECT_EQ(mapping(32 * kMiB)->words()[32], 1);
  EXPECT_EQ(mapping(31 * kMiB)->words()[31], 1);
  EXPECT_EQ(mapping(30 * kMiB)->words()[30], 0);
}

TEST(Mapping, HugePagesAreAligned) {
  for (const std::size_t bytes : {std::size_t{1}, 2 * kMiB, 5 * kMiB + 3}) {
    const auto huge = mapping(bytes, true);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(huge->words()) % (2 * kMiB), 0U);
    reinterpret_cast<char*>(huge->words())[bytes - 1] = 1;  // the last byte is there
  }
}

TEST(Mapping, RefusesWhatNoMemoryHolds) {
  for (const bool huge : {false, true}) {
    for (const std::size_t bytes :
         {std::numeric_limits<std::size_t>::max(), std::numeric_limits<std::size_t>::max() / 2}) {
      EXPECT_THROW(mapping(bytes, huge), std::bad_alloc) << bytes;
    }
  }
}

// A child of fork() makes and ends mappings, even if another thread did so during the fork. A child
// that waits for that thread is ended by its alarm.
TEST(Mapping, WorksInAChild) {
  std::atomic<bool> is_over = false;
  std::thread other([&] {
    while (!is_over) {
      mapping(kMiB);
    }
  });
  for (int i = 0; i < 200; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(10);
      mapping(kMiB);
      ::_exit(0);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << "child " << i;
    if (status != 0) {
      break;
    }
  }
  is_over = true;
  other.join();
}

}  // namespace
}  // namespace redblue
