#include "memsim/level.hpp"

#include <algorithm>

namespace redblue {

Level::Level(Index M, const Level* outer)
    : capacity_((require(M >= 1, "M of a level is at least one word"), M)), outer_(outer) {}

void Level::take(Part& part, Range rows, Range columns, How how, Index at_a_time) {
  const auto within = [](Range range, Index extent) {
    return 0 <= range.begin && range.begin < range.end && range.end <= extent;
  };
  require(within(rows, part.extents_[0]) && within(columns, part.extents_[1]),
          "a level takes a part of a tile, of some words");
  require(outer_ == nullptr || outer_->has({.tile = part.tile_,
                                            .row = rows.begin,
                                            .column = columns.begin,
                                            .rows = rows.size(),
                                            .columns = columns.size()}),
          "a level takes what the next level has");
  const Index charge = std::min(rows.size() * columns.size(), at_a_time);
  if (const Index missing = charge - (capacity_ - meter_.live()); missing > 0) {
    throw FastMemoryOverflow(meter_.refusal(part.name_, charge, capacity_, contents()), missing);
  }
  parts_.push_back(&part);
  part.rows_ = rows;
  part.columns_ = columns;
  part.charged_ = charge;
  part.how_ = how;
  meter_.charge(charge, part.holds_);
  if (how == How::makes || how == How::scratch) {
    tell(Event::Kind::initialize, part);
  } else {
    meter_.read(part.words(), part.holds_);
    tell(Event::Kind::read, part);
  }
}

// Parts are mostly given back in reverse order, so the last one is tried first.
void Level::give_back(const Part& part) noexcept {
  if (part.how_ == How::changes || part.how_ == How::makes) {
    meter_.write(part.words(), part.holds_);
    tell(Event::Kind::write, part);
  }
  meter_.discharge(part.charged_, part.holds_);
  tell(Event::Kind::remove, part);
  if (parts_.back() == &part) {
    parts_.pop_back();
  } else {
    std::erase(parts_, &part);
  }
}

bool Level::has(const TilePart& part) const {
  const auto within = [](Index begin, Index size, Range all) {
    return all.begin <= begin && begin + size <= all.end;
  };
  return std::ranges::any_of(parts_, [&](const Part* taken) {
    return taken->tile_ == part.tile && within(part.row, part.rows, taken->rows_) &&
           within(part.column, part.columns, taken->columns_);
  });
}

std::string Level::contents() const {
  std::string all;
  for (const Part* part : parts_) {
    all +=
        (all.empty() ? "" : ", ") + std::string(part->name_) + " " + std::to_string(part->charged_);
  }
  return all;
}

void Level::tell_all(Event::Kind kind, const Part& part) {
  const bool moves = kind == Event::Kind::read || kind == Event::Kind::write;
  for (Listener* listener : listeners_) {
    listener->on({.kind = kind,
                  .name = part.name_,
                  .tile = part.tile_,
                  .rows = part.rows_.size(),
                  .cols = part.columns_.size(),
                  .words = part.charged_,
                  .moved = moves ? part.words() : 0,
                  .live = live()});
  }
}

}  // namespace redblue
