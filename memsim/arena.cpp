#include "memsim/arena.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <limits>
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

// The mapping of the last arena that this thread gave up. To map and touch a huge page takes longer
// than a small problem, so the next arena of the same size takes it over.
class SpareMapping {
 public:
  SpareMapping() = default;
  SpareMapping(const SpareMapping&) = delete;
  SpareMapping& operator=(const SpareMapping&) = delete;
  ~SpareMapping() { drop(); }

  // Returns null if there is none of this size.
  void* take(std::size_t bytes) {
    return bytes == bytes_ ? std::exchange(memory_, nullptr) : nullptr;
  }
  void give(void* memory, std::size_t bytes) {
    drop();
    memory_ = memory;
    bytes_ = bytes;
  }

 private:
  void drop() {
    if (void* const old = std::exchange(memory_, nullptr)) {
      munmap(old, bytes_);
    }
  }

  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
};
constexpr std::size_t kMostSpare = std::size_t{16} << 20;  // bytes
thread_local SpareMapping spare_mapping;

}  // namespace

Arena::Arena(Index capacity) {
  const Words limit = Words(capacity) + capacity / 8 + kSlack;
  const bool addressable = limit <= Words(kMostWords);
  if (addressable) {
    limit_ = limit.value();
    // Whole huge pages, plus one so that the first can be aligned.
    const auto pages = static_cast<std::size_t>(ceil_div(limit_, kHugePageWords));
    mapping_bytes_ = (pages + 1) * kHugePage;
    mapping_ = spare_mapping.take(mapping_bytes_);
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
  if (capacity >= kManyWords) {
    madvise(base_, mapping_bytes_ - kHugePage, MADV_HUGEPAGE);
  }
}

Arena::~Arena() {
  if (mapping_bytes_ <= kMostSpare) {
    spare_mapping.give(mapping_, mapping_bytes_);
  } else {
    munmap(mapping_, mapping_bytes_);
  }
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
