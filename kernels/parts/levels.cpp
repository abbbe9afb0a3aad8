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
      loans_.emplace_back(*level, tile, Range{0, tile.rows()}, Range{0, tile.cols()},
                          Level::How::scratch);
    }
  }
}

LevelWalk::LevelWalk(Machine& machine, const Levels& levels, Step staying, Step passing,
                     const NearSteps& steps, Begun* begun)
    : machine_(machine),
      levels_(levels),
      staying_(staying),
      passing_(passing),
      apart_(steps.size() > 1 && !levels.empty() && levels.front().apart),
      one_step_(steps.size() == 1),
      of_levels_(levels.size()),
      begun_(begun) {
  if (levels_.empty()) {
    return;
  }
  for (const std::vector<Near>& step : steps) {
    NearParts& of_step = of_steps_.emplace_back();
    for (const Near& near : step) {
      if (near.tile->words() > 0) {
        of_step.emplace_back(near);
        add_to_levels(near);
      }
    }
  }
}

void LevelWalk::add_to_levels(const Near& near) {
  const bool passes = near.rows == Axis::passing || near.columns == Axis::passing;
  for (std::size_t level = apart_ ? 1 : 0; level < levels_.size(); ++level) {
    NearParts& all = passes ? of_levels_[level].passing : of_levels_[level].staying;
    const auto known =
        std::ranges::find(all, near.tile, [](const NearPart& its) { return its.near.tile; });
    if (known == all.end()) {
      all.emplace_back(level == 0 && one_step_ ? near : near.at_a_time({}));
    } else {
      known->near.use = std::max(known->near.use, near.use);
    }
  }
}

LevelWalk::Borrowed::Borrowed(LevelWalk& walk, std::size_t level, Range staying, Range passing,
                              NearParts& all)
    : Borrowed(walk.machine_.inner()[level], all) {
  // If a later part does not fit, the run ends: the parts taken so far are given back, and changed
  // ones are counted as written.
  for (auto& [near, part] : all) {
    const auto along = [&](Axis axis, Index first, Index extent) -> Range {
      const Range of = axis == Axis::staying ? staying : passing;
      return axis == Axis::whole ? Range{0, extent} : Range{of.begin - first, of.end - first};
    };
    const Range rows = along(near.rows, near.first_row, near.tile->rows());
    const Range columns = along(near.columns, near.first_column, near.tile->cols());
    if (near.use == Use::sums && !walk.fresh_) {
      walk.fresh_ = walk.begun_->begins(level, staying.begin);
    }
    const bool anew = near.use == Use::makes || (near.use == Use::sums && *walk.fresh_);
    in_.take(part, rows, columns,
             near.use == Use::reads     ? Level::How::reads
             : near.use == Use::scratch ? Level::How::scratch
             : anew                     ? Level::How::makes
                                        : Level::How::changes,
             near.some.of(rows.size(), columns.size()));
    ++taken_;
  }
}

// Gives back the last part first.
void LevelWalk::Borrowed::give_back() noexcept {
  while (taken_ > 0) {
    in_.give_back(all_[--taken_].part);
  }
}

}  // namespace redblue
