#pragma once
// States and steps of the games without recomputation (once, fma).
//
// A state is the set of added terms, the set of red words, and the set of red words that are also
// blue. `blue` holds red words alone: a word that was begun, is needed and is not red must be blue.
//
// A step adds a term that is not free. It reads the missing words and evicts others if there is no
// room. This is enough, because reads can wait for their term and evictions for need. So a red sum
// that is not finished had a term added since it was read. A term of red words alone that takes no
// room is free and is added at once. Words that are no longer needed are dropped. Results are
// written when they are finished, and stay red while they are needed.
//
// The estimate of the words still to move counts the words that must move. These are a read of each
// word that is needed, exists and is not red, and a write of each missing result. Only evictions
// raise the sum of words moved and estimated. They raise it by 1, or by 2 if the word must be
// written first.

#include <vector>

#include "runtime/pebble/canonical.hpp"

namespace redblue {

class OnceSpace {
 public:
  OnceSpace(const Terms& terms, const Canonical& canonical, Index M);

  [[nodiscard]] static State start() { return {}; }
  [[nodiscard]] bool goal(const State& state) const { return state.done == terms_.all; }
  [[nodiscard]] State least(const State& state) const { return canonical_.of(state); }
  [[nodiscard]] Index estimate(const State& state) const;
  [[nodiscard]] static Index depth(const State& state) { return count(state.done); }

  // Calls visit(next, words moved, step) for each step that raises the sum of words moved and
  // estimated by at most `most`. If `narrow`, also by at most one more than the least for its term.
  template <class Visit>
  void expand(const State& state, Index most, bool narrow, const Visit& visit) const {
    const Words words = look(state);
    const Index before = estimate(state);
    each(terms_.all & ~state.done, [&](Index t) {
      if ((terms_[t].operands & ~words.finished) != 0) {
        return;
      }
      const Room room = room_for(state, t);
      const Set dear = ~(terms_.inputs | state.blue | ~state.red);
      const Index limit = narrow ? std::min(most, least_price(room, dear) + 1) : most;
      each_eviction(room, dear, limit, [&](Set evicted, Index price) {
        const Step step{t, evicted, evicted & dear};
        const State next = play(state, step, nullptr);
        visit(next, before + price - estimate(next), step);
      });
    });
  }
  // Returns the state after a step. Appends the moves to `moves` if it is not null.
  State play(State state, const Step& step, std::vector<WordMove>* moves) const;

 private:
  struct Words {
    Set finished = 0;
    Set needed = 0;  // a remaining term uses them or is added to them
  };
  [[nodiscard]] Words look(const State& state) const;
  [[nodiscard]] bool begun(const State& state, Index word) const {
    return (terms_.added_to(word) & state.done) != 0;
  }
  [[nodiscard]] bool finished(const State& state, Set words) const;
  // Returns the operands of a term that no other remaining term uses.
  [[nodiscard]] Set last_used(const State& state, Index t) const;
  [[nodiscard]] Room room_for(const State& state, Index t) const;
  [[nodiscard]] static Index least_price(const Room& room, Set dear);
  [[nodiscard]] bool free(const State& state, Index t) const;
  void add(State& state, Index t, Set slides, std::vector<WordMove>* moves) const;

  const Terms& terms_;
  const Canonical& canonical_;
  Index M_;
};

}  // namespace redblue
