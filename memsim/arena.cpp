#include "memsim/arena.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include <sys/mman.h>

namespace redblue {
namespace {

constexpr Index kCacheLine = 16;                         // words
constexpr Index kSlack = Index{16} * 1024;               // words: 64 KiB
constexpr std::size_t kHugePage = std::size_t{2} << 20;  // bytes

// A tile of at least 128 words starts on a cache line and so wastes less than an eighth of
// its size; smaller ones lie anywhere. That keeps the span within 9/8 of the capacity.
constexpr Index aligned(Index offset, Index words) {
  return words < 8 * kCacheLine ? offset : ceil_div(offset, kCacheLine) * kCacheLine;
}

}  // namespace

Arena::Arena(Index capacity) {
  const Words limit = Words(capacity) + capacity / 8 + kSlack;
  const Words bytes = limit * Index{sizeof(float)} + Index{kHugePage};
  const bool addressable = !bytes.overflowed();
  if (addressable) {
    limit_ = limit.value();
    mapping_bytes_ = static_cast<std::size_t>(bytes.value());
    // Pages come into being when they are touched: a generous M costs address space alone.
    mapping_ = mmap(nullptr, mapping_bytes_, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  if (!addressable || mapping_ == MAP_FAILED) {
    throw std::system_error(
        addressable ? errno : ENOMEM, std::generic_category(),
        "no address space for a fast memory of M = " + std::to_string(capacity) + " words");
  }
  const auto start = reinterpret_cast<std::uintptr_t>(mapping_);
  const std::size_t lead = (kHugePage - start % kHugePage) % kHugePage;
  base_ = reinterpret_cast<float*>(static_cast<char*>(mapping_) + lead);
  if (mapping_bytes_ >= 2 * kHugePage) {
    madvise(base_, mapping_bytes_ - lead, MADV_HUGEPAGE);  // a wish: nothing to do if refused
  }
}

Arena::~Arena() {
  munmap(mapping_, mapping_bytes_);
}

Arena::Slot* Arena::place(std::string_view name, Index words) {
  // Lowest hole first; `next` is the tile before which the new one goes.
  Index offset = 0;
  auto next = living_.begin();
  for (; next != living_.end(); ++next) {
    if (aligned(offset, words) + words <= (*next)->offset) {
      break;
    }
    offset = (*next)->offset + (*next)->words;
  }
  if (aligned(offset, words) + words > limit_) {
    slide_together();
    offset = living_.back()->offset + living_.back()->words;
    next = living_.end();
  }
  const auto position = next - living_.begin();
  // Room beforehand, so that release() cannot fail.
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
  slot->offset = aligned(offset, words);
  living_.insert(living_.begin() + position, slot);
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
