#pragma once
// A matrix in fast memory, row-major. It owns rows * cols words of its machine's M and gives
// them back when it dies; the machine must outlive it. Not shared between threads.
//
// Addresses hold until the next tile is made (the arena may slide its tiles together), so
// take them for one computation and do not keep them.

#include <utility>

#include "memsim/arena.hpp"
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

  // The first word of row i. Requires: 0 <= i < rows().
  [[nodiscard]] float* row(Index i);
  [[nodiscard]] const float* row(Index i) const;
  [[nodiscard]] float& operator()(Index i, Index j) { return row(i)[j]; }
  [[nodiscard]] float operator()(Index i, Index j) const { return row(i)[j]; }

  // Where arithmetic on this tile reports its operations. Requires: not reset.
  [[nodiscard]] Machine& machine() const { return *machine_; }

 private:
  friend class Machine;
  Tile(Machine& machine, Arena::Slot* slot, Index rows, Index cols)
      : machine_(&machine), slot_(slot), rows_(rows), cols_(cols) {}

  Machine* machine_ = nullptr;
  Arena::Slot* slot_ = nullptr;
  Index rows_ = 0;
  Index cols_ = 0;
};

}  // namespace redblue
