#pragma once
// Plays runs of kernels as pebble games, and judges games.

#include <algorithm>
#include <functional>
#include <string>

#include <fmt/format.h>

#include "runtime/pebble/pebbler.hpp"
#include "runtime/run/run.hpp"

namespace redblue {

struct Pebbled {
  Pebbling pebbling;
  PhaseCounts counted;
  Index peak = 0;  // the most words live, not counting indices, which have no pebbles
};

// Records the most words that are live at once, not counting indices.
class PeakBesideIndices final : public Listener {
 public:
  void on(const Event& event) noexcept override {
    if (event.name == "index") {
      const Index words = event.rows * event.cols;
      indices_ += event.kind == Event::Kind::remove  ? -words
                  : event.kind == Event::Kind::write ? 0
                                                     : words;
    }
    peak_ = std::max(peak_, event.live - indices_);
  }
  [[nodiscard]] Index peak() const { return peak_; }

 private:
  Index indices_ = 0, peak_ = 0;
};

inline Pebbled pebbled(const Request& request, ProductPebbles products) {
  Pebbled all;
  const auto followed = [&](Machine& machine, const Plan&, const std::function<void()>& go) {
    Pebbler pebbler(machine, products);
    PeakBesideIndices beside;
    machine.listen(beside);
    go();
    machine.silence(beside);
    all = {pebbler.take(), total(machine.phases()), beside.peak()};
  };
  run(request, Topology(), {.kernel = followed, .peak_gflops = false});
  return all;
}

// The game played, or the rule that a move breaks.
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
