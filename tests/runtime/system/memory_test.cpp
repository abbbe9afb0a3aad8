// Tests the available memory: the least of all limits counts, read from files made for each case.

#include "runtime/system/memory.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <future>
#include <optional>

#include <gtest/gtest.h>

#include "tests/support/temporary_directory.hpp"
#include "tests/support/thrown.hpp"

namespace redblue {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

// A machine with 1000 MiB available.
class RoomInMemory : public ::testing::Test {
 protected:
  RoomInMemory() {
    root_.write("proc/meminfo",
                "MemTotal:        2048000 kB\n"
                "MemFree:           10000 kB\n"
                "MemAvailable:    1024000 kB\n");
  }
  void cgroup(const std::string& line) { root_.write("proc/self/cgroup", line); }
  void v2(const std::string& group, const std::string& limit, std::uint64_t usage) {
    root_.write("sys/fs/cgroup" + group + "/memory.max", limit + "\n");
    root_.write("sys/fs/cgroup" + group + "/memory.current", std::to_string(usage) + "\n");
  }
  void v1(const std::string& group, std::uint64_t limit, std::uint64_t usage) {
    const std::string at = "sys/fs/cgroup/memory" + group;
    root_.write(at + "/memory.limit_in_bytes", std::to_string(limit) + "\n");
    root_.write(at + "/memory.usage_in_bytes", std::to_string(usage) + "\n");
  }
  std::uint64_t available() { return memory_available(root_.path()); }

  TemporaryDirectory root_;
};

TEST_F(RoomInMemory, WithoutCgroupsTheSystemsFigureHolds) {
  EXPECT_EQ(available(), 1000 * kMiB);
}

TEST_F(RoomInMemory, TheLimitOfACgroupLessItsUsage) {
  cgroup("0::/job/step\n");
  v2("/job/step", std::to_string(300 * kMiB), 100 * kMiB);
  EXPECT_EQ(available(), 200 * kMiB);
}

TEST_F(RoomInMemory, ALimitFurtherUpHoldsToo) {
  cgroup("0::/job/step\n");
  v2("/job/step", "max", 100 * kMiB);
  v2("/job", std::to_string(500 * kMiB), 450 * kMiB);
  EXPECT_EQ(available(), 50 * kMiB);
}

TEST_F(RoomInMemory, NoLimitOrALargeOneChangesNothing) {
  cgroup("0::/job\n");
  v2("/job", "max", 100 * kMiB);
  EXPECT_EQ(available(), 1000 * kMiB);
  v2("/job", std::to_string(99999 * kMiB), 100 * kMiB);
  EXPECT_EQ(available(), 1000 * kMiB);
}

TEST_F(RoomInMemory, CacheThatCanBeDroppedIsNotUsage) {
  cgroup("0::/job\n");
  v2("/job", std::to_string(300 * kMiB), 250 * kMiB);
  root_.write("sys/fs/cgroup/job/memory.stat",
              "anon 1\ninactive_file " + std::to_string(150 * kMiB) + "\nactive_file 7\n");
  EXPECT_EQ(available(), 200 * kMiB);
}

TEST_F(RoomInMemory, UsageAboveTheLimitLeavesNothing) {
  cgroup("0::/job\n");
  v2("/job", std::to_string(300 * kMiB), 301 * kMiB);
  EXPECT_EQ(available(), 0U);
}

TEST_F(RoomInMemory, FirstVersionOfCgroups) {
  cgroup("12:cpu,cpuacct:/job\n11:hugetlb,memory:/job\n0::/\n");
  v1("/job", 400 * kMiB, 100 * kMiB);
  EXPECT_EQ(available(), 300 * kMiB);
  root_.write("sys/fs/cgroup/memory/job/memory.stat",
              "inactive_file 1\ntotal_inactive_file " + std::to_string(10 * kMiB) + "\n");
  EXPECT_EQ(available(), 310 * kMiB);
  v1("/job", 9223372036854771712U, 100 * kMiB);  // the file's value for "no limit"
  EXPECT_EQ(available(), 1000 * kMiB);
}

TEST_F(RoomInMemory, AContainerMayNotSeeItsOwnPath) {
  cgroup("4:memory:/docker/0123\n");
  v1("", 400 * kMiB, 100 * kMiB);
  EXPECT_EQ(available(), 300 * kMiB);
  cgroup("0::/../../elsewhere\n");
  v2("", std::to_string(200 * kMiB), 0);
  EXPECT_EQ(available(), 200 * kMiB);
}

TEST_F(RoomInMemory, NonsenseIsPassedOver) {
  cgroup("\n:\n0:\nmemory\n0::/job\n");
  v2("/job", "-", 1);
  EXPECT_EQ(available(), 1000 * kMiB);
  root_.write("proc/meminfo", "MemAvailable: much\n");
  EXPECT_GT(available(), 0U);
}

TEST(MemoryHere, ThisMachineAndAnEmptyRootGiveAFigure) {
  EXPECT_GT(memory_available(), 0U);
  const TemporaryDirectory empty;
  EXPECT_GT(memory_available(empty.path()), 0U);
}

// Two runs that fit alone, but not together, do not run at the same time.
TEST(MemoryClaim, WaitsForThoseBeforeIt) {
  const Words most =
      static_cast<Index>(std::min<std::uint64_t>(memory_available(), INT64_MAX) / 10 * 6);
  MemoryBudget memory;
  std::optional<MemoryClaim> first;
  first.emplace(&memory, most, "first", "");
  auto second =
      std::async(std::launch::async, [&] { const MemoryClaim claim(&memory, most, "second", ""); });
  const MemoryClaim little(&memory, 1, "little", "");  // fits next to the first
  EXPECT_EQ(second.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  first.reset();
  second.get();
}

TEST(MemoryClaim, RefusesWhatIsNotThereAtAll) {
  const Words all = Words(INT64_MAX) + Words(1);
  MemoryBudget memory;
  const std::string message =
      thrown<std::runtime_error>([&] { const MemoryClaim claim(&memory, all, "k", "take less"); });
  EXPECT_TRUE(message.starts_with("k would need more than 8 EiB of memory, but ")) << message;
  EXPECT_TRUE(message.ends_with(" are available: take less")) << message;
  const MemoryClaim none(&memory, 0, "who comes after", "");
}

// Without a budget, a claim never waits, even inside another claim of the same thread.
TEST(MemoryClaim, AloneIsNotHeldUp) {
  const Words most =
      static_cast<Index>(std::min<std::uint64_t>(memory_available(), INT64_MAX) / 10 * 6);
  const MemoryClaim first(nullptr, most, "first", "");
  const MemoryClaim second(nullptr, most, "second", "");
}

TEST_F(RoomInMemory, ABudgetLooksWhereItIsTold) {
  MemoryBudget memory(root_.path());
  const Words all = Index{1000} << 20;
  const MemoryClaim fits(&memory, all, "k", "");
  MemoryBudget other(root_.path());
  EXPECT_EQ(thrown<std::runtime_error>(
                [&] { const MemoryClaim claim(&other, all + 1, "k", "take less"); }),
            "k would need 1000.0 MiB of memory, but 1000.0 MiB are available: take less");
}

TEST(FormatBytes, ThreeFiguresOrSo) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.0 KiB");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(kMiB - 1), "1.0 MiB");  // not 1024.0 KiB
  EXPECT_EQ(format_bytes(3435973836), "3.2 GiB");
  EXPECT_EQ(format_bytes(18446744073709551615U), "16.0 EiB");
}

}  // namespace
}  // namespace redblue
