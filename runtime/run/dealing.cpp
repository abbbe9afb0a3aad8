#include "runtime/run/dealing.hpp"

#include <algorithm>
#include <utility>

namespace redblue {

Dealing::Dealing(std::vector<Range> shares, Index step) : left_(std::move(shares)), step_(step) {}

std::optional<Dealing::Units> Dealing::next(Index worker) {
  const std::lock_guard lock(mutex_);
  if (Range& own = left_[static_cast<std::size_t>(worker)]; own.size() > 0) {
    const Range dealt{own.begin, std::min(own.begin + step_, own.end)};
    own.begin = dealt.end;
    return Units{dealt, worker};
  }
  const auto largest = std::ranges::max_element(left_, {}, &Range::size);
  if (largest->size() <= 0) {
    return std::nullopt;
  }
  const Range dealt{std::max(largest->end - step_, largest->begin), largest->end};
  largest->end = dealt.begin;
  return Units{dealt, largest - left_.begin()};
}

void Dealing::end() {
  const std::lock_guard lock(mutex_);
  left_.assign(left_.size(), {});
}

}  // namespace redblue
