#include "runtime/pebble/once_space.hpp"

#include <algorithm>

namespace redblue {

OnceSpace::OnceSpace(const Terms& terms, const Canonical& canonical, Index M)
    : terms_(terms), canonical_(canonical), M_(M) {}

OnceSpace::Words OnceSpace::look(const State& state) const {
  Words words;
  for (Index word = 0; word < terms_.words(); ++word) {
    const Set added = terms_.added_to(word);
    const bool finished = (added & ~state.done) == 0;
    words.finished |= finished ? bit(word) : 0;
    if (!finished || (terms_.users(word) & ~state.done) != 0) {
      words.needed |= bit(word);
    }
  }
  return words;
}

Index OnceSpace::estimate(const State& state) const {
  Index words = 0;
  for (Index word = 0; word < terms_.words(); ++word) {
    const Set added = terms_.added_to(word);
    const bool finished = (added & ~state.done) == 0;
    if (!finished && (terms_.results & bit(word)) != 0) {
      ++words;
    }
    const bool exists = added == 0 || (added & state.done) != 0;
    const bool needed = !finished || (terms_.users(word) & ~state.done) != 0;
    if (exists && needed && (state.red & bit(word)) == 0) {
      ++words;
    }
  }
  return words;
}

bool OnceSpace::finished(const State& state, Set words) const {
  for (; words != 0; words = without_first(words)) {
    if ((terms_.added_to(first(words)) & ~state.done) != 0) {
      return false;
    }
  }
  return true;
}

Set OnceSpace::last_used(const State& state, Index t) const {
  Set last = 0;
  each(terms_[t].operands, [&](Index operand) {
    if ((terms_.users(operand) & ~state.done) == bit(t)) {
      last |= bit(operand);
    }
  });
  return last;
}

Room OnceSpace::room_for(const State& state, Index t) const {
  const PebbleTerm& term = terms_[t];
  const bool begins = !begun(state, term.target);
  const Set base = state.red | term.operands | (begins ? 0 : bit(term.target));
  Room room{count(base) - M_, base & ~term.operands & ~bit(term.target), 0};
  if (!begins) {
    return room;
  }
  const Set sliding = terms_.slide ? term.sliding : 0;
  if ((last_used(state, t) & sliding) == 0) {
    ++room.size;
    room.sliding = sliding;
  }
  return room;
}

Index OnceSpace::least_price(const Room& room, Set dear) {
  if (room.size <= 0) {
    return 0;
  }
  const Index cheap = count(room.candidates & ~dear) + ((room.sliding & ~dear) != 0 ? 1 : 0);
  return room.size + std::max<Index>(0, room.size - cheap);
}

// Returns whether the term can be added without moving words, and doing so never harms. It harms if
// a word that could be read again is replaced by a word that must be written.
bool OnceSpace::free(const State& state, Index t) const {
  const PebbleTerm& term = terms_[t];
  if ((term.operands & ~state.red) != 0 || !finished(state, term.operands)) {
    return false;
  }
  if (begun(state, term.target)) {
    return (state.red & bit(term.target)) != 0;
  }
  const Set last = last_used(state, t);
  const Set kept = terms_.inputs | state.blue;
  if (count(last) < 2 && (last & ~kept) == 0) {
    return false;
  }
  const bool slides = terms_.slide && (last & term.sliding) != 0;
  return slides || count(state.red) < M_;
}

void OnceSpace::add(State& state, Index t, Set slides, std::vector<WordMove>* moves) const {
  const PebbleTerm& term = terms_[t];
  const Set target = bit(term.target);
  const Set last = last_used(state, t);
  const bool begins = !begun(state, term.target);
  const Set sliding = begins && terms_.slide ? (slides | last) & term.sliding : 0;
  state.done |= bit(t);
  const bool result =
      (terms_.results & target) != 0 && (terms_.added_to(term.target) & ~state.done) == 0;
  const bool done = result && terms_.users(term.target) == 0;
  if (moves != nullptr) {
    const Index from = slides != 0 ? first(slides) : sliding != 0 ? first(sliding) : -1;
    moves->push_back({Act::compute, term.target, t, from});
    each(from < 0 ? last : last & ~bit(from), [&](Index word) {
      moves->push_back({Act::remove, word});
    });
    if (result) {
      moves->push_back({Act::write, term.target});
    }
    if (done) {
      moves->push_back({Act::remove, term.target});
    }
  }
  state.red = (state.red & ~last & ~slides & ~target) | (done ? 0 : target);
  state.blue = (state.blue & state.red & ~target) | (result && !done ? target : 0);
}

State OnceSpace::play(State state, const Step& step, std::vector<WordMove>* moves) const {
  const PebbleTerm& term = terms_[step.term];
  if (moves != nullptr) {
    // An operand that slides to the target is also written first, if it is red and not blue.
    each(step.written, [&](Index word) { moves->push_back({Act::write, word}); });
    each(step.evicted & ~term.operands, [&](Index word) { moves->push_back({Act::remove, word}); });
  }
  const Set wanted = term.operands | (begun(state, term.target) ? bit(term.target) : 0);
  const Set reads = wanted & ~state.red;
  if (moves != nullptr) {
    each(reads, [&](Index word) { moves->push_back({Act::read, word}); });
  }
  state.red = (state.red & ~(step.evicted & ~term.operands)) | wanted;
  state.blue = (state.blue | (reads & ~terms_.inputs) | step.written) & state.red;
  add(state, step.term, step.evicted & term.operands, moves);
  for (bool again = true; again;) {
    again = false;
    each(terms_.all & ~state.done, [&](Index t) {
      if ((bit(t) & ~state.done) != 0 && free(state, t)) {
        add(state, t, 0, moves);
        again = true;
      }
    });
  }
  return state;
}

}  // namespace redblue
