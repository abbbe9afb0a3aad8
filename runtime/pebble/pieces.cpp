#include "runtime/pebble/pieces.hpp"

#include <algorithm>
#include <utility>

namespace redblue {
namespace {

constexpr Index kMostSteps = Index{1} << 28;  // along edges, in all searches for paths of one game

// Finds paths from targets to inputs that share no vertex, one more with each call. Each vertex has
// an arriving side, for paths that come from a user, and a leaving side, for paths that go to an
// operand.
class Paths {
 public:
  explicit Paths(const Dag& dag)
      : dag_(dag), met_(dag.vertices.size()), user_(dag.vertices.size(), -1) {}

  // Returns whether there is one more path, and takes it.
  bool find_one_more(const std::vector<Index>& targets) {
    from_.assign(2 * met_.size(), kUnseen);
    queue_.clear();
    for (const Index target : targets) {
      reach(arriving(target), kSource);
    }
    for (std::size_t next = 0; next < queue_.size(); ++next) {
      const Index side = queue_[next], v = side / 2;
      if (side == leaving(v) && dag_.input(v)) {
        take(side);
        return true;
      }
      side == arriving(v) ? from_arriving(v) : from_leaving(v);
    }
    return false;
  }

 private:
  static constexpr Index kUnseen = -2, kSource = -1;
  static Index arriving(Index v) { return 2 * v; }
  static Index leaving(Index v) { return 2 * v + 1; }

  void reach(Index side, Index from) {
    if (from_[slot(side)] == kUnseen) {
      from_[slot(side)] = from;
      queue_.push_back(side);
    }
  }
  // A vertex on a path lets no other path through. But the path on it may take another route before
  // it.
  void from_arriving(Index v) {
    if (!met_[slot(v)]) {
      reach(leaving(v), arriving(v));
    } else if (user_[slot(v)] >= 0) {
      reach(leaving(user_[slot(v)]), arriving(v));
    }
  }
  void from_leaving(Index v) {
    for (const Index operand : dag_[v].operands) {
      reach(arriving(operand), leaving(v));
    }
    if (met_[slot(v)]) {
      reach(arriving(v), leaving(v));
    }
  }

  // Takes the path that ends at this side.
  void take(Index side) {
    std::vector<Index> path;
    for (; side != kSource; side = from_[slot(side)]) {
      path.push_back(side);
    }
    std::ranges::reverse(path);
    user_[slot(path.front() / 2)] = -1;
    for (std::size_t step = 1; step < path.size(); ++step) {
      const Index from = path[step - 1], to = path[step];
      const Index v = from / 2, w = to / 2;
      if (v == w) {
        met_[slot(v)] = from == arriving(v);
      } else if (from == leaving(v)) {
        user_[slot(w)] = v;
      } else if (user_[slot(v)] == w) {
        user_[slot(v)] = -1;
      }
    }
  }

  const Dag& dag_;
  std::vector<bool> met_;    // by a path
  std::vector<Index> user_;  // the previous vertex on its path
  std::vector<Index> from_, queue_;
};

// Returns the graph of the targets and all their ancestors, and the targets in this graph.
std::pair<Dag, std::vector<Index>> ancestors(const Dag& dag, const std::vector<Index>& targets) {
  std::vector<Index> to(dag.vertices.size(), -1);
  for (const Index target : targets) {
    to[slot(target)] = 0;
  }
  const Index last = *std::ranges::max_element(targets);
  for (Index v = last; v >= 0; --v) {  // operands come before their users
    for (const Index operand : to[slot(v)] == 0 ? dag[v].operands : std::vector<Index>()) {
      to[slot(operand)] = 0;
    }
  }
  Dag all;
  for (Index v = 0; v <= last; ++v) {
    if (to[slot(v)] == 0) {
      std::vector<Index> operands;
      for (const Index operand : dag[v].operands) {
        operands.push_back(to[slot(operand)]);
      }
      to[slot(v)] = all.add("", std::move(operands));
    }
  }
  std::vector<Index> renamed;
  for (const Index target : targets) {
    renamed.push_back(to[slot(target)]);
  }
  return {std::move(all), std::move(renamed)};
}

class Cutting {
 public:
  Cutting(const Pebbling& pebbling, Index T)
      : pebbling_(pebbling), T_(T), red_(pebbling.dag.vertices.size()), seen_(red_.size()) {
    begin();
  }

  void play(const Move& move) {
    const bool paid = move.act == Act::read || move.act == Act::write;
    if (paid && now_.reads + now_.writes == T_) {
      end();
      begin();
    }
    const Index v = move.vertex;
    now_.reads += move.act == Act::read ? 1 : 0;
    now_.writes += move.act == Act::write ? 1 : 0;
    if (move.act == Act::read && !dominating_[slot(v)]) {
      dominating_[slot(v)] = true;
      ++now_.dominator;
    }
    if (move.act == Act::remove) {
      red_[slot(v)] = false;
    } else {
      red_[slot(v)] = true;
      if (!seen_[slot(v)]) {
        seen_[slot(v)] = true;
        first_.push_back(v);
      }
    }
  }

  std::vector<Piece> take() {
    end();
    return std::move(pieces_);
  }

 private:
  void begin() {
    now_ = {};
    first_.clear();
    dominating_ = red_;
    now_.dominator = std::ranges::count(red_, true);
  }
  void end() {
    const Dag& dag = pebbling_.dag;
    std::vector<bool> used(red_.size());
    for (const Index v : first_) {
      for (const Index operand : dag[v].operands) {
        used[slot(operand)] = true;
      }
      const Pebbling::Made& made = pebbling_.made[slot(v)];
      now_.products += made.a >= 0 && made.b >= 0 && (made.sum < 0 || !has_term(v)) ? 1 : 0;
    }
    now_.vertices = std::ssize(first_);
    now_.minimum = std::ranges::count_if(first_, [&](Index v) { return !used[slot(v)]; });
    if (first_.empty()) {
      now_.least_dominator = 0;
    } else {
      const auto [above, targets] = ancestors(dag, first_);
      const Index steps = now_.dominator * (above.size() + above.edges());
      if (steps <= kMostSteps - steps_) {
        steps_ += steps;
        now_.least_dominator = least_dominator(above, targets);
      }
    }
    pieces_.push_back(now_);
  }
  // Returns whether the sum has an operand that is its last term as a vertex.
  [[nodiscard]] bool has_term(Index v) const {
    const Pebbling::Made& sum = pebbling_.made[slot(v)];
    return std::ranges::any_of(pebbling_.dag[v].operands, [&](Index operand) {
      const Pebbling::Made& made = pebbling_.made[slot(operand)];
      return operand != sum.sum && made.sum < 0 && made.a == sum.a && made.b == sum.b;
    });
  }

  const Pebbling& pebbling_;
  Index T_;
  Index steps_ = 0;
  std::vector<bool> red_, seen_, dominating_;
  std::vector<Index> first_;  // red for the first time in this piece
  Piece now_;
  std::vector<Piece> pieces_;
};

}  // namespace

std::vector<Piece> pieces_of(const Pebbling& pebbling, const std::vector<Move>& moves, Index T) {
  Cutting cutting(pebbling, T);
  for (const Move& move : moves) {
    cutting.play(move);
  }
  return cutting.take();
}

std::vector<Move> without_useless(const Dag& dag, const std::vector<Move>& moves) {
  std::vector<bool> needed(dag.vertices.size());
  std::vector<Index> removed(needed.size(), -1);  // the move that deletes the pebble
  std::vector<bool> dropped(moves.size());
  for (Index step = std::ssize(moves) - 1; step >= 0; --step) {
    const auto& [act, v, slides, adds] = moves[slot(step)];
    switch (act) {
      case Act::write:
        needed[slot(v)] = true;
        break;
      case Act::remove:
        needed[slot(v)] = false;
        removed[slot(v)] = step;
        break;
      case Act::read:
      case Act::compute:
        if (!needed[slot(v)]) {
          dropped[slot(step)] = true;
          if (removed[slot(v)] >= 0) {
            dropped[slot(removed[slot(v)])] = true;
          }
        } else if (act == Act::compute) {
          for (const Index operand : dag[v].operands) {
            needed[slot(operand)] = true;
          }
        }
        needed[slot(v)] = false;
        removed[slot(v)] = -1;
        break;
    }
  }
  std::vector<Move> kept;
  for (std::size_t step = 0; step < moves.size(); ++step) {
    if (!dropped[step]) {
      kept.push_back(moves[step]);
    }
  }
  return kept;
}

Index least_dominator(const Dag& dag, const std::vector<Index>& targets) {
  Paths paths(dag);
  Index count = 0;
  while (paths.find_one_more(targets)) {
    ++count;
  }
  return count;
}

}  // namespace redblue
