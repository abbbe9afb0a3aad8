#include "runtime/trace/occupancy.hpp"

#include <algorithm>

namespace redblue {

Occupancy::Occupancy(Machine& machine, Index most_columns)
    : Follower(machine), most_(static_cast<std::size_t>(most_columns)), columns_(1) {}

void Occupancy::follow(const Event& event) {
  switch (event.kind) {
    case Event::Kind::read:
      change(event, event.words);
      move(event.moved);
      break;
    case Event::Kind::write:
      move(event.moved);
      break;
    case Event::Kind::initialize:
      change(event, event.words);
      break;
    case Event::Kind::remove:
      change(event, -event.words);
      break;
    case Event::Kind::enter_phase:
    case Event::Kind::leave_phase:
      path_.follow(event);
      break;
  }
}

void Occupancy::change(const Event& event, Index words) {
  const auto name = std::ranges::find(names_, event.name);
  const auto at = static_cast<std::size_t>(name - names_.begin());
  if (name == names_.end()) {
    names_.emplace_back(event.name);
    now_.words.push_back(0);
  }
  now_.words[at] += words;
  now_.live += words;
  peak_ = std::max(peak_, now_.live);
  note(columns_.size() - 1);
}

void Occupancy::move(Index words) {
  if (words == 0) {
    return;
  }
  if (spans_.empty() || spans_.back().path != path_.path()) {
    spans_.push_back({path_.path(), moved_, moved_});
  }
  moved_ += words;
  spans_.back().end = moved_;
  while (ceil_div(moved_, width_) > static_cast<Index>(most_)) {
    halve();
  }
  // The move may end in the column in which it begins, or fill several.
  const auto last = static_cast<std::size_t>(ceil_div(moved_, width_)) - 1;
  for (std::size_t k = static_cast<std::size_t>((moved_ - words) / width_); k <= last; ++k) {
    columns_.resize(std::max(columns_.size(), k + 1));
    note(k);
  }
}

void Occupancy::note(std::size_t column) {
  if (Column& most = columns_[column]; now_.live > most.live) {
    most = now_;
  }
}

void Occupancy::halve() {
  width_ *= 2;
  const std::size_t half = (columns_.size() + 1) / 2;
  for (std::size_t k = 0; k < half; ++k) {
    const std::size_t second = std::min(2 * k + 1, columns_.size() - 1);
    Column& most = columns_[columns_[second].live > columns_[2 * k].live ? second : 2 * k];
    if (&most != &columns_[k]) {
      columns_[k] = std::move(most);
    }
  }
  columns_.resize(half);
}

}  // namespace redblue
