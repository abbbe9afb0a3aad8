#pragma once
// An inner level of fast memory: M words for parts of a machine's tiles, next to the arithmetic.
// A part that is borrowed is charged, and its words are counted as read, unless they are made anew;
// they stay where they are, and nothing is copied. write() counts them on their way back.
//
//   for (Level& level : machine.inner()) {              // from the innermost out
//     const Loan a = level.borrow(A, rows, columns);    // read
//     Loan c = level.begin(C, rows, columns);           // made anew
//     ...
//     c.write();
//   }
//
// A level is inclusive: what an inner one borrows the next one has, and a tile is charged in its
// machine as well. So levels up to one of M words are together a fast memory of M words.
//
// A tile may be cut (CutEvery): into blocks of columns that lie one after the other, so that parts
// of it may begin at each block; else only at a panel.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "memsim/errors.hpp"
#include "memsim/events.hpp"
#include "memsim/meter.hpp"
#include "memsim/operation.hpp"
#include "memsim/range.hpp"
#include "memsim/tile.hpp"
#include "memsim/words.hpp"

namespace redblue {

class Level;

// A part of a tile in a level, until it dies. Requires: before the tile does.
class [[nodiscard]] Loan {
 public:
  Loan() = default;  // of nothing
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;
  Loan(Loan&& other) noexcept { *this = std::move(other); }
  Loan& operator=(Loan&& other) noexcept {
    if (this != &other) {
      give_back();
      level_ = std::exchange(other.level_, nullptr);
      number_ = other.number_;
    }
    return *this;
  }
  ~Loan() { give_back(); }

  // Counts the words as written to the next level.
  void write();
  // Gives the part back before the loan's scope ends.
  void give_back() noexcept {
    if (level_ != nullptr) {
      end();
    }
  }

 private:
  friend class Level;
  Loan(Level& level, std::uint64_t number) : level_(&level), number_(number) {}
  void end() noexcept;

  Level* level_ = nullptr;
  std::uint64_t number_ = 0;
};

class Level {
 public:
  // Within `outer`, or within the machine alone where it is null. Throws: ShapeMismatch unless
  // M >= 1.
  Level(Index M, const Level* outer);
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

  // Throw (both): FastMemoryOverflow; ShapeMismatch unless the part lies in the tile, is not empty,
  // and is in the next level.
  Loan borrow(const Tile& tile, Range rows, Range columns);
  Loan begin(const Tile& tile, Range rows, Range columns);

  // `listener` is told every event until silence(), and must live until then: what is borrowed
  // (read), made anew (initialize), written and given back (remove). An event has no block.
  void listen(Listener& listener) { listeners_.push_back(&listener); }
  void silence(Listener& listener) { std::erase(listeners_, &listener); }

  // Whether all words of it are borrowed together.
  [[nodiscard]] bool has(const TilePart& part) const;
  [[nodiscard]] Index capacity() const { return capacity_; }
  [[nodiscard]] Index live() const { return meter_.live(); }
  // The parts in it and their words: "A 81, b 9"; empty if there is none.
  [[nodiscard]] std::string contents() const;
  [[nodiscard]] const PhaseNode& phases() const { return meter_.root(); }

 private:
  friend class Loan;
  friend class Machine;
  struct Lent {
    std::uint64_t number;
    std::uint64_t tile;
    std::string_view name;  // of the tile
    Range rows, columns;
    Holds holds;
    [[nodiscard]] Index words() const { return rows.size() * columns.size(); }
  };
  // Charges the part. Throws: as begin().
  const Lent& lend(const Tile& tile, Range rows, Range columns);
  [[nodiscard]] std::vector<Lent>::iterator lent(std::uint64_t number) noexcept;
  void tell(Event::Kind kind, const Lent& part) {
    if (!listeners_.empty()) [[unlikely]] {
      tell_all(kind, part);
    }
  }
  void tell_all(Event::Kind kind, const Lent& part);

  Index capacity_;
  const Level* outer_;
  Meter meter_;
  std::vector<Lent> lent_;  // in the order of their numbers
  std::uint64_t next_ = 0;
  std::vector<Listener*> listeners_;
};

}  // namespace redblue
