#include "memsim/arena.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <limits>
#include <mutex>
#include <new>
#include <system_error>
#include <utility>

#include <sys/mman.h>

namespace redblue {
namespace {

constexpr Index kCacheLine = 16;            // words
constexpr Index kSlack = Index{16} * 1024;  // words, 64 KiB: lets a small M seldom slide
constexpr std::size_t kHugePage = std::size_t{2} << 20;  // bytes
constexpr Index kHugePageWords = kHugePage / sizeof(float);
constexpr Index kManyWords = Index{32} * 1024;
constexpr Index kMostWords = std::numeric_limits<Index>::max() / 8;  // bytes fit an Index

// A tile of at least 128 words starts on a cache line and so wastes less than an eighth of its
// size. Smaller tiles start anywhere. The span is therefore at most 9/8 of the capacity, plus
// kSlack.
constexpr Index aligned(Index offset, Index words) {
  return words < 8 * kCacheLine ? offset : ceil_div(offset, kCacheLine) * kCacheLine;
}

// The mappings of arenas that have ended, for later arenas of the same size. To map huge pages and
// to touch them for the first time takes milliseconds, far longer than a small problem.
class SpareMappings {
 public:
  // Returns a kept mapping of this size, or null. `huge`: it was given huge pages before its first
  // use.
  void* take(std::size_t bytes, bool huge) {
    const std::lock_guard lock(mutex_);
    for (Mapping& spare : spare_) {
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
      const auto room = std::ranges::find(spare_, nullptr, &Mapping::memory);
      if (room != spare_.end() && bytes_ + bytes <= kMost) {
        *room = {memory, bytes, huge};
        bytes_ += bytes;
        return;
      }
    }
    munmap(memory, bytes);
  }

 private:
  static constexpr std::size_t kMost = std::size_t{32} << 20;  // bytes
  struct Mapping {
    void* memory = nullptr;
    std::size_t bytes = 0;
    bool huge = false;
  };

  std::mutex mutex_;
  std::array<Mapping, kMost / (2 * kHugePage)> spare_;
  std::size_t bytes_ = 0;
};

// Never deleted, because arenas may live until the end of the process.
SpareMappings& spare_mappings() {
  static auto* const all = new SpareMappings;
  return *all;
}

}  // namespace

Arena::Arena(Index capacity, Tiles tiles) : tiles_(tiles) {
  // If tiles stay, holes between them may be too small. Placing in the lowest hole then takes about
  // capacity * log2(capacity) addresses at most (Robson, Computer Journal 20, 1977, p. 242).
  const Index times =
      tiles == Tiles::slide
          ? 1
          : static_cast<Index>(2 + std::bit_width(static_cast<std::uint64_t>(capacity)));
  const Words limit = (Words(capacity) + capacity / 8) * times + kSlack;
  const bool addressable = limit <= Words(kMostWords);
  if (addressable) {
    limit_ = limit.value();
    // Whole huge pages, plus one so that the first can be aligned.
    const auto pages = static_cast<std::size_t>(ceil_div(limit_, kHugePageWords));
    mapping_bytes_ = (pages + 1) * kHugePage;
    mapping_ = spare_mappings().take(mapping_bytes_, capacity >= kManyWords);
    // The system allocates a page at its first touch, so a generous M costs address space only.
    if (mapping_ == nullptr) {
      mapping_ = mmap(nullptr, mapping_bytes_, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    }
  }
  if (!addressable || mapping_ == MAP_FAILED) {
    throw std::system_error(
        addressable ? errno : ENOMEM, std::generic_category(),
        "no address space for a fast memory of M = " + std::to_string(capacity) + " words");
  }
  const auto start = reinterpret_cast<std::uintptr_t>(mapping_);
  const std::size_t lead = (kHugePage - start % kHugePage) % kHugePage;
  base_ = reinterpret_cast<float*>(static_cast<char*>(mapping_) + lead);
  // Small pages are scattered over physical memory. In an arena as large as a cache, some of them
  // would compete for the same lines; the words of one huge page do not. The call is a hint, so its
  // failure is harmless. An arena for an L1 gains no speed from it, because an L1 is indexed by
  // virtual addresses.
  huge_ = capacity >= kManyWords;
  if (huge_) {
    madvise(base_, mapping_bytes_ - kHugePage, MADV_HUGEPAGE);
  }
}

Arena::~Arena() {
  spare_mappings().give(mapping_, mapping_bytes_, huge_);
}

// Returns the lowest hole that is large enough, else the place behind the last tile.
Arena::Hole Arena::hole_for(Index words) const {
  Index end = 0;
  std::size_t position = 0;
  for (; position < living_.size(); ++position) {
    const Slot& next = *living_[position];
    if (aligned(end, words) + words <= next.offset) {
      break;
    }
    end = next.offset + next.words;
  }
  const Index offset = aligned(end, words);
  return {offset, position, offset + words <= limit_};
}

Arena::Slot* Arena::place(std::string_view name, Index words) {
  Hole hole = hole_for(words);
  if (!hole.fits) {
    if (tiles_ == Tiles::stay) {
      throw std::bad_alloc();
    }
    slide_together();
    hole = hole_for(words);
  }
  // Reserved in advance, so that release() cannot fail.
  if (living_.size() == living_.capacity()) {
    living_.reserve(2 * living_.size() + 16);
    spare_.reserve(living_.capacity());
  }
  if (spare_.empty()) {
    spare_.push_back(&slots_.emplace_back());
  }
  Slot* slot = spare_.back();
  slot->name = name;
  spare_.pop_back();
  slot->id = next_id_++;
  slot->words = words;
  slot->offset = hole.offset;
  living_.insert(living_.begin() + static_cast<std::ptrdiff_t>(hole.position), slot);
  span_ = std::max(span_, slot->offset + words);
  return slot;
}

void Arena::release(Slot* slot) noexcept {
  living_.erase(std::find(living_.begin(), living_.end(), slot));
  spare_.push_back(slot);
}

void Arena::slide_together() {
  Index end = 0;
  for (Slot* slot : living_) {
    const Index to = aligned(end, slot->words);
    std::memmove(base_ + to, base_ + slot->offset,
                 static_cast<std::size_t>(slot->words) * sizeof(float));
    slot->offset = to;
    end = to + slot->words;
  }
}

}  // namespace redblue
