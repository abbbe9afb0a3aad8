#pragma once
// The game without recomputation, as states and steps: once, fma.
//
// A state is what was added, which words are red, and which of these are blue as well (`blue`, of
// red words alone: a word that was begun, is needed, and is not red, is blue). A step adds a term
// that is not free: its missing words are read, others go where it must be. That is enough: reads
// wait for their term and evictions for need; so red sums that are not finished were added to since
// they came, and a term of red words alone that takes no room is added at once. Words that are not
// needed any more go, results are written when they are finished, and stay while they are needed.
//
// The words that are left are estimated by those that must move: a read of each word that is
// needed, exists and is not red; a write of each result. Evictions alone raise the sum of words
// moved and estimated, by 1, or by 2 where a word must be written first.

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

  // Calls visit(next, words moved, step) for each step that raises words moved and estimated by
  // `most` at most. In a `narrow` way: by at most one more than it must.
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
  // What a step makes of a state, move by move where `moves` is not null.
  State play(State state, const Step& step, std::vector<WordMove>* moves) const;

 private:
  struct Words {
    Set finished = 0;
    Set needed = 0;  // terms are left that take them, or that are added to them
  };
  [[nodiscard]] Words look(const State& state) const;
  [[nodiscard]] bool begun(const State& state, Index word) const {
    return (terms_.added_to(word) & state.done) != 0;
  }
  [[nodiscard]] bool finished(const State& state, Set words) const;
  // Operands of a term that nothing else takes any more.
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
