#include "memsim/level.hpp"

#include <algorithm>

namespace redblue {

Level::Level(Index M, const Level* outer)
    : capacity_((require(M >= 1, "M of a level is at least one word"), M)), outer_(outer) {}

const Level::Lent& Level::lend(const Tile& tile, Range rows, Range columns) {
  const auto within = [](Range range, Index extent) {
    return 0 <= range.begin && range.begin < range.end && range.end <= extent;
  };
  require(within(rows, tile.rows()) && within(columns, tile.cols()),
          "a level borrows a part of a tile, of some words");
  const Lent part{next_, tile.number(), tile.name(), rows, columns, tile.holds()};
  require(outer_ == nullptr || outer_->has({.tile = part.tile,
                                            .row = rows.begin,
                                            .column = columns.begin,
                                            .rows = rows.size(),
                                            .columns = columns.size()}),
          "a level borrows what the next level has");
  if (const Index missing = part.words() - (capacity_ - meter_.live()); missing > 0) {
    throw FastMemoryOverflow(meter_.refusal(part.name, part.words(), capacity_, contents()),
                             missing);
  }
  lent_.push_back(part);
  ++next_;
  meter_.charge(part.words(), part.holds);
  return lent_.back();
}

Loan Level::begin(const Tile& tile, Range rows, Range columns) {
  const Lent& part = lend(tile, rows, columns);
  tell(Event::Kind::initialize, part);
  return {*this, part.number};
}

Loan Level::borrow(const Tile& tile, Range rows, Range columns) {
  const Lent& part = lend(tile, rows, columns);
  meter_.read(part.words(), part.holds);
  tell(Event::Kind::read, part);
  return {*this, part.number};
}

bool Level::has(const TilePart& part) const {
  const auto within = [](Index begin, Index size, Range all) {
    return all.begin <= begin && begin + size <= all.end;
  };
  return std::ranges::any_of(lent_, [&](const Lent& lent) {
    return lent.tile == part.tile && within(part.row, part.rows, lent.rows) &&
           within(part.column, part.columns, lent.columns);
  });
}

std::string Level::contents() const {
  std::string all;
  for (const Lent& part : lent_) {
    all += (all.empty() ? "" : ", ") + std::string(part.name) + " " + std::to_string(part.words());
  }
  return all;
}

// Those that were lent last are mostly given back first.
std::vector<Level::Lent>::iterator Level::lent(std::uint64_t number) noexcept {
  auto at = lent_.end() - 1;
  while (at->number != number) {
    --at;
  }
  return at;
}

void Loan::write() {
  require(level_ != nullptr, "a loan that is written is of some words");
  const auto part = level_->lent(number_);
  level_->meter_.write(part->words(), part->holds);
  level_->tell(Event::Kind::write, *part);
}

void Loan::end() noexcept {
  if (level_ != nullptr) {
    const auto at = level_->lent(number_);
    const Level::Lent part = *at;
    level_->meter_.discharge(part.words(), part.holds);
    level_->lent_.erase(at);
    level_->tell(Event::Kind::remove, part);
    level_ = nullptr;
  }
}

}  // namespace redblue
