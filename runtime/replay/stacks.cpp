#include "runtime/replay/stacks.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace redblue {
namespace {

constexpr std::uint32_t kNoUnit = std::numeric_limits<std::uint32_t>::max();

}  // namespace

LruStack::LruStack(const std::vector<std::uint32_t>& widths)
    : widths_(widths),
      words_in_(2 * widths.size() + 64),
      sums_(words_in_.size()),
      slot_of_(widths.size()),
      unit_in_(words_in_.size(), kNoUnit) {}

// Returns the depth of the last word in the slot.
Index LruStack::depth(std::uint32_t slot) const {
  Index older = 0;
  for (std::uint32_t at = slot - 1; at > 0; at &= at - 1) {
    older += sums_[at];
  }
  return size_ - older;
}

void LruStack::count(std::uint32_t slot, std::int32_t change) {
  size_ += change;
  words_in_[slot] += change;
  for (std::size_t at = slot; at < sums_.size(); at += at & -at) {
    sums_[at] += change;
  }
}

// Puts a unit into a slot, or a hole if `unit` is kNoUnit.
void LruStack::put(std::uint32_t slot, std::uint32_t unit, std::int32_t words) {
  unit_in_[slot] = unit;
  if (unit != kNoUnit) {
    slot_of_[unit] = slot;
  } else {
    holes_.push(slot);
  }
  count(slot, words - words_in_[slot]);
}

// Takes at most `most` words from the holes above the slot, from the top on. Returns the number of
// words.
std::int32_t LruStack::take_holes_above(std::uint32_t slot, std::int32_t most) {
  std::int32_t taken = 0;
  while (taken < most && !holes_.empty() && holes_.top() > slot) {
    const std::uint32_t hole = holes_.top();
    const std::int32_t words = std::min(most - taken, words_in_[hole]);
    count(hole, -words);
    if (words_in_[hole] == 0) {
      holes_.pop();
    }
    taken += words;
  }
  return taken;
}

// Renumbers the slots of units and holes from 1 on, without gaps.
void LruStack::renumber() {
  holes_ = {};
  std::ranges::fill(sums_, 0);
  size_ = 0;
  std::uint32_t next = 0;
  for (std::uint32_t slot = 1; slot <= last_; ++slot) {
    const std::int32_t words = std::exchange(words_in_[slot], 0);
    const std::uint32_t unit = std::exchange(unit_in_[slot], kNoUnit);
    if (words > 0) {
      put(++next, unit, words);
    }
  }
  last_ = next;
}

std::span<const Depths> LruStack::touch(std::uint32_t unit) {
  const auto width = static_cast<std::int32_t>(widths_[unit]);
  const std::uint32_t slot = slot_of_[unit];
  std::size_t runs = 0;
  if (slot == 0) {
    take_holes_above(0, width);
    found_[runs++] = {kNotThere, kNotThere, width};
  } else {
    // The words of the unit go to the top one by one. Each pushes the words above its old place
    // down, up to the first hole. That hole moves to the old place of the word. Words of the unit
    // that are not yet touched stay above it.
    const Index last = depth(slot);
    const std::int32_t holes = take_holes_above(slot, width);
    if (holes < width) {
      found_[runs++] = {last - holes, last - holes, width - holes};
    }
    if (holes > 0) {
      found_[runs++] = {last - holes + 1, last, holes};
      put(slot, kNoUnit, holes);
    } else {
      unit_in_[slot] = kNoUnit;
      count(slot, -width);
    }
  }
  if (last_ + 1 == words_in_.size()) {
    renumber();
  }
  put(++last_, unit, width);
  return std::span(found_).first(runs);
}

std::span<const Depths> LruStack::die(std::uint32_t unit) {
  const Index width = widths_[unit];
  const std::uint32_t slot = std::exchange(slot_of_[unit], 0);
  if (slot == 0) {
    found_[0] = {kNotThere, kNotThere, width};
  } else {
    put(slot, kNoUnit, words_in_[slot]);
    found_[0] = {depth(slot) - width + 1, depth(slot), width};
  }
  return std::span(found_).first(1);
}

OptStack::OptStack(Index words) : block_(static_cast<std::size_t>(words), kNowhere) {}

std::size_t OptStack::place_of(std::uint32_t word) const {
  std::size_t place = block_[word] * kBlock;
  while (static_cast<std::uint32_t>(uses_[place]) != word) {
    ++place;
  }
  return place;
}

void OptStack::is_in(std::size_t block, Use use) {
  if (use != kHole) {
    block_[static_cast<std::uint32_t>(use)] = static_cast<std::uint32_t>(block);
  }
}

void OptStack::sum_up(std::size_t block) {
  if (block == 0) {
    return;
  }
  const auto begin = uses_.begin() + static_cast<std::ptrdiff_t>(block * kBlock);
  rising_[block] = std::is_sorted(begin, begin + kBlock) ? 1 : 0;
  const Use farthest =
      rising_[block] != 0 ? begin[kBlock - 1] : *std::max_element(begin, begin + kBlock);
  if (std::exchange(farthest_[block], farthest) != farthest) {
    sum_up_blocks(block / kBlock);
  }
}

void OptStack::sum_up_blocks(std::size_t blocks) {
  const auto begin = farthest_.begin() + static_cast<std::ptrdiff_t>(blocks * kBlock);
  farthest_of_blocks_[blocks] = *std::max_element(begin, begin + kBlock);
}

OptStack::Use OptStack::pass(Use& carried, std::size_t begin, std::size_t end) {
  is_in(begin / kBlock, carried);
  Use out = carried, farthest = 0;
  for (std::size_t at = begin; at < end; ++at) {
    const Use here = uses_[at];
    if (here > out) {
      uses_[at] = farthest = out;  // no use before it is farther
      out = here;
    } else if (here > farthest) {
      farthest = here;
    }
  }
  carried = out;
  return farthest;
}

OptStack::Use OptStack::shift(Use& carried, std::size_t begin) {
  is_in(begin / kBlock, carried);
  const auto first = uses_.begin() + static_cast<std::ptrdiff_t>(begin), last = first + kBlock - 1;
  const Use out = *last;
  std::copy_backward(first, last, last + 1);
  *first = std::exchange(carried, out);
  return *last;
}

void OptStack::pass_blocks(Use& carried, std::size_t end) {
  for (std::size_t blocks = 0; blocks * kBlock < end; ++blocks) {
    if (farthest_of_blocks_[blocks] <= carried) {
      continue;
    }
    const std::size_t last = std::min(end, (blocks + 1) * kBlock);
    for (std::size_t block = std::max<std::size_t>(blocks * kBlock, 1); block < last; ++block) {
      if (farthest_[block] > carried) {
        farthest_[block] = rising_[block] != 0 && uses_[block * kBlock] > carried
                               ? shift(carried, block * kBlock)
                               : pass(carried, block * kBlock, (block + 1) * kBlock);
      }
    }
    sum_up_blocks(blocks);
  }
}

void OptStack::put(Use use, std::size_t place) {
  uses_[place] = use;
  is_in(place / kBlock, use);
  sum_up(place / kBlock);
}

void OptStack::append(Use use) {
  if (size_ == uses_.size()) {
    uses_.resize(size_ + kBlock * kBlock);
    rising_.resize(uses_.size() / kBlock);
    farthest_.resize(uses_.size() / kBlock);
    farthest_of_blocks_.resize(farthest_.size() / kBlock);
  }
  put(use, size_++);
}

Index OptStack::touch(std::uint32_t word, Time next) {
  const Use use = (Use{next} << 32) | word;
  if (size_ == 0) {
    append(use);
    return kNotThere;
  }
  const bool there = block_[word] != kNowhere;
  const std::size_t place = there ? place_of(word) : size_;
  // `carried` is the use that the cache of the places so far evicts. A larger cache keeps it if it
  // has a word with a farther use. A new word fills the first hole.
  Use carried = uses_.front();
  put(use, 0);
  if (place == 0) {
    return 1;
  }
  const std::size_t last = place / kBlock;
  pass(carried, 1, std::min(place, kBlock));
  if (last > 0) {
    pass_blocks(carried, last);
    pass(carried, last * kBlock, place);
  }
  if (there) {
    put(carried, place);
    return static_cast<Index>(place) + 1;
  }
  if (carried != kHole) {
    append(carried);
  } else if (place < uses_.size()) {
    sum_up(last);
  }
  return kNotThere;
}

Index OptStack::die(std::uint32_t word) {
  if (block_[word] == kNowhere) {
    return kNotThere;
  }
  const std::size_t place = place_of(word);
  block_[word] = kNowhere;
  put(kHole, place);
  return static_cast<Index>(place) + 1;
}

OptRowStack::OptRowStack(const std::vector<std::uint32_t>& widths)
    : widths_(widths), there_(widths.size()) {}

void OptRowStack::carry(Piece piece) {
  const auto at =
      std::ranges::lower_bound(carried_, piece.next, std::ranges::greater(), &Piece::next);
  if (at != carried_.end() && at->next == piece.next) {
    at->words += piece.words;
  } else {
    carried_.insert(at, piece);
  }
}

void OptRowStack::leave_nearest(Index words) {
  while (words > 0) {
    Piece& nearest = carried_.back();
    const Index some = std::min(words, nearest.words);
    leave({nearest.next, nearest.unit, some});
    words -= some;
    nearest.words -= some;
    if (nearest.words == 0) {
      carried_.pop_back();
    }
  }
}

void OptRowStack::put_back() {
  pieces_.insert(pieces_.end(), left_.rbegin(), left_.rend());
  left_.clear();
}

// Carries down the words that caches evict for the unit of w words. A cache of w words evicts all
// its words, and each larger cache evicts the farthest. The old place of a word of the unit takes
// the nearest carried word.
std::span<const Depths> OptRowStack::touch(std::uint32_t unit, Time next) {
  const Index width = widths_[unit];
  const bool there = there_[unit];
  there_[unit] = true;
  found_.clear();
  carried_.clear();
  leave({next, unit, width});
  const auto fits = [&](Index above) {
    return above >= width && (there ? carried_.empty() : carried_.back().next == kHole);
  };
  for (Index above = 0; !pieces_.empty() && !fits(above);) {
    Piece piece = pieces_.back();
    pieces_.pop_back();
    const bool touched = piece.unit == unit && piece.next != kHole;
    if (touched) {
      found_.push_back({above + 1, above + piece.words, piece.words});
    }
    const Index first = std::clamp<Index>(width - above, 0, piece.words);
    above += piece.words;
    piece.words -= first;
    if (touched) {
      leave_nearest(piece.words);
      continue;
    }
    if (first > 0) {
      carry({piece.next, piece.unit, first});
    }
    while (piece.words > 0 && carried_.back().next < piece.next) {
      const Index words = std::min(piece.words, carried_.back().words);
      leave_nearest(words);
      carry({piece.next, piece.unit, words});
      piece.words -= words;
    }
    if (piece.words > 0) {
      leave(piece);
    }
  }
  while (!carried_.empty() && carried_.back().next != kHole) {
    leave_nearest(carried_.back().words);
  }
  put_back();
  if (!there) {
    found_.assign(1, {kNotThere, kNotThere, width});
  }
  return found_;
}

std::span<const Depths> OptRowStack::die(std::uint32_t unit) {
  const Index width = widths_[unit];
  found_.clear();
  if (!there_[unit]) {
    found_.push_back({kNotThere, kNotThere, width});
    return found_;
  }
  there_[unit] = false;
  Index above = 0;
  for (Index seen = 0; seen < width;) {
    Piece piece = pieces_.back();
    pieces_.pop_back();
    if (piece.unit == unit && piece.next != kHole) {
      found_.push_back({above + 1, above + piece.words, piece.words});
      seen += piece.words;
      piece.next = kHole;
    }
    above += piece.words;
    leave(piece);
  }
  put_back();
  return found_;
}

}  // namespace redblue
