#include "memsim/stream.hpp"

#include "memsim/machine.hpp"

namespace redblue {

void Stream::fill() {
  while (next_ < blocks_.size() && static_cast<Index>(held_.size()) < depth_) {
    held_.push_back(machine_.read(blocks_[next_]));
    ++next_;
  }
}

}  // namespace redblue
