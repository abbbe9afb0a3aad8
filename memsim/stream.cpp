#include "memsim/stream.hpp"

#include "memsim/machine.hpp"

namespace redblue {

Stream::Stream(Machine& machine, const BlockSequence& blocks, Orientation orientation, Index depth)
    : machine_(&machine),
      blocks_(blocks),
      orientation_(orientation),
      depth_((require(depth >= 1, "a stream holds at least one block"), depth)) {
  machine.streams_.push_back(this);
}

Stream::~Stream() {
  if (machine_ == nullptr) {
    return;
  }
  std::erase(machine_->streams_, this);
  for (Held& held : held_) {
    try {
      machine_->end_read(held, orientation_);
    } catch (...) {  // NOLINT(bugprone-empty-catch): the tile of a failed read is not needed
    }
  }
}

bool Stream::begin_read() {
  if (next_ == blocks_.size() || static_cast<Index>(held_.size()) == depth_) {
    return false;
  }
  // The entry in held_ comes first: no step may fail between the start of a read and its entry.
  held_.push_back({blocks_[next_], Tile(), nullptr});
  ++next_;
  machine().begin_read(held_.back(), orientation_, depth_ > 1);
  return true;
}

void Stream::await() {
  if (!over()) {
    machine().end_read(held_.front(), orientation_);
  }
}

Machine& Stream::machine() const {
  require(machine_ != nullptr, "a stream reads while its machine lives");
  return *machine_;
}

}  // namespace redblue
