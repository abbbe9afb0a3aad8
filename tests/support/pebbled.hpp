#pragma once
// Runs of kernels as games of pebbles, and judgements of games.

#include <functional>
#include <string>

#include <fmt/format.h>

#include "runtime/pebble/pebbler.hpp"
#include "runtime/run/run.hpp"

namespace redblue {

struct Pebbled {
  Pebbling pebbling;
  PhaseCounts counted;
};

inline Pebbled pebbled(const Request& request, Products products) {
  Pebbled all;
  const auto followed = [&](Machine& machine, const Plan&, const std::function<void()>& go) {
    Pebbler pebbler(machine, products);
    go();
    all = {pebbler.take(), total(machine.phases())};
  };
  run(request, Topology(), {.kernel = followed, .peak_gflops = false});
  return all;
}

// What was played, or which rule is broken by which move.
struct Judged {
  Played played;
  std::string broken;
};

inline Judged judge(const Dag& dag, Game game, Index M, const std::vector<Move>& moves) {
  try {
    return {referee(Rules(dag, game), M, moves), ""};
  } catch (const IllegalMove& illegal) {
    return {{}, fmt::format("{}: {}", illegal.at, illegal.what())};
  }
}

}  // namespace redblue
