#include "memsim/mapping.hpp"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <mutex>
#include <new>

#include <pthread.h>
#include <sys/mman.h>

namespace redblue {
namespace {

constexpr std::size_t kPage = 4096;                      // bytes
constexpr std::size_t kHugePage = std::size_t{2} << 20;  // bytes

class SpareMappings {
 public:
  // Never deleted, because arenas may live until the end of the process.
  static SpareMappings& of_process() {
    static auto* const all = new SpareMappings;
    // A thread that is not in a child of fork() may hold the mutex at the fork.
    static const int handled = ::pthread_atfork(
        [] { all->mutex_.lock(); }, [] { all->mutex_.unlock(); }, [] { all->mutex_.unlock(); });
    static_cast<void>(handled);
    return *all;
  }

  // Returns a kept mapping of this size, or null. `huge`: it was given huge pages before its first
  // use.
  void* take(std::size_t bytes, bool huge) {
    const std::lock_guard lock(mutex_);
    const auto kept = std::ranges::find_if(
        kept_, [&](const Spare& spare) { return spare.bytes == bytes && spare.huge == huge; });
    if (kept == kept_.end()) {
      return nullptr;
    }
    void* const memory = kept->memory;
    kept_.erase(kept);
    bytes_ -= bytes;
    return memory;
  }
  void give(void* memory, std::size_t bytes, bool huge) noexcept try {
    const std::lock_guard lock(mutex_);
    kept_.push_back({memory, bytes, huge});
    bytes_ += bytes;
    while (bytes_ > kMost) {
      munmap(kept_.front().memory, kept_.front().bytes);
      bytes_ -= kept_.front().bytes;
      kept_.pop_front();
    }
  } catch (const std::bad_alloc&) {  // no room for the list
    munmap(memory, bytes);
  }

 private:
  static constexpr std::size_t kMost = std::size_t{64} << 20;  // bytes
  struct Spare {
    void* memory;
    std::size_t bytes;
    bool huge;
  };

  std::mutex mutex_;
  std::deque<Spare> kept_;  // the oldest first
  std::size_t bytes_ = 0;
};

// Returns the bytes to map. A mapping of huge pages has one more, so that the first can be aligned.
std::size_t mapped_bytes(std::size_t bytes, bool huge) {
  if (bytes > std::numeric_limits<std::size_t>::max() / 2) {
    throw std::bad_alloc();
  }
  const std::size_t page = huge ? kHugePage : kPage;
  return (bytes + page - 1) / page * page + (huge ? page : 0);
}

}  // namespace

Mapping::Mapping(std::size_t bytes, bool huge, Room room)
    : bytes_(mapped_bytes(bytes, huge)),
      huge_(huge),
      memory_(SpareMappings::of_process().take(bytes_, huge)) {
  const bool is_new = memory_ == nullptr;
  if (is_new) {
    memory_ =
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | (room == Room::is_sure ? 0 : MAP_NORESERVE), -1, 0);
  }
  if (memory_ == MAP_FAILED) {
    throw std::bad_alloc();
  }
  const std::size_t lead =
      huge ? (kHugePage - reinterpret_cast<std::uintptr_t>(memory_) % kHugePage) % kHugePage : 0;
  words_ = reinterpret_cast<float*>(static_cast<char*>(memory_) + lead);
  if (is_new && huge) {  // a hint, so its failure is harmless
    madvise(words_, bytes_ - kHugePage, MADV_HUGEPAGE);
  }
}

Mapping::~Mapping() {
  SpareMappings::of_process().give(memory_, bytes_, huge_);
}

}  // namespace redblue
