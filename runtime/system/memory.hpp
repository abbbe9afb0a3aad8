#pragma once
// How much memory this process may still take, so that a run larger than that is refused
// before it starts.

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "memsim/words.hpp"

namespace redblue {

// Bytes: the least of what the system calls available (MemAvailable) and what is left under
// the memory limit of each cgroup around the process (v2 and v1; page cache that the kernel
// can drop counts as left). `root` is where /proc and /sys/fs/cgroup are looked for: files
// made up by a test. What is missing or makes no sense there is passed over; with nothing
// at all, sysconf answers.
std::uint64_t memory_available(const std::filesystem::path& root = "/");

// What several runs at a time share; it outlives them. What there is of it is looked at when nobody
// holds any: the system knows of a word only when it is touched. From any thread.
class MemoryBudget {
 public:
  // `root` as of memory_available().
  explicit MemoryBudget(std::filesystem::path root = "/") : root_(std::move(root)) {}

 private:
  friend class MemoryClaim;
  const std::filesystem::path root_;
  std::mutex mutex_;
  std::condition_variable one_gone_;
  Words bytes_, available_;
  int claims_ = 0;
};

// What a run is going to take, for as long as this lives. One that finds too little beside others
// of the same budget waits until enough of them are gone. Requires: the thread holds no other of
// that budget, for which it would wait.
class MemoryClaim {
 public:
  // Null: nobody shares. Throws: std::runtime_error where `bytes` are more than there are available
  // at all; it says that `who` needs them, and the remedy.
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

// The most that this process had in memory so far.
std::uint64_t resident_bytes(const std::filesystem::path& root = "/");

// Three figures or so for people: "512 B", "3.2 GiB".
std::string format_bytes(std::uint64_t bytes);

}  // namespace redblue
