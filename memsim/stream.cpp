#include "memsim/stream.hpp"

#include "memsim/machine.hpp"

namespace redblue {

Stream::~Stream() {
  for (Held& held : held_) {
    try {
      machine_.end_read(held);
    } catch (...) {  // NOLINT(bugprone-empty-catch): nobody needs the tile of a read that failed
    }
  }
}

bool Stream::begin_read() {
  if (next_ == blocks_.size() || static_cast<Index>(held_.size()) == depth_) {
    return false;
  }
  // Its place first: nothing may fail between the beginning of a read and its being held.
  held_.push_back({blocks_[next_], Tile(), nullptr});
  ++next_;
  machine_.begin_read(held_.back(), orientation_, depth_ > 1);
  return true;
}

void Stream::await() {
  if (!over()) {
    machine_.end_read(held_.front());
  }
}

}  // namespace redblue
