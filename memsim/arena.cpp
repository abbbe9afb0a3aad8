#include "memsim/arena.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <limits>
#include <new>
#include <system_error>

namespace redblue {
namespace {

constexpr Index kCacheLine = 16;            // words; also the widest vector
constexpr Index kSlack = Index{16} * 1024;  // words, 64 KiB: lets a small M seldom slide
constexpr Index kManyWords = Index{32} * 1024;
constexpr Index kMostWords = std::numeric_limits<Index>::max() / 8;  // bytes fit an Index

// A tile of at least 128 words starts on a cache line and so wastes less than an eighth of its
// size. Smaller tiles start anywhere. The span is therefore at most 9/8 of the capacity, plus
// kSlack.
constexpr Index aligned(Index offset, Index words) {
  return words < 8 * kCacheLine ? offset : ceil_div(offset, kCacheLine) * kCacheLine;
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
  try {
    limit_ = limit <= Words(kMostWords) ? limit.value() : throw std::bad_alloc();
    // A vector may read past the last tile. An arena for an L1 gains no speed from huge pages,
    // because an L1 is indexed by virtual addresses.
    mapping_.emplace(static_cast<std::size_t>(limit_ + kCacheLine) * sizeof(float),
                     capacity >= kManyWords, Mapping::Room::when_touched);
  } catch (const std::bad_alloc&) {
    throw std::system_error(
        ENOMEM, std::generic_category(),
        "no address space for a fast memory of M = " + std::to_string(capacity) + " words");
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
    std::memmove(mapping_->words() + to, mapping_->words() + slot->offset,
                 static_cast<std::size_t>(slot->words) * sizeof(float));
    slot->offset = to;
    end = to + slot->words;
  }
}

}  // namespace redblue
