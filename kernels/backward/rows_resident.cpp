// Computes g from scratch in a fast memory that holds X, Y, g and most of the keys. Queries stream
// in row blocks. A1_I stays until it is multiplied by W_I. So only the keys that are not resident
// are read twice. The sums are the same as in backward/rows-onepass.
//
//   reads and writes   2 n d + 2 m d + 3 d^2 + 2 (m - resident) d (T - 1),   T = ceil(n / Br)
//
// With all keys resident, or T = 1, each word moves once. If that does not quite fit, a few columns
// of A1_I (`again` in the plan) do not stay. They are read again, at n words each. Under a mask,
// queries that meet far more keys than others may stay too (kernels/parts/resident.hpp).

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/parts/activations.hpp"
#include "kernels/parts/resident.hpp"
#include "kernels/parts/row_sums.hpp"
#include "kernels/registry.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace in_backward_rows_resident {
namespace {

// In a plan: the number of columns of A1_I that are read again. Default: 0.
constexpr std::string_view kAgain = "again";

// Returns the number of columns of A1_I that stay.
Index staying(const Problem& problem, const Blocks& blocks) {
  const Index d = problem.shape.d;
  return d - (blocks.contains(kAgain) ? std::min(blocks[kAgain], d - 1) : 0);
}

Nest loop_nest(const Problem& problem, const Blocks& blocks) {
  const Index d = problem.shape.d;
  const ResidentPlan by(problem, blocks);
  const Index k = staying(problem, blocks);
  const NestTile g("g", d, d);
  const auto begin = [&](NestWriter& nest, const NestLoop& I) {
    nest.phase("S", [&] { nest.step(text_of("S_I = A1_I X", I), {{"A1", I, d}}); });
    nest.phase("G", [&] { nest.step(text_of("G_I = dO_I Y^T", I), {{"dO", I, d}}); });
  };
  const auto end = [&](NestWriter& nest, const NestLoop& I) {
    if (problem.normalised()) {
      nest.phase("core", [&] { nest.step(text_of("W_I = U_I / sum_I", I)); });
    }
    nest.phase("g", [&] {
      nest.step(text_of("g += A1_I^T W_I", I),
                k < d ? NestWriter::Tiles{{"A1", I, d - k}} : NestWriter::Tiles{});
    });
  };
  const auto stays = [&](const NestLoop& I) -> NestWriter::Tiles {
    if (!problem.normalised()) {
      return {{"A1", I, k}, {"S", I, d}, {"G", I, d}, {"W", I, d}};
    }
    return NestWriter::Tiles{{"A1", I, k}, {"S", I, d}, {"G", I, d}, {"U", I, d},
                             {"Z", I, d},  {"max", I},  {"sum", I},  {"mean", I}};
  };
  NestWriter::Tiles beside = resident_tiles(by);
  beside.push_back(g);
  NestWriter nest;
  resident_nest(nest, by);
  each_row_block_nest(
      nest, by, beside,
      {begin, end,
       problem.normalised() ? "e = exp(S_I A2_J^T - max_I); q = G_I " + values_text(problem) +
                                  "^T - mean_I; U_I += e q A2_J; Z_I += e A2_J"
                            : p_text(problem, "S_I A2_J^T", "G_I " + values_text(problem) + "^T") +
                                  "; W_I += p A2_J",
       stays});
  nest.phase("g", [&] { nest.write({g}); });
  return nest.lines();
}

// Queries before their keys: S_I^T, G_I^T, and the resident columns of A1_I^T.
struct Rows {
  Tile kept_t, s_t, g_t;
};

Rows read_rows(Machine& machine, const Operands& io, const Resident& resident, Range kept,
               Range I) {
  const Index d = resident.X().rows();
  const Range again{kept.end, d};
  Rows rows;
  rows.s_t = machine.initialize("S", d, I.size(), Holds::operands);
  {
    const Phase phase(machine, "S");
    rows.kept_t = machine.read(transposed(io.in("A1").block(I, kept)));
    multiply(transposed(resident.X().part(kept)), rows.kept_t, rows.s_t);
    if (again.size() > 0) {
      const Tile again_t = machine.read(transposed(io.in("A1").block(I, again)));
      multiply_add(transposed(resident.X().part(again)), again_t, rows.s_t);
    }
  }
  rows.g_t = machine.initialize("G", d, I.size(), Holds::operands);
  const Phase phase(machine, "G");
  const Tile do_t = machine.read(transposed(io.in("dO").row_block(I)));
  multiply(resident.Y(), do_t, rows.g_t);
  return rows;
}

// The tiles that remain after the last key.
struct Met {
  Tile kept_t, W;
};

// A row block with its sums over the keys so far.
struct RowBlock {
  RowBlock(Machine& machine, const ResidentPlan& by, Rows of, Range queries)
      : I(queries), rows(std::move(of)), sums(machine, by, I.size()) {}
  void meet(const KeyTiles& keys) { sums.add(keys, I, rows.s_t, rows.g_t); }
  // W_I = p_I A2, after the last key.
  [[nodiscard]] Met take() { return {std::move(rows.kept_t), sums.take()}; }

  Range I;
  Rows rows;
  SumsFromNothing sums;
};

void add_to_gradient(Machine& machine, const Operands& io, Range I, Met met, Tile& gradient) {
  const Phase phase(machine, "g");
  auto& [kept_t, W] = met;
  const Range kept{0, kept_t.rows()};
  const Range again{kept.end, gradient.rows()};
  multiply_add(kept_t, W, gradient.part(kept));
  kept_t.reset();
  if (again.size() > 0) {
    const Tile a1 = machine.read(io.in("A1").block(I, again));
    multiply_add(transposed(a1), W, gradient.part(again));
  }
}

void code(Machine& machine, const Plan& plan, const Operands& io, Workspace&) {
  const ResidentPlan by(plan.problem, plan.blocks);
  const Index d = plan.problem.shape.d;
  Resident resident(machine, by, io);
  Tile gradient = machine.initialize("g", d, d);
  const Range kept{0, staying(plan.problem, plan.blocks)};
  const Units units = by.units();
  const Range R = plan.problem.staying_queries();
  std::optional<RowBlock> of_R;
  Tile index;  // index of the keys that the queries R meet
  if (R.size() > 0) {
    Rows rows = read_rows(machine, io, resident, kept, R);
    const Phase phase(machine, "core");
    index = units.read_index(machine, R);
    of_R.emplace(machine, by, std::move(rows), R);
  }
  const auto first = [&](const KeyTiles& keys) { of_R->meet(keys); };
  for (Index unit = 0; unit < units.size(); ++unit) {
    const Range I = units[unit];
    Rows rows = read_rows(machine, io, resident, kept, I);
    Met met = [&] {
      const Phase phase(machine, "core");
      RowBlock block(machine, by, std::move(rows), I);
      resident.each_key_block(
          unit, [&](const KeyTiles& keys) { block.meet(keys); }, first);
      return block.take();
    }();
    add_to_gradient(machine, io, I, std::move(met), gradient);
  }
  if (of_R) {
    Met met = [&] {
      const Phase phase(machine, "core");
      resident.each_last_block(first);
      return of_R->take();
    }();
    of_R.reset();
    index.reset();
    add_to_gradient(machine, io, R, std::move(met), gradient);
  }
  const Phase phase(machine, "g");
  machine.write(gradient, io.out("g").whole());
}

std::vector<PhaseCost> cost(const Problem& problem, const Blocks& blocks) {
  const Index n = problem.shape.n;
  const Index d = problem.shape.d;
  const ResidentPlan by(problem, blocks);
  const Units::Sum of = by.units().sum();
  const Units::Sum of_R = by.units().staying();
  const Words nd = Words(n) * d;
  const Words dd = Words(d) * d;
  const Index k = staying(problem, blocks);
  // Words of a row block: A1, S and G with the sums.
  const auto block = [&](Words r) { return r * (k + 2 * d) + SumsFromNothing::words(by, r); };
  const Words stays = by.resident_words() + dd * problem.sum_words;
  const Words beside = stays + block(of_R.largest) + of_R.index_live;
  const auto peak = [&](Index words_of_row) {
    return std::max(beside + Words(of.largest) * words_of_row,
                    stays + Words(of_R.largest) * words_of_row);
  };
  return {
      resident_cost(by),
      // A1 and S; then dO and G with them.
      {.path = "S", .reads = nd, .writes = 0, .peak = peak(2 * d), .flops = 2 * nd * d},
      {.path = "G", .reads = nd, .writes = 0, .peak = peak(k + 3 * d), .flops = 2 * nd * d},
      // A2_J and A3_J of the streaming keys, or of the keys that come last.
      with_index(
          with_index(
              {.path = "core",
               .reads = (by.passing_keys() + size_of(by.last)) * problem.key_words(),
               .writes = 0,
               .peak = beside + std::max(block(of.largest) + by.block_words() + of.index_live,
                                         by.last_block_words()),
               .flops = 2 * SumsFromNothing::products(problem) * (of.pairs + of_R.pairs) * d},
              of),
          of_R),
      // W, and the columns of A1 in fast memory.
      {.path = "g",
       .reads = Words(n) * (d - k),
       .writes = dd,
       .peak = peak(d * problem.sum_words + std::max(k, d - k)),
       .flops = 2 * nd * d},
  };
}

// Starts from the plan of most_resident(). Row blocks of one query, with all shared keys resident,
// may need slightly more than M. Then some columns of A1_I make room, at n words for each column.
// Evicting a key instead would cost about as many words as all columns.
Blocks fit(const Problem& problem, const Memory& memory, Objective objective) {
  const Blocks best = most_resident(problem, memory.M, objective, cost);
  const auto cost_of = [&](const Blocks& blocks) { return total(cost(problem, blocks)); };
  const auto fits = [&](const Blocks& blocks) { return cost_of(blocks).peak <= Words(memory.M); };
  const auto words = [&](const Blocks& blocks) {
    const PhaseCost all = cost_of(blocks);
    return all.reads + all.writes;
  };
  if (objective == Objective::time || !fits(best)) {
    return best;
  }
  const auto a_row = [&](Index resident, Index again) {
    Blocks blocks{{"Br", 1}, {"Bc", 1}, {"resident", resident}};
    if (again > 0) {
      blocks.add(std::string(kAgain), again);
    }
    return blocks;
  };
  const Index m = problem.shape.m;
  const Index d = problem.shape.d;
  const Words fewest = words(a_row(m, 0));
  const Index room =
      m + 1 - largest(m, [&](Index less) { return words(a_row(m + 1 - less, 0)) == fewest; });
  const Index kept = largest(d, [&](Index tried) { return fits(a_row(room, d - tried)); });
  const Blocks few = a_row(room, d - kept);
  return fits(few) && words(few) < words(best) ? few : best;
}

}  // namespace
}  // namespace in_backward_rows_resident

Kernel backward_rows_resident() {
  using namespace in_backward_rows_resident;
  return {.name = "backward/rows-resident",
          .summary = "from nothing: X, Y, g and most keys stay, A1_I too, so that it is read once",
          .pass = Pass::backward,
          .operands = {kA1, kA2, kA3, kX, kY, kdO},
          .returns = {kg},
          .shares_keys = true,
          .takes_activations = true,
          .kin = "backward/rows-onepass",
          .schedule = {.code = code},
          .formula = {.cost = cost, .nest = loop_nest},
          .fitting = {.fit = fit, .optional_blocks = {{kAgain}}, .rows_stay = true},
          .numerics = {.recentred_blocks =
                           [](const Problem& problem, const Blocks& blocks) {
                             return Words(ResidentPlan(problem, blocks).key_blocks());
                           },
                       .Y_meets_rows = true}};
}

}  // namespace redblue
