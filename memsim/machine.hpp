#pragma once
// The two-level machine: a fast memory of exactly M words over a slow store. Two moves join them,
// read and write, which are counted word by word; to initialize a tile and to delete it is free.
// Living tiles never hold more than M words.
//
//   Machine machine(M);
//   Tile s = machine.initialize("S", I.size(), J.size());
//   const Tile a = machine.read(A1.block(I, K));
//   machine.write(s, S.block(I, J));
//
// A machine may have inner levels, each of fewer words than the next: arithmetic is then on what
// the innermost one has (memsim/level.hpp). They share the machine's phases.
//
// A machine belongs to one thread. A request that throws leaves counters and contents as they
// were; of a stream, the tiles that it holds. Tiles, phases and streams that outlive their machine
// own nothing: such a tile is 0 x 0.

#include <algorithm>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "memsim/arena.hpp"
#include "memsim/errors.hpp"
#include "memsim/events.hpp"
#include "memsim/holds.hpp"
#include "memsim/io_count.hpp"
#include "memsim/level.hpp"
#include "memsim/meter.hpp"
#include "memsim/phase.hpp"
#include "memsim/slow_matrix.hpp"
#include "memsim/stream.hpp"
#include "memsim/tile.hpp"

namespace redblue {

// A tag for tiles of which every word is computed before it is read.
struct Unset {};
inline constexpr Unset kUnset;

class Machine {
 public:
  // `inner`: the words of each inner level, from the innermost out. Throws: ShapeMismatch unless
  // each is at least 1; std::system_error without address space.
  explicit Machine(Index M, const std::vector<Index>& inner = {});
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  ~Machine();  // waits for reads in flight

  // Each word of this kind weighs so many words from now on, in M and on its way: those of sums
  // that are wider than operands. Requires: nothing lives or has moved, and there are no inner
  // levels.
  void weigh(Holds holds, Index words);
  [[nodiscard]] Index weight(Holds holds) const { return weights_[holds]; }

  // The moves. Throw (all): FastMemoryOverflow; ShapeMismatch; CountOverflow for a tile of more
  // words than can be counted; read and write also what the store throws.
  [[nodiscard]] Tile initialize(std::string_view name, Index rows, Index cols = 1, float value = 0,
                                Holds holds = Holds::sums, CutEvery cut = {});
  [[nodiscard]] Tile initialize(std::string_view name, Index rows, Index cols, Holds holds,
                                CutEvery cut = {}) {
    return initialize(name, rows, cols, 0, holds, cut);
  }
  // Takes no time. With assertions on the words are NaN, so that a read before the write shows.
  [[nodiscard]] Tile initialize(std::string_view name, Index rows, Index cols, Unset value,
                                Holds holds = Holds::sums);
  [[nodiscard]] Tile read(
      const ConstBlock& block,
      CutEvery cut = {});  // the tile takes the matrix's name, and the block's kind
  void write(const Tile& tile, const Block& block);
  // The same words; the tile is the transpose of the block.
  [[nodiscard]] Tile read(const Transposed<ConstBlock>& block, CutEvery cut = {});
  void write(const Tile& tile, const Transposed<Block>& block);

  // A list of indices that is read once, from its first word to its last: of the keys that some
  // queries meet, say. `words` are counted; `live` of them are in fast memory at a time, as long as
  // the tile lives, whose words mean nothing. Without words it is 0 x 0.
  [[nodiscard]] Tile read_indices(Index words, Index live = 1);
  // So many words of such a list that is written, of which the tile holds those that are in fast
  // memory at a time.
  void write_indices(const Tile& tile, Index words);

  // Reads the blocks one after the other. Up to `depth` of them are in fast memory at a time, and
  // charged, so that a store may fetch ahead.
  [[nodiscard]] Stream stream(const BlockSequence& blocks, Index depth = 1);
  [[nodiscard]] Stream stream(const Transposed<BlockSequence>& blocks, Index depth = 1);

  // Adds the operations to the innermost open phase.
  void computed(Operations operations) { meter_.computed(operations); }

  // Whether anybody is told of moves.
  [[nodiscard]] bool is_told() const { return !listeners_.empty(); }
  // Whether anybody hears arithmetic. If so it is told, operation after operation; what nobody
  // hears need not be found out.
  [[nodiscard]] bool is_heard() const { return !hearing_.empty(); }
  void tell(const Operation& operation) {
    for (Listener* listener : hearing_) {
      listener->on(operation);
    }
  }
  // The rectangle that a view shows. Requires: a view of a living tile of this machine.
  [[nodiscard]] TilePart part_of(const ConstView& view) const;
  // The rectangle of one word. Requires: it is of a living tile of this machine.
  [[nodiscard]] TilePart part_of(const float* word) const;

  [[nodiscard]] Index capacity() const { return capacity_; }
  [[nodiscard]] Index live() const { return meter_.live(); }
  [[nodiscard]] Index span() const { return arena_.span(); }
  // The living tiles and what they weigh: "A 81, b 9"; empty if none lives.
  [[nodiscard]] std::string contents() const;
  // The path of the innermost open phase, empty if none is open; and all words that it has moved.
  // Both may also be asked from another thread, while the machine works.
  [[nodiscard]] std::string open_phase() const { return meter_.phase().path(); }
  [[nodiscard]] Index moved() const { return meter_.moved(); }
  // The counts so far as a tree of phases, for leaves() and total().
  [[nodiscard]] const PhaseNode& phases() const { return meter_.root(); }
  // The inner levels, from the innermost out.
  [[nodiscard]] std::deque<Level>& inner() { return inner_; }
  [[nodiscard]] const std::deque<Level>& inner() const { return inner_; }

  // `listener` is told every event until silence(), and must live until then.
  void listen(Listener& listener, Hears hears = Hears::moves) {
    listeners_.push_back(&listener);
    if (hears == Hears::moves_and_arithmetic) {
      hearing_.push_back(&listener);
    }
  }
  void silence(Listener& listener) {
    std::erase(listeners_, &listener);
    std::erase(hearing_, &listener);
  }
  // `ask` is called before each read and write, which does not happen if it throws.
  void before_each_move(std::function<void()> ask) { before_each_ = std::move(ask); }

 private:
  friend class Phase;
  friend class Stream;
  friend class Tile;
  template <class Word>
  friend class BasicView;
  void enter(Phase& phase, std::string_view name);
  void leave(Phase& phase) noexcept;
  [[nodiscard]] Tile read(const ConstBlock& block, Orientation orientation, CutEvery cut);
  // A read of held.block into a tile that is charged at once. With `ahead` it may be in flight
  // until end_read(), which counts it. Throw (both): what read() throws; the tile is then given
  // back.
  void begin_read(Stream::Held& held, Orientation orientation, bool ahead);
  void end_read(Stream::Held& held, Orientation orientation);
  void count_read(const Tile& tile, const ConstBlock& block, Orientation orientation);
  void count_write(const Tile& tile, const ConstBlock& block, Orientation orientation);
  void write(const Tile& tile, const Block& block, Orientation orientation);
  // A tile for the block, filled by fill(words), which may also return before it has filled them.
  template <class Fill>
  [[nodiscard]] Tile tile_of(const ConstBlock& block, Orientation orientation, CutEvery cut,
                             const Fill& fill);
  void ask() const {
    if (before_each_) {
      before_each_();
    }
  }
  [[nodiscard]] Arena::Slot* place(std::string_view name, Index rows, Index cols, Holds holds);
  [[nodiscard]] Tile charge(Arena::Slot* slot, Index rows, Index cols, CutEvery cut);
  // Words that live no longer.
  void discharge(const Arena::Slot& slot) noexcept;
  // The words of M that a tile takes, and those that a move of a block counts.
  [[nodiscard]] Index weight_of(const Arena::Slot& slot) const {
    return slot.words * weights_[slot.holds];
  }
  [[nodiscard]] Index weight_of(const ConstBlock& block) const {
    return (Words(block.words()) * weights_[block.holds()]).value();
  }
  void remove(Tile& tile) noexcept;
  void forget(Tile& tile) noexcept;  // removes one that no listener was told of
  [[nodiscard]] float* address(const Arena::Slot& slot) const { return arena_.address(slot); }
  [[nodiscard]] std::uint64_t tiles_made() const { return arena_.placed(); }
  [[nodiscard]] const Arena::Slot* slot_at(const float* word) const;  // of the tile that holds it
  [[nodiscard]] std::string name_at(const float* word) const;         // likewise
  void tell(Event::Kind kind, const Tile& tile) {
    if (!listeners_.empty()) {
      tell(event(kind, tile));
    }
  }
  void tell(Event::Kind kind, const Tile& tile, const ConstBlock& block, Orientation orientation,
            Index moved) {
    if (!listeners_.empty()) {
      Event move = event(kind, tile);
      move.block = &block;
      move.orientation = orientation;
      move.moved = moved;
      tell(move);
    }
  }
  [[nodiscard]] Event event(Event::Kind kind, const Tile& tile) const {
    return {.kind = kind,
            .name = tile.slot_->name,
            .tile = tile.slot_->id,
            .rows = tile.rows(),
            .cols = tile.cols(),
            .words = weight_of(*tile.slot_),
            .live = live()};
  }
  void tell(const Event& event) {
    for (Listener* listener : listeners_) {
      listener->on(event);
    }
  }

  Index capacity_;
  ByKind<Index> weights_{{1, 1, 1, 1}};
  Arena arena_;
  Meter meter_;
  std::deque<Level> inner_;
  std::vector<Phase*> open_;
  std::vector<Stream*> streams_;
  std::vector<Fetch*> fetches_;  // reads in flight: until they end, no tile may slide
  std::vector<Listener*> listeners_;
  std::vector<Listener*> hearing_;  // those that hear arithmetic
  std::function<void()> before_each_;
};

inline void Tile::reset() noexcept {
  if (slot_ != nullptr) {
    machine_->remove(*this);
    let_go();
  }
}
inline float& Tile::word(Index i, Index j) const {
  if (!inside(i, rows_) || !inside(j, cols_)) [[unlikely]] {
    refuse(i, j);
  }
  const Index first = cut_ < cols_ ? j / cut_ * cut_ : 0;  // column of the block between cuts
  const Index panel = (j - first) & -kPanel;
  const Index width = std::min(kPanel, std::min(cut_, cols_ - first) - panel);
  return machine_->address(*slot_)[(first + panel) * rows_ + i * width + j - first - panel];
}
inline Tile::operator View() {
  if (slot_ == nullptr || cut_ < cols_) [[unlikely]] {
    refuse_whole();
  }
  return {*machine_, machine_->tiles_made(), machine_->address(*slot_), rows_, cols_, 0, rows_,
          cols_};
}
inline Tile::operator ConstView() const {
  if (slot_ == nullptr || cut_ < cols_) [[unlikely]] {
    refuse_whole();
  }
  return {*machine_, machine_->tiles_made(), machine_->address(*slot_), rows_, cols_, 0, rows_,
          cols_};
}

inline Transposed<View> transposed(Tile& tile) {
  return {tile};
}
inline Transposed<ConstView> transposed(const Tile& tile) {
  return {tile};
}

}  // namespace redblue
