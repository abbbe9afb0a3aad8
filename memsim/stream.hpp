#pragma once
// The blocks of a sequence as tiles, one after the other:
//
//   for (const Tile& k : machine.stream(A2.row_blocks(B))) { ... }
//
// Up to `depth` tiles are in fast memory at a time: the present one and those that follow. The
// present tile is deleted before the next read begins. With a depth of 1 a read ends before it
// returns. With more a store may read while the caller computes; such a read is waited for, and
// counted, when its tile becomes the present one. The destructor waits for the reads in flight and
// counts them.
//
// Single pass. A stream that has thrown can only be destroyed; one whose machine has died reads no
// more.

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

  // The steps of the walk, for streams side by side that all begin their reads before the first
  // wait: drop(), begin_read() until it returns false, await(), present(). Requires, of drop() and
  // present(): not over(), and await() has returned.
  [[nodiscard]] bool begin_read();  // of the next block; false after the last, or with depth held
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

  [[nodiscard]] Machine& machine() const;  // Throws: ShapeMismatch after its death.

  Machine* machine_;
  BlockSequence blocks_;
  Orientation orientation_;
  Index depth_;
  Index next_ = 0;
  std::deque<Held> held_;
};

}  // namespace redblue
