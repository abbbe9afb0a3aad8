#pragma once
// The loop nest of a plan as data: lines with what stays in fast memory while a loop runs, and with
// the words that a step moves in all passes of the loops around it. A kernel writes its nest in the
// shape of its code, from loops and tiles. The words follow from these:
//
//   const NestLoop I("I", "queries", n, Br);
//   const NestLoop J("J", "keys", m, Bc);
//   const NestTile S("S", I, d), O("O", I, d), A2("A2", J, d), h("h", J, d);
//   NestWriter nest;
//   nest.loop(I, [&] {
//     nest.read({S});                                       // n d words
//     nest.loop(J, {S, O}, [&] {                            // S_I and O_I stay
//       nest.step("O_I += exp(S_I A2_J^T) h_J", {A2, h});   // 2 m d words for each I
//     });
//     nest.write({O});
//   });
//
// Formulas do not use nests: a test holds the sums of both equal, phase by phase.

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "memsim/words.hpp"

namespace redblue {

struct NestLine {
  enum class Kind : std::uint8_t { loop, step };
  struct Stay {
    std::string name;
    Words words;  // of its largest block
  };

  std::string phase;  // the phase that counts its words; empty: a loop around several phases
  Index depth = 0;    // the number of loops around it
  Kind kind = Kind::step;
  std::string text;
  // Of a loop: the passes from its begin to its end, the largest block, and the tiles that stay
  // meanwhile, without those that stay while a loop around it runs.
  Index trips = 0;
  Index block = 0;
  std::vector<Stay> stays;
  // Of a step: in all passes of the loops around it.
  Words reads, writes;
};
using Nest = std::vector<NestLine>;

// "for J in keys": a loop over blocks, of which the last may be shorter.
struct NestLoop {
  NestLoop(std::string_view variable, std::string_view over, Index extent, Index block);
  // "for P in I": a loop over pieces of one block of this one. Each move inside it is of a piece.
  [[nodiscard]] NestLoop pieces(std::string_view variable, Index piece) const;
  // "for J in keys": over what each block of this loop meets: `all` for all of them, of which the
  // longest is cut into blocks.
  [[nodiscard]] NestLoop met(std::string_view variable, std::string_view over, Index all,
                             Index longest, Index block) const;

  std::string variable, over;
  Index extent;       // of all blocks; of pieces, or what is met: of all blocks of the other loop
  Index block;        // the largest
  Index trips;        // of pieces: of a largest block
  std::string whole;  // the variable of the loop whose blocks are cut, or meet these; empty: none
};

// A number of rows or columns: all that there are, or those that a loop chooses.
struct NestExtent {
  NestExtent(Index size) : all(size), largest(size) {}
  NestExtent(const NestLoop& loop);

  [[nodiscard]] bool chosen_by(const NestLoop& loop) const {
    return loop.variable == variable || loop.variable == whole;
  }

  Index all, largest;
  std::string variable, whole;  // of the loop; empty: none
};

// A block of a matrix, or of a column of as many words as it has rows.
class NestTile {
 public:
  NestTile(std::string_view name, NestExtent rows, NestExtent cols = 1)
      : name_(name), rows_(std::move(rows)), cols_(std::move(cols)) {}

  // The same tile in one pass of the loop, or in all passes but one. Where the loop chooses the
  // tile: its first block, or all other blocks.
  [[nodiscard]] NestTile once(const NestLoop& loop) const;
  [[nodiscard]] NestTile but_once(const NestLoop& loop) const;

  // The same tile, of which so many words move in all passes together.
  [[nodiscard]] NestTile of_words(Words all) const;

  // "S_IJ".
  [[nodiscard]] std::string text() const;
  // Whether it has no columns, as what rows have of a softmax where there is none.
  [[nodiscard]] bool none() const { return cols_.largest == 0; }
  [[nodiscard]] Words largest() const { return Words(rows_.largest) * cols_.largest; }
  // The words of all its moves inside these loops.
  // Throws: ShapeMismatch where one of these has pieces and the tile is none of them.
  [[nodiscard]] Words moved(const std::vector<NestLoop>& around) const;

 private:
  [[nodiscard]] NestTile limited(const NestLoop& loop, Index block, Index trips) const;

  std::string name_;
  NestExtent rows_, cols_;
  std::vector<std::pair<std::string, Index>> trips_;  // of loops that it does not follow throughout
  std::optional<Words> words_;                        // of all passes, where they do not follow
};

// The columns of these names, up to two, for the rows of a loop.
using ColumnNames = std::array<std::string_view, 2>;
std::vector<NestTile> columns_of(const ColumnNames& names, const NestLoop& rows);

class NestWriter {
 public:
  using Tiles = std::vector<NestTile>;
  using Body = std::function<void()>;

  // Lines that the body writes are of this phase. Phases nest as those of a machine.
  void phase(std::string_view name, const Body& body);
  // A loop without a pass is left out; so is a tile without words that stays.
  void loop(const NestLoop& over, const Tiles& stays, const Body& body);
  void loop(const NestLoop& over, const Body& body) { loop(over, {}, body); }
  void step(std::string text, const Tiles& reads = {}, const Tiles& writes = {});
  // The steps "read S_I, L_I" and "write O_I, L_I", of the tiles that are not none().
  void read(const Tiles& tiles);
  void write(const Tiles& tiles);

  [[nodiscard]] const Nest& lines() const { return lines_; }

 private:
  NestLine& add(NestLine::Kind kind, std::string text);

  Nest lines_;
  std::string path_;
  std::vector<NestLoop> around_;
};

}  // namespace redblue
