#pragma once
// Finds the memory that this process may still use, so that a run that is too large is refused
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

// Returns the available bytes. They are the minimum of MemAvailable and of the bytes left under the
// memory limit of each cgroup of the process (v1 and v2). Page cache that the kernel can drop
// counts as left. Missing or unreadable files are ignored; if all are, sysconf answers.
// /proc and /sys/fs/cgroup are read below `root`, where tests place their own files.
std::uint64_t memory_available(const std::filesystem::path& root = "/");

// The memory that concurrent runs share. It must outlive their claims. The available bytes are read
// only while no claim exists, because the system counts a claimed byte only after its first use.
// Safe to use from any thread.
class MemoryBudget {
 public:
  // `root` is passed to memory_available().
  explicit MemoryBudget(std::filesystem::path root = "/") : root_(std::move(root)) {}

 private:
  friend class MemoryClaim;
  const std::filesystem::path root_;
  std::mutex mutex_;
  std::condition_variable one_gone_;
  Words bytes_, available_;
  int claims_ = 0;
};

// Claims the memory of a run while this object lives. If the claim does not fit with the other
// claims of its budget, the constructor waits until enough of them have ended. Requires: the thread
// holds no other claim of that budget, because it would wait for itself.
class MemoryClaim {
 public:
  // If `shared` is null, the claim has a budget for itself, and up to 4 MiB are not checked.
  // Throws: std::runtime_error if `bytes` exceed the available memory even without other claims.
  // The message names `who` and the remedy.
  MemoryClaim(MemoryBudget* shared, const Words& bytes, std::string_view who,
              std::string_view remedy);
  MemoryClaim(const MemoryClaim&) = delete;
  MemoryClaim& operator=(const MemoryClaim&) = delete;
  ~MemoryClaim();

 private:
  MemoryBudget own_;
  MemoryBudget& budget_;
  bool claimed_ = false;
  Index bytes_ = 0;
};

// Returns the peak of resident memory of this process, in bytes.
std::uint64_t resident_bytes(const std::filesystem::path& root = "/");

// Formats bytes for people: "512 B", "3.2 GiB".
std::string format_bytes(std::uint64_t bytes);

}  // namespace redblue
