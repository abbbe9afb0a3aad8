#include "runtime/system/unfinished_files.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace redblue {
namespace {

using Kind = UnfinishedFiles::Kind;
using Entries = std::vector<std::pair<std::string, Kind>>;

std::atomic_flag locked = ATOMIC_FLAG_INIT;
std::atomic<bool> kept = false;

// Guarded by the lock. Never freed, because a signal handler may read it at any time. Not allocated
// by a handler, because the handler may have interrupted an allocation.
Entries* entries = nullptr;

// A signal handler may call this, but must not lock a std::mutex.
void lock() noexcept {
  constexpr timespec kSoon{.tv_sec = 0, .tv_nsec = 100'000};
  while (locked.test_and_set(std::memory_order_acquire)) {
    ::nanosleep(&kSoon, nullptr);
  }
}

void unlock() noexcept {
  locked.clear(std::memory_order_release);
}

// Uses getdents64, because opendir() allocates, which a signal handler must not do.
void remove_tree(int parent, const char* name) noexcept {
  const int folder = ::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) {
    return;
  }
  struct Head {  // of a directory entry, before its name
    std::uint64_t inode;
    std::int64_t offset;
    std::uint16_t bytes;
    std::uint8_t type;
  };
  constexpr std::size_t kNameAt = offsetof(Head, type) + 1;
  alignas(Head) std::array<char, 4096> buffer{};
  for (;;) {
    const long got = ::syscall(SYS_getdents64, folder, buffer.data(), buffer.size());
    if (got <= 0) {
      break;
    }
    for (std::size_t at = 0; at < static_cast<std::size_t>(got);) {
      Head head{};
      std::memcpy(&head, buffer.data() + at, kNameAt);
      const char* const entry = buffer.data() + at + kNameAt;
      const bool own = std::strcmp(entry, ".") == 0 || std::strcmp(entry, "..") == 0;
      if (!own && ::unlinkat(folder, entry, 0) != 0) {
        remove_tree(folder, entry);
      }
      at += head.bytes;
    }
  }
  ::close(folder);
  ::unlinkat(parent, name, AT_REMOVEDIR);
}

}  // namespace

UnfinishedFiles::UnfinishedFiles() {
  sigset_t held;
  ::sigemptyset(&held);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    ::sigaddset(&held, signal);
  }
  ::pthread_sigmask(SIG_BLOCK, &held, &before_);
  lock();
  if (entries == nullptr) {
    entries = new Entries();
  }
}

UnfinishedFiles::~UnfinishedFiles() {
  unlock();
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void UnfinishedFiles::add(const std::filesystem::path& path, Kind kind) {
  entries->emplace_back(path.string(), kind);
}

void UnfinishedFiles::erase(const std::filesystem::path& path) noexcept {
  std::erase_if(*entries, [&](const auto& entry) { return entry.first == path.native(); });
}

void UnfinishedFiles::keep_outputs() noexcept {
  kept = true;
}

bool outputs_are_kept() noexcept {
  return kept;
}

bool remove_unfinished(bool at_any_rate) noexcept {
  lock();
  if (kept && !at_any_rate) {
    unlock();
    return false;
  }
  if (entries == nullptr) {
    return true;
  }
  for (const auto& [path, kind] : *entries) {
    switch (kind) {
      case Kind::file:
        ::unlink(path.c_str());
        break;
      case Kind::folder:
        remove_tree(AT_FDCWD, path.c_str());
        break;
      case Kind::folder_if_empty:
        break;
    }
  }
  for (const auto& [path, kind] : *entries) {  // their files are removed now
    if (kind == Kind::folder_if_empty) {
      ::rmdir(path.c_str());
    }
  }
  return true;
}

}  // namespace redblue
