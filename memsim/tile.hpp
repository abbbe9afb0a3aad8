#pragma once
// A matrix in fast memory, laid out in the panels of memsim/layout.hpp. It owns rows * cols words
// of its machine's M and gives them back when it dies. If the machine dies first, the tile becomes
// 0 x 0. Threads must not share a tile.
//
// Addresses are valid until the next tile is made, since the arena may slide its tiles together.
// Take them for one computation and do not keep them.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

#include "memsim/arena.hpp"
#include "memsim/layout.hpp"
#include "memsim/range.hpp"
#include "memsim/words.hpp"

namespace redblue {

class Machine;

// Cuts a tile into blocks of `columns` columns, stored one after the other, each in panels. By
// default the tile is one block.
struct CutEvery {
  Index columns = std::numeric_limits<Index>::max();
};

class [[nodiscard]] Tile {
 public:
  Tile() = default;            // empty: 0 x 0
  Tile(const Tile&) = delete;  // a copy would take fast memory without a request
  Tile& operator=(const Tile&) = delete;
  Tile(Tile&& other) noexcept { *this = std::move(other); }
  Tile& operator=(Tile&& other) noexcept {
    if (this != &other) {
      reset();
      machine_ = std::exchange(other.machine_, nullptr);
      slot_ = std::exchange(other.slot_, nullptr);
      rows_ = std::exchange(other.rows_, 0);
      cols_ = std::exchange(other.cols_, 0);
      cut_ = other.cut_;
      if (slot_ != nullptr) {
        slot_->tile = this;
      }
    }
    return *this;
  }
  ~Tile() { reset(); }

  // Deletes the tile before its scope ends. It is then 0 x 0.
  void reset() noexcept;

  [[nodiscard]] Index rows() const { return rows_; }
  [[nodiscard]] Index cols() const { return cols_; }
  [[nodiscard]] Index words() const { return rows_ * cols_; }

  // Word (i, j), checked in every build. Throws: ShapeMismatch for an index outside the tile.
  [[nodiscard]] float& operator()(Index i, Index j) { return word(i, j); }
  [[nodiscard]] float operator()(Index i, Index j) const { return word(i, j); }

  // Views of the whole tile or a part, for arithmetic. Throw (both): ShapeMismatch for an empty
  // tile and for a tile with cuts.
  operator View();
  operator ConstView() const;
  // Throw (all): ShapeMismatch unless the part lies in the tile, is not empty, begins at a panel or
  // lies within one, and has no cut between its columns.
  [[nodiscard]] View part(Range rows, Range columns);
  [[nodiscard]] ConstView part(Range rows, Range columns) const;
  [[nodiscard]] View part(Range rows) { return part(rows, {0, cols_}); }
  [[nodiscard]] ConstView part(Range rows) const { return part(rows, {0, cols_}); }

  // Returns the number of columns from one cut to the next, or of all columns.
  [[nodiscard]] Index cut() const { return cut_; }
  // The tile's number in events, its name, and the kind of its words. Require: the tile is not
  // empty.
  [[nodiscard]] std::uint64_t number() const { return slot_->id; }
  [[nodiscard]] std::string_view name() const { return slot_->name; }
  [[nodiscard]] Holds holds() const { return slot_->holds; }

  // Returns the machine to which arithmetic on this tile reports its operations. Throws:
  // ShapeMismatch for an empty tile.
  [[nodiscard]] Machine& machine() const {
    if (machine_ == nullptr) {
      refuse_nothing();
    }
    return *machine_;
  }

 private:
  friend class Machine;
  template <class V>
  [[nodiscard]] V view(Range rows, Range columns) const;
  [[nodiscard]] float& word(Index i, Index j) const;
  // Throw (both): ShapeMismatch.
  [[noreturn]] void refuse(Index i, Index j) const;
  [[noreturn]] static void refuse_nothing();
  [[noreturn]] void refuse_whole() const;
  void let_go() noexcept {
    machine_ = nullptr;
    slot_ = nullptr;
    rows_ = cols_ = 0;
  }
  Tile(Machine& machine, Arena::Slot* slot, Index rows, Index cols, CutEvery cut)
      : machine_(&machine),
        slot_(slot),
        rows_(rows),
        cols_(cols),
        cut_(std::min(cut.columns, cols)) {
    slot_->tile = this;
  }

  Machine* machine_ = nullptr;
  Arena::Slot* slot_ = nullptr;
  Index rows_ = 0;
  Index cols_ = 0;
  Index cut_ = 0;
};

}  // namespace redblue
