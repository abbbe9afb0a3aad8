#pragma once
// The blocks of a sequence, one after the other, as tiles:
//
//   for (const Tile& k : machine.stream(A2.row_blocks(B))) { ... }
//
// Up to `depth` tiles are in fast memory at a time, the present one and those after it. A
// tile is deleted before the block behind the last one held is read. Single pass.

#include <deque>
#include <iterator>

#include "memsim/slow_matrix.hpp"
#include "memsim/tile.hpp"

namespace redblue {

class Machine;

class [[nodiscard]] Stream {
 public:
  class iterator {
   public:
    explicit iterator(Stream* stream) : stream_(stream) {}
    const Tile& operator*() const { return stream_->held_.front(); }
    iterator& operator++() {
      stream_->held_.pop_front();
      stream_->fill();
      return *this;
    }
    bool operator==(std::default_sentinel_t) const { return stream_->held_.empty(); }

   private:
    Stream* stream_;
  };

  Stream(Machine& machine, const BlockSequence& blocks, Index depth)
      : machine_(machine), blocks_(blocks), depth_(depth) {}
  iterator begin() {
    fill();
    return iterator(this);
  }
  static std::default_sentinel_t end() { return {}; }

 private:
  void fill();

  Machine& machine_;
  BlockSequence blocks_;
  Index depth_;
  Index next_ = 0;
  std::deque<Tile> held_;
};

}  // namespace redblue
