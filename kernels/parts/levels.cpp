#include "kernels/parts/levels.hpp"

#include <optional>

#include "memsim/errors.hpp"

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

LevelWalk::Borrowed LevelWalk::borrow(std::size_t level, Range staying, Range passing,
                                      bool passes) {
  Level& in = machine_.inner()[level];
  Borrowed borrowed;
  std::optional<bool> fresh;  // of sums
  const std::size_t begin = passes ? first_passing_ : 0;
  const std::size_t end = passes ? near_.size() : first_passing_;
  require(end - begin <= kMost, "a walk borrows few tiles");
  for (std::size_t k = begin; k < end; ++k) {
    const Near& near = near_[k];
    const auto along = [&](Axis axis, Index first, Index extent) -> Range {
      const Range of = axis == Axis::staying ? staying : passing;
      return axis == Axis::whole ? Range{0, extent} : Range{of.begin - first, of.end - first};
    };
    const Range rows = along(near.rows, near.first_row, near.tile->rows());
    const Range columns = along(near.columns, near.first_column, near.tile->cols());
    if (near.use == Use::sums && !fresh) {
      fresh = begun_->begins(level, staying.begin);
    }
    const bool anew = near.use == Use::makes || (near.use == Use::sums && *fresh);
    borrowed.all[borrowed.count] =
        anew ? in.begin(*near.tile, rows, columns) : in.borrow(*near.tile, rows, columns);
    borrowed.changed[borrowed.count++] = near.use != Use::reads;
  }
  return borrowed;
}

// The last first, as levels keep them.
void LevelWalk::Borrowed::give_back() {
  while (count > 0) {
    --count;
    if (changed[count]) {
      all[count].write();
    }
    all[count] = {};
  }
}

}  // namespace redblue
