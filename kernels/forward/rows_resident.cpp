// Computes O and L in a fast memory that holds X, Y and most keys, while row blocks of queries
// stream. It sums in the same way as forward/rows.
//
//   reads and writes   2 n d + n + 2 m d + 2 d^2 + 2 (m - resident) d (T - 1),   T = ceil(n / Br)
//
// If all keys are resident, or T = 1, each word moves once. For a window mask, this needs only room
// for the keys that two consecutive row blocks both meet. Queries that meet far more keys than
// others may also be resident (kernels/parts/resident.hpp). attention/rows-resident is the same
// without 2 d^2.

#include <algorithm>
#include <optional>
#include <utility>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/parts/activations.hpp"
#include "kernels/parts/resident.hpp"
#include "kernels/parts/row_sums.hpp"
#include "kernels/registry.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace in_forward_rows_resident {
namespace {

Nest loop_nest(const Problem& problem, const Blocks& blocks) {
  const Index d = problem.shape.d;
  const Index dv = problem.shape.dv;
  const ResidentPlan by(problem, blocks);
  const bool weighted = problem.inputs == Inputs::weighted;
  const auto begin = [&](NestWriter& nest, const NestLoop& I) {
    if (weighted) {
      nest.phase("S", [&] { nest.step(text_of("S_I = A1_I X", I), {{"A1", I, d}}); });
    } else {
      query_rows_nest(nest, by, I);
    }
  };
  const auto end = [&](NestWriter& nest, const NestLoop& I) {
    nest.phase("O", [&] {
      if (problem.normalised()) {
        nest.step(text_of("L_I = max_I + log(sum_I)", I), {}, {{"L", I}});
      }
      const std::string_view mean = text_for(problem, "Z_I / sum_I", "Z_I");
      nest.step(
          text_of(weighted ? "O_I = (" + std::string(mean) + ") Y" : "O_I = " + std::string(mean),
                  I),
          {}, {{"O", I, dv}});
    });
  };
  const auto stays = [&](const NestLoop& I) {
    return NestWriter::Tiles{{input_names(problem).rows, I, d},
                             {"Z", I, dv},
                             {"max", I, problem.row_columns()},
                             {"sum", I, problem.row_columns()}};
  };
  NestWriter nest;
  resident_nest(nest, by);
  each_row_block_nest(nest, by, resident_tiles(by),
                      {begin, end, weights_text(problem) + values_text(problem), stays});
  return nest.lines();
}

// Returns S_I^T, with X resident; or c Q_I^T.
Tile rows(Machine& machine, const ResidentPlan& by, const Resident& resident, const Operands& io,
          Range I) {
  if (by.problem.inputs == Inputs::plain) {
    return query_rows(machine, by, io, I);
  }
  const Phase phase(machine, "S");
  const Tile a1_t = machine.read(transposed(io.in("A1").row_block(I)));
  Tile s_t = machine.initialize("S", by.problem.shape.d, I.size(), Holds::operands);
  multiply(transposed(resident.X()), a1_t, s_t);
  return s_t;
}

// Adds up Z_I = sum of e_j A3_j over the keys so far, with e = exp(s - maximum).
struct RowBlock {
  RowBlock(Machine& machine, const ResidentPlan& by, Tile S_t, Range queries)
      : I(queries), s_t(std::move(S_t)), sums(machine, by, I.size()) {}
  void meet(const KeyTiles& keys) { sums.add(keys, I, s_t); }

  Range I;
  Tile s_t;
  ValueSums sums;
};

void write_rows(Machine& machine, const ResidentPlan& by, const Resident& resident,
                const Operands& io, Range I, ValueSums::Sums sums) {
  const Phase phase(machine, "O");
  auto [Z, normaliser] = std::move(sums);
  normaliser.divide(Z);
  normaliser.write_L(io, "L", I);
  if (by.problem.inputs == Inputs::weighted) {
    Tile o = machine.initialize("O", I.size(), Z.cols());
    multiply(Z, resident.Y(), o);
    Z = std::move(o);
  }
  machine.write(Z, io.out("O").row_block(I));
}

void code(Machine& machine, const Plan& plan, const Operands& io, Workspace&) {
  const ResidentPlan by(plan.problem, plan.blocks);
  Resident resident(machine, by, io);
  const Units units = by.units();
  const Range R = plan.problem.staying_queries();
  std::optional<RowBlock> of_R;
  Tile index;  // the keys that the resident queries meet
  if (R.size() > 0) {
    Tile s_t = rows(machine, by, resident, io, R);
    const Phase phase(machine, "core");
    index = units.read_index(machine, R);
    of_R.emplace(machine, by, std::move(s_t), R);
  }
  const auto first = [&](const KeyTiles& keys) { of_R->meet(keys); };
  for (Index unit = 0; unit < units.size(); ++unit) {
    const Range I = units[unit];
    Tile s_t = rows(machine, by, resident, io, I);
    ValueSums::Sums sums = [&] {
      const Phase phase(machine, "core");
      RowBlock block(machine, by, std::move(s_t), I);
      resident.each_key_block(
          unit, [&](const KeyTiles& keys) { block.meet(keys); }, first);
      return block.sums.take();
    }();
    write_rows(machine, by, resident, io, I, std::move(sums));
  }
  if (of_R) {
    ValueSums::Sums sums = [&] {
      const Phase phase(machine, "core");
      resident.each_last_block(first);
      return of_R->sums.take();
    }();
    of_R.reset();
    write_rows(machine, by, resident, io, R, std::move(sums));
  }
}

std::vector<PhaseCost> cost(const Problem& problem, const Blocks& blocks) {
  const Index n = problem.shape.n;
  const Index d = problem.shape.d;
  const Index dv = problem.shape.dv;
  const ResidentPlan by(problem, blocks);
  const bool weighted = problem.inputs == Inputs::weighted;
  const Units::Sum of = by.units().sum();
  const Units::Sum of_R = by.units().staying();
  const Words nd = Words(n) * d;
  // Words of S and the sums for r rows.
  const auto block = [&](Words r) { return r * d + ValueSums::words(by, r); };
  const Words resident = by.resident_words();
  const Words beside = resident + block(of_R.largest) + of_R.index_live;
  const auto peak = [&](Index words_of_row) {
    return std::max(beside + Words(of.largest) * words_of_row,
                    resident + Words(of_R.largest) * words_of_row);
  };
  return {
      resident_cost(by),
      // A1 and S; or Q.
      {.path = std::string(input_names(problem).rows),
       .reads = nd,
       .writes = 0,
       .peak = peak((weighted ? 2 : 1) * d),
       .flops = weighted ? 2 * nd * d : 0},
      // A2_J and A3_J of the keys that stream, in blocks or in the last block.
      with_index(with_index({.path = "core",
                             .reads = (by.passing_keys() + size_of(by.last)) * problem.key_words(),
                             .writes = 0,
                             .peak = beside +
                                     std::max(block(of.largest) + by.block_words() + of.index_live,
                                              by.last_block_words()),
                             .flops = 2 * (of.pairs + of_R.pairs) * (Words(d) + dv)},
                            of),
                 of_R),
      // Z with maximum and sum; then with O.
      {.path = "O",
       .reads = 0,
       .writes = Words(n) * (dv + problem.row_words()),
       .peak = peak(dv * problem.sum_words +
                    std::max(RowNormaliser::words(problem), weighted ? d * problem.sum_words : 0)),
       .flops = weighted ? 2 * nd * d : 0},
  };
}

}  // namespace
}  // namespace in_forward_rows_resident

Kernel forward_rows_resident() {
  using namespace in_forward_rows_resident;
  return {.name = "forward/rows-resident",
          .summary = "X, Y and most keys stay; row blocks pass",
          .pass = Pass::forward,
          .operands = {kA1, kA2, kA3, kX, kY},
          .returns = {kO, kL},
          .shares_keys = true,
          .takes_activations = true,
          .kin = "forward/rows",
          .schedule = {.code = code},
          .formula = {.cost = cost, .nest = loop_nest},
          .fitting = {.fit =
                          [](const Problem& problem, const Memory& memory, Objective objective) {
                            return most_resident(problem, memory.M, objective, cost);
                          },
                      .rows_stay = true},
          .numerics = {.rescales =
                           [](const Problem& problem, const Blocks& blocks) {
                             return Words(ResidentPlan(problem, blocks).key_blocks() - 1);
                           },
                       .Y_meets_rows = true}};
}

}  // namespace redblue
