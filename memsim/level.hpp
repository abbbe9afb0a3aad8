#pragma once
// An inner level of fast memory: M words for parts of a machine's tiles, next to the arithmetic.
// A part that is taken is charged, and its words are counted as read, unless they are made anew;
// they stay where they are, and nothing is copied. What was changed or made is counted as written
// when it is given back, unless it was scratch.
//
//   for (Level& level : machine.inner()) {                              // from the innermost out
//     const Loan a(level, A, rows, columns, Level::How::reads);
//     const Loan c(level, C, rows, columns, Level::How::makes);
//     ...
//   }
//
// A level is inclusive: what an inner one has the next one has, and a tile is charged in its
// machine as well. So levels up to one of M words are together a fast memory of M words. A part may
// pass the innermost: all of it is read, and some words of it are there at a time.
//
// A tile may be cut (CutEvery): into blocks of columns that lie one after the other, so that parts
// of it may begin at each block; else only at a panel.

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
  // What is read, and perhaps changed; what is made anew, and perhaps nothing but scratch.
  enum class How : std::uint8_t { reads, changes, makes, scratch };

  // A part of a tile that a level may have. Requires: the tile is not empty, and outlives it.
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

  // Within `outer`, or within the machine alone where it is null. Throws: ShapeMismatch unless
  // M >= 1.
  Level(Index M, const Level* outer);
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

  // Some rows and columns, of which at most so many words are there at a time: what takes them sees
  // to that. Require: `part` is given back, stays where it is, and no level has it before. Throws:
  // FastMemoryOverflow; ShapeMismatch unless they lie in the tile, are not empty, and are in the
  // next level.
  void take(Part& part, Range rows, Range columns, How how,
            Index at_a_time = std::numeric_limits<Index>::max());
  void give_back(const Part& part) noexcept;

  // `listener` is told every event until silence(), and must live until then: what is read,
  // made anew (initialize), written and given back (remove). An event has no block.
  void listen(Listener& listener) { listeners_.push_back(&listener); }
  void silence(Listener& listener) { std::erase(listeners_, &listener); }

  // Whether all words of it were taken together.
  [[nodiscard]] bool has(const TilePart& part) const;
  [[nodiscard]] Index capacity() const { return capacity_; }
  [[nodiscard]] Index live() const { return meter_.live(); }
  // The parts in it and their words: "A 81, b 9"; empty if there is none.
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

// A part in a level, until it dies. Requires: before the tile does.
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
