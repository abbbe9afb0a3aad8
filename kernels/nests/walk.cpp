#include "kernels/nests/walk.hpp"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "memsim/machine.hpp"
#include "memsim/phase.hpp"
#include "memsim/slow_matrix.hpp"

namespace redblue {
namespace {

class Walker {
 public:
  Walker(Machine& machine, const TextNest& nest, const NestSizes& sizes, const NestOperands& io)
      : machine_(machine),
        nest_(nest),
        mask_(sizes.mask),
        transposed_(sizes.mask.full() ? Mask() : sizes.mask.transposed()),
        values_(values_of(nest, sizes)),
        passes_(nest.symbols.size()),
        alive_(nest.tile_names.size()) {
    for (const NestMatrix& matrix : nest.matrices) {
      SlowMatrix* const result =
          matrix.kind == NestMatrix::Kind::result && io.out ? io.out(matrix.name) : nullptr;
      const SlowMatrix* const input =
          matrix.kind == NestMatrix::Kind::input && io.in ? io.in(matrix.name) : result;
      to_.push_back(result);
      from_.push_back(input);
      if (input != nullptr) {
        continue;
      }
      Index rows = 1;
      for (const NestIndex& extent : matrix.extents) {
        rows *= extent_of(extent);
      }
      const Index cols = matrix.extents.size() < 2 ? 1 : extent_of(matrix.extents.back());
      SlowMatrix& own = own_.emplace_back(matrix.name, rows / cols, cols);
      to_.back() = &own;
      from_.back() = &own;
    }
  }

  void run() {
    run(nest_.statements);
    leave(0);
  }

 private:
  // Where a loop is.
  struct Pass {
    Range block;
    Index number = 0;
    bool first = true, last = true;
    std::vector<Range> before, after;  // the other blocks
  };

  [[nodiscard]] Index extent_of(const NestIndex& index) const {
    if (index.kind == NestIndex::Kind::number) {
      return index.number;
    }
    if (index.kind == NestIndex::Kind::extent) {
      return values_[index.symbol];
    }
    // Slices of "each": a loop over the rows that a block meets may have more passes than blocks.
    const NestStatement& loop = nest_.loop_of(index.symbol);
    const bool is_fixed = !nest_.uses_variable(loop.size);
    const bool in_pieces = loop.met_by != kNoSymbol && !loop.whole && !mask_.full();
    const Index extent = values_[nest_.root(index.symbol)];
    const Index block = is_fixed && !in_pieces ? loop.size.value(values_) : 1;
    return ceil_div(extent, std::max<Index>(block, 1));
  }

  void leave(std::size_t depth) {
    while (open_.size() > depth) {
      open_.pop_back();
    }
  }
  // Opens the phase of a statement, if it is not open. A phase without statements that happen is
  // never opened.
  void enter(std::size_t phase) {
    if (phase == phase_ && !open_.empty()) {
      return;
    }
    leave(0);
    phase_ = phase;
    const std::string& path = nest_.phases[phase];
    for (std::size_t at = 0; at < path.size();) {
      const std::size_t end = std::min(path.find('/', at), path.size());
      open_.emplace_back(machine_, path.substr(at, end - at));
      at = end + 1;
    }
  }

  void run(const std::vector<NestStatement>& list) {
    for (const NestStatement& statement : list) {
      const bool happens = statement.kind != NestStatement::Kind::loop &&
                           statement.kind != NestStatement::Kind::phase &&
                           statement.kind != NestStatement::Kind::when &&
                           statement.kind != NestStatement::Kind::text;
      if (happens && (statement.kind != NestStatement::Kind::drop || is_now(statement))) {
        enter(statement.phase);
      }
      switch (statement.kind) {
        case NestStatement::Kind::loop:
          run_loop(statement);
          break;
        case NestStatement::Kind::phase:
          run(statement.body);
          break;
        case NestStatement::Kind::text:
          break;
        case NestStatement::Kind::when:
          if (holds(statement.comparison, statement.size.value(values_),
                    statement.right.value(values_))) {
            run(statement.body);
          }
          break;
        case NestStatement::Kind::drop:
          if (!is_now(statement)) {
            break;
          }
          for (const TextTile& tile : statement.tiles) {
            alive_[tile.name].clear();
          }
          break;
        case NestStatement::Kind::flops:
          machine_.computed({.flops = statement.size.value(values_)});
          break;
        case NestStatement::Kind::index:
          read_index(statement.tiles.front());
          break;
        case NestStatement::Kind::read:
        case NestStatement::Kind::make:
        case NestStatement::Kind::write:
          for (std::size_t k = 0; k < statement.tiles.size(); ++k) {
            move(statement, k);
          }
      }
    }
  }

  void read_index(const TextTile& tile) {
    if (!mask_.full()) {
      const Mask& mask = nest_.root(tile.met_by) == kExtentN ? mask_ : transposed_;
      const Range rows = passes_[tile.met_by].block;
      alive_[tile.name].push_back(
          machine_.read_indices(mask.index_words(rows).value(), mask.index().live()));
    }
  }

  void run_loop(const NestStatement& loop) {
    Range whole = nest_.symbols[loop.range].kind == NestSymbol::Kind::variable
                      ? passes_[loop.range].block
                      : Range{0, values_[loop.range]};
    if (loop.from) {
      whole.begin =
          std::min(whole.begin + std::max<Index>(loop.from->value(values_), 0), whole.end);
    }
    const bool meets = loop.met_by != kNoSymbol && !mask_.full();
    Ranges visited =
        meets ? common(met_by(loop, passes_[loop.met_by].block), {whole}) : Ranges{whole};
    std::erase_if(visited, [](Range range) { return range.size() == 0; });
    const Pieces pieces(visited, loop.size.value(values_));
    std::vector<std::size_t> before;
    for (std::size_t tile = 0; tile < alive_.size(); ++tile) {
      before.push_back(alive_[tile].size());
    }
    const bool asked = !mask_.full() && is_asked(loop.body, loop.variable);
    for (Index k = 0; k < pieces.size(); ++k) {
      Pass& pass = passes_[loop.variable];
      pass = {pieces[k], k, k == 0, k + 1 == pieces.size(), {}, {}};
      for (Index other = 0; asked && other < pieces.size(); ++other) {
        if (other != k) {
          (other < k ? pass.before : pass.after).push_back(pieces[other]);
        }
      }
      values_[loop.variable] = pieces[k].size();
      if (const SymbolId its = met_symbol(loop.variable); its != kNoSymbol) {
        values_[its] = !mask_.full() ? size_of(met(loop.variable, pieces[k]))
                       : nest_.root(loop.variable) == kExtentN ? values_[kExtentM]
                                                               : values_[kExtentN];
      }
      run(loop.body);
      for (std::size_t tile = 0; tile < alive_.size(); ++tile) {
        alive_[tile].resize(before[tile]);
      }
    }
  }
  // The symbol of met(I), if a size has it.
  [[nodiscard]] SymbolId met_symbol(SymbolId variable) const {
    const auto found = std::ranges::find_if(nest_.symbols, [&](const NestSymbol& symbol) {
      return symbol.kind == NestSymbol::Kind::met && symbol.range == variable;
    });
    return found == nest_.symbols.end() ? kNoSymbol
                                        : static_cast<SymbolId>(found - nest_.symbols.begin());
  }
  [[nodiscard]] Ranges met(SymbolId variable, Range rows) const {
    return nest_.root(variable) == kExtentN ? mask_.keys(rows) : transposed_.keys(rows);
  }
  // Returns the rows that a block of the outer loop meets, in whole blocks if the loop visits
  // these.
  [[nodiscard]] Ranges met_by(const NestStatement& loop, Range rows) const {
    const Ranges all = met(loop.met_by, rows);
    return loop.whole ? in_blocks(all, values_[loop.range], loop.size.value(values_)) : all;
  }
  // Whether a condition names the variable.
  static bool is_asked(const std::vector<NestStatement>& list, SymbolId variable) {
    return std::ranges::any_of(list, [&](const NestStatement& statement) {
      return std::ranges::find(statement.conditions, variable, &NestCondition::variable) !=
                 statement.conditions.end() ||
             is_asked(statement.body, variable);
    });
  }
  // Whether a condition holds row by row for an index.
  [[nodiscard]] bool is_by_rows(const NestIndex& index, const NestCondition& condition) const {
    return !mask_.full() && index.kind == NestIndex::Kind::block &&
           nest_.loop_of(index.symbol).met_by == condition.variable;
  }
  [[nodiscard]] bool is_now(const NestStatement& statement) const {
    return std::ranges::all_of(statement.conditions,
                               [&](const NestCondition& condition) { return is_now(condition); });
  }
  [[nodiscard]] bool is_now(const NestCondition& condition) const {
    const Pass& pass = passes_[condition.variable];
    return condition.holds(condition.first ? pass.first : pass.last);
  }

  // The rows of a dimension that a tile takes, under its statement's condition.
  Ranges rows_of(const NestIndex& index, const NestIndex& extent,
                 const std::vector<NestCondition>& conditions) const {
    switch (index.kind) {
      case NestIndex::Kind::number:
        return {{0, index.number}};
      case NestIndex::Kind::extent:
        return {{0, values_[index.symbol]}};
      case NestIndex::Kind::part: {
        Index size = index.size.value(values_);
        if (index.symbol != kNoSymbol && index.symbol >= kExtents) {
          size = std::min(size, values_[nest_.extent_of(index.symbol)]);
        }
        return {{0, size}};
      }
      case NestIndex::Kind::each: {
        const Pass& pass = passes_[index.symbol];
        const Index at = extent.kind == NestIndex::Kind::each ? pass.number : pass.block.begin;
        return {{at, at + 1}};
      }
      case NestIndex::Kind::block:
        break;
    }
    const Ranges block{passes_[index.symbol].block};
    for (const NestCondition& condition : conditions) {
      if (is_by_rows(index, condition)) {
        const Pass& outer = passes_[condition.variable];
        Ranges alone = block;
        for (const Range other : condition.first ? outer.before : outer.after) {
          alone = without(alone, met_by(nest_.loop_of(index.symbol), other));
        }
        return condition.negated ? without(block, alone) : alone;
      }
    }
    return block;
  }

  // The blocks of a matrix that make a tile: rectangles of its last two dimensions.
  std::vector<std::pair<Range, Range>> blocks_of(
      const TextTile& tile, const NestMatrix* matrix,
      const std::vector<NestCondition>& conditions) const {
    for (const NestCondition& condition : conditions) {
      const bool by_rows = std::ranges::any_of(
          tile.indices, [&](const NestIndex& index) { return is_by_rows(index, condition); });
      if (!by_rows && !is_now(condition)) {
        return {};
      }
    }
    std::vector<Ranges> dims;
    std::vector<Index> extents;
    for (std::size_t k = 0; k < tile.indices.size(); ++k) {
      const NestIndex& extent = matrix == nullptr ? tile.indices[k] : matrix->extents[k];
      dims.push_back(rows_of(tile.indices[k], extent, conditions));
      extents.push_back(matrix == nullptr ? 0 : extent_of(extent));
    }
    if (dims.size() == 1) {
      dims.push_back({{0, 1}});
      extents.push_back(1);
    }
    std::vector<Index> firsts{0};  // of the leading dimensions, as rows of the flat matrix
    for (std::size_t k = 0; k + 2 < dims.size(); ++k) {
      std::vector<Index> next;
      for (const Index first : firsts) {
        for (const Range range : dims[k]) {
          for (Index at = range.begin; at < range.end; ++at) {
            next.push_back(first * extents[k] + at);
          }
        }
      }
      firsts = std::move(next);
    }
    std::vector<std::pair<Range, Range>> blocks;
    const Index rows = extents[extents.size() - 2];
    for (const Index first : firsts) {
      for (const Range row : dims[dims.size() - 2]) {
        for (const Range col : dims.back()) {
          if (row.size() > 0 && col.size() > 0) {
            blocks.push_back({{first * rows + row.begin, first * rows + row.end}, col});
          }
        }
      }
    }
    return blocks;
  }

  // The blocks of a matrix that move: of a tile that moves in part, this part, row by row.
  std::vector<std::pair<Range, Range>> moved(const NestStatement& statement,
                                             std::size_t which) const {
    const TextTile& target = statement.targets[which];
    auto blocks = blocks_of(target, &nest_.matrices[target.name], statement.conditions);
    if (!target.in_part() || mask_.full()) {
      return blocks;
    }
    const bool first_selected = nest_.is_selected(target.indices[0], target);
    std::vector<std::pair<Range, Range>> part;
    for (const auto& [rows, cols] : blocks) {
      for (Index row = rows.begin; row < rows.end; ++row) {
        const Range its{row, row + 1};
        if (target.live) {
          const bool is_query = nest_.root(target.indices[0].symbol) == kExtentN;
          for (const Range live : common((is_query ? mask_ : transposed_).keys(its), {cols})) {
            part.emplace_back(its, live);
          }
          continue;
        }
        const Ranges met = this->met(target.met_by, passes_[target.met_by].block);
        for (const Range live : common(met, {first_selected ? its : cols})) {
          part.emplace_back(first_selected ? live : its, first_selected ? cols : live);
        }
      }
    }
    return part;
  }

  void move(const NestStatement& statement, std::size_t which) {
    const TextTile& tile = statement.tiles[which];
    const Holds holds = tile.sum ? Holds::sums : Holds::operands;
    const std::string& name = nest_.tile_names[tile.name];
    if (statement.kind == NestStatement::Kind::read) {
      const TextTile& from = statement.targets[which];
      const NestMatrix& matrix = nest_.matrices[from.name];
      Index words = 0, read = 0;  // of the whole tile, and those that are read
      for (const auto& [rows, cols] : blocks_of(from, &matrix, statement.conditions)) {
        words += rows.size() * cols.size();
      }
      for (const auto& [rows, cols] : moved(statement, which)) {
        read += rows.size() * cols.size();
        alive_[tile.name].push_back(
            machine_.read(from_[from.name]->block(rows, cols).holding(holds)));
      }
      if (words > read) {  // the room of dead pairs
        alive_[tile.name].push_back(machine_.initialize(name, words - read, 1, 0, holds));
      }
      return;
    }
    if (statement.kind == NestStatement::Kind::make) {
      for (const auto& [rows, cols] : blocks_of(tile, nullptr, statement.conditions)) {
        alive_[tile.name].push_back(machine_.initialize(name, rows.size(), cols.size(), 0, holds));
      }
      return;
    }
    // The words that leave are zeros, because no value was computed. They replace the tile.
    struct Kept {
      Index rows, cols;
      Holds holds;
    };
    std::vector<Kept> kept;
    for (const Tile& part : alive_[tile.name]) {
      kept.push_back({part.rows(), part.cols(), part.holds()});
    }
    alive_[tile.name].clear();
    const TextTile& target = statement.targets[which];
    for (const auto& [rows, cols] : moved(statement, which)) {
      const Tile zeros = machine_.initialize(name, rows.size(), cols.size(), 0, holds);
      machine_.write(zeros, to_[target.name]->block(rows, cols).holding(holds));
    }
    for (const auto& [rows, cols, its] : kept) {
      alive_[tile.name].push_back(machine_.initialize(name, rows, cols, 0, its));
    }
  }

  Machine& machine_;
  const TextNest& nest_;
  const Mask mask_, transposed_;
  std::vector<Index> values_;
  std::vector<Pass> passes_;
  std::vector<std::vector<Tile>> alive_;
  std::deque<Phase> open_;  // the phases around, outermost first
  std::size_t phase_ = 0;
  std::deque<SlowMatrix> own_;
  std::vector<const SlowMatrix*> from_;  // by matrix
  std::vector<SlowMatrix*> to_;          // null for inputs of a caller
};

}  // namespace

void walk(Machine& machine, const TextNest& nest, const NestSizes& sizes, const NestOperands& io) {
  Walker(machine, nest, sizes, io).run();
}

}  // namespace redblue
