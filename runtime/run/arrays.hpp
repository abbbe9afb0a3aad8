#pragma once
// Operands and results in the memory of a program that has a run as a function, in place of files.
// Words are row-major, heads first.

#include <map>
#include <span>
#include <string>
#include <vector>

#include "memsim/words.hpp"
#include "runtime/run/buffers.hpp"

namespace redblue {

// Words that are the caller's, and are used where they are. Requires: as many as the shape has.
template <class Word>
struct LentArray {
  std::vector<Index> shape;
  std::span<Word> words;
};

struct Arrays {
  std::map<std::string, LentArray<const float>, std::less<>> in;
  // Results that are written where they are; where a run fails, they are of no use.
  std::map<std::string, LentArray<float>, std::less<>> out;
  // The others that a run returns, which it fills: those that are dense and in main memory.
  struct Taken {
    std::vector<Index> shape;
    std::vector<float> words;
  };
  std::map<std::string, Taken, std::less<>> results;

  // Where results go. Requires: a run has made room for them.
  [[nodiscard]] ViewedResults targets() {
    ViewedResults all;
    for (auto& [name, lent] : out) {
      all.emplace(name, lent.words);
    }
    for (auto& [name, taken] : results) {
      all.emplace(name, taken.words);
    }
    return all;
  }
};

}  // namespace redblue
