#include "runtime/pebble/again_space.hpp"

#include <algorithm>

namespace redblue {

AgainSpace::AgainSpace(const Terms& terms, const Canonical& canonical, Index M)
    : terms_(terms),
      canonical_(canonical),
      M_(M),
      operands_(terms.vertex.size()),
      users_(terms.vertex.size()),
      ancestors_(terms.vertex.size()) {
  for (const PebbleTerm& term : terms.terms) {
    operands_[static_cast<std::size_t>(term.target)] = term.operands;
    each(term.operands,
         [&](Index word) { users_[static_cast<std::size_t>(word)] |= bit(term.target); });
  }
  for (Index word = 0; word < terms.words(); ++word) {
    Set& all = ancestors_[static_cast<std::size_t>(word)];
    for (Set next = bit(word); next != 0;) {
      all |= next;
      Set of = 0;
      each(next, [&](Index k) { of |= operands(k); });
      next = of & ~all;
    }
  }
}

Set AgainSpace::useful_in(const State& state) const {
  Set useful = 0;
  each(terms_.results & ~state.blue,
       [&](Index result) { useful |= ancestors_[static_cast<std::size_t>(result)]; });
  return useful;
}

namespace {

// Finds the size of the least vertex cut: the most ways from results down to inputs that share no
// blue word. Each word has a top, where ways from its users arrive, and a bottom, where they leave
// to its operands.
class Cut {
 public:
  Cut(const std::vector<Set>& operands, const std::vector<Set>& users, Set inputs, Set red,
      Set blue)
      : operands_(operands), users_(users), inputs_(inputs), open_(~red), once_(blue | inputs) {}

  Index size(Set results) {
    Index ways = 0;
    bool more = true;
    while (more) {
      tops_ = bottoms_ = 0;
      more = false;
      for (Set left = results; left != 0 && !more; left = without_first(left)) {
        more = (tops_ & bit(first(left))) == 0 && from_top(first(left));
      }
      ways += more ? 1 : 0;
    }
    return ways;
  }

 private:
  static std::size_t at(Index word) { return static_cast<std::size_t>(word); }

  // Both functions find another way to an input, and take it.
  bool from_top(Index word) {
    tops_ |= bit(word);
    if ((bottoms_ & bit(word)) == 0 && ((once_ & bit(word)) == 0 || through_[at(word)] == 0) &&
        from_bottom(word)) {
      ++through_[at(word)];
      return true;
    }
    // Otherwise an earlier way that reached this word from a user takes another route. It leaves
    // its end to the new way.
    for (Set users = users_[at(word)] & ~bottoms_; users != 0; users &= users - 1) {
      const Index user = first(users);
      if ((bottoms_ & bit(user)) == 0 && along_[at(user)][at(word)] > 0 && from_bottom(user)) {
        --along_[at(user)][at(word)];
        return true;
      }
    }
    return false;
  }
  bool from_bottom(Index word) {
    bottoms_ |= bit(word);
    if ((inputs_ & bit(word)) != 0) {
      return true;
    }
    for (Set left = operands_[at(word)] & open_; left != 0; left = without_first(left)) {
      const Index operand = first(left);
      if ((tops_ & bit(operand)) == 0 && from_top(operand)) {
        ++along_[at(word)][at(operand)];
        return true;
      }
    }
    if (through_[at(word)] > 0 && (tops_ & bit(word)) == 0 && from_top(word)) {
      --through_[at(word)];
      return true;
    }
    return false;
  }

  const std::vector<Set>& operands_;
  const std::vector<Set>& users_;
  Set inputs_, open_, once_;
  Set tops_ = 0, bottoms_ = 0;  // where the current way has been
  std::array<std::uint8_t, kMostWords> through_{};
  std::array<std::array<std::uint8_t, kMostWords>, kMostWords> along_{};
};

}  // namespace

Index AgainSpace::estimate(const State& state) const {
  const Set missing = terms_.results & ~state.blue;
  return count(missing) +
         Cut(operands_, users_, terms_.inputs, state.red, state.blue).size(missing);
}

Set AgainSpace::sole(Index word, Set useful) const {
  Set sole = 0;
  each(operands(word), [&](Index operand) {
    if ((users(operand) & useful) == bit(word)) {
      sole |= bit(operand);
    }
  });
  return sole;
}

// Returns whether the word can be computed without moving words, and doing so never harms. This
// holds for a result, and for a word that replaces an operand which no other word needs.
bool AgainSpace::forced(const State& state, Index word, Set useful) const {
  if ((operands(word) & ~state.red) != 0 || ((state.red | state.blue) & bit(word)) != 0) {
    return false;
  }
  const bool alone = sole(word, useful) != 0;
  const bool room = count(state.red) < M_ || (terms_.slide && alone);
  return room && (alone || (terms_.results & bit(word)) != 0);
}

std::vector<Step> AgainSpace::steps(const State& state, Set useful, Index most) const {
  std::vector<Step> steps;
  const Set wanted = useful & ~terms_.inputs & ~state.red;
  for (Set left = wanted; left != 0; left = without_first(left)) {
    if (const Index word = first(left); forced(state, word, useful)) {
      return {{word, 0, 0}};
    }
  }
  each(wanted, [&](Index word) {
    if (!exists(state, operands(word))) {
      return;
    }
    const Set base = state.red | operands(word);
    const Index reads = count(operands(word) & ~state.red);
    Room room{count(base) + 1 - M_, base & ~operands(word), 0};
    if (terms_.slide) {
      if ((sole(word, useful) & base) != 0) {
        --room.size;
      } else {
        room.sliding = operands(word);
      }
    }
    each_eviction(room, 0, kMostWords, [&](Set evicted, Index /*price*/) {
      // Each evicted word that is not blue is written or lost.
      const Set dirty = evicted & ~state.blue & ~terms_.inputs;
      for (Set written = dirty;; written = (written - 1) & dirty) {
        if (reads + count(written) <= most) {
          steps.push_back({word, evicted, written});
        }
        if (written == 0) {
          break;
        }
      }
    });
  });
  return steps;
}

State AgainSpace::play(const State& state, const Step& step, std::vector<WordMove>* moves,
                       Index* moved) const {
  const Index word = step.term;
  const Set of = operands(word), reads = of & ~state.red;
  const bool result = (terms_.results & ~state.blue & bit(word)) != 0;
  const Set alone = sole(word, useful_in(state));
  const Set sliding = terms_.slide ? (step.evicted & of) | alone : 0;
  State next = state;
  next.blue |= step.written | (result ? bit(word) : 0);
  next.red = ((state.red | of) & ~step.evicted & ~alone) | bit(word);
  const Set useful = useful_in(next);
  next.red &= useful;
  next.blue &= (useful | terms_.results) & ~terms_.inputs;
  if (moved != nullptr) {
    *moved = count(reads) + count(step.written) + (result ? 1 : 0);
  }
  if (moves != nullptr) {
    each(step.written, [&](Index k) { moves->push_back({Act::write, k}); });
    each(step.evicted & ~of, [&](Index k) { moves->push_back({Act::remove, k}); });
    each(reads, [&](Index k) { moves->push_back({Act::read, k}); });
    const Set slid = (step.evicted & of) != 0 ? step.evicted & of : sliding;
    const Index from = slid == 0 ? -1 : first(slid);
    moves->push_back({Act::compute, word, word, from});
    if (result) {
      moves->push_back({Act::write, word});
    }
    const Set red = (state.red & ~step.evicted) | of | bit(word);
    each(red & ~next.red & ~(from < 0 ? 0 : bit(from)), [&](Index k) {
      moves->push_back({Act::remove, k});
    });
  }
  return next;
}

}  // namespace redblue
