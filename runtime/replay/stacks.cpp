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

OptStack::OptStack(Index words)
    : next_(static_cast<std::size_t>(words)),
      there_(static_cast<std::size_t>(words)),
      alive_(static_cast<std::size_t>(words)) {}

Index OptStack::touch(std::uint32_t word, Time next) {
  // What the cache of the words so far has to give up; it is kept by a larger one that has a word
  // with a farther use.
  std::uint32_t carried = word;
  std::size_t at = 0;
  if (there_[word]) {
    for (; stack_[at] != word; ++at) {
      if (at == 0 || next_[stack_[at]] > next_[carried]) {
        std::swap(stack_[at], carried);
      }
    }
    stack_[at] = carried;
  } else {
    for (; at < stack_.size(); ++at) {
      if (at == 0 || next_[stack_[at]] > next_[carried]) {
        std::swap(stack_[at], carried);
      }
    }
    stack_.push_back(carried);
    there_[word] = true;
  }
  next_[word] = next;
  const bool hit = alive_[word];
  alive_[word] = true;
  return hit ? static_cast<Index>(at) + 1 : kNotThere;
}

Index OptStack::die(std::uint32_t word, Time never) {
  if (!alive_[word]) {
    return kNotThere;
  }
  alive_[word] = false;
  next_[word] = never;
  return std::ranges::find(stack_, word) - stack_.begin() + 1;
}

}  // namespace redblue
