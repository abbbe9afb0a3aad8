#include "kernels/parts/resident.hpp"

#include <algorithm>

namespace redblue {

Words ResidentPlan::resident_words() const {
  const Index d = problem.shape.d;
  const Index matrices = problem.inputs == Inputs::weighted ? 2 : 0;
  return Words(matrices) * d * d + Words(resident) * d * problem.key_sources();
}

Words ResidentPlan::passing_words() const {
  return Words(problem.shape.m - resident) * problem.shape.d * problem.key_sources();
}

Words ResidentPlan::block_words() const {
  return Words(std::min(keys, problem.shape.m - resident)) * problem.shape.d *
         problem.key_sources();
}

Resident::Resident(Machine& machine, const ResidentPlan& by, const Operands& io)
    : machine_(machine), by_(by), io_(io) {
  const Phase phase(machine, "resident");
  if (by.problem.inputs == Inputs::weighted) {
    X_ = machine.read(io.in("X").whole());
    Y_ = machine.read(io.in("Y").whole());
  }
  A2_ = machine.read(io.in(input_names(by.problem).keys).row_block({0, by.resident}));
  A3_ = own_values({0, by.resident});
}

std::optional<Tile> Resident::own_values(Range J) const {
  if (by_.problem.sharing != Sharing::none) {
    return std::nullopt;
  }
  return machine_.read(io_.in(input_names(by_.problem).values).row_block(J));
}

PhaseCost resident_cost(const ResidentPlan& by) {
  const Words words = by.resident_words();
  return {.path = "resident", .reads = words, .writes = 0, .peak = words, .flops = 0};
}

NestWriter::Tiles resident_tiles(const ResidentPlan& by) {
  const Index d = by.problem.shape.d;
  NestWriter::Tiles tiles = key_tiles(by.problem, by.resident);
  if (by.problem.inputs == Inputs::weighted) {
    tiles.insert(tiles.begin(), {{"X", d, d}, {"Y", d, d}});
  }
  return tiles;
}

void resident_nest(NestWriter& nest, const ResidentPlan& by) {
  nest.phase("resident", [&] { nest.read(resident_tiles(by)); });
}

void each_key_block_nest(NestWriter& nest, const ResidentPlan& by, const NestWriter::Tiles& stays,
                         const std::string& text) {
  const NestLoop resident("J", "resident keys", by.resident, by.keys);
  const NestLoop passing("J", "keys that pass", by.problem.shape.m - by.resident, by.keys);
  nest.loop(resident, stays, [&] { nest.step(text); });
  nest.loop(passing, stays, [&] { nest.step(text, key_tiles(by.problem, passing)); });
}

// For each size of the row blocks the most keys that fit beside them and the block of keys that
// passes: with smaller row blocks fewer keys pass, but more often.
Blocks most_resident(const Problem& problem, Index M, Objective objective,
                     const CostOfBlocks& cost_of) {
  constexpr Index kBusyRows = 3 * kPanel;
  const Index n = problem.shape.n;
  const Index m = problem.shape.m;
  const auto blocks_of = [](Index r, Index c, Index k) {
    return Blocks{{"Br", r}, {"Bc", c}, {"resident", k}};
  };
  const auto fits = [&](Index r, Index c, Index k) {
    return total(cost_of(problem, blocks_of(r, c, k))).peak <= Words(M);
  };
  const auto most_rows = [&](Index c, Index k) {
    return even(n, largest(std::min(n, M), [&](Index tried) { return fits(tried, c, k); }));
  };
  const auto most_keys = [&](Index r) {
    const Index c = busy_keys(problem);
    return largest(std::min(m, M), [&](Index tried) { return fits(r, c, tried); });
  };
  // The keys that are read more than once, all times together.
  const auto again = [&](Index r, Index k) { return Words(m - k) * (ceil_div(n, r) - 1); };

  RowsBeside best{most_rows(1, 1), 1};
  const bool in_time = objective == Objective::time;
  const Index least_rows = in_time ? std::min(n, kBusyRows) : 1;
  const Index least_keys = in_time ? busy_keys(problem) : 1;
  if (best.rows < n && fits(least_rows, least_keys, m)) {
    Index c = std::min<Index>(m, 96);
    while (c > 1 && !fits(std::min(n, kBusyRows), c, m)) {
      c /= 2;
    }
    best = {most_rows(c, m), m};
  } else if (best.rows < n && in_time) {
    best.rows = std::min(best.rows, kPanel);
  } else if (best.rows < n) {
    best = fewest_words_beside(n, best.rows, most_keys(1), most_keys, again);
  }
  const Index c =
      largest(std::min(m, M), [&](Index tried) { return fits(best.rows, tried, best.other); });
  return blocks_of(best.rows, even(std::max(best.other, m - best.other), c), best.other);
}

}  // namespace redblue
