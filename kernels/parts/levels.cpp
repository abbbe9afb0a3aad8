#include "kernels/parts/levels.hpp"

#include <algorithm>
#include <utility>

#include "memsim/errors.hpp"
#include "memsim/level.hpp"

namespace redblue {

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

LevelWalk::LevelWalk(Machine& machine, const Levels& levels, Step staying, Step passing,
                     NearSteps steps, Begun* begun)
    : machine_(machine),
      levels_(levels),
      staying_(staying),
      passing_(passing),
      apart_(steps.size() > 1 && !levels.empty() && levels.front().apart),
      steps_(std::move(steps)),
      begun_(begun) {
  if (levels_.empty()) {
    return;
  }
  for (std::vector<Near>& step : steps_) {
    std::erase_if(step, [](const Near& of) { return of.tile->words() == 0; });
    for (const Near& of : step) {
      const bool passes = of.rows == Axis::passing || of.columns == Axis::passing;
      std::vector<Near>& all = passes ? passing_near_ : staying_near_;
      const auto known = std::ranges::find(all, of.tile, &Near::tile);
      if (known == all.end()) {
        all.push_back(of);
      } else {
        known->use = std::max(known->use, of.use);
      }
    }
  }
}

void LevelWalk::borrow(std::size_t level, Range staying, Range passing,
                       const std::vector<Near>& all) {
  Level& in = machine_.inner()[level];
  for (const Near& near : all) {
    const auto along = [&](Axis axis, Index first, Index extent) -> Range {
      const Range of = axis == Axis::staying ? staying : passing;
      return axis == Axis::whole ? Range{0, extent} : Range{of.begin - first, of.end - first};
    };
    const Range rows = along(near.rows, near.first_row, near.tile->rows());
    const Range columns = along(near.columns, near.first_column, near.tile->cols());
    if (near.use == Use::sums && !fresh_) {
      fresh_ = begun_->begins(level, staying.begin);
    }
    const bool anew = near.use == Use::makes || (near.use == Use::sums && *fresh_);
    taken_.push_back(
        {anew ? in.begin(*near.tile, rows, columns) : in.borrow(*near.tile, rows, columns),
         near.use != Use::reads});
  }
}

// The last first, as levels keep them.
void LevelWalk::give_back(std::size_t but) {
  while (taken_.size() > but) {
    if (taken_.back().changed) {
      taken_.back().loan.write();
    }
    taken_.pop_back();
  }
}

}  // namespace redblue
