#pragma once
// The words that a run touches, where a cache, and not the kernel, says what is read and written:
// its operations, without its moves.
//
// A word of a tile has an address. It is that of the slow word that it was read from, as long as it
// does not change. From where it changes, or begins, it is that of the slow word that it will be
// written to; or, where it never is, or where somebody wants the value there meanwhile, a place of
// scratch, which dies with the tile. Tiles of one name share scratch if they do not live together.
//
//   read     touches nothing; words of indices are needed at once, and no more
//   write    nothing, where the word has that address; else needs it, and overwrites the slow word;
//            words of indices are overwritten, and stay
//   product  for each k, of each i, of each j: needs a_ik and b_kj, changes c_ij
//   map, fold  of each i, of each j: needs the operands, changes the result
//
// A word that begins with a number is overwritten where it is first touched. Slow words that are
// neither operands nor results die in the end.

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/observe/follower.hpp"
#include "runtime/observe/phase_path.hpp"
#include "runtime/replay/accesses.hpp"

namespace redblue {

inline constexpr Index kMostAccesses = Index{1} << 26;

class RunAccesses final : public Follower {
 public:
  // Listens while it lives. `kept`: the names of operands and results.
  RunAccesses(Machine& machine, std::set<std::string, std::less<>> kept)
      : Follower(machine, Hears::moves_and_arithmetic), kept_(std::move(kept)) {}

  // Once, after the run. Throws: what check() throws; InputError beyond kMostAccesses, and where a
  // tile is used after its slow word has got another value from elsewhere.
  [[nodiscard]] Accesses take();

 private:
  // An address, or one that is not known yet (kPending and its number there), or kNumber.
  using Code = std::uint32_t;
  static constexpr Code kPending = Code{1} << 31;
  static constexpr Code kNumber = ~Code{0};
  static constexpr Code kUnknown = kNumber;

  struct Word {
    Code code = kNumber;
    std::uint32_t version = 0;  // of the address
  };
  struct Tile {
    std::string name;
    Index columns = 0;
    std::size_t frame = 0;
    std::vector<Word> words;
  };
  // Of an address.
  struct Place {
    std::uint32_t touched = 0;  // the number of accesses after the last one
    std::uint32_t version = 0;  // how often words that changed elsewhere were written there
    bool dies = false;
  };
  // A word that has changed.
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
  void pass_indices(Access::Kind kind, const ConstBlock& block);
  void remove(std::uint64_t number);
  void multiply(const Operation& operation);
  void map(const Operation& operation);
  void fold(const Operation& operation);

  class Part;
  Part part(const TilePart& part);
  std::vector<Part> parts(std::span<const TilePart> parts);

  void touch(Access::Kind kind, Code code);
  void need(Word& word);
  void change(Word& word);
  void overwrite(Word& word);
  void write(Word& word, Code to);
  void check_version(const Word& word) const;
  Code pending();
  Pending& pending(Code code) { return pending_[code & ~kPending]; }
  Code new_address(bool dies);
  Code scratch(const Tile& tile, std::size_t at);
  Code stored(const ConstBlock& block, Index row, Index column);
  template <class Visit>
  void each_stored(const Event& event, const Visit& visit);

  std::set<std::string, std::less<>> kept_;
  std::vector<Access> in_order_;  // of codes
  PhasePath path_;
  std::vector<Accesses::Stretch> stretches_;
  std::vector<Place> places_;
  std::vector<Pending> pending_;
  std::unordered_map<std::uint64_t, Tile> tiles_;
  std::map<std::pair<std::uint64_t, Index>, std::vector<Code>> slow_;  // by backing and row
  std::vector<std::vector<Code>> frames_;                              // of scratch
  std::map<std::string, std::vector<std::size_t>> free_frames_;        // by name of tile
};

}  // namespace redblue
