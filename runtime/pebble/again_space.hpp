#pragma once
// States and steps of the games with recomputation (strict, sliding).
//
// A state is the set of red words and the set of blue words. A step computes one word. It reads the
// operands that are not red. If there is no room, it evicts other words, which are written first or
// lost. Words are read only when a step needs them, and evicted only to make room. Words that no
// missing result depends on are forgotten. A result is written when it is computed.
//
// The estimate of the words still to move has two parts. One is a write of each missing result. The
// other is the fewest reads from which all missing results can be made: the least vertex cut
// between the words that exist and the missing results. In the cut a red word costs 0, and a blue
// word or input 1.

#include <array>
#include <vector>

#include "runtime/pebble/canonical.hpp"

namespace redblue {

class AgainSpace {
 public:
  AgainSpace(const Terms& terms, const Canonical& canonical, Index M);

  [[nodiscard]] static State start() { return {}; }
  [[nodiscard]] bool goal(const State& state) const { return (terms_.results & ~state.blue) == 0; }
  [[nodiscard]] State least(const State& state) const { return canonical_.of(state); }
  [[nodiscard]] Index estimate(const State& state) const;

  // As OnceSpace::expand(). Requires: not narrow.
  template <class Visit>
  void expand(const State& state, Index most, bool /*narrow*/, const Visit& visit) const {
    const Set useful = useful_in(state);
    const Index before = estimate(state);
    for (const Step& step : steps(state, useful, before + most)) {
      Index moved = 0;
      const State next = play(state, step, nullptr, &moved);
      visit(next, moved, step);
    }
  }
  State play(const State& state, const Step& step, std::vector<WordMove>* moves,
             Index* moved = nullptr) const;

 private:
  // Returns the missing results and all words that they are made of.
  [[nodiscard]] Set useful_in(const State& state) const;
  [[nodiscard]] Set operands(Index word) const { return operands_[static_cast<std::size_t>(word)]; }
  [[nodiscard]] Set users(Index word) const { return users_[static_cast<std::size_t>(word)]; }
  [[nodiscard]] bool exists(const State& state, Set words) const {
    return (words & ~(state.red | state.blue | terms_.inputs)) == 0;
  }
  [[nodiscard]] std::vector<Step> steps(const State& state, Set useful, Index most) const;
  // Returns the operands of a word that no other useful word needs.
  [[nodiscard]] Set sole(Index word, Set useful) const;
  [[nodiscard]] bool forced(const State& state, Index word, Set useful) const;

  const Terms& terms_;
  const Canonical& canonical_;
  Index M_;
  std::vector<Set> operands_, users_, ancestors_;  // by word; ancestors include the word itself
};

}  // namespace redblue
