#include "runtime/pebble/pebbling.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

namespace redblue {
Index Pebbling::made_twice() const {
  std::vector<Index> times(dag.vertices.size());
  for (const Move& move : moves) {
    times[slot(move.vertex)] += move.act == Act::compute ? 1 : 0;
  }
  return std::ranges::count_if(times, [](Index count) { return count > 1; });
}

Pebbling pruned(Pebbling found) {
  std::vector<bool> needed(found.dag.vertices.size());
  for (const Move& move : found.moves) {
    if (move.act == Act::read || move.act == Act::write) {
      needed[slot(move.vertex)] = true;
    }
  }
  for (Index v = found.dag.size() - 1; v >= 0; --v) {  // operands come before their users
    for (const Index operand : needed[slot(v)] ? found.dag[v].operands : std::vector<Index>()) {
      needed[slot(operand)] = true;
    }
  }
  std::vector<Index> to(needed.size(), -1);
  Pebbling kept;
  for (Index v = 0; v < found.dag.size(); ++v) {
    if (needed[slot(v)]) {
      Vertex& vertex = found.dag.vertices[slot(v)];
      to[slot(v)] = kept.dag.size();
      for (Index& operand : vertex.operands) {
        operand = to[slot(operand)];
      }
      kept.dag.vertices.push_back(std::move(vertex));
      const auto known = [&](Index w) { return w < 0 ? w : to[slot(w)]; };
      const Pebbling::Made& made = found.made[slot(v)];
      kept.made.push_back({known(made.sum), known(made.a), known(made.b), known(made.joined)});
    }
  }
  for (const Move& move : found.moves) {
    if (needed[slot(move.vertex)]) {
      kept.moves.push_back({move.act, to[slot(move.vertex)],
                            move.slides ? std::optional(to[slot(*move.slides)]) : std::nullopt});
    } else if (move.slides && needed[slot(*move.slides)]) {
      kept.moves.push_back({Act::remove, to[slot(*move.slides)]});
    }
    kept.unused += move.act == Act::compute && !needed[slot(move.vertex)] ? 1 : 0;
  }
  for (const Pebbling::Stored& stored : found.stored) {
    kept.stored.push_back({stored.matrix, stored.row, stored.column, to[slot(stored.vertex)]});
  }
  kept.beside = found.beside;
  kept.by_hand = found.by_hand;
  return kept;
}

std::vector<Move> without_slides(const std::vector<Move>& moves) {
  std::vector<Move> all;
  for (const Move& move : moves) {
    all.push_back({move.act, move.vertex});
    if (move.slides) {
      all.push_back({Act::remove, *move.slides});
    }
  }
  return all;
}

std::vector<Move> without_terms(const Rules& rules, const std::vector<Move>& moves) {
  std::vector<Move> all;
  std::ranges::copy_if(moves, std::back_inserter(all),
                       [&](const Move& move) { return !rules.without_pebble(move.vertex); });
  return all;
}

}  // namespace redblue
