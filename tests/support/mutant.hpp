#pragma once
// What tests/mutants puts into kernels: mistakes, of which REDBLUE_MUTANT chooses one when the
// program starts. MUTANTS is their number.

#include <cstdlib>

#include <sys/mman.h>

#include "memsim/machine.hpp"

namespace redblue {

inline const int mutant_made = [] {
  const char* const made = std::getenv("REDBLUE_MUTANT");
  return made == nullptr ? -1 : std::atoi(made);
}();

// For each mutant, whether the program has reached it. Forked processes share it.
inline char* const mutants_reached = static_cast<char*>(
    mmap(nullptr, MUTANTS, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));

inline bool mutant(int number) {
  if (mutants_reached[number] == 0) {
    mutants_reached[number] = 1;
  }
  return number == mutant_made;
}

template <typename Right, typename Wrong>
auto choose(int number, const Right& right, const Wrong& wrong) -> decltype(right()) {
  if (mutant(number)) {
    return static_cast<decltype(right())>(wrong());
  }
  return right();
}

inline Tile dropped_read(Machine& machine, const ConstBlock& block, CutEvery cut = {}) {
  return machine.initialize("dropped", block.rows(), block.cols(), block.holds(), cut);
}
inline Tile dropped_read(Machine& machine, const Transposed<ConstBlock>& block, CutEvery cut = {}) {
  return machine.initialize("dropped", block.of.cols(), block.of.rows(), block.of.holds(), cut);
}

}  // namespace redblue
