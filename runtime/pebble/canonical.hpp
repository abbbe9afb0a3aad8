#pragma once
// Chooses one state to stand for all states that renamings turn into each other.

#include <vector>

#include "runtime/pebble/steps.hpp"
#include "runtime/pebble/symmetry.hpp"

namespace redblue {

State renamed(const State& state, const Renaming& names);

class Canonical {
 public:
  explicit Canonical(const Terms& terms);

  [[nodiscard]] State of(const State& state) const;
  [[nodiscard]] const std::vector<Renaming>& renamings() const { return renamings_; }

 private:
  [[nodiscard]] Set fewest_red(const State& state) const;

  std::vector<Renaming> renamings_;
  std::vector<Set> orbits_;  // sets of words that are renamed into each other
  std::vector<std::vector<const Renaming*>> to_first_;  // by word: to the first word of its orbit
};

}  // namespace redblue
