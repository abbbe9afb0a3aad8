#include "runtime/replay/stacks.hpp"

#include <algorithm>
#include <utility>

namespace redblue {
namespace {

constexpr std::uint32_t kNoWord = std::numeric_limits<std::uint32_t>::max();

}  // namespace

LruStack::LruStack(Index words)
    : taken_(static_cast<std::size_t>(2 * words + 64)),
      slot_of_(static_cast<std::size_t>(words)),
      word_in_(taken_.size(), kNoWord) {}

Index LruStack::depth(std::uint32_t slot) const {
  Index older = 0;
  for (std::uint32_t at = slot - 1; at > 0; at &= at - 1) {
    older += taken_[at];
  }
  return size_ - older;
}

void LruStack::count(std::uint32_t slot, std::int32_t change) {
  size_ += change;
  for (std::size_t at = slot; at < taken_.size(); at += at & -at) {
    taken_[at] += change;
  }
}

void LruStack::put_on_top(std::uint32_t word) {
  if (last_ + 1 == taken_.size()) {
    renumber();
  }
  slot_of_[word] = ++last_;
  word_in_[last_] = word;
  count(last_, 1);
}

// Slots that are taken, by words and by holes, are the first ones again.
void LruStack::renumber() {
  std::priority_queue<std::uint32_t> before = std::exchange(holes_, {});
  std::vector<bool> hole(taken_.size());
  for (; !before.empty(); before.pop()) {
    hole[before.top()] = true;
  }
  std::ranges::fill(taken_, 0);
  size_ = 0;
  std::uint32_t next = 0;
  for (std::uint32_t slot = 1; slot <= last_; ++slot) {
    const std::uint32_t word = std::exchange(word_in_[slot], kNoWord);
    if (hole[slot]) {
      holes_.push(++next);
      count(next, 1);
    } else if (word != kNoWord) {
      slot_of_[word] = ++next;
      word_in_[next] = word;
      count(next, 1);
    }
  }
  last_ = next;
}

Index LruStack::touch(std::uint32_t word) {
  const std::uint32_t slot = slot_of_[word];
  const Index found = slot == 0 ? kNotThere : depth(slot);
  if (slot != 0) {
    word_in_[slot] = kNoWord;
  }
  // Words above the word's place move down, up to the first hole; and the hole is at that place.
  if (!holes_.empty() && holes_.top() > slot) {
    count(holes_.top(), -1);
    holes_.pop();
    if (slot != 0) {
      holes_.push(slot);
    }
  } else if (slot != 0) {
    count(slot, -1);
  }
  put_on_top(word);
  return found;
}

Index LruStack::die(std::uint32_t word) {
  const std::uint32_t slot = std::exchange(slot_of_[word], 0);
  if (slot == 0) {
    return kNotThere;
  }
  word_in_[slot] = kNoWord;
  holes_.push(slot);
  return depth(slot);
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
      uses_[at] = farthest = out;  // nothing before is farther than that
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
  // What the cache of the words so far has to give up; it is kept by a larger one that has a word
  // with a farther use. A word that was not there fills the first hole.
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

}  // namespace redblue
