#pragma once
// The red-blue pebble game on a graph, and a referee that knows only its rules and the graph.
// Inputs begin blue, results end blue, and at most M vertices are red at any time:
//
//   read v      a red pebble on a blue vertex         } one word each
//   write v     a blue pebble on a red vertex         }
//   compute v   a red pebble on a vertex with red operands
//   delete v    takes the red pebble off v
//
//   strict    these moves alone (Hong and Kung).
//   sliding   "compute v slides u": the red pebble of an operand u moves on to v.
//   once      strict, and no vertex is computed twice.
//   fma       sliding, and each vertex is computed once. A term of a sum (Vertex::term) has no
//             pebble if one sum alone uses it and it is not the first operand of that sum. The sum
//             is computed from the operands of the term. Inputs and terms of a term have a pebble.
//   partial   "compute v adds u": a red operand u is added to v, each operand once (the
//             partial-computing game of Papp, Sobczyk and Yzelman). v is red then, or was not
//             begun. It is not blue afterwards. Only a vertex with all its operands is an operand
//             itself.

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/pebble/dag.hpp"

namespace redblue {

enum class Game : std::uint8_t { strict, sliding, once, fma, partial };
std::string_view to_string(Game game);

enum class Act : std::uint8_t { read, write, compute, remove };

struct Move {
  Act act;
  Index vertex;
  std::optional<Index> slides = std::nullopt;
  std::optional<Index> adds = std::nullopt;  // Game::partial
};

// The totals of a game that was played to its end.
struct Played {
  Index reads = 0, writes = 0;
  Index red = 0;  // the most red pebbles at any time
  Index computed = 0;
  [[nodiscard]] Index words() const { return reads + writes; }
};

// A move that breaks a rule. If the position at the end is wrong, `at` is the number of moves.
struct IllegalMove : std::runtime_error {
  IllegalMove(std::size_t move, const std::string& why) : std::runtime_error(why), at(move) {}
  std::size_t at;
};

// The vertices that must be red when v is computed, and the vertices without a pebble in a game.
class Rules {
 public:
  Rules(const Dag& dag, Game game);

  [[nodiscard]] const Dag& dag() const { return dag_; }
  [[nodiscard]] Game game() const { return game_; }
  [[nodiscard]] bool without_pebble(Index v) const { return without_[static_cast<std::size_t>(v)]; }
  [[nodiscard]] std::vector<Index> needed(Index v) const;
  // Returns the fewest red pebbles with which each vertex can be computed.
  [[nodiscard]] Index least_M() const;

 private:
  const Dag& dag_;
  Game game_;
  std::vector<bool> without_;
};

// Returns the totals of a game that keeps the rules. Throws: IllegalMove.
Played referee(const Rules& rules, Index M, const std::vector<Move>& moves);

}  // namespace redblue
