#pragma once
// The blocks of a sequence, one after the other, as tiles:
//
//   for (const Tile& k : machine.stream(A2.row_blocks(B))) { ... }
//
// Up to `depth` tiles are in fast memory at a time, the present one and those after it. A
// tile is deleted before the read of the block behind the last one held begins. With a depth of 1
// that read is over when it returns; else a store may go on with it while the caller computes, and
// it is waited for, and counted, when its tile becomes the present one. Whoever leaves a stream
// waits for the reads that go on, and they count. Single pass; a stream that has thrown is over.
// One whose machine has died reads no more.

#include <deque>
#include <iterator>
#include <memory>

#include "memsim/backing.hpp"
#include "memsim/slow_matrix.hpp"
#include "memsim/tile.hpp"

namespace redblue {

class Machine;

class [[nodiscard]] Stream {
 public:
  class iterator {
   public:
    explicit iterator(Stream* stream) : stream_(stream) {}
    const Tile& operator*() const { return stream_->present(); }
    iterator& operator++() {
      stream_->drop();
      stream_->advance();
      return *this;
    }
    bool operator==(std::default_sentinel_t) const { return stream_->over(); }

   private:
    Stream* stream_;
  };

  Stream(Machine& machine, const BlockSequence& blocks, Orientation orientation, Index depth);
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream();

  iterator begin() {
    advance();
    return iterator(this);
  }
  static std::default_sentinel_t end() { return {}; }

  // The steps of the walk, for streams that go side by side, all of which begin their reads before
  // any is waited for: drop(), begin_read() until it returns false, await(), present().
  [[nodiscard]] bool begin_read();  // of one block; false where there is none, or no room
  void await();                     // the present tile, if there is one
  [[nodiscard]] bool over() const { return held_.empty(); }
  [[nodiscard]] const Tile& present() const { return held_.front().tile; }
  void drop() { held_.pop_front(); }

 private:
  friend class Machine;
  struct Held {
    ConstBlock block;
    Tile tile;
    std::unique_ptr<Fetch> fetch;  // until its read has ended
  };
  void advance() {
    while (begin_read()) {
    }
    await();
  }

  [[nodiscard]] Machine& machine() const;  // Throws: ShapeMismatch where it has died.

  Machine* machine_;
  BlockSequence blocks_;
  Orientation orientation_;
  Index depth_;
  Index next_ = 0;
  std::deque<Held> held_;
};

}  // namespace redblue
