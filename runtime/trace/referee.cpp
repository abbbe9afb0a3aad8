#include "runtime/trace/referee.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace redblue {
namespace {

struct Extent {
  Index rows, columns;
  friend bool operator==(const Extent&, const Extent&) = default;
};

Extent extent(const TilePart& part) {
  return part.transposed ? Extent{part.columns, part.rows} : Extent{part.rows, part.columns};
}

bool product_fits(const Operation& operation) {
  if (operation.operands.size() != 2) {
    return false;
  }
  const Extent a = extent(operation.operands[0]);
  const Extent b = extent(operation.operands[1]);
  return a.columns == b.rows && extent(operation.result) == Extent{a.rows, b.columns};
}

bool belongs(const TilePart& operand, Extent all) {
  switch (operand.of) {
    case TilePart::Of::words:
      return extent(operand) == all;
    case TilePart::Of::rows:
      return extent(operand) == Extent{all.rows, 1};
    case TilePart::Of::columns:
      return extent(operand) == Extent{all.columns, 1};
  }
  return false;
}

bool fits(const Operation& operation) {
  if (operation.form == Operation::Form::product) {
    return product_fits(operation);
  }
  const Extent result = extent(operation.result);
  const bool fold = operation.form == Operation::Form::fold;
  if (fold && (operation.operands.empty() || result.columns != 1)) {
    return false;
  }
  const Extent all = fold ? Extent{result.rows, extent(operation.operands[0]).columns} : result;
  return std::ranges::all_of(operation.operands,
                             [&](const TilePart& operand) { return belongs(operand, all); });
}

}  // namespace

void Referee::follow(const Event& event) {
  switch (event.kind) {
    case Event::Kind::read:
    case Event::Kind::initialize:
      tiles_[event.tile] = {
          std::string(event.name), event.rows, event.cols,
          std::vector<bool>(static_cast<std::size_t>(event.rows * event.cols), !event.unset)};
      break;
    case Event::Kind::write:
      write(event);
      break;
    case Event::Kind::remove:
      tiles_.erase(event.tile);
      break;
    case Event::Kind::enter_phase:
    case Event::Kind::leave_phase:
      break;
  }
}

// Checks only words that the store keeps, because the others are not written.
void Referee::write(const Event& event) {
  const ConstBlock& block = *event.block;
  if (block.matrix().holds() == Holds::indices) {
    return;  // the tile does not hold indices
  }
  Known& tile = tiles_.at(event.tile);
  const Range rows = block.row_range();
  for (Index row = rows.begin; row < rows.end; ++row) {
    for (const Range columns : block.stored(row)) {
      for (Index column = columns.begin; column < columns.end; ++column) {
        const Index i = row - rows.begin;
        const Index j = column - block.column_range().begin;
        const bool straight = event.orientation == Orientation::straight;
        use("write", tile, straight ? i : j, straight ? j : i);
      }
    }
  }
}

void Referee::follow(const Operation& operation) {
  ++operations_;
  if (!fits(operation)) {
    refuse(fmt::format("{}: its operands do not fit together", operation.name));
  }
  for (const TilePart& operand : operation.operands) {
    use(operation.name, operand);
  }
  if (operation.old) {
    use(operation.name, operation.result);
  }
  set(operation.result);
  if (operation.form == Operation::Form::product && !operation.operands.empty()) {
    const Extent a = extent(operation.operands[0]);
    flops_ += 2 * a.rows * a.columns * extent(operation.result).columns;
  }
}

std::string Referee::verdict() const {
  if (illegal_ > 0) {
    return "illegal: " + first_illegal_;
  }
  return by_hand_ == 0 ? "legal"
                       : fmt::format("legal, {} words by hand: {}", by_hand_, first_by_hand_);
}

Referee::Known* Referee::tile_of(std::string_view who, const TilePart& part) {
  const auto known = tiles_.find(part.tile);
  if (known == tiles_.end()) {
    refuse(fmt::format("{} takes a tile that is gone", who));
    return nullptr;
  }
  Known& tile = known->second;
  if (part.row < 0 || part.column < 0 || part.rows < 1 || part.columns < 1 ||
      part.row + part.rows > tile.rows || part.column + part.columns > tile.columns) {
    refuse(fmt::format("{} leaves {}, which is {} x {}", who, tile.name, tile.rows, tile.columns));
    return nullptr;
  }
  return &tile;
}

void Referee::use(std::string_view who, Known& tile, Index row, Index column) {
  auto set = tile.set[static_cast<std::size_t>(row * tile.columns + column)];
  if (set) {
    return;
  }
  set = true;
  ++by_hand_;
  if (first_by_hand_.empty()) {
    first_by_hand_ =
        fmt::format("{} takes {}({}, {}), which nobody set", who, tile.name, row, column);
  }
}

void Referee::use(std::string_view who, const TilePart& part) {
  if (Known* const tile = tile_of(who, part)) {
    for (Index i = 0; i < part.rows; ++i) {
      for (Index j = 0; j < part.columns; ++j) {
        use(who, *tile, part.row + i, part.column + j);
      }
    }
  }
}

void Referee::set(const TilePart& part) {
  if (Known* const tile = tile_of("a result", part)) {
    for (Index i = 0; i < part.rows; ++i) {
      const auto first = tile->set.begin() + (part.row + i) * tile->columns + part.column;
      std::fill_n(first, part.columns, true);
    }
  }
}

void Referee::refuse(std::string what) {
  ++illegal_;
  if (first_illegal_.empty()) {
    first_illegal_ = std::move(what);
  }
}

}  // namespace redblue
