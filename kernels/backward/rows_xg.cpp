// Computes g with X and g in fast memory, without S and W. For a row block I only A1_I and G_I =
// dO_I Y^T stay. Each streaming key is multiplied by X first: s_ij = A1_i . (X A2_j). The row
// block's sum for this key, T_j = sum_i p_ij A1_i, is added to g at once, as T_j A2_j^T. Two row
// matrices stay instead of three, at 4 d^2 more flops for each key and row block. This suits M
// above 6 d^2. After a forward pass it moves:
//
//   reads and writes   2 m d T + d^2 (T + 2) + 3 n d + n,   T = ceil(n / Br)
//
// If there are few row blocks and enough words are left, `resident` keys stay too and are read
// once. That saves 2 resident d (T - 1) words. Under a mask each row block reads only the other
// keys that it meets.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/parts/activations.hpp"
#include "kernels/parts/live_pairs.hpp"
#include "kernels/parts/rows.hpp"
#include "kernels/registry.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace in_backward_rows_xg {
namespace {

// In a plan: the number of keys, from the first on, that stay in fast memory for all row blocks.
// Default: 0.
constexpr std::string_view kResident = "resident";

Index resident_keys(const Problem& problem, const Blocks& blocks) {
  return blocks.contains(kResident) ? std::min(blocks[kResident], problem.shape.m) : 0;
}

Nest loop_nest(const Problem& problem, const Blocks& blocks) {
  const Index m = problem.shape.m, d = problem.shape.d;
  const RowPlan by(problem, blocks);
  const Index resident = resident_keys(problem, blocks);
  const Units::Sum of = by.units().sum();
  const NestLoop I("I", "queries", problem.shape.n, by.rows);
  const NestLoop staying("J", "resident keys", resident, by.keys);
  const NestLoop passing = problem.mask.full()
                               ? NestLoop("J", "keys that pass", m - resident, by.keys)
                               : I.met("J", "keys that pass", by.units().met_from(resident).value(),
                                       of.longest, by.keys);
  const NestTile X("X", d, d), g("g", d, d), A1("A1", I, d), G("G", I, d),
      L("L", I, problem.row_columns()), v("v", I, problem.row_columns());
  const std::string text = p_text(problem, "A1_I X A2_J^T", "G_I " + values_text(problem) + "^T") +
                           "; g += (A1_I^T p) A2_J";
  NestWriter nest;
  nest.phase("X", [&] {
    nest.read({X});
    nest.loop(staying, [&] { nest.read(key_tiles(problem, staying)); });
  });
  NestWriter::Tiles stays = key_tiles(problem, resident);
  stays.insert(stays.begin(), {X, g});
  nest.loop(I, stays, [&] {
    row_gradients_nest(nest, by, I, {});
    nest.phase("core", [&] {
      nest.read({A1, L});
      index_nest(nest, of);
      nest.loop(staying, {A1, G, L, v}, [&] { nest.step(text); });
      nest.loop(passing, {A1, G, L, v}, [&] { nest.step(text, key_tiles(problem, passing)); });
    });
  });
  nest.phase("g", [&] { nest.write({g}); });
  return nest.lines();
}

// Some keys with their values, transposed. If A3 is A2, one tile holds both.
class TransposedKeys {
 public:
  TransposedKeys(Machine& machine, const Problem& problem, const Operands& io, Range J)
      : J_(J), a2_(machine.read(transposed(io.in("A2").row_block(J)))) {
    if (problem.sharing == Sharing::none) {
      own_a3_ = machine.read(transposed(io.in("A3").row_block(J)));
    }
  }
  [[nodiscard]] Range J() const { return J_; }
  [[nodiscard]] const Tile& a2() const { return a2_; }
  [[nodiscard]] const Tile& a3() const { return own_a3_ ? *own_a3_ : a2_; }

 private:
  Range J_;
  Tile a2_;
  std::optional<Tile> own_a3_;
};

// Adds (A1_I^T p_I A2)^T to g^T. Vectors run along keys, like the right factor of each product.
void core(Machine& machine, const RowPlan& by, const Operands& io, Range I,
          const RowGradients& of_rows, const Tile& x, const std::vector<TransposedKeys>& resident,
          const Pieces& passing, Tile& gradient_t) {
  const Phase phase(machine, "core");
  const auto [n, m, d] = by.problem.shape;
  const Tile a1 = machine.read(io.in("A1").row_block(I));
  const Tile l = read_row_values(machine, by.problem, io, "L", I);
  const Index keys = std::min(by.keys, m);
  const Index queries = std::min(by.strip(), I.size());
  Tile p_strip = machine.initialize("p", queries, keys, Holds::scores);
  Tile q_strip = machine.initialize("q", queries, keys, Holds::scores);
  Tile y_tile = machine.initialize("X A2^T", d, keys, Holds::operands);
  Tile t_tile = machine.initialize("T", keys, d);
  const auto meet = [&](const TransposedKeys& of_J) {
    const Tile& a2 = of_J.a2();
    const Range J{0, a2.cols()};
    if (LivePairs(by.problem, I, of_J.J()).none()) {
      return;
    }
    const View y = y_tile.part({0, a2.rows()}, J);
    const View t = t_tile.part(J);
    multiply(x, a2, y);
    bool first = true;
    for (const Range K : blocks(I.size(), by.strip())) {
      const LivePairs live(by.problem, part_of(I, K), of_J.J());
      if (live.none()) {
        continue;
      }
      const View p = p_strip.part({0, K.size()}, J);
      const View q = q_strip.part({0, K.size()}, J);
      multiply(a1.part(K), y, p);
      make_factor(by.problem, p, l, K);
      multiply(transposed(of_rows.g_t.part({0, a2.rows()}, K)), of_J.a3(), q);
      make_p(by.problem, p, q, of_rows.v, K, p);
      live.set_dead(p, 0);
      if (first) {
        multiply(transposed(p), a1.part(K), t);
      } else {
        multiply_add(transposed(p), a1.part(K), t);
      }
      first = false;
    }
    multiply_add(a2, t, gradient_t);
  };
  const Tile index = by.units().read_index(machine, I);
  for (const TransposedKeys& of_J : resident) {
    meet(of_J);
  }
  for (Index k = 0; k < passing.size(); ++k) {
    meet(TransposedKeys(machine, by.problem, io, passing[k]));
  }
}

void code(Machine& machine, const Plan& plan, const Operands& io, Workspace&) {
  const RowPlan by(plan.problem, plan.blocks);
  const Index d = plan.problem.shape.d;
  const Ranges stay = {{0, resident_keys(plan.problem, plan.blocks)}};
  const Units units = by.units();
  Tile x;
  Tile gradient_t;
  std::vector<TransposedKeys> resident;
  {
    const Phase phase(machine, "X");
    x = machine.read(io.in("X").row_block({0, d}));
    gradient_t = machine.initialize("g", d, d);
    const Pieces pieces(stay, by.keys);
    for (Index k = 0; k < pieces.size(); ++k) {
      resident.emplace_back(machine, plan.problem, io, pieces[k]);
    }
  }
  for (const Range I : units) {
    const RowGradients of_rows = row_gradients(machine, by, io, I);
    const Pieces passing(without(units.met(I), stay), by.keys);
    core(machine, by, io, I, of_rows, x, resident, passing, gradient_t);
  }
  resident.clear();
  x.reset();
  const Phase phase(machine, "g");
  machine.write(gradient_t, transposed(io.out("g").row_block({0, d})));
}

std::vector<PhaseCost> cost(const Problem& problem, const Blocks& blocks) {
  const auto [n, m, d] = problem.shape;
  const RowPlan by(problem, blocks);
  const Units::Sum of = by.units().sum();

  const Words dd = Words(d) * d, of_g = dd * problem.sum_words;
  const Words c = std::min(by.keys, m);
  const Index resident = resident_keys(problem, blocks);
  const Units::Sum passing = by.units().from(resident).sum();
  const Words key = problem.key_words();
  const Words stays = dd + of_g + key * resident;
  // X, g and the resident keys; A1, G, L and v; A2_J and A3_J, X A2_J^T and T_J; two strips of
  // scores.
  const auto peak = [&, d = d](const Units::Unit& unit) {
    const Words r = unit.rows;
    return stays + 2 * r * d + 2 * r * problem.row_words() + key * std::min(by.keys, unit.longest) +
           c * d * (1 + problem.sum_words) + 2 * c * std::min(r, Words(by.strip()));
  };
  PhaseCost G = row_gradients_cost(by, of);
  G.peak += stays;
  return {
      {.path = "X", .reads = dd + key * resident, .writes = 0, .peak = stays, .flops = 0},
      G,
      with_index({.path = "core",
                  .reads = Words(of.rows) * (d + problem.row_words()) + key * passing.met,
                  .writes = 0,
                  .peak = passing.peak(peak) + of.index_live,
                  .flops = 6 * of.pairs * d + 4 * of.met * dd},
                 of),
      {.path = "g", .reads = 0, .writes = dd, .peak = of_g, .flops = 0},
  };
}

// With a few row blocks, fits as many blocks of resident keys as possible with one streaming block.
// A block has a panel of keys or half a panel, because vectors run along keys.
Blocks fit(const Problem& problem, Index M, const CostOfBlocks& cost_of) {
  const Blocks plain = fewest_words(problem, M, cost_of);
  const Index n = problem.shape.n;
  if (ceil_div(n, plain["Br"]) > kFewRowBlocks) {
    return plain;
  }
  const Index m = problem.shape.m;
  const auto with = [&](Index r, Index c, Index w, Index k) {
    Blocks blocks = RowPlan(problem, r, c, w).blocks();
    if (k > 0) {
      blocks.add(std::string(kResident), k);
    }
    return blocks;
  };
  const auto fits = [&](Index r, Index c, Index w, Index k) {
    return total(cost_of(problem, with(r, c, w, k))).peak <= Words(M);
  };
  const auto c = static_cast<Index>(
      std::bit_floor(static_cast<std::uint64_t>(std::min(busy_keys(problem), kPanel))));
  const auto most_resident = [&](Index r) {
    const Index k = largest(std::min(m, M), [&](Index tried) { return fits(r, c, 1, tried); });
    return !fits(r, c, 1, k) ? 0 : k < m ? k / c * c : k;
  };
  const auto words = [&](Index r, Index k) {
    const PhaseCost all = total(cost_of(problem, with(r, 1, 1, k)));
    return all.reads + all.writes;
  };
  const auto best =
      fewest_words_beside(n, plain["Br"], m, most_resident, words, sizes_tried(problem));
  if (words(best.rows, best.other) == words(plain["Br"], 0)) {
    return plain;
  }
  const auto [r, k] = best;
  Index w = std::min(problem.shape.d, M);
  w = largest(w, [&, r = r, k = k](Index tried) { return fits(r, c, tried, k); });
  return with(r, c, even(problem.shape.d, w), k);
}

// Each p_ij is first summed over its row block, and then over all keys of all row blocks.
Words chain(const Problem& problem, const Blocks& blocks) {
  const RowPlan by(problem, blocks);
  return Words(std::min(by.rows, problem.shape.n)) + Words(problem.shape.m) * by.units().size();
}

// X and g are moved whole.
Window window(const Signature& operand, const Problem& problem, const Blocks& blocks) {
  if (operand.name == kX.name || operand.name == kg.name) {
    return {problem.shape.d, problem.shape.d};
  }
  if (operand.name == kA1.name) {
    return window_of(operand, problem, blocks["Br"], problem.shape.d);
  }
  return row_window(operand, problem, blocks);
}

}  // namespace
}  // namespace in_backward_rows_xg

Kernel backward_rows_xg() {
  using namespace in_backward_rows_xg;
  return {
      .name = "backward/rows-xg",
      .summary = "X and g stay beside row blocks of A1 and G; keys meet X as they pass",
      .pass = Pass::backward,
      .operands = {kA1, kA2, kA3, kX, kY, kdO, kO, kL},
      .returns = {kg},
      .shares_keys = true,
      .takes_activations = true,
      .axes = {{"q", "made"}, {"sink", "X and g stay"}},
      .schedule = {.code = code},
      .formula = {.cost = cost, .nest = loop_nest},
      .fitting = {.fit =
                      [](const Problem& problem, const Memory& memory, Objective objective) {
                        return objective == Objective::time ? fastest(problem, memory.M, cost)
                                                            : fit(problem, memory.M, cost);
                      },
                  .window = window,
                  .optional_blocks = {{kResident}}},
      .numerics = {
          .chain = chain, .Y_meets_rows = true, .X_meets_keys = true, .folds_partial_sums = true}};
}

}  // namespace redblue
