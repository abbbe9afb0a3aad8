#pragma once
// An inner level of fast memory: M words for parts of a machine's tiles, closer to the arithmetic.
// No word is copied: a level only charges and counts. take() charges a part and counts its words as
// read, unless the part is made anew. give_back() counts its words as written if they were changed
// or made, but not if they were scratch.
//
//   for (Level& level : machine.inner()) {                              // innermost first
//     const Loan a(level, A, rows, columns, Level::How::reads);
//     const Loan c(level, C, rows, columns, Level::How::makes);
//     ...
//   }
//
// A level is inclusive: each part is also in the next outer level, and its tile is charged in the
// machine. Levels of up to M words therefore act together as one fast memory of M words. A part may
// stream through the innermost level: all its words are read, but only some are charged.
//
// A tile may be cut (CutEvery) into blocks of columns stored one after the other. A part may then
// begin at any block. Otherwise it begins at a panel.

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "memsim/errors.hpp"
#include "memsim/events.hpp"
#include "memsim/meter.hpp"
#include "memsim/operation.hpp"
#include "memsim/range.hpp"
#include "memsim/tile.hpp"
#include "memsim/words.hpp"

namespace redblue {

class Level {
 public:
  // How a part is used: read only, read and changed, made anew, or made anew as scratch (never
  // written).
  enum class How : std::uint8_t { reads, changes, makes, scratch };

  // A part of a tile that a level can take. Requires: the tile is not empty, and outlives the part.
  class Part {
   public:
    explicit Part(const Tile& of)
        : tile_(of.number()),
          name_(of.name()),
          extents_{of.rows(), of.cols()},
          holds_(of.holds()) {}

   private:
    friend class Level;
    [[nodiscard]] Index words() const { return rows_.size() * columns_.size(); }

    std::uint64_t tile_;
    std::string_view name_;
    std::array<Index, 2> extents_;
    Range rows_{}, columns_{};
    Index charged_ = 0;
    Holds holds_;
    How how_ = How::reads;
  };

  // A level inside `outer`, or directly inside the machine if `outer` is null. Throws:
  // ShapeMismatch unless M >= 1.
  Level(Index M, const Level* outer);
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

  // Takes some rows and columns. At most `at_a_time` words are charged; the caller makes sure that
  // no more are in use at once. Requires: `part` is given back later, keeps its address, and is in
  // no level yet. Throws: FastMemoryOverflow; ShapeMismatch unless the rows and columns lie in the
  // tile, are not empty, and are in the next outer level.
  void take(Part& part, Range rows, Range columns, How how,
            Index at_a_time = std::numeric_limits<Index>::max());
  void give_back(const Part& part) noexcept;

  // Tells `listener` every event until silence(). It must live until then. Events are read,
  // initialize (a part made anew), write, and remove (a part given back). An event has no block.
  void listen(Listener& listener) { listeners_.push_back(&listener); }
  void silence(Listener& listener) { std::erase(listeners_, &listener); }

  // True if one part that was taken contains all these words.
  [[nodiscard]] bool has(const TilePart& part) const;
  [[nodiscard]] Index capacity() const { return capacity_; }
  [[nodiscard]] Index live() const { return meter_.live(); }
  // Returns the parts and their charged words: "A 81, b 9". Empty if the level holds no part.
  [[nodiscard]] std::string contents() const;
  [[nodiscard]] const PhaseNode& phases() const { return meter_.root(); }

 private:
  friend class Machine;
  void tell(Event::Kind kind, const Part& part) {
    if (!listeners_.empty()) [[unlikely]] {
      tell_all(kind, part);
    }
  }
  void tell_all(Event::Kind kind, const Part& part);

  Index capacity_;
  const Level* outer_;
  Meter meter_;
  std::vector<const Part*> parts_;  // in the order in which they were taken
  std::vector<Listener*> listeners_;
};

// Holds a part in a level until the loan dies. Requires: the loan dies before the tile.
class [[nodiscard]] Loan {
 public:
  Loan(Level& level, const Tile& tile, Range rows, Range columns, Level::How how)
      : level_(&level), part_(std::make_unique<Level::Part>(tile)) {
    level.take(*part_, rows, columns, how);
  }
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;
  Loan(Loan&&) noexcept = default;
  Loan& operator=(Loan&&) = delete;
  ~Loan() {
    if (part_) {
      level_->give_back(*part_);
    }
  }

 private:
  Level* level_;
  std::unique_ptr<Level::Part> part_;
};

}  // namespace redblue
