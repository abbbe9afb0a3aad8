#pragma once
// The two-level machine: a fast memory of exactly M words above a slow memory. Two moves connect
// them, read and write, and both are counted word by word. Initializing and deleting a tile are
// free. Living tiles never hold more than M words.
//
//   Machine machine(M);
//   Tile s = machine.initialize("S", I.size(), J.size());
//   const Tile a = machine.read(A1.block(I, K));
//   machine.write(s, S.block(I, J));
//
// A machine may have inner levels, each with fewer words than the next outer one. Arithmetic then
// uses the parts that the innermost level holds (memsim/level.hpp). The levels share the machine's
// phases.
//
// A machine belongs to one thread. A request that throws leaves counters and contents unchanged,
// except for the tiles that a stream holds. Tiles, phases and streams that outlive their machine
// own no words: such a tile is 0 x 0.

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

// A tag for tiles that are computed completely before they are read.
struct Unset {};
inline constexpr Unset kUnset;

class Machine {
 public:
  // `inner`: the words of each inner level, innermost first. Throws: ShapeMismatch unless every
  // size is at least 1; std::system_error if the address space is too small.
  explicit Machine(Index M, const std::vector<Index>& inner = {});
  // `tiles`: whether tiles may change their addresses. Throws: the same.
  Machine(Index M, Arena::Tiles tiles);
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  ~Machine();  // waits for reads in flight

  // From now on each word of this kind weighs `words` words, in M and when moved. It is for sums
  // that are wider than operands. Requires: no tile lives, no word has moved, and the machine has
  // no inner levels.
  void weigh(Holds holds, Index words);
  [[nodiscard]] Index weight(Holds holds) const { return weights_[holds]; }

  // The moves. Throw (all): FastMemoryOverflow; ShapeMismatch; CountOverflow for a tile with too
  // many words to count. Reads and writes also throw the store's errors.
  [[nodiscard]] Tile initialize(std::string_view name, Index rows, Index cols = 1, float value = 0,
                                Holds holds = Holds::sums, CutEvery cut = {});
  [[nodiscard]] Tile initialize(std::string_view name, Index rows, Index cols, Holds holds,
                                CutEvery cut = {}) {
    return initialize(name, rows, cols, 0, holds, cut);
  }
  // Leaves the words unset, which takes no time. With assertions on they are NaN, so that a read
  // before the first write is visible.
  [[nodiscard]] Tile initialize(std::string_view name, Index rows, Index cols, Unset value,
                                Holds holds = Holds::sums);
  [[nodiscard]] Tile read(
      const ConstBlock& block,
      CutEvery cut = {});  // the tile gets the matrix's name and the block's kind
  void write(const Tile& tile, const Block& block);
  // Move the same words. The tile is the transpose of the block.
  [[nodiscard]] Tile read(const Transposed<ConstBlock>& block, CutEvery cut = {});
  void write(const Tile& tile, const Transposed<Block>& block);

  // Reads a list of indices once, from first to last (say, the keys that some queries meet).
  // `words` are counted. `live` words are charged as long as the tile lives; its values have no
  // meaning. Returns a 0 x 0 tile if `words` is 0.
  [[nodiscard]] Tile read_indices(Index words, Index live = 1);
  // Counts the write of `words` indices of such a list. The tile holds the indices that are in fast
  // memory.
  void write_indices(const Tile& tile, Index words);

  // Reads the blocks one after the other. Up to `depth` blocks are in fast memory, and charged, so
  // that a store may fetch ahead.
  [[nodiscard]] Stream stream(const BlockSequence& blocks, Index depth = 1);
  [[nodiscard]] Stream stream(const Transposed<BlockSequence>& blocks, Index depth = 1);

  // Adds the operations to the innermost open phase.
  void computed(Operations operations) { meter_.computed(operations); }

  // True if any listener hears moves.
  [[nodiscard]] bool is_told() const { return !listeners_.empty(); }
  // True if any listener hears arithmetic. Kernels then report each operation; otherwise they need
  // not describe it.
  [[nodiscard]] bool is_heard() const { return !hearing_.empty(); }
  void tell(const Operation& operation) {
    for (Listener* listener : hearing_) {
      listener->on(operation);
    }
  }
  // Returns the rectangle that a view shows. Requires: a view of a living tile of this machine.
  [[nodiscard]] TilePart part_of(const ConstView& view) const;
  // Returns the rectangle of one word. Requires: the word is in a living tile of this machine.
  [[nodiscard]] TilePart part_of(const float* word) const;

  [[nodiscard]] Index capacity() const { return capacity_; }
  [[nodiscard]] Index live() const { return meter_.live(); }
  [[nodiscard]] Index span() const { return arena_.span(); }
  // Returns the living tiles and their weights: "A 81, b 9". Empty if no tile lives.
  [[nodiscard]] std::string contents() const;
  // Returns the path of the innermost open phase (empty if no phase is open), and all words moved
  // so far. Other threads may call both while the machine works.
  [[nodiscard]] std::string open_phase() const { return meter_.phase().path(); }
  [[nodiscard]] Index moved() const { return meter_.moved(); }
  // Returns the counts so far as a tree of phases, for leaves() and total().
  [[nodiscard]] const PhaseNode& phases() const { return meter_.root(); }
  // The inner levels, innermost first.
  [[nodiscard]] std::deque<Level>& inner() { return inner_; }
  [[nodiscard]] const std::deque<Level>& inner() const { return inner_; }

  // Tells `listener` every event until silence(). It must live until then.
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
  // Calls `ask` before each read and write. If `ask` throws, the move does not happen.
  void before_each_move(std::function<void()> ask) { before_each_ = std::move(ask); }

 private:
  friend class Phase;
  friend class Stream;
  friend class Tile;
  template <class Word>
  friend class BasicView;
  void enter(Phase& phase, std::string_view name);
  void leave(Phase& phase) noexcept;
  Machine(Index M, const std::vector<Index>& inner, Arena::Tiles tiles);
  [[nodiscard]] Tile read(const ConstBlock& block, Orientation orientation, CutEvery cut);
  // Reads held.block into a tile that is charged at once. With `ahead` the read may be in flight
  // until end_read(), which counts it. Throw (both): the errors of read(); the tile is then given
  // back.
  void begin_read(Stream::Held& held, Orientation orientation, bool ahead);
  void end_read(Stream::Held& held, Orientation orientation);
  void count_read(const Tile& tile, const ConstBlock& block, Orientation orientation);
  void count_write(const Tile& tile, const ConstBlock& block, Orientation orientation);
  void write(const Tile& tile, const Block& block, Orientation orientation);
  // Returns a tile for the block, filled by fill(words). fill may return before all words have
  // arrived.
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
  // Gives the words of a dead tile back to M.
  void discharge(const Arena::Slot& slot) noexcept;
  // The words of M that a tile takes, and the words that a move of a block counts.
  [[nodiscard]] Index weight_of(const Arena::Slot& slot) const {
    return slot.words * weights_[slot.holds];
  }
  [[nodiscard]] Index weight_of(const ConstBlock& block) const {
    return (Words(block.words()) * weights_[block.holds()]).value();
  }
  void remove(Tile& tile) noexcept;
  void forget(Tile& tile) noexcept;  // removes a tile that no listener knows
  [[nodiscard]] float* address(const Arena::Slot& slot) const { return arena_.address(slot); }
  [[nodiscard]] std::uint64_t tiles_made() const { return arena_.placed(); }
  [[nodiscard]] const Arena::Slot* slot_at(const float* word) const;  // the word's tile
  [[nodiscard]] std::string name_at(const float* word) const;         // its name
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
  std::vector<Fetch*> fetches_;  // reads in flight: no tile may slide until they end
  std::vector<Listener*> listeners_;
  std::vector<Listener*> hearing_;  // the listeners that hear arithmetic
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
  const Index first = cut_ < cols_ ? j / cut_ * cut_ : 0;  // first column of j's cut block
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
