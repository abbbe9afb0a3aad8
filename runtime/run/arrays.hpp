#pragma once
// Operands and results as arrays in the memory of the calling program, instead of files. Words are
// row-major, heads first.

#include <map>
#include <span>
#include <string>
#include <vector>

#include "memsim/words.hpp"
#include "runtime/run/buffers.hpp"

namespace redblue {

// Words that belong to the caller and are used in place. Requires: `words` has as many words as
// `shape` says.
template <class Word>
struct LentArray {
  std::vector<Index> shape;
  std::span<Word> words;
};

struct Arrays {
  std::map<std::string, LentArray<const float>, std::less<>> in;
  // Results that the run writes in place. If the run fails, their contents are undefined.
  std::map<std::string, LentArray<float>, std::less<>> out;
  // All other results that are dense and in main memory. The run fills them.
  struct Taken {
    std::vector<Index> shape;
    std::vector<float> words;
  };
  std::map<std::string, Taken, std::less<>> results;

  // Returns the places that the run writes results to. Requires: the run has allocated `results`.
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
