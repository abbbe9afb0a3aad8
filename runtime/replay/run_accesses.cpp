#include "runtime/replay/run_accesses.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "runtime/system/input_error.hpp"

namespace redblue {
namespace {

using Kind = Access::Kind;

std::size_t at_index(Index at) {
  return static_cast<std::size_t>(at);
}

}  // namespace

// Maps the rows (or the columns) of a part of a tile to its units. A default Axis maps all rows to
// one unit.
class RunAccesses::Axis {
 public:
  Axis() = default;
  // Maps the rows from `first` on. The indices of adjacent units differ by `step`.
  Axis(const CutRow& pieces, Index first, Index step)
      : pieces_(&pieces), first_(first), step_(step) {}

  [[nodiscard]] Index place(Index i) const {
    return pieces_ == nullptr ? 0 : pieces_->of(first_ + i) * step_;
  }
  // Returns the first row after i that is in another unit.
  [[nodiscard]] Index next(Index i) const {
    return pieces_ == nullptr ? std::numeric_limits<Index>::max()
                              : pieces_->begin(pieces_->of(first_ + i) + 1) - first_;
  }
  // Returns whether i is the first row of its unit in the part. True for every row of a default
  // Axis.
  [[nodiscard]] bool enters(Index i) const {
    return i == 0 || pieces_ == nullptr || pieces_->begin(pieces_->of(first_ + i)) == first_ + i;
  }
  // Returns whether i is the first row of its unit, and the last one is before `end`. False for a
  // default Axis.
  [[nodiscard]] bool begins(Index i, Index end) const {
    return pieces_ != nullptr && pieces_->begin(pieces_->of(first_ + i)) == first_ + i &&
           next(i) <= end;
  }

 private:
  const CutRow* pieces_ = nullptr;
  Index first_ = 0, step_ = 0;
};

// A part of a tile, with rows and columns as the operation uses them.
class RunAccesses::Part {
 public:
  Part(const TilePart& part, Tile& tile)
      : rows(part.transposed ? part.columns : part.rows),
        columns(part.transposed ? part.rows : part.columns),
        down(tile.rows, part.row, tile.columns.count()),
        right(tile.columns, part.column, 1),
        units_(tile.units.data()) {
    const bool column = part.of != TilePart::Of::words;
    if (column) {
      units_ += right.place(0);
      right = Axis();
    }
    if (column ? part.of == TilePart::Of::columns : part.transposed) {
      std::swap(down, right);
    }
  }
  Unit& operator()(Index i, Index j) const { return units_[down.place(i) + right.place(j)]; }
  // Returns whether the word ij is the first of its unit in the part.
  [[nodiscard]] bool enters(Index i, Index j) const { return down.enters(i) && right.enters(j); }
  // Returns whether the word ij is the first of its unit, and the part has the whole unit.
  [[nodiscard]] bool begins(Index i, Index j) const {
    return down.begins(i, rows) && right.begins(j, columns);
  }

  Index rows, columns;
  Axis down, right;

 private:
  Unit* units_;
};

Accesses RunAccesses::take() {
  check();
  while (!tiles_.empty()) {
    remove(tiles_.begin()->first);
  }
  for (Code code = 0; code < places_.size(); ++code) {
    if (places_[code].dies && places_[code].touched > 0) {
      touch(Kind::dead, code);
    }
  }
  // Number the units of the run in the order of their first touches.
  std::vector<Code> number(places_.size(), kUnknown);
  Accesses found{
      .in_order = std::move(in_order_), .widths = {}, .stretches = std::move(stretches_)};
  for (Access& access : found.in_order) {
    const bool waited = (access.unit & kPending) != 0;
    const Code address = waited ? pending(access.unit).address : access.unit;
    if (number[address] == kUnknown) {
      number[address] = static_cast<Code>(found.units());
      found.widths.push_back(places_[address].words);
    }
    access.unit = number[address];
  }
  return found;
}

void RunAccesses::follow(const Event& event) {
  switch (event.kind) {
    case Event::Kind::initialize:
      begin(event);
      break;
    case Event::Kind::read:
      begin(event);
      read(event);
      break;
    case Event::Kind::write:
      write(event);
      break;
    case Event::Kind::remove:
      remove(event.tile);
      break;
    case Event::Kind::enter_phase:
    case Event::Kind::leave_phase:
      path_.follow(event);
      stretches_.push_back({in_order_.size(), path_.path()});
      break;
  }
}

void RunAccesses::begin(const Event& event) {
  std::vector<std::size_t>& free = free_frames_[std::string(event.name)];
  if (free.empty()) {
    free.push_back(frames_.size());
    frames_.emplace_back();
  }
  tiles_[event.tile] = tile_of(event, free.back());
  free.pop_back();
}

RunAccesses::Tile RunAccesses::tile_of(const Event& event, std::size_t frame) const {
  const auto written = cuts_.tiles.find(event.tile);
  // `down` says that units run down the columns of the tile.
  bool down = event.rows == cuts_.longest && event.cols != cuts_.longest;
  CutRow pieces = cuts_.pieces(down ? event.rows : event.cols);
  if (event.block != nullptr) {
    down = event.orientation == Orientation::transposed;
    pieces = pieces_of(*event.block);
  } else if (written != cuts_.tiles.end()) {
    const auto& [matrix, column, orientation] = written->second;
    down = orientation == Orientation::transposed;
    pieces = cuts_.pieces(matrix, column, down ? event.rows : event.cols);
  }
  Tile tile{.name = std::string(event.name),
            .rows = down ? pieces : CutRow(event.rows),
            .columns = down ? CutRow(event.cols) : pieces,
            .frame = frame,
            .units = {}};
  tile.units.resize(at_index(tile.rows.count() * tile.columns.count()));
  return tile;
}

CutRow RunAccesses::pieces_of(const ConstBlock& block) const {
  return cuts_.pieces(block.matrix().name(), block.column_range().begin, block.cols());
}

template <class Visit>
void RunAccesses::each_unit(const ConstBlock& block, const Visit& visit) {
  const Range rows = block.row_range(), all = block.column_range();
  const CutRow pieces = pieces_of(block);
  for (Index row = rows.begin; row < rows.end; ++row) {
    std::vector<std::uint32_t> words(at_index(pieces.count()));
    for (const Range columns : block.stored(row)) {
      for (Index column = columns.begin; column < columns.end; ++column) {
        ++words[at_index(pieces.of(column - all.begin))];
      }
    }
    const StoredRow place = block.stored_row(row);
    std::vector<Code>& codes = slow_[{place.backing, place.row}];  // by column of a piece
    if (std::ssize(codes) < all.end) {
      codes.resize(at_index(all.end), kUnknown);
    }
    for (Index piece = 0; piece < pieces.count(); ++piece) {
      if (words[at_index(piece)] == 0) {
        continue;
      }
      Code& code = codes[at_index(all.begin + pieces.begin(piece))];
      if (code == kUnknown) {
        const SlowMatrix& matrix = block.matrix();
        code = new_address(matrix.holds() != Holds::indices && !kept_.contains(matrix.name()),
                           words[at_index(piece)]);
      }
      visit(row - rows.begin, piece, code);
    }
  }
}

void RunAccesses::read(const Event& event) {
  Tile& tile = tiles_.at(event.tile);
  const bool down = event.orientation == Orientation::transposed;
  each_unit(*event.block, [&](Index row, Index piece, Code from) {
    if (event.block->matrix().holds() == Holds::indices) {
      touch(Kind::need, from);  // a tile does not hold indices
    } else {
      (down ? tile.unit(piece, row) : tile.unit(row, piece)) = {from, places_[from].version};
    }
  });
}

void RunAccesses::write(const Event& event) {
  Tile& tile = tiles_.at(event.tile);
  const bool indices = event.block->matrix().holds() == Holds::indices;
  const bool down = event.orientation == Orientation::transposed;
  const bool alike = (down ? tile.rows : tile.columns) == pieces_of(*event.block) &&
                     (down ? tile.columns : tile.rows).by_word();
  if (!indices && !alike) {
    for (Unit& unit : tile.units) {
      need(unit);
    }
  }
  each_unit(*event.block, [&](Index row, Index piece, Code to) {
    if (!indices && alike) {
      write(down ? tile.unit(piece, row) : tile.unit(row, piece), to);
    } else {
      touch(Kind::overwrite, to);
      ++places_[to].version;
    }
  });
}

void RunAccesses::write(Unit& unit, Code to) {
  if (unit.code == to) {
    return check_version(unit);
  }
  if (unit.code == kNumber) {
    touch(Kind::overwrite, to);
  } else if ((unit.code & kPending) != 0 && places_[to].touched <= pending(unit.code).since) {
    Pending& known = pending(unit.code);
    known.address = to;
    places_[to].touched = known.touched;
  } else {
    need(unit);
    touch(Kind::overwrite, to);
    if ((unit.code & kPending) != 0) {
      touch(Kind::dead, unit.code);
      pending(unit.code).address = new_address(false, places_[to].words);
    }
  }
  unit = {to, ++places_[to].version};
}

void RunAccesses::remove(std::uint64_t number) {
  Tile& tile = tiles_.at(number);
  for (Index row = 0; row < tile.rows.count(); ++row) {
    for (Index column = 0; column < tile.columns.count(); ++column) {
      const Code code = tile.unit(row, column).code;
      if (code != kNumber && (code & kPending) != 0) {
        touch(Kind::dead, code);
        pending(code).address = scratch(tile, row, column);
      }
    }
  }
  free_frames_[tile.name].push_back(tile.frame);
  tiles_.erase(number);
}

void RunAccesses::follow(const Operation& operation) {
  switch (operation.form) {
    case Operation::Form::product:
      return multiply(operation);
    case Operation::Form::map:
      return map(operation);
    case Operation::Form::fold:
      return fold(operation);
  }
}

RunAccesses::Part RunAccesses::part(const TilePart& part) {
  return {part, tiles_.at(part.tile)};
}

std::vector<RunAccesses::Part> RunAccesses::parts(std::span<const TilePart> parts) {
  std::vector<Part> all;
  for (const TilePart& each : parts) {
    all.push_back(part(each));
  }
  return all;
}

void RunAccesses::multiply(const Operation& operation) {
  const Part a = part(operation.operands[0]), b = part(operation.operands[1]);
  const Part c = part(operation.result);
  for (Index k = 0; k < a.columns; k = std::min(a.right.next(k), b.down.next(k))) {
    for (Index i = 0; i < c.rows; i = std::min(a.down.next(i), c.down.next(i))) {
      for (Index j = 0; j < c.columns; j = std::min(b.right.next(j), c.right.next(j))) {
        need(a, i, k);
        need(b, k, j);
        change(c, i, j, k > 0 || operation.old);
      }
    }
  }
}

void RunAccesses::map(const Operation& operation) {
  const std::vector<Part> operands = parts(operation.operands);
  const Part c = part(operation.result);
  Index next_i = 0, next_j = 0;
  for (Index i = 0; i < c.rows; i = next_i) {
    next_i = c.down.next(i);
    for (Index j = 0; j < c.columns; j = next_j) {
      next_j = c.right.next(j);
      for (const Part& operand : operands) {
        next_i = std::min(next_i, operand.down.next(i));
        next_j = std::min(next_j, operand.right.next(j));
        need(operand, i, j);
      }
      change(c, i, j, operation.old);
    }
  }
}

void RunAccesses::fold(const Operation& operation) {
  const std::vector<Part> operands = parts(operation.operands);
  const Part c = part(operation.result);
  Index next_i = 0, next_j = 0;
  for (Index i = 0; i < c.rows; i = next_i) {
    next_i = c.down.next(i);
    for (Index j = 0; j < operands.front().columns; j = next_j) {
      next_j = operands.front().right.next(j);
      for (const Part& operand : operands) {
        next_i = std::min(next_i, operand.down.next(i));
        next_j = std::min(next_j, operand.right.next(j));
        need(operand, i, j);
      }
      change(c, i, 0, j > 0 || operation.old);
    }
  }
}

void RunAccesses::touch(Kind kind, Code code) {
  if (std::ssize(in_order_) == most_accesses(cuts_.longest)) {
    throw InputError(fmt::format("a run of more than {} accesses: take smaller extents",
                                 most_accesses(cuts_.longest)));
  }
  in_order_.push_back({kind, code});
  const auto touched = static_cast<std::uint32_t>(in_order_.size());
  ((code & kPending) != 0 ? pending(code).touched : places_[code].touched) = touched;
}

void RunAccesses::need(const Part& part, Index i, Index j) {
  if (part.enters(i, j)) {
    need(part(i, j));
  }
}

void RunAccesses::change(const Part& part, Index i, Index j, bool old) {
  if (!part.enters(i, j)) {
    return;
  }
  if (old || !part.begins(i, j)) {
    change(part(i, j));
  } else {
    overwrite(part(i, j));
  }
}

void RunAccesses::need(Unit& unit) {
  if (unit.code == kNumber) {
    return overwrite(unit);
  }
  check_version(unit);
  touch(Kind::need, unit.code);
}

void RunAccesses::change(Unit& unit) {
  if (unit.code == kNumber) {
    return overwrite(unit);
  }
  if ((unit.code & kPending) != 0) {
    return touch(Kind::change, unit.code);
  }
  need(unit);
  overwrite(unit);
}

void RunAccesses::overwrite(Unit& unit) {
  if (unit.code == kNumber || (unit.code & kPending) == 0) {
    unit.code = pending();
  }
  touch(Kind::overwrite, unit.code);
}

void RunAccesses::check_version(const Unit& unit) const {
  if ((unit.code & kPending) == 0 && unit.version != places_[unit.code].version) {
    throw InputError(
        "the run uses words after others have taken their place in slow memory: its "
        "accesses are not known");
  }
}

RunAccesses::Code RunAccesses::pending() {
  pending_.push_back({static_cast<std::uint32_t>(in_order_.size()), 0, kUnknown});
  return kPending | static_cast<Code>(pending_.size() - 1);
}

RunAccesses::Code RunAccesses::new_address(bool dies, std::uint32_t words) {
  places_.push_back({.touched = 0, .version = 0, .words = words, .dies = dies});
  return static_cast<Code>(places_.size() - 1);
}

RunAccesses::Code RunAccesses::scratch(const Tile& tile, Index row, Index column) {
  const CutRow &rows = tile.rows, &columns = tile.columns;
  const Index first = rows.begin(row) * columns.begin(columns.count()) + columns.begin(column);
  const Index words =
      (rows.begin(row + 1) - rows.begin(row)) * (columns.begin(column + 1) - columns.begin(column));
  const auto [known, added] = frames_[tile.frame].try_emplace({first, words}, kUnknown);
  if (added) {
    known->second = new_address(false, static_cast<std::uint32_t>(words));
  }
  return known->second;
}

}  // namespace redblue
