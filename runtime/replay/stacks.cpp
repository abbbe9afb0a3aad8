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

OptStack::OptStack(Index words) : next_(static_cast<std::size_t>(words)) {}

std::size_t OptStack::end_of(std::size_t block) const {
  return std::min((block + 1) * kBlock, stack_.size());
}

void OptStack::sum_up(std::size_t block) {
  Block sum = {std::numeric_limits<Time>::max(), 0};
  for (std::size_t at = block * kBlock; at < end_of(block); ++at) {
    sum = {std::min(sum.least, stack_[at]), std::max(sum.most, stack_[at])};
  }
  blocks_[block] = sum;
}

bool OptStack::pass(std::size_t block, Time& carried, Time old, std::size_t& at) {
  const std::size_t end = end_of(block);
  for (at = std::max<std::size_t>(block * kBlock, 1); at < end; ++at) {
    if (stack_[at] == old) {
      stack_[at] = carried;
      break;
    }
    const Time here = stack_[at];
    stack_[at] = std::min(here, carried);
    carried = std::max(here, carried);
  }
  sum_up(block);
  return at < end;
}

Index OptStack::touch(std::uint32_t word, Time next) {
  const Time old = std::exchange(next_[word], next);
  if (stack_.empty()) {
    stack_.push_back(next);
    blocks_.push_back({next, next});
    return kNotThere;
  }
  // What the cache of the words so far has to give up; it is kept by a larger one that has a word
  // with a farther use. A word that was not there fills the first hole.
  Time carried = std::exchange(stack_.front(), next);
  if (carried == old) {
    sum_up(0);
    return 1;
  }
  for (std::size_t block = 0; block < blocks_.size() && (old != 0 || carried != kHole); ++block) {
    std::size_t at = 0;
    if ((block == 0 || blocks_[block].most > carried || blocks_[block].may_have(old)) &&
        pass(block, carried, old, at)) {
      return static_cast<Index>(at) + 1;
    }
  }
  sum_up(0);
  if (carried != kHole) {
    stack_.push_back(carried);
    blocks_.resize((stack_.size() - 1) / kBlock + 1);
    sum_up(blocks_.size() - 1);
  }
  return kNotThere;
}

Index OptStack::die(std::uint32_t word) {
  const Time old = std::exchange(next_[word], 0);
  if (old == 0) {
    return kNotThere;
  }
  for (std::size_t block = 0;; ++block) {
    if (blocks_[block].may_have(old)) {
      const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(block * kBlock);
      const auto end = stack_.begin() + static_cast<std::ptrdiff_t>(end_of(block));
      if (const auto found = std::find(begin, end, old); found != end) {
        *found = kHole;
        sum_up(block);
        return found - stack_.begin() + 1;
      }
    }
  }
}

}  // namespace redblue
