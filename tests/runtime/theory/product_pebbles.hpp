#pragma once
// Finds the least reads + writes of C = A B by a search over every order of the products and every
// choice of resident words. Feasible for about a dozen multiply-adds.
//
// A move brings a word of A, B or a started word of C (a read), or starts a word of C (free). It
// replaces at most one other word. A word of C that leaves is written, and any other is dropped. A
// product with its three words present is added at once, which never hurts. Words leave only if
// room is needed. At the end, every word of C is written. A state is the set of added products and
// the set of present words.

#include <bit>
#include <cstdint>
#include <functional>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "kernels/problem.hpp"

namespace redblue {

class ProductPebbles {
 public:
  explicit ProductPebbles(const Shape& shape)
      : first_result_(shape.d * (shape.n + shape.m)),
        words_(first_result_ + shape.n * shape.m),
        of_(static_cast<std::size_t>(words_)) {
    const auto [n, m, d] = shape;
    for (Index i = 0; i < n; ++i) {
      for (Index j = 0; j < m; ++j) {
        for (Index k = 0; k < d; ++k) {
          std::uint64_t words = 0;
          for (const Index word : {i * d + k, n * d + k * m + j, first_result_ + i * m + j}) {
            words |= bit(word);
            of_[static_cast<std::size_t>(word)] |= bit(products());
          }
          words_of_.push_back(words);
        }
      }
    }
  }

  // Requires: M >= 3; n m d and the number of words at most 32 each.
  [[nodiscard]] Index least(Index M) const {
    using Entry = std::tuple<Index, std::uint64_t>;  // moved plus still compulsory words; state
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
    std::unordered_map<std::uint64_t, Index> moved;
    const auto reach = [&](std::uint64_t done, std::uint64_t here, Index words) {
      for (Index at = 0; at < products(); ++at) {
        const std::uint64_t three = words_of_[static_cast<std::size_t>(at)];
        done |= (here & three) == three ? bit(at) : 0;
      }
      const std::uint64_t state = done << 32 | here;
      const auto [known, fresh] = moved.try_emplace(state, words);
      if (fresh || words < known->second) {
        known->second = words;
        open.emplace(words + compulsory(done, here), state);
      }
    };
    reach(0, 0, 0);
    while (true) {
      const auto [estimate, state] = open.top();
      open.pop();
      const std::uint64_t done = state >> 32;
      const std::uint64_t here = state & 0xffffffff;
      const Index words = moved.at(state);
      if (words + compulsory(done, here) < estimate) {
        continue;  // reached again with fewer words
      }
      if (done == bit(products()) - 1) {
        return estimate;
      }
      // The words that may leave if there is no room. A word that can leave at no extra cost is the
      // only candidate.
      std::vector<Index> going;
      for (Index gone = 0; gone < words_ && std::popcount(here) >= M; ++gone) {
        if ((here & bit(gone)) == 0) {
          continue;
        }
        if (!needed(done, gone)) {
          going = {gone};
          break;
        }
        going.push_back(gone);
      }
      for (Index word = 0; word < words_; ++word) {
        if ((here & bit(word)) != 0 || !needed(done, word)) {
          continue;
        }
        const std::uint64_t with = here | bit(word);
        const Index read = is_result(word) && !begun(done, word) ? 0 : 1;
        if (going.empty()) {
          reach(done, with, words + read);
        }
        for (const Index gone : going) {
          const Index written = is_result(gone) && begun(done, gone) ? 1 : 0;
          reach(done, with & ~bit(gone), words + read + written);
        }
      }
    }
  }

 private:
  static std::uint64_t bit(Index at) { return std::uint64_t{1} << at; }
  [[nodiscard]] Index products() const { return static_cast<Index>(words_of_.size()); }
  [[nodiscard]] bool is_result(Index word) const { return word >= first_result_; }
  // Returns whether products of this word are missing, and whether some are added.
  [[nodiscard]] bool needed(std::uint64_t done, Index word) const {
    return (of_[static_cast<std::size_t>(word)] & ~done) != 0;
  }
  [[nodiscard]] bool begun(std::uint64_t done, Index word) const {
    return (of_[static_cast<std::size_t>(word)] & done) != 0;
  }

  // Returns the words that every way to the end still has to move.
  [[nodiscard]] Index compulsory(std::uint64_t done, std::uint64_t here) const {
    Index words = 0;
    for (Index word = 0; word < words_; ++word) {
      const bool is_here = (here & bit(word)) != 0;
      const bool missing = needed(done, word);
      if (is_result(word)) {
        words += missing || is_here ? 1 : 0;                        // its last write
        words += missing && !is_here && begun(done, word) ? 1 : 0;  // its read
      } else {
        words += missing && !is_here ? 1 : 0;
      }
    }
    return words;
  }

  Index first_result_;
  Index words_;
  std::vector<std::uint64_t> of_;        // the products of each word
  std::vector<std::uint64_t> words_of_;  // the three words of each product
};

}  // namespace redblue
