#pragma once
// A nest as text (docs/nests.md): the loops of a schedule, the tiles that they read, keep and
// write. parse_nest() reads the text and checks all that does not depend on sizes.
//
//   const TextNest nest = parse_nest(text, "flash2.nest");
//   const std::vector<PhaseCost> words = count(nest, values, mask);   // kernels/nests/count.hpp

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/problem.hpp"
#include "memsim/words.hpp"

namespace redblue {

// An error in the text of a nest: "flash2.nest:7: ...".
class NestError : public std::invalid_argument {
 public:
  NestError(std::string_view file, Index line, const std::string& what);
};

// The most operands that wait in a size at once, and the most loops and phases around a line.
inline constexpr std::size_t kDeepestNest = 32;

// The names in sizes are symbols. An array with a value for each of them is filled as loops run.
using SymbolId = std::size_t;
inline constexpr SymbolId kNoSymbol = static_cast<SymbolId>(-1);

struct NestSymbol {
  // `met`: the number of others that the current block of a loop meets, as met(I).
  enum class Kind : std::uint8_t { extent, block, variable, met };
  std::string name;
  Kind kind;
  SymbolId range = kNoSymbol;  // of a variable: what its loop cuts; of met(I): I
};

enum class Comparison : std::uint8_t { less, at_most, equal, unequal, at_least, more };
bool holds(Comparison comparison, Index a, Index b);
Comparison opposite(Comparison comparison);

// A size: a formula of symbols in postfix notation. Division rounds down. `choose` takes the
// comparison of the first two operands, then the third or the fourth.
struct NestSize {
  enum class Op : std::uint8_t {
    number,
    symbol,
    add,
    subtract,
    multiply,
    divide,
    ceil,
    min,
    max,
    choose
  };
  struct Step {
    Op op;
    Index number = 0;  // or the symbol, or the comparison

    friend bool operator==(const Step&, const Step&) = default;
  };
  std::vector<Step> steps;

  // Throws: CountOverflow; ShapeMismatch for a division by 0.
  [[nodiscard]] Index value(const std::vector<Index>& values) const;
  [[nodiscard]] bool uses(SymbolId symbol) const;
  // Returns the symbol if the size is a symbol alone.
  [[nodiscard]] SymbolId symbol() const;
  friend bool operator==(const NestSize&, const NestSize&) = default;
};

struct NestIndex {
  enum class Kind : std::uint8_t {
    block,   // the current block of a loop variable
    extent,  // all of an extent
    part,    // as many elements as a size says
    number,
    each  // a single element: the number of the current block of a loop variable
  };
  Kind kind;
  SymbolId symbol = kNoSymbol;
  Index number = 0;
  NestSize size = {};  // of a part
};

struct NestMatrix {
  enum class Kind : std::uint8_t { input, result, temp };
  std::string name;
  Kind kind;
  std::vector<NestIndex> extents;  // never of the kind `block`
  Index line;
};

struct TextTile {
  std::size_t name;  // which of TextNest::tile_names; matrices come first, in their order
  std::vector<NestIndex> indices;
  bool sum = false;
  // Only a part of the tile moves: the live pairs of its blocks, or the rows that the current block
  // of another loop meets. In fast memory the tile has room for all of it.
  bool live = false;
  SymbolId met_by = kNoSymbol;

  [[nodiscard]] bool in_part() const { return live || met_by != kNoSymbol; }
};

struct NestCondition {
  bool first = true;  // the first pass of the loop, or the last one
  bool negated = false;
  SymbolId variable = kNoSymbol;

  // `is`: whether it is this pass.
  [[nodiscard]] bool holds(bool is) const { return is != negated; }
};

struct NestStatement {
  enum class Kind : std::uint8_t { loop, phase, when, read, make, write, drop, flops, text, index };
  Kind kind;
  Index line;
  std::size_t number = 0;  // of all statements, in the order of the file
  // A loop: `variable` takes the blocks of `range`, an extent or another variable, of `size`.
  // `whole`: it visits each whole block that the outer block meets in part.
  SymbolId variable = kNoSymbol, range = kNoSymbol, met_by = kNoSymbol;
  bool whole = false;
  NestSize size = {};  // of a loop's blocks, or the flops
  // The body of `when` runs if `size` and `right` compare so.
  Comparison comparison = Comparison::less;
  NestSize right = {};
  // The number of elements that the loop leaves out at the beginning of its range. Empty: none.
  std::optional<NestSize> from = std::nullopt;
  std::size_t phase = 0;
  std::vector<NestStatement> body = {};  // of a loop, a phase or a `when`
  std::vector<TextTile> tiles = {};      // drop: names alone; index: met_by is the block's loop
  // For each tile that is read or written: the matrix, and its indices.
  std::vector<TextTile> targets = {};
  std::vector<NestCondition> conditions = {};  // all must hold
  std::string text = {};                       // of `do`: what is computed, for a reader
};

// Returns whether a size of this statement, or of one inside it, uses the symbol.
bool uses(const NestStatement& statement, SymbolId symbol);

struct NestBlock {
  SymbolId symbol;
  SymbolId of;                   // the extent that it cuts
  std::optional<NestSize> size;  // empty: redblue chooses it
  Index line;
  bool is_step = false;  // of a loop
};

// A comparison of extents that holds for the sizes that a schedule is made for.
struct NestTakes {
  NestSize left;
  Comparison comparison;
  NestSize right;
  std::string text;  // "d <= 128"
};

struct TextNest;
// Returns whether the size of a block is a formula of other blocks.
bool follows(const TextNest& nest, const NestBlock& block);

struct TextNest {
  std::string file;  // for messages
  std::string name;
  std::optional<Pass> pass;  // empty: `problem none`
  bool two_step = false, once = false;
  std::vector<NestTakes> takes;

  std::vector<NestSymbol> symbols;  // the extents first, in the order of NestExtents
  std::vector<NestMatrix> matrices;
  std::vector<NestBlock> blocks;
  std::vector<std::string> tile_names;
  std::vector<std::string> phases = {"nest"};  // paths; the first is for statements outside phases
  std::size_t size = 0;                        // number of statements
  std::vector<NestStatement> statements;

  // Returns the extent that a variable runs over, through all loops over pieces.
  [[nodiscard]] SymbolId root(SymbolId variable) const;
  [[nodiscard]] const NestStatement& loop_of(SymbolId variable) const;
  [[nodiscard]] bool uses_extent(SymbolId extent) const;
  // Returns the extent that a block size cuts.
  [[nodiscard]] SymbolId extent_of(SymbolId block) const;
  // Returns whether a size depends on the current block of a loop.
  [[nodiscard]] bool uses_variable(const NestSize& its) const;
  // Returns whether the passes of a loop decide which part of a tile moves (TextTile::in_part): it
  // cuts an index of pairs or met rows, or it is the loop that meets them.
  [[nodiscard]] bool selects(const NestStatement& loop, const TextTile& tile) const;
  // Returns whether an index is over the queries or keys of such a part.
  [[nodiscard]] bool is_selected(const NestIndex& index, const TextTile& tile) const;
  // Returns whether the nest describes the work for all heads, and not for one head of keys.
  [[nodiscard]] bool of_all_heads() const;
};

// The extents that every nest knows, with the same symbols in each. `group`: the query heads for
// each head of keys. kMasked is 1 under a mask, else 0. kSoftmax is 0 for
// other activations, else 1. A count sets both.
struct NestExtents {
  Index n = 1, m = 1, d = 1, dv = 1;
  Index heads = 1, kv_heads = 1, group = 1;
  Index M = 1;

  [[nodiscard]] std::vector<Index> values() const {
    return {n, m, d, dv, heads, kv_heads, group, M, 0, 1};
  }
};
enum NestExtentSymbol : SymbolId {
  kExtentN,
  kExtentM,
  kExtentD,
  kExtentDv,
  kExtentHeads,
  kExtentKvHeads,
  kExtentGroup,
  kFastWords,
  kMasked,
  kSoftmax,
  kExtents
};

// Returns the first of nest.takes that does not hold, or null.
const NestTakes* untaken(const TextNest& nest, const NestExtents& extents);

// Throws: NestError.
TextNest parse_nest(std::string_view text, std::string_view file);

}  // namespace redblue
