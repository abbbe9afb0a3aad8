#include "kernels/nests/check.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

namespace redblue {
namespace {

// The pass of a loop, as conditions distinguish passes.
struct PassOf {
  bool first = true, last = true;
};

// Walks a nest as it runs. A loop that a condition names takes a single pass, or a first, a middle
// and a last one; all other loops take one pass.
class Checker {
 public:
  explicit Checker(const TextNest& nest)
      : nest_(nest),
        alive_(nest.tile_names.size()),
        written_(nest.matrices.size()),
        whole_(nest.matrices.size()),
        read_(nest.matrices.size()),
        passes_(nest.symbols.size()) {}

  void check() {
    for (const NestStatement& statement : nest_.statements) {
      check_shapes(statement);
    }
    check_parts(nest_.statements);
    find_shared(nest_.statements);
    states_.assign(std::size_t{1} << shared_.size(), alive_);
    walk_each(nest_.statements);
    for (std::size_t k = 0; k < nest_.matrices.size(); ++k) {
      const NestMatrix& matrix = nest_.matrices[k];
      if (matrix.kind == NestMatrix::Kind::input && !read_[k]) {
        throw NestError(nest_.file, matrix.line,
                        "the input " + matrix.name + " is never read: read it, or leave it out");
      }
      if (matrix.kind == NestMatrix::Kind::result && !whole_[k]) {
        throw NestError(nest_.file, matrix.line,
                        "the result " + matrix.name +
                            " is never written whole: write it in loops over all its extents");
      }
    }
  }

 private:
  static constexpr std::size_t kMostAsked = 12;
  static constexpr std::size_t kMostShared = 6;  // more comparisons are not told apart

  // Walks each statement outside loops in each combination of loops that take a single pass and of
  // comparisons that hold. A matrix that some combination wrote counts as written for the
  // statements below.
  void walk_each(const std::vector<NestStatement>& list) {
    for (const NestStatement& statement : list) {
      if (statement.kind == NestStatement::Kind::phase) {
        walk_each(statement.body);
        continue;
      }
      asked_.clear();
      compared_ = shared_;
      for (SymbolId symbol = 0; symbol < nest_.symbols.size(); ++symbol) {
        if (is_asked(statement, symbol)) {
          asked_.push_back(symbol);
        }
      }
      find_compared(statement);
      const std::size_t own = asked_.size() + compared_.size() - shared_.size();
      if (own > kMostAsked) {
        fail(statement, "more than 12 conditions and comparisons in one loop: use two loops");
      }
      const std::vector<bool> written = written_;
      std::vector<bool> written_after = written;
      for (shared_walk_ = 0; shared_walk_ < states_.size(); ++shared_walk_) {
        const std::vector<const NestStatement*> alive = states_[shared_walk_];
        std::vector<const NestStatement*> alive_after(alive.size());
        for (walk_ = 0; walk_ < std::size_t{1} << own; ++walk_) {
          alive_ = alive;
          written_ = written;
          walk_one(statement);
          for (std::size_t k = 0; k < written_.size(); ++k) {
            written_after[k] = written_after[k] || written_[k];
          }
          for (std::size_t tile = 0; tile < alive_.size(); ++tile) {
            alive_after[tile] = alive_[tile] != nullptr ? alive_[tile] : alive_after[tile];
          }
        }
        states_[shared_walk_] = std::move(alive_after);
      }
      written_ = written_after;
    }
  }
  // Whether a statement in the body, outside loops, makes or ends a tile.
  static bool has_tiles(const NestStatement& statement) {
    using Kind = NestStatement::Kind;
    return std::ranges::any_of(statement.body, [](const NestStatement& inner) {
      return inner.kind == Kind::read || inner.kind == Kind::make || inner.kind == Kind::drop ||
             (inner.kind != Kind::loop && has_tiles(inner));
    });
  }
  // Finds comparisons outside loops that decide which tiles live in the statements below.
  void find_shared(const std::vector<NestStatement>& list) {
    using Kind = NestStatement::Kind;
    for (const NestStatement& statement : list) {
      if (statement.kind == Kind::when && has_tiles(statement) && shared_.size() < kMostShared) {
        add_compared(statement);
        shared_ = compared_;
      }
      if (statement.kind == Kind::when || statement.kind == Kind::phase) {
        find_shared(statement.body);
      }
    }
  }

  [[noreturn]] void fail(const NestStatement& at, const std::string& what) const {
    throw NestError(nest_.file, at.line, what);
  }
  [[nodiscard]] const std::string& name(SymbolId symbol) const {
    return nest_.symbols[symbol].name;
  }

  static bool is_asked(const NestStatement& statement, SymbolId variable) {
    return std::ranges::find(statement.conditions, variable, &NestCondition::variable) !=
               statement.conditions.end() ||
           std::ranges::any_of(statement.body, [&](const NestStatement& inner) {
             return is_asked(inner, variable);
           });
  }

  // Checks that the loops around a tile that moves in part visit each pair once, or the rows that
  // each block meets once, whatever the mask: or as often as other loops have passes.
  void check_parts(const std::vector<NestStatement>& list) {
    for (const NestStatement& statement : list) {
      for (const TextTile& target : statement.targets) {
        if (target.in_part()) {
          check_part(statement, target);
        }
      }
      if (statement.kind == NestStatement::Kind::index) {
        check_around(statement, statement.tiles.front(), "'index'");
      }
      around_.push_back(&statement);
      check_parts(statement.body);
      around_.pop_back();
    }
  }
  void check_part(const NestStatement& at, const TextTile& tile) const {
    const std::string part = tile.live ? "'live'" : "'met by'";
    const auto selected = std::ranges::count_if(
        tile.indices, [&](const NestIndex& index) { return nest_.is_selected(index, tile); });
    if (tile.live && (tile.indices.size() != 2 || selected != 2 ||
                      nest_.root(tile.indices[0].symbol) == nest_.root(tile.indices[1].symbol))) {
      fail(at, "'live' is for tiles of pairs, as p[I,J]: one index runs over n, the other over m");
    }
    if (!tile.live && (tile.indices.size() > 2 || selected != 1)) {
      fail(at, "'met by " + name(tile.met_by) + "' is for a tile with one index over " +
                   name(nest_.root(tile.met_by) == kExtentN ? kExtentM : kExtentN) +
                   ", and at most one other");
    }
    if (!at.conditions.empty()) {
      fail(at, part + " takes no condition");
    }
    check_around(at, tile, part);
  }
  void check_around(const NestStatement& at, const TextTile& tile, const std::string& part) const {
    for (const NestStatement* outer : around_) {
      if (outer->kind == NestStatement::Kind::when &&
          (nest_.uses_variable(outer->size) || nest_.uses_variable(outer->right))) {
        fail(at, part + ": the comparison in line " + std::to_string(outer->line) +
                     " depends on a block, so that it leaves out a part");
      }
      if (outer->kind == NestStatement::Kind::loop) {
        check_around_part(at, tile, *outer, part + ": the loop " + name(outer->variable));
      }
    }
  }
  void check_around_part(const NestStatement& at, const TextTile& tile, const NestStatement& loop,
                         const std::string& its) const {
    const bool is_met = loop.met_by != kNoSymbol;
    const bool in_pieces = nest_.symbols[loop.range].kind == NestSymbol::Kind::variable;
    if (!nest_.selects(loop, tile)) {
      if (is_met || nest_.uses_variable(loop.size) ||
          (loop.from && nest_.uses_variable(*loop.from)) || nest_.root(loop.range) == kExtentN ||
          nest_.root(loop.range) == kExtentM) {
        fail(at, its + " does not choose the part: it must run over another extent");
      }
      return;
    }
    if (loop.from || (is_met && in_pieces)) {
      fail(at, its + " leaves out a part of its blocks");
    }
    if (loop.variable == tile.met_by &&
        ((is_met && !loop.whole) || nest_.uses_variable(loop.size))) {
      fail(at, its + " must have the same blocks in each pass: those of an extent");
    }
  }

  // Checks that tiles have the extents of their matrices.
  void check_shapes(const NestStatement& statement) {
    for (const NestStatement& inner : statement.body) {
      check_shapes(inner);
    }
    for (const TextTile& target : statement.targets) {
      const NestMatrix& matrix = nest_.matrices[target.name];
      if (statement.kind == NestStatement::Kind::read) {
        check_shape(statement, target, matrix);
        read_[target.name] = true;
        continue;
      }
      if (matrix.kind == NestMatrix::Kind::input) {
        fail(
            statement,
            matrix.name +
                " is an input: write to a result or a temp (results stand after '->' in the head)");
      }
      check_shape(statement, target, matrix);
      if (!leaves_out(statement, target) &&
          std::ranges::equal(target.indices, matrix.extents,
                             [&](const NestIndex& index, const NestIndex& of) {
                               return covers(index, of) && !leaves_rows(index, of);
                             })) {
        whole_[target.name] = true;
      }
    }
  }
  // Whether a condition keeps some blocks of a tile from being written: it names the loop of an
  // index.
  [[nodiscard]] bool leaves_out(const NestStatement& statement, const TextTile& tile) const {
    return std::ranges::any_of(statement.conditions, [&](const NestCondition& condition) {
      return std::ranges::any_of(tile.indices, [&](const NestIndex& index) {
        if (index.kind != NestIndex::Kind::block) {
          return false;
        }
        for (SymbolId symbol = index.symbol;
             nest_.symbols[symbol].kind == NestSymbol::Kind::variable;
             symbol = nest_.loop_of(symbol).range) {
          if (symbol == condition.variable) {
            return true;
          }
        }
        return false;
      });
    });
  }
  [[nodiscard]] bool covers(const NestIndex& index, const NestIndex& extent) const {
    if (extent.kind == NestIndex::Kind::each) {
      return index.kind == NestIndex::Kind::each && same_blocks(index.symbol, extent.symbol);
    }
    if (extent.kind == NestIndex::Kind::number) {
      return index.kind == NestIndex::Kind::number && index.number == extent.number;
    }
    if (index.kind == NestIndex::Kind::part) {
      return true;  // a size may be all of it
    }
    return index.kind != NestIndex::Kind::number && nest_.root(index.symbol) == extent.symbol;
  }
  // Whether an index takes one row of each block, and a block has several.
  [[nodiscard]] bool leaves_rows(const NestIndex& index, const NestIndex& extent) const {
    if (index.kind != NestIndex::Kind::each || extent.kind == NestIndex::Kind::each) {
      return false;
    }
    const std::vector<NestSize::Step>& size = nest_.loop_of(index.symbol).size.steps;
    return size.size() != 1 || size[0].op != NestSize::Op::number || size[0].number != 1;
  }
  // Whether two loops cut the same extent into the same blocks.
  [[nodiscard]] bool same_blocks(SymbolId a, SymbolId b) const {
    const NestStatement& one = nest_.loop_of(a);
    const NestStatement& other = nest_.loop_of(b);
    return one.range == other.range && one.met_by == other.met_by && one.size == other.size;
  }
  void check_shape(const NestStatement& at, const TextTile& tile, const NestMatrix& matrix) const {
    if (tile.indices.size() != matrix.extents.size()) {
      fail(at, matrix.name + " has " + counted(matrix.extents.size()) + ", not " +
                   std::to_string(tile.indices.size()));
    }
    for (std::size_t k = 0; k < tile.indices.size(); ++k) {
      const NestIndex& index = tile.indices[k];
      const NestIndex& extent = matrix.extents[k];
      if (index.kind == NestIndex::Kind::number && extent.kind != NestIndex::Kind::each) {
        if (index.number < 1 ||
            (extent.kind == NestIndex::Kind::number && index.number > extent.number)) {
          fail(at, "index " + std::to_string(k + 1) + " of " + matrix.name + ": " +
                       std::to_string(index.number) + " of its " + text(extent));
        }
        continue;
      }
      if (index.kind == NestIndex::Kind::each && extent.kind == NestIndex::Kind::extent &&
          nest_.root(index.symbol) == extent.symbol) {
        continue;  // one row at a time
      }
      if (!covers(index, extent)) {
        fail(at, "index " + std::to_string(k + 1) + " of " + matrix.name + ": " + text(index) +
                     (index.kind == NestIndex::Kind::block
                          ? " runs over " + name(nest_.root(index.symbol))
                          : "") +
                     ", but " + matrix.name + " has " + text(extent) + " there");
      }
    }
  }
  static std::string counted(std::size_t indices) {
    return std::to_string(indices) + (indices == 1 ? " index" : " indices");
  }
  [[nodiscard]] std::string text(const NestIndex& index) const {
    return index.kind == NestIndex::Kind::part     ? "a part"
           : index.kind == NestIndex::Kind::number ? std::to_string(index.number)
           : index.kind == NestIndex::Kind::each   ? "each " + name(index.symbol)
                                                   : name(index.symbol);
  }

  void walk(const std::vector<NestStatement>& body) {
    for (const NestStatement& statement : body) {
      walk_one(statement);
    }
  }
  void walk_one(const NestStatement& statement) {
    switch (statement.kind) {
      case NestStatement::Kind::loop:
        walk_loop(statement);
        break;
      case NestStatement::Kind::phase:
        walk(statement.body);
        break;
      case NestStatement::Kind::when:
        if (is_taken(statement)) {
          walk(statement.body);
        }
        break;
      case NestStatement::Kind::drop:
        if (!holds(statement)) {
          break;
        }
        for (const TextTile& tile : statement.tiles) {
          if (alive_[tile.name] == nullptr) {
            fail(statement, nest_.tile_names[tile.name] + " is not in fast memory here");
          }
          if (std::ranges::find(outer_, tile.name) != outer_.end()) {
            fail(statement, nest_.tile_names[tile.name] +
                                " was made outside this loop: drop it after the loop");
          }
          alive_[tile.name] = nullptr;
        }
        break;
      case NestStatement::Kind::flops:
      case NestStatement::Kind::text:
        break;
      case NestStatement::Kind::read:
      case NestStatement::Kind::make:
      case NestStatement::Kind::write:
      case NestStatement::Kind::index:
        if (holds(statement)) {
          move(statement);
        }
    }
  }

  [[nodiscard]] bool holds(const NestStatement& statement) const {
    return std::ranges::all_of(statement.conditions, [&](const NestCondition& condition) {
      const PassOf& pass = passes_[condition.variable];
      return condition.holds(condition.first ? pass.first : pass.last);
    });
  }

  // A comparison holds or not in a whole walk, wherever it stands.
  struct Compared {
    NestSize left, right;
    Comparison comparison;
  };
  void find_compared(const NestStatement& statement) {
    if (statement.kind == NestStatement::Kind::when) {
      add_compared(statement);
    }
    for (const NestStatement& inner : statement.body) {
      find_compared(inner);
    }
  }
  void add_compared(const NestStatement& when) {
    if (place_of(when) == compared_.size()) {
      compared_.push_back({when.size, when.right, when.comparison});
    }
  }
  [[nodiscard]] std::size_t place_of(const NestStatement& when) const {
    const auto found = std::ranges::find_if(compared_, [&](const Compared& other) {
      return other.left == when.size && other.right == when.right &&
             (other.comparison == when.comparison || other.comparison == opposite(when.comparison));
    });
    return static_cast<std::size_t>(found - compared_.begin());
  }
  [[nodiscard]] bool is_taken(const NestStatement& when) const {
    const std::size_t place = place_of(when);
    const bool is =
        (place < shared_.size() ? shared_walk_ >> place & 1
                                : walk_ >> (asked_.size() + place - shared_.size()) & 1) != 0;
    return is == (compared_[place].comparison == when.comparison);
  }

  void walk_loop(const NestStatement& loop) {
    static constexpr std::array kSingle = {PassOf{true, true}};
    static constexpr std::array kSeveral = {PassOf{true, false}, PassOf{false, false},
                                            PassOf{false, true}};
    const auto asked = std::ranges::find(asked_, loop.variable);
    const bool several = asked != asked_.end() && (walk_ >> (asked - asked_.begin()) & 1) == 0;
    const std::vector<const NestStatement*> before = alive_;
    const std::size_t outer = outer_.size();
    for (std::size_t tile = 0; tile < alive_.size(); ++tile) {
      if (alive_[tile] != nullptr) {
        outer_.push_back(tile);
      }
    }
    const auto run = [&](const auto& passes) {
      for (const PassOf& pass : passes) {
        passes_[loop.variable] = pass;
        walk(loop.body);
        alive_ = before;
      }
    };
    if (several) {
      run(kSeveral);
    } else {
      run(kSingle);
    }
    outer_.resize(outer);
  }

  void move(const NestStatement& statement) {
    for (std::size_t k = 0; k < statement.tiles.size(); ++k) {
      const TextTile& tile = statement.tiles[k];
      const std::string& its = nest_.tile_names[tile.name];
      if (statement.kind == NestStatement::Kind::write) {
        const NestStatement* made = alive_[tile.name];
        if (made == nullptr) {
          fail(statement, its + " is not in fast memory here: read or make it first");
        }
        if (!is_part(tile, *std::ranges::find(made->tiles, tile.name, &TextTile::name))) {
          fail(statement,
               its + " was made in line " + std::to_string(made->line) + " with other indices");
        }
        written_[statement.targets[k].name] = true;
        continue;
      }
      if (alive_[tile.name] != nullptr) {
        fail(statement, its + " is in fast memory already, since line " +
                            std::to_string(alive_[tile.name]->line) + ": drop it first");
      }
      if (statement.kind == NestStatement::Kind::read) {
        const std::size_t matrix = statement.targets[k].name;
        if (nest_.matrices[matrix].kind != NestMatrix::Kind::input && !written_[matrix]) {
          fail(statement, nest_.matrices[matrix].name + " is read before it is written");
        }
      }
      alive_[tile.name] = &statement;
    }
  }

  // Whether a tile is another one, or a piece of it.
  [[nodiscard]] bool is_part(const TextTile& tile, const TextTile& whole) const {
    return std::ranges::equal(
        tile.indices, whole.indices, [&](const NestIndex& a, const NestIndex& b) {
          if (a.kind == NestIndex::Kind::number || b.kind == NestIndex::Kind::number) {
            return a.kind == NestIndex::Kind::number &&
                   (b.kind != NestIndex::Kind::number || a.number <= b.number);
          }
          if (a.kind == NestIndex::Kind::part || b.kind == NestIndex::Kind::part) {
            return a.kind != NestIndex::Kind::part || b.kind != NestIndex::Kind::part ||
                   a.size == b.size;
          }
          if ((a.kind == NestIndex::Kind::each) != (b.kind == NestIndex::Kind::each)) {
            return false;
          }
          for (SymbolId symbol = a.symbol; symbol != b.symbol;
               symbol = nest_.loop_of(symbol).range) {
            if (nest_.symbols[symbol].kind != NestSymbol::Kind::variable) {
              return false;
            }
          }
          return true;
        });
  }

  const TextNest& nest_;
  std::vector<const NestStatement*> around_;  // the statements around a part of a tile
  std::vector<SymbolId> asked_;               // the variables in conditions
  std::vector<Compared> shared_;              // of statements outside loops
  std::vector<Compared> compared_;            // these first
  // A bit for each variable: whether it takes a single pass. Then one for each comparison.
  std::size_t walk_ = 0;
  std::size_t shared_walk_ = 0;                            // a bit for each shared comparison
  std::vector<std::vector<const NestStatement*>> states_;  // what lives then
  std::vector<const NestStatement*> alive_;                // the statements that made the tiles
  std::vector<std::size_t> outer_;                         // tiles made outside the loops around
  std::vector<bool> written_, whole_, read_;
  std::vector<PassOf> passes_;
};

}  // namespace

void check(const TextNest& nest) {
  Checker(nest).check();
}

}  // namespace redblue
