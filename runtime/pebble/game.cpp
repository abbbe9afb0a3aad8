#include "runtime/pebble/game.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace redblue {

std::string_view to_string(Game game) {
  switch (game) {
    case Game::strict:
      return "strict";
    case Game::sliding:
      return "sliding";
    case Game::once:
      return "once";
    case Game::fma:
      return "fma";
    case Game::partial:
      break;
  }
  return "partial";
}

Rules::Rules(const Dag& dag, Game game) : dag_(dag), game_(game), without_(dag.vertices.size()) {
  if (game != Game::fma) {
    return;
  }
  const std::vector<std::vector<Index>> users = dag.users();
  for (Index v = 0; v < dag.size(); ++v) {
    const auto& its = users[static_cast<std::size_t>(v)];
    // A term of a term has a pebble. Otherwise needed() would name a vertex that can never be red.
    if (!dag[v].term || dag.input(v) || its.size() != 1 || dag[its.front()].term) {
      continue;
    }
    // The first operand of a sum has a pebble even if it is a term: the sum continues from it.
    const std::vector<Index>& others = dag[its.front()].operands;
    without_[static_cast<std::size_t>(v)] = others.size() > 1 && others.front() != v;
  }
}

std::vector<Index> Rules::needed(Index v) const {
  std::vector<Index> all;
  for (const Index operand : dag_[v].operands) {
    if (without_pebble(operand)) {
      all.insert(all.end(), dag_[operand].operands.begin(), dag_[operand].operands.end());
    } else {
      all.push_back(operand);
    }
  }
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

Index Rules::least_M() const {
  if (game_ == Game::partial) {
    return dag_.edges() > 0 ? 2 : 1;
  }
  const bool slides = game_ == Game::sliding || game_ == Game::fma;
  Index least = 1;
  for (Index v = 0; v < dag_.size(); ++v) {
    if (without_pebble(v) || dag_.input(v)) {
      continue;
    }
    const Index needed_at_once = std::ssize(needed(v));
    const bool may_slide = slides && std::ranges::any_of(dag_[v].operands, [&](Index operand) {
                             return !without_pebble(operand);
                           });
    least = std::max(least, needed_at_once + (may_slide ? 0 : 1));
  }
  return least;
}

namespace {

class Board {
 public:
  Board(const Rules& rules, Index M)
      : rules_(rules),
        M_(M),
        red_(rules.dag().vertices.size()),
        blue_(red_.size()),
        computed_(red_.size()),
        added_(red_.size()) {
    for (Index v = 0; v < rules.dag().size(); ++v) {
      blue_[at(v)] = rules.dag().input(v);
    }
  }

  void play(const Move& move) {
    if (rules_.without_pebble(move.vertex)) {
      refuse("{} is a term that is added where it is made: it has no pebble", move.vertex);
    }
    switch (move.act) {
      case Act::read:
        require(blue_[at(move.vertex)], "{} is not blue", move.vertex);
        ++played_.reads;
        return place(move.vertex);
      case Act::write:
        require(red_[at(move.vertex)], "{} is not red", move.vertex);
        ++played_.writes;
        blue_[at(move.vertex)] = true;
        return;
      case Act::remove:
        require(red_[at(move.vertex)], "{} is not red", move.vertex);
        return take(move.vertex);
      case Act::compute:
        return compute(move);
    }
  }

  Played end() const {
    const std::vector<bool> results = rules_.dag().results();
    for (Index v = 0; v < rules_.dag().size(); ++v) {
      require(!results[at(v)] || blue_[at(v)], "the end: the result {} is not blue", v);
      require(!results[at(v)] || finished(v), "the end: the result {} is not finished", v);
    }
    return played_;
  }

 private:
  static std::size_t at(Index v) { return static_cast<std::size_t>(v); }
  [[noreturn]] void refuse(const char* why, Index v) const {
    throw IllegalMove(0, fmt::format(fmt::runtime(why), rules_.dag()[v].name));
  }
  void require(bool holds, const char* why, Index v) const {
    if (!holds) {
      refuse(why, v);
    }
  }

  void place(Index v) {
    if (!red_[at(v)]) {
      red_[at(v)] = true;
      ++red_now_;
    }
    played_.red = std::max(played_.red, red_now_);
    if (red_now_ > M_) {
      throw IllegalMove(
          0, fmt::format("{} is one red pebble more than M = {}", rules_.dag()[v].name, M_));
    }
  }
  void take(Index v) {
    red_[at(v)] = false;
    --red_now_;
  }

  [[nodiscard]] bool finished(Index v) const {
    return rules_.game() != Game::partial ||
           added_[at(v)].size() == rules_.dag()[v].operands.size();
  }
  void add(Index v, Index operand) {
    const std::vector<Index>& operands = rules_.dag()[v].operands;
    std::vector<Index>& added = added_[at(v)];
    if (std::ranges::find(operands, operand) == operands.end()) {
      throw IllegalMove(0, fmt::format("{} adds {}, which is no operand of it",
                                       rules_.dag()[v].name, rules_.dag()[operand].name));
    }
    require(red_[at(operand)], "{} is added and not red", operand);
    require(finished(operand), "{} is added and not finished", operand);
    require(added.empty() || red_[at(v)], "{} was begun and is not red", v);
    require(std::ranges::find(added, operand) == added.end(), "{} is added again", operand);
    added.push_back(operand);
    blue_[at(v)] = false;
    played_.computed += std::ssize(added) == std::ssize(operands) ? 1 : 0;
    place(v);
  }

  void compute(const Move& move) {
    const Index v = move.vertex;
    require(!rules_.dag().input(v), "{} is an input: it is read, not computed", v);
    if (rules_.game() == Game::partial) {
      require(move.adds.has_value(), "{} is computed, and the move names no operand", v);
      return add(v, *move.adds);
    }
    require(!move.adds.has_value(), "{} adds an operand: this is a move of the game partial", v);
    for (const Index operand : rules_.needed(v)) {
      if (!red_[at(operand)]) {
        throw IllegalMove(0, fmt::format("{} is computed of {}, which is not red",
                                         rules_.dag()[v].name, rules_.dag()[operand].name));
      }
    }
    const bool again = rules_.game() == Game::once || rules_.game() == Game::fma;
    require(!again || !computed_[at(v)], "{} is computed again", v);
    computed_[at(v)] = true;
    ++played_.computed;
    if (move.slides) {
      slide(v, *move.slides);
    }
    place(v);
  }
  void slide(Index v, Index from) {
    require(rules_.game() == Game::sliding || rules_.game() == Game::fma,
            "{} slides: no pebble does in this game", v);
    const std::vector<Index>& operands = rules_.dag()[v].operands;
    if (std::ranges::find(operands, from) == operands.end() || rules_.without_pebble(from)) {
      throw IllegalMove(0, fmt::format("{} slides from {}, which is no operand of it",
                                       rules_.dag()[v].name, rules_.dag()[from].name));
    }
    take(from);
  }

  const Rules& rules_;
  Index M_;
  Index red_now_ = 0;
  std::vector<bool> red_, blue_, computed_;
  std::vector<std::vector<Index>> added_;  // by vertex: its operands so far; Game::partial
  Played played_;
};

}  // namespace

Played referee(const Rules& rules, Index M, const std::vector<Move>& moves) {
  Board board(rules, M);
  std::size_t at = 0;
  try {
    for (; at < moves.size(); ++at) {
      board.play(moves[at]);
    }
    return board.end();
  } catch (const IllegalMove& illegal) {
    throw IllegalMove(at, illegal.what());
  }
}

}  // namespace redblue
