#pragma once
// The events of a machine: every move, in order, with its names. Phase clocks, counters, traces and
// progress are listeners. Without a listener an event costs one test of an empty list. A listener
// that asks for it hears arithmetic, too. An inner level tells its moves likewise (Level::listen).

#include <cstdint>
#include <string_view>

#include "memsim/operation.hpp"
#include "memsim/slow_matrix.hpp"

namespace redblue {

struct Event {
  enum class Kind { read, write, initialize, remove, enter_phase, leave_phase };

  Kind kind;
  std::string_view name;   // of the tile or the phase; valid during the call
  std::uint64_t tile = 0;  // the tile's number, never used twice by one machine
  Index rows = 0;          // of the tile
  Index cols = 0;
  const ConstBlock* block = nullptr;  // the slow side of a machine's read or write
  // Transposed: the tile is the block's transpose.
  Orientation orientation = Orientation::straight;
  bool unset = false;  // initialized without values
  float value = 0;     // otherwise, with this one
  // In words by their weight (Machine::weigh):
  Index words = 0;  // the tile's share of M
  Index moved = 0;  // the count of a read or a write
  Index live = 0;   // in fast memory after the move, reads in flight included
};

enum class Hears { moves, moves_and_arithmetic };

class Listener {
 public:
  Listener() = default;
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  virtual ~Listener() = default;

  // Called after the move is counted. Must neither move words nor add or remove listeners.
  virtual void on(const Event& event) noexcept = 0;
  // Called with the operation, before its words change or after, of listeners that hear arithmetic.
  // The same holds.
  virtual void on(const Operation& /* operation */) noexcept {}
};

}  // namespace redblue
