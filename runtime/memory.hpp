#pragma once
// How much memory this process may still take, so that a run larger than that is refused
// before it starts.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "memsim/words.hpp"

namespace redblue {

// Bytes: the least of what the system calls available (MemAvailable) and what is left under
// the memory limit of each cgroup around the process (v2 and v1; page cache that the kernel
// can drop counts as left). `root` is where /proc and /sys/fs/cgroup are looked for: files
// made up by a test. What is missing or makes no sense there is passed over; with nothing
// at all, sysconf answers.
std::uint64_t memory_available(const std::filesystem::path& root = "/");

// What a run is going to take, for as long as this lives. Of several in this process, one that
// finds too little beside the others waits until enough of them are gone; what is available is
// looked at when there are none. Requires: the thread holds no other, for which it would wait.
class MemoryClaim {
 public:
  // Throws: std::runtime_error where `bytes` are more than there are available at all; it says
  // that `who` needs them, and the remedy.
  MemoryClaim(const Words& bytes, std::string_view who, std::string_view remedy);
  MemoryClaim(const MemoryClaim&) = delete;
  MemoryClaim& operator=(const MemoryClaim&) = delete;
  ~MemoryClaim();

 private:
  Index bytes_ = 0;
};

// The most that this process had in memory so far.
std::uint64_t resident_bytes(const std::filesystem::path& root = "/");

// Three figures or so for people: "512 B", "3.2 GiB".
std::string format_bytes(std::uint64_t bytes);

}  // namespace redblue
