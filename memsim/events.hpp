#pragma once
// The events of a machine: every move in order, with names. Phase clocks, counters, traces and
// progress reports are listeners. Without a listener, an event costs one test of an empty list.
// Listeners can also ask for arithmetic. An inner level reports its moves in the same way
// (Level::listen).

#include <cstdint>
#include <string_view>

#include "memsim/operation.hpp"
#include "memsim/slow_matrix.hpp"

namespace redblue {

struct Event {
  enum class Kind { read, write, initialize, remove, enter_phase, leave_phase };

  Kind kind;
  std::string_view name;   // name of the tile or the phase; valid during the call
  std::uint64_t tile = 0;  // the tile's number, never used twice by one machine
  Index rows = 0;          // shape of the tile
  Index cols = 0;
  const ConstBlock* block = nullptr;  // the slow side of a machine's read or write
  // Transposed: the tile is the block's transpose.
  Orientation orientation = Orientation::straight;
  bool unset = false;  // true if the tile is initialized without values
  float value = 0;     // the initial value, unless `unset`
  // In words, each counted with its weight (Machine::weigh):
  Index words = 0;  // words of M that the tile takes
  Index moved = 0;  // words counted by a read or a write
  Index live = 0;   // words in fast memory after the move, including reads in flight
};

enum class Hears { moves, moves_and_arithmetic };

class Listener {
 public:
  Listener() = default;
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  virtual ~Listener() = default;

  // Called after the move is counted. It must not move words, nor add or remove listeners.
  virtual void on(const Event& event) noexcept = 0;
  // Called for each operation, before or after its words change, if the listener asked for
  // arithmetic. It must not move words, nor add or remove listeners.
  virtual void on(const Operation& /* operation */) noexcept {}
};

}  // namespace redblue
