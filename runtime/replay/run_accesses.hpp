#pragma once
// The units that a run touches, where a cache, and not the kernel, says what is read and written:
// its operations, without its moves.
//
// A unit is a word; or a piece of a row of a slow matrix, cut where any block of the run begins or
// ends, and into pieces of RowCuts::longest words. In a tile it is in a row, or, where the tile is
// the transpose of its block, in a column. A tile that is neither read nor written is cut from its
// first column on; or from its first row, where it has as many rows as a unit has words at most,
// and other columns.
//
// A unit of a tile has an address. It is that of the slow words that it was read from, as long as
// it does not change. From where it changes, or begins, it is that of the slow words that it will
// be written to; or, where it never is, or where somebody wants the values there meanwhile, a place
// of scratch, which dies with the tile. Tiles of one name share scratch if they do not live
// together.
//
//   read     touches nothing; indices are needed at once, and no more
//   write    nothing, where the unit has that address; else needs it, and overwrites the slow
//            words; indices are overwritten, and stay
//   product  for each k, of each i, of each j: needs a_ik and b_kj, changes c_ij
//   map, fold  of each i, of each j: needs the operands, changes the result
//
// A word touches all of its unit, where it is the first of that in the operation's part of the
// tile; others touch nothing. A unit that begins with a number is overwritten where it is first
// touched. Slow words that are neither operands nor results die in the end.

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/replay/accesses.hpp"
#include "runtime/replay/row_cuts.hpp"
#include "runtime/trace/follower.hpp"
#include "runtime/trace/phase_path.hpp"

namespace redblue {

// Rows are fewer than words, so that a cache finds them faster.
constexpr Index most_accesses(Index longest) {
  return longest == 1 ? Index{1} << 26 : Index{1} << 28;
}

class RunAccesses final : public Follower {
 public:
  // Listens while it lives. `kept`: the names of operands and results.
  // Requires: cuts of an equal run, where units are not words.
  RunAccesses(Machine& machine, std::set<std::string, std::less<>> kept, RowCuts cuts = {})
      : Follower(machine, Hears::moves_and_arithmetic),
        kept_(std::move(kept)),
        cuts_(std::move(cuts)) {}

  // Once, after the run. Throws: what check() throws; InputError beyond the most accesses, and
  // where a tile is used after its slow words have got other values from elsewhere.
  [[nodiscard]] Accesses take();

 private:
  // An address, or one that is not known yet (kPending and its number there), or kNumber.
  using Code = std::uint32_t;
  static constexpr Code kPending = Code{1} << 31;
  static constexpr Code kNumber = ~Code{0};
  static constexpr Code kUnknown = kNumber;

  struct Unit {
    Code code = kNumber;
    std::uint32_t version = 0;  // of the address
  };
  struct Tile {
    std::string name;
    CutRow rows, columns;  // those of one of them are words
    std::size_t frame = 0;
    std::vector<Unit> units;  // by row and column of units

    Unit& unit(Index row, Index column) {
      return units.at(static_cast<std::size_t>(row * columns.count() + column));
    }
  };
  // Of an address.
  struct Place {
    std::uint32_t touched = 0;  // the number of accesses after the last one
    std::uint32_t version = 0;  // how often units that changed elsewhere were written there
    std::uint32_t words = 0;
    bool dies = false;
  };
  // A unit that has changed.
  struct Pending {
    std::uint32_t since = 0;  // the number of accesses before
    std::uint32_t touched = 0;
    Code address = kUnknown;
  };

  void follow(const Event& event) override;
  void follow(const Operation& operation) override;
  void begin(const Event& event);
  void read(const Event& event);
  void write(const Event& event);
  void remove(std::uint64_t number);
  void multiply(const Operation& operation);
  void map(const Operation& operation);
  void fold(const Operation& operation);

  class Axis;
  class Part;
  Part part(const TilePart& part);
  std::vector<Part> parts(std::span<const TilePart> parts);

  void touch(Access::Kind kind, Code code);
  // Of the word ij, with its whole unit: where it is the first of that in the part.
  void need(const Part& part, Index i, Index j);
  void change(const Part& part, Index i, Index j, bool old);
  void need(Unit& unit);
  void change(Unit& unit);
  void overwrite(Unit& unit);
  void write(Unit& unit, Code to);
  void check_version(const Unit& unit) const;
  Code pending();
  Pending& pending(Code code) { return pending_[code & ~kPending]; }
  Code new_address(bool dies, std::uint32_t words);
  Code scratch(const Tile& tile, Index row, Index column);
  Tile tile_of(const Event& event, std::size_t frame) const;
  [[nodiscard]] CutRow pieces_of(const ConstBlock& block) const;
  // Visits the units of a block that have stored words: their row, the piece of it, and the code.
  template <class Visit>
  void each_unit(const ConstBlock& block, const Visit& visit);

  std::set<std::string, std::less<>> kept_;
  RowCuts cuts_;
  std::vector<Access> in_order_;  // of codes
  PhasePath path_;
  std::vector<Accesses::Stretch> stretches_;
  std::vector<Place> places_;
  std::vector<Pending> pending_;
  std::unordered_map<std::uint64_t, Tile> tiles_;
  std::map<std::pair<std::uint64_t, Index>, std::vector<Code>> slow_;  // by backing and row
  // Of scratch, by the first word in the tile, and the number of words.
  std::vector<std::map<std::pair<Index, Index>, Code>> frames_;
  std::map<std::string, std::vector<std::size_t>> free_frames_;  // by name of tile
};

}  // namespace redblue
