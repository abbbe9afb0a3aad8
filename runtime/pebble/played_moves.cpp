#include "runtime/pebble/played_moves.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

namespace redblue {
namespace {

// The graph of a game in which terms were added one by one. A word s with several terms has the
// vertices s*0, s+1, .., s. Each is made of the previous vertex and a term s*k.
class OwnGraph {
 public:
  OwnGraph(const Dag& dag, const Terms& terms)
      : dag_(dag), terms_(terms), now_(terms.vertex.size(), -1), added_(terms.vertex.size()) {
    each(terms.inputs, [&](Index word) { now_[at(word)] = made_.add(name(word)); });
  }

  void play(const WordMove& move) {
    if (move.act != Act::compute) {
      moves_.push_back({move.act, now_[at(move.word)]});
      return;
    }
    const Index before = now_[at(move.word)];
    const std::optional<Index> slides =
        move.slides < 0 ? std::nullopt : std::optional(now_[at(move.slides)]);
    now_[at(move.word)] = vertex(move.word, terms_[move.term].operands, before);
    moves_.push_back(
        {Act::compute, now_[at(move.word)], before < 0 ? slides : std::optional(before)});
    ++added_[at(move.word)];
  }
  PlayedMoves take() { return {std::move(moves_), std::move(made_)}; }

 private:
  static std::size_t at(Index word) { return static_cast<std::size_t>(word); }
  [[nodiscard]] const std::string& name(Index word) const {
    return dag_[terms_.vertex[at(word)]].name;
  }
  Index vertex(Index word, Set of, Index before) {
    const Index k = added_[at(word)], terms = count(terms_.added_to(word));
    std::vector<Index> operands;
    each(of, [&](Index operand) {
      if (added_[at(operand)] < count(terms_.added_to(operand))) {
        throw std::logic_error(name(operand) + " is used before it is finished");
      }
      operands.push_back(now_[at(operand)]);
    });
    if (terms == 1) {
      return finished(word, std::move(operands));
    }
    if (k == 0) {
      return term(word, k, std::move(operands));
    }
    const Index other =
        operands.size() == 1 ? operands.front() : term(word, k, std::move(operands));
    return k + 1 == terms ? finished(word, {before, other})
                          : made_.add(fmt::format("{}+{}", name(word), k), {before, other});
  }
  Index finished(Index word, std::vector<Index> operands) {
    const Index made = made_.add(name(word), std::move(operands));
    made_.vertices.back().result = (terms_.results & bit(word)) != 0;
    return made;
  }
  Index term(Index word, Index k, std::vector<Index> operands) {
    const Index made = made_.add(fmt::format("{}*{}", name(word), k), std::move(operands));
    made_.vertices.back().term = true;
    return made;
  }

  const Dag& dag_;
  const Terms& terms_;
  std::vector<Index> now_;    // the current vertex of each word
  std::vector<Index> added_;  // the number of terms added to each word
  Dag made_;
  std::vector<Move> moves_;
};

}  // namespace

PlayedMoves played_moves(const Rules& rules, const Terms& terms,
                         const std::vector<WordMove>& moves) {
  const Dag& dag = rules.dag();
  const bool partial = rules.game() == Game::partial;
  if (!partial && std::ranges::any_of(terms.adding, [](Set adding) { return count(adding) > 1; })) {
    OwnGraph graph(dag, terms);
    for (const WordMove& move : moves) {
      graph.play(move);
    }
    return graph.take();
  }
  PlayedMoves played;
  const auto vertex = [&](Index word) { return terms.vertex[static_cast<std::size_t>(word)]; };
  for (const WordMove& move : moves) {
    played.moves.push_back({move.act, vertex(move.word),
                            move.slides < 0 ? std::nullopt : std::optional(vertex(move.slides))});
    if (partial && move.act == Act::compute) {
      played.moves.back().adds = vertex(first(terms[move.term].operands));
    }
  }
  return played;
}

}  // namespace redblue
