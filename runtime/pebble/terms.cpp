#include "runtime/pebble/terms.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace redblue {
namespace {

class TermsOf {
 public:
  explicit TermsOf(const Rules& rules)
      : rules_(rules), dag_(rules.dag()), uses_(dag_.uses()), word_(dag_.vertices.size(), -1) {}

  Terms get() {
    made_.slide = rules_.game() == Game::sliding || rules_.game() == Game::fma;
    number_words();
    for (Index word = 0; word < made_.words(); ++word) {
      add_terms(word, made_.vertex[static_cast<std::size_t>(word)]);
    }
    require(std::ssize(made_.terms), "terms");
    finish();
    return std::move(made_);
  }

 private:
  static void require(Index size, const char* what) {
    if (size > kMostWords) {
      throw TooManyWords(
          fmt::format("{} {}, and at most {} can be solved", size, what, kMostWords));
    }
  }
  [[nodiscard]] bool merged(Index v) const {
    return rules_.game() == Game::partial || (rules_.game() == Game::fma && dag_[v].sum);
  }
  // Returns whether the operand is a term that is added to a sum of any order.
  [[nodiscard]] bool added(Index operand) const {
    return rules_.game() == Game::fma && dag_[operand].term &&
           uses_[static_cast<std::size_t>(operand)] == 1;
  }

  void number_words() {
    std::vector<bool> none(dag_.vertices.size());
    for (Index v = 0; v < dag_.size(); ++v) {
      for (const Index operand : dag_[v].operands) {
        none[static_cast<std::size_t>(operand)] =
            none[static_cast<std::size_t>(operand)] || (merged(v) && added(operand));
      }
    }
    Index words = 0;
    for (Index v = 0; v < dag_.size(); ++v) {
      if (!none[static_cast<std::size_t>(v)] && !rules_.without_pebble(v)) {
        word_[static_cast<std::size_t>(v)] = words++;
        made_.vertex.push_back(v);
      }
    }
    require(words, "words");
  }
  [[nodiscard]] Set words(const std::vector<Index>& vertices) const {
    Set set = 0;
    for (const Index v : vertices) {
      if (const Index word = word_[static_cast<std::size_t>(v)]; word >= 0) {
        set |= bit(word);
      }
    }
    return set;
  }
  void add_terms(Index word, Index v) {
    if (dag_.input(v)) {
      return;
    }
    if (!merged(v)) {
      made_.terms.push_back({words(rules_.needed(v)), words(dag_[v].operands), word});
      return;
    }
    for (const Index operand : dag_[v].operands) {
      const Set of = words(added(operand) ? dag_[operand].operands : std::vector{operand});
      // A sum that begins with a word begins as a copy of it, which is another word.
      made_.terms.push_back({of, of, word});
    }
  }
  void finish() {
    made_.adding.assign(made_.vertex.size(), 0);
    made_.using_it.assign(made_.vertex.size(), 0);
    for (Index t = 0; t < std::ssize(made_.terms); ++t) {
      made_.all |= bit(t);
      made_.adding[static_cast<std::size_t>(made_[t].target)] |= bit(t);
      each(made_[t].operands,
           [&](Index word) { made_.using_it[static_cast<std::size_t>(word)] |= bit(t); });
    }
    const std::vector<bool> results = dag_.results();
    for (Index word = 0; word < made_.words(); ++word) {
      made_.inputs |= made_.added_to(word) == 0 ? bit(word) : 0;
      made_.results |= results[slot(made_.vertex[slot(word)])] ? bit(word) : 0;
    }
  }

  const Rules& rules_;
  const Dag& dag_;
  std::vector<Index> uses_;
  std::vector<Index> word_;  // by vertex; -1: no word
  Terms made_;
};

}  // namespace

Index Terms::least_M() const {
  Index least = 1;
  for (const PebbleTerm& term : terms) {
    const bool alone = count(added_to(term.target)) == 1;
    const bool slides = slide && alone && term.sliding != 0;
    least = std::max(least, count(term.operands) + (slides ? 0 : 1));
  }
  return least;
}

Terms terms_of(const Rules& rules) {
  return TermsOf(rules).get();
}

}  // namespace redblue
