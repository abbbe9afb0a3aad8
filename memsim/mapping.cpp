#include "memsim/mapping.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <system_error>
#include <utility>

#include <sys/mman.h>

namespace redblue {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;  // bytes

class SpareMappings {
 public:
  // Returns a kept mapping of this size, or null. `huge`: it was given huge pages before its first
  // use.
  void* take(std::size_t bytes, bool huge) {
    const std::lock_guard lock(mutex_);
    for (Spare& spare : spare_) {
      if (spare.memory != nullptr && spare.bytes == bytes && spare.huge == huge) {
        bytes_ -= bytes;
        return std::exchange(spare.memory, nullptr);
      }
    }
    return nullptr;
  }
  // Drops the mapping if there is no room for it.
  void give(void* memory, std::size_t bytes, bool huge) noexcept {
    {
      const std::lock_guard lock(mutex_);
      const auto room = std::ranges::find(spare_, nullptr, &Spare::memory);
      if (room != spare_.end() && bytes_ + bytes <= kMost) {
        *room = {memory, bytes, huge};
        bytes_ += bytes;
        return;
      }
    }
    munmap(memory, bytes);
  }

 private:
  static constexpr std::size_t kMost = std::size_t{64} << 20;  // bytes
  struct Spare {
    void* memory = nullptr;
    std::size_t bytes = 0;
    bool huge = false;
  };

  std::mutex mutex_;
  std::array<Spare, 32> spare_;
  std::size_t bytes_ = 0;
};

// Never deleted, because arenas may live until the end of the process.
SpareMappings& spare_mappings() {
  static auto* const all = new SpareMappings;
  return *all;
}

}  // namespace

Mapping::Mapping(std::size_t bytes, bool huge)
    : bytes_(huge ? (bytes + kHugePage - 1) / kHugePage * kHugePage + kHugePage : bytes),
      huge_(huge),
      memory_(spare_mappings().take(bytes_, huge)) {
  const bool is_new = memory_ == nullptr;
  // The system allocates a page at its first touch, so a generous size costs address space only.
  if (is_new) {
    memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  if (memory_ == MAP_FAILED) {
    throw std::system_error(errno, std::generic_category(), "no memory to map");
  }
  const std::size_t lead =
      huge ? (kHugePage - reinterpret_cast<std::uintptr_t>(memory_) % kHugePage) % kHugePage : 0;
  words_ = reinterpret_cast<float*>(static_cast<char*>(memory_) + lead);
  if (is_new && huge) {  // a hint, so its failure is harmless
    madvise(words_, bytes_ - kHugePage, MADV_HUGEPAGE);
  }
}

Mapping::~Mapping() {
  spare_mappings().give(memory_, bytes_, huge_);
}

}  // namespace redblue
