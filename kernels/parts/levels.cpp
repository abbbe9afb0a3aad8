#include "kernels/parts/levels.hpp"

#include <optional>

#include "memsim/errors.hpp"

namespace redblue {

std::string level_block(std::size_t level, std::string_view block) {
  return "L" + std::to_string(level + 1) + "." + std::string(block);
}

Levels level_blocks(const Blocks& blocks, std::string_view prefix) {
  const auto name_of = [prefix](std::size_t level, std::string_view block) {
    return level_block(level, std::string(prefix) + std::string(block));
  };
  Levels levels;
  for (std::size_t level = 0; blocks.contains(name_of(level, "Br")); ++level) {
    const auto of = [&](std::string_view block) {
      const std::string name = name_of(level, block);
      return blocks.contains(name) ? blocks[name] : 1;
    };
    levels.push_back({.rows = of("Br"), .keys = of("Bc"), .weights = of("Bw")});
  }
  return levels;
}

Index pieces(Index length, Index step, std::span<const Index> outer) {
  if (outer.empty()) {
    return ceil_div(length, step);
  }
  const Index block = outer.back();
  const std::span<const Index> others = outer.first(outer.size() - 1);
  const Index whole = length / block, rest = length % block;
  return (whole > 0 ? whole * pieces(block, step, others) : 0) +
         (rest > 0 ? pieces(rest, step, others) : 0);
}

NearTile::NearTile(Machine& machine, Tile words) : tile(std::move(words)) {
  if (tile.words() > 0) {
    for (auto level = machine.inner().rbegin(); level != machine.inner().rend(); ++level) {
      loans_.push_back(level->begin(tile, {0, tile.rows()}, {0, tile.cols()}));
    }
  }
}

LevelWalk::Borrowed LevelWalk::borrow(std::size_t level, Range staying, Range passing,
                                      bool passes) {
  Borrowed borrowed;
  std::optional<bool> fresh;  // of sums
  for (const Near& near : near_) {
    const bool has_part = near.rows == Axis::passing || near.columns == Axis::passing;
    if (has_part != passes || near.tile.words() == 0) {
      continue;
    }
    const auto along = [&](Axis axis, Index first, Index extent) -> Range {
      const Range of = axis == Axis::staying ? staying : passing;
      return axis == Axis::whole ? Range{0, extent} : Range{of.begin - first, of.end - first};
    };
    const Range rows = along(near.rows, near.first_row, near.tile.rows());
    const Range columns = along(near.columns, near.first_column, near.tile.cols());
    if (near.use == Use::sums && !fresh) {
      fresh = begun_->begins(level, staying.begin);
    }
    const bool anew = near.use == Use::makes || (near.use == Use::sums && *fresh);
    Level& in = machine_.inner()[level];
    require(borrowed.count < borrowed.all.size(), "a walk borrows few tiles");
    borrowed.all[borrowed.count++] = {
        anew ? in.begin(near.tile, rows, columns) : in.borrow(near.tile, rows, columns),
        near.use != Use::reads};
  }
  return borrowed;
}

void LevelWalk::Borrowed::give_back() {
  for (std::size_t k = 0; k < count; ++k) {
    if (all[k].changed) {
      all[k].loan.write();
    }
    all[k].loan = {};
  }
}

}  // namespace redblue
