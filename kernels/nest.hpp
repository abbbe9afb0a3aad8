#pragma once
// Describes the loop nest of a plan as data. A line of a nest says which tiles are resident during
// a loop, or how many words a step moves in all passes of the loops around it. A kernel writes its
// nest in the shape of its code, from loops and tiles, and the words follow from these:
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
// Cost formulas do not use nests. A test checks that both give the same sums for each phase.

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
    Words words;  // words of its largest block
  };

  std::string phase;  // phase that counts its words; empty: a loop around several phases
  Index depth = 0;    // number of loops around it
  Kind kind = Kind::step;
  std::string text;
  // For a loop: the number of passes, the largest block, and the resident tiles. Tiles that are
  // resident in an outer loop are not repeated.
  Index trips = 0;
  Index block = 0;
  std::vector<Stay> stays;
  // For a step: words moved in all passes of the loops around it, and the same for each matrix.
  Words reads, writes;
  struct Move {
    std::string matrix;
    Words reads, writes;
  };
  std::vector<Move> moves;

  void read(std::string_view matrix, Words words);
  void write(std::string_view matrix, Words words);
};
using Nest = std::vector<NestLine>;

// A loop over blocks, as in "for J in keys". The last block may be shorter.
struct NestLoop {
  NestLoop(std::string_view variable, std::string_view over, Index extent, Index block);
  // Returns a loop over pieces of one block of this loop, as in "for P in I". Each move inside it
  // moves one piece.
  [[nodiscard]] NestLoop pieces(std::string_view variable, Index piece) const;
  // Returns a loop over the others that each block of this loop meets, as in "for J in keys". `all`
  // is their number for all blocks together. The longest range, of `longest`, is cut into blocks.
  [[nodiscard]] NestLoop met(std::string_view variable, std::string_view over, Index all,
                             Index longest, Index block) const;

  std::string variable, over;
  // Total length of all blocks. For pieces() and met(): over all blocks of the outer loop.
  Index extent;
  Index block;  // largest block
  Index trips;  // passes; for pieces(): in a largest block
  // For pieces() and met(): the variable of the outer loop. Otherwise empty.
  std::string whole;
};

// A number of rows or columns: a constant, or chosen by a loop.
struct NestExtent {
  NestExtent(Index size) : all(size), largest(size) {}
  NestExtent(const NestLoop& loop);

  [[nodiscard]] bool chosen_by(const NestLoop& loop) const {
    return loop.variable == variable || loop.variable == whole;
  }

  Index all, largest;
  std::string variable, whole;  // of the loop; empty: no loop
};

// A block of a matrix. A column is a block with as many words as rows.
class NestTile {
 public:
  NestTile(std::string_view name, NestExtent rows, NestExtent cols = 1)
      : name_(name), rows_(std::move(rows)), cols_(std::move(cols)) {}

  // Return this tile as it moves in one pass of the loop, and in all other passes. If the loop
  // chooses the tile: its first block, and all other blocks.
  [[nodiscard]] NestTile once(const NestLoop& loop) const;
  [[nodiscard]] NestTile but_once(const NestLoop& loop) const;

  // Returns this tile with a given number of words moved in all passes together.
  [[nodiscard]] NestTile of_words(Words all) const;

  [[nodiscard]] const std::string& name() const { return name_; }
  // Returns for example "S_IJ".
  [[nodiscard]] std::string text() const;
  // Returns whether the tile has no columns, such as softmax sums without a softmax.
  [[nodiscard]] bool none() const { return cols_.largest == 0; }
  [[nodiscard]] Words largest() const { return Words(rows_.largest) * cols_.largest; }
  // Returns the words of all its moves inside these loops. Throws: ShapeMismatch if a loop has
  // pieces and the tile is not one of them.
  [[nodiscard]] Words moved(const std::vector<NestLoop>& around) const;

 private:
  [[nodiscard]] NestTile limited(const NestLoop& loop, Index block, Index trips) const;

  std::string name_;
  NestExtent rows_, cols_;
  // Loops that move the tile in only some passes.
  std::vector<std::pair<std::string, Index>> trips_;
  // Words of all passes, if the extents do not determine them.
  std::optional<Words> words_;
};

// Returns one-column tiles with these names (up to two) for the rows of a loop.
using ColumnNames = std::array<std::string_view, 2>;
std::vector<NestTile> columns_of(const ColumnNames& names, const NestLoop& rows);

class NestWriter {
 public:
  using Tiles = std::vector<NestTile>;
  using Body = std::function<void()>;

  // Assigns the lines that `body` writes to this phase. Phases nest as on a machine.
  void phase(std::string_view name, const Body& body);
  // Writes a loop. It leaves out a loop without passes and resident tiles without words.
  void loop(const NestLoop& over, const Tiles& stays, const Body& body);
  void loop(const NestLoop& over, const Body& body) { loop(over, {}, body); }
  void step(std::string text, const Tiles& reads = {}, const Tiles& writes = {});
  // Write the steps "read S_I, L_I" and "write O_I, L_I", without tiles that are none().
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
