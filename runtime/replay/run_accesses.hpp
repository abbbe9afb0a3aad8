#pragma once
// Records the units that the operations of a run touch, without the moves of the kernel. A replayed
// cache then decides which words are read and written.
//
// A unit is a word, or a piece of a row of a slow matrix. Rows are cut where any block of the run
// begins or ends, and into pieces of at most RowCuts::longest words. In a tile a unit lies in a
// row, or in a column if the tile is the transpose of its block. A tile that is neither read nor
// written is cut into pieces along its rows. If it has exactly RowCuts::longest rows and another
// number of columns, it is cut along its columns.
//
// A unit of a tile has an address. Until the unit changes, this is the address of the slow words
// that it was read from. After a change, or for an initialized unit, it is the address of the slow
// words that the unit will be written to. If the unit is never written, or the slow words are
// touched in the meantime, it is a place of scratch. The place dies with the tile, or at that
// write. Tiles of one name share scratch if they do not live at the same time.
//
//   read     touches nothing; indices are needed at once, and not again
//   write    touches nothing if the unit has that address; else needs the unit and overwrites the
//            slow words; indices are overwritten and stay
//   product  for each k, for each i, for each j: needs a_ik and b_kj, changes c_ij
//   map, fold  for each i, for each j: needs the operands, changes the result
//
// The first word of a unit in the operation's part of the tile touches the whole unit. The other
// words of the unit touch nothing. A unit with an initial value is overwritten at its first touch.
// Slow words that are neither operands nor results die at the end.

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

// Returns the maximum number of accesses. It is higher for rows: they are fewer than words, so that
// the replay finds each one faster.
constexpr Index most_accesses(Index longest) {
  return longest == 1 ? Index{1} << 26 : Index{1} << 28;
}

class RunAccesses final : public Follower {
 public:
  // Follows the machine while it lives. `kept` are the names of operands and results. Requires:
  // `cuts` of an equal run, if units are not words.
  RunAccesses(Machine& machine, std::set<std::string, std::less<>> kept, RowCuts cuts = {})
      : Follower(machine, Hears::moves_and_arithmetic),
        kept_(std::move(kept)),
        cuts_(std::move(cuts)) {}

  // Returns the accesses. Call it once, after the run. Throws: as check(); InputError beyond
  // most_accesses(), or if a tile is used after its slow words were overwritten from another tile.
  [[nodiscard]] Accesses take();

 private:
  // One of: an address, kPending plus an index into pending_ while the address is unknown, or
  // kNumber for an initial value.
  using Code = std::uint32_t;
  static constexpr Code kPending = Code{1} << 31;
  static constexpr Code kNumber = ~Code{0};
  static constexpr Code kUnknown = kNumber;

  struct Unit {
    Code code = kNumber;
    std::uint32_t version = 0;  // the version of the address when it was read or written
  };
  struct Tile {
    std::string name;
    CutRow rows, columns;  // at most one of them has pieces longer than a word
    std::size_t frame = 0;
    std::vector<Unit> units;  // indexed by row and column of units

    Unit& unit(Index row, Index column) {
      return units.at(static_cast<std::size_t>(row * columns.count() + column));
    }
  };
  // The state of an address.
  struct Place {
    std::uint32_t touched = 0;  // the number of accesses up to its last touch
    std::uint32_t version = 0;  // the number of writes of units from other addresses
    std::uint32_t words = 0;
    bool dies = false;
  };
  // A changed unit, until its address is known.
  struct Pending {
    std::uint32_t since = 0;  // the number of accesses before the change
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
  // Touch the whole unit of the word ij, if that is the first word of the unit in the part.
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
  // Calls visit(row, piece, code) for the units of a block that have stored words.
  template <class Visit>
  void each_unit(const ConstBlock& block, const Visit& visit);

  std::set<std::string, std::less<>> kept_;
  RowCuts cuts_;
  std::vector<Access> in_order_;  // units are codes
  PhasePath path_;
  std::vector<Accesses::Stretch> stretches_;
  std::vector<Place> places_;
  std::vector<Pending> pending_;
  std::unordered_map<std::uint64_t, Tile> tiles_;
  std::map<std::pair<std::uint64_t, Index>, std::vector<Code>> slow_;  // by backing and row
  // The addresses of scratch in each frame, by the first word in the tile and the number of words.
  std::vector<std::map<std::pair<Index, Index>, Code>> frames_;
  std::map<std::string, std::vector<std::size_t>> free_frames_;  // by tile name
};

}  // namespace redblue
