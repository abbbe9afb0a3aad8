#pragma once
// The game with recomputation, as states and steps: strict, sliding.
//
// A state is which words are red and which are blue. A step computes a word: operands that are not
// red are read, and others go, written first or not, where it must be. Reads wait for what they are
// for, evictions for need. Words from which no missing result can be made any more are forgotten,
// and a result is written when it is computed.
//
// The words that are left are estimated by a write of each missing result and the fewest reads from
// which all of these can be made: the least cut of vertices between what exists, of which red words
// cost nothing and blue ones 1, and them.

#include <array>
#include <vector>

#include "runtime/pebble/steps.hpp"

namespace redblue {

class AgainSpace {
 public:
  AgainSpace(const Terms& terms, Index M);

  [[nodiscard]] static State start() { return {}; }
  [[nodiscard]] bool goal(const State& state) const { return (terms_.results & ~state.blue) == 0; }
  [[nodiscard]] State least(const State& state) const { return canonical(state, renamings_); }
  [[nodiscard]] const std::vector<Renaming>& renamings() const { return renamings_; }
  [[nodiscard]] Index estimate(const State& state) const;

  // As OnceSpace. Requires: not narrow.
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
  // Words of which missing results are made, and these.
  [[nodiscard]] Set useful_in(const State& state) const;
  [[nodiscard]] Set operands(Index word) const { return operands_[static_cast<std::size_t>(word)]; }
  [[nodiscard]] Set users(Index word) const { return users_[static_cast<std::size_t>(word)]; }
  [[nodiscard]] bool exists(const State& state, Set words) const {
    return (words & ~(state.red | state.blue | terms_.inputs)) == 0;
  }
  [[nodiscard]] std::vector<Step> steps(const State& state, Set useful, Index most) const;
  // Operands that nothing else useful is made of.
  [[nodiscard]] Set sole(Index word, Set useful) const;
  [[nodiscard]] bool forced(const State& state, Index word, Set useful) const;

  const Terms& terms_;
  Index M_;
  std::vector<Set> operands_, users_, ancestors_;  // of each word; ancestors with itself
  std::vector<Renaming> renamings_;
};

}  // namespace redblue
