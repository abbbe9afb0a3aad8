#pragma once
// A matrix in fast memory, in the panels of memsim/layout.hpp. It owns rows * cols words of its
// machine's M and gives them back when it dies; the machine must outlive it. Not shared between
// threads.
//
// Addresses hold until the next tile is made (the arena may slide its tiles together), so
// take them for one computation and do not keep them.

#include <utility>

#include "memsim/arena.hpp"
#include "memsim/layout.hpp"
#include "memsim/range.hpp"
#include "memsim/words.hpp"

namespace redblue {

class Machine;

class [[nodiscard]] Tile {
 public:
  Tile() = default;            // holds nothing, 0 x 0
  Tile(const Tile&) = delete;  // a copy would need fast memory that nobody asked for
  Tile& operator=(const Tile&) = delete;
  Tile(Tile&& other) noexcept { *this = std::move(other); }
  Tile& operator=(Tile&& other) noexcept {
    if (this != &other) {
      reset();
      machine_ = other.machine_;
      slot_ = std::exchange(other.slot_, nullptr);
      rows_ = std::exchange(other.rows_, 0);
      cols_ = std::exchange(other.cols_, 0);
    }
    return *this;
  }
  ~Tile() { reset(); }

  // Deletes the tile before its scope ends; what is left is 0 x 0.
  void reset() noexcept;

  [[nodiscard]] Index rows() const { return rows_; }
  [[nodiscard]] Index cols() const { return cols_; }
  [[nodiscard]] Index words() const { return rows_ * cols_; }

  // Requires: inside the tile.
  [[nodiscard]] float& operator()(Index i, Index j) {
    return View(*this).at(i, j / kPanel)[j % kPanel];
  }
  [[nodiscard]] float operator()(Index i, Index j) const {
    return ConstView(*this).at(i, j / kPanel)[j % kPanel];
  }

  // What arithmetic works on: all of it, or some rows of some columns.
  operator View();
  operator ConstView() const;
  // Throws: ShapeMismatch unless the columns begin with a panel and all lies in the tile.
  [[nodiscard]] View part(Range rows, Range columns);
  [[nodiscard]] ConstView part(Range rows, Range columns) const;
  [[nodiscard]] View part(Range rows) { return part(rows, {0, cols_}); }
  [[nodiscard]] ConstView part(Range rows) const { return part(rows, {0, cols_}); }

  // Where arithmetic on this tile reports its operations. Requires: not reset.
  [[nodiscard]] Machine& machine() const { return *machine_; }

 private:
  friend class Machine;
  template <class V>
  [[nodiscard]] V view(Range rows, Range columns) const;
  Tile(Machine& machine, Arena::Slot* slot, Index rows, Index cols)
      : machine_(&machine), slot_(slot), rows_(rows), cols_(cols) {}

  Machine* machine_ = nullptr;
  Arena::Slot* slot_ = nullptr;
  Index rows_ = 0;
  Index cols_ = 0;
};

}  // namespace redblue
