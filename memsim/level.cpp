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
  require(outer_ == nullptr || outer_->has({.tile = tile.number(),
                                            .row = rows.begin,
                                            .column = columns.begin,
                                            .rows = rows.size(),
                                            .columns = columns.size()}),
          "a level borrows what the next level has");
  const Index words = rows.size() * columns.size();
  if (const Index missing = words - (capacity_ - meter_.live()); missing > 0) {
    throw FastMemoryOverflow(meter_.refusal(tile.name(), words, capacity_, contents()), missing);
  }
  // Member by member: a copy of the whole would wait for the stores that make it (measured).
  Lent& part = lent_.emplace_back();
  part.number = next_++;
  part.tile = tile.number();
  part.name = tile.name();
  part.rows.begin = rows.begin;
  part.rows.end = rows.end;
  part.columns.begin = columns.begin;
  part.columns.end = columns.end;
  part.holds = tile.holds();
  meter_.charge(words, part.holds);
  return part;
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
  const auto at = level_->lent(number_);
  level_->meter_.discharge(at->words(), at->holds);
  level_->tell(Event::Kind::remove, *at);
  level_->lent_.erase(at);
  level_ = nullptr;
}

void Level::tell_all(Event::Kind kind, const Lent& part) {
  for (Listener* listener : listeners_) {
    listener->on({.kind = kind,
                  .name = part.name,
                  .tile = part.tile,
                  .rows = part.rows.size(),
                  .cols = part.columns.size(),
                  .live = live()});
  }
}

}  // namespace redblue
