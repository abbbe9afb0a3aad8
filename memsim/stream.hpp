#pragma once
// The blocks of a sequence as tiles, one after the other:
//
//   for (const Tile& k : machine.stream(A2.row_blocks(B))) { ... }
//
// Up to `depth` tiles are in fast memory: the present one and the next ones. The present tile
// is deleted before the next read begins. With a depth of 1, each read ends before begin_read()
// returns. With a larger depth, a store may read while the caller computes. The stream waits for
// such a read, and counts it, when its tile becomes the present one. The destructor waits for the
// reads in flight and counts them.
//
// A stream makes a single pass. After an exception it can only be destroyed. After its machine has
// died it reads no more.

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

  // The steps of the walk. They let several streams run in parallel: all of them begin their reads
  // before the first wait. begin_read() reads the next block. The order is drop(), begin_read()
  // until it returns false, await(), present(). drop() and present() require: not over(), and
  // await() has returned.
  [[nodiscard]] bool begin_read();  // false after the last block, or with `depth` held
  void await();                     // waits for the present tile, if any
  [[nodiscard]] bool over() const { return held_.empty(); }
  [[nodiscard]] const Tile& present() const { return held_.front().tile; }
  void drop() { held_.pop_front(); }

 private:
  friend class Machine;
  struct Held {
    ConstBlock block;
    Tile tile;
    std::unique_ptr<Fetch> fetch;  // null once the read has ended
  };
  void advance() {
    while (begin_read()) {
    }
    await();
  }

  [[nodiscard]] Machine& machine() const;  // Throws: ShapeMismatch after the machine's death.

  Machine* machine_;
  BlockSequence blocks_;
  Orientation orientation_;
  Index depth_;
  Index next_ = 0;
  std::deque<Held> held_;
};

}  // namespace redblue
