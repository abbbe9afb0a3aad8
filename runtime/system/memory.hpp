#pragma once
// The memory that this process may still take, so that a larger run is refused before it starts.

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "memsim/words.hpp"

namespace redblue {

// Bytes: the least of what the system calls available (MemAvailable) and what is left under the
// memory limit of each cgroup around the process (v2 and v1; page cache that the kernel can drop
// counts as left). /proc and /sys/fs/cgroup are read below `root`, where a test makes up its files.
// A file that is missing or makes no sense is passed over; without any of them sysconf answers.
std::uint64_t memory_available(const std::filesystem::path& root = "/");

// The memory that several runs at a time share. It must outlive their claims. The available bytes
// are read when there is no claim, because the system knows of a word only once it is touched. Safe
// to use from any thread.
class MemoryBudget {
 public:
  // `root` is that of memory_available().
  explicit MemoryBudget(std::filesystem::path root = "/") : root_(std::move(root)) {}

 private:
  friend class MemoryClaim;
  const std::filesystem::path root_;
  std::mutex mutex_;
  std::condition_variable one_gone_;
  Words bytes_, available_;
  int claims_ = 0;
};

// The memory of a run, claimed while this lives. A claim that does not fit beside others of the
// same budget waits until enough of them have ended. Requires: the thread holds no other claim of
// that budget, which it would wait for.
class MemoryClaim {
 public:
  // A null `shared` is a budget for this claim alone. Throws: std::runtime_error if `bytes` exceed
  // the available memory even without other claims; it says that `who` needs them, and the remedy.
  MemoryClaim(MemoryBudget* shared, const Words& bytes, std::string_view who,
              std::string_view remedy);
  MemoryClaim(const MemoryClaim&) = delete;
  MemoryClaim& operator=(const MemoryClaim&) = delete;
  ~MemoryClaim();

 private:
  MemoryBudget own_;
  MemoryBudget& budget_;
  Index bytes_ = 0;
};

// The most memory that this process has had resident so far.
std::uint64_t resident_bytes(const std::filesystem::path& root = "/");

// A few figures for people: "512 B", "3.2 GiB".
std::string format_bytes(std::uint64_t bytes);

}  // namespace redblue
