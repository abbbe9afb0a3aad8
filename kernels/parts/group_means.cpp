#include "kernels/parts/group_means.hpp"

#include <algorithm>
#include <utility>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/parts/v_first.hpp"
#include "memsim/machine.hpp"

namespace redblue {

Index moves_of_mean(const GroupedRows& by) {
  const Mask& mask = by.by.problem.mask;
  const Index keys = by.keys(0).size();
  const Index ranges = mask.full() ? 0 : mask.most_ranges();
  Index blocks = ceil_div(keys, by.by.keys) + ranges;
  for (const LevelBlocks& in : by.by.inner) {
    blocks += ceil_div(keys, in.keys);
  }
  return std::min(keys, blocks) + by.groups - 1;
}

void leave_group(Machine& machine, const Operands& io, Range at, GradientSums sums) {
  auto [U, Z, softmax, mean] = sums.take_parts();
  softmax.write(machine, io.out(kMaxima.name), io.out(kSums.name), at);
  machine.write(mean, io.out(kMeans.name).row_block(at));
  machine.write(U, io.out(kPartOfU.name).row_block(at));
  machine.write(Z, io.out(kPartOfZ.name).row_block(at));
}

// The mean of a row moves as in a pass over keys, with a group in the role of a block of keys. It
// moves by its weighted distance from the mean of the group.
void merge_groups(Machine& machine, const GroupedRows& by, const Operands& io, Range units) {
  const Phase phase(machine, "merge");
  const auto read = [&](const Signature& of, Range at) {
    return machine.read(std::as_const(io.out(of.name)).row_block(at));
  };
  for (Index unit = units.begin; unit < units.end; ++unit) {
    const Range I = by.rows(unit);
    Tile maximum = machine.initialize("max", I.size(), 1, kNoMaximum);
    Tile sum = machine.initialize("sum", I.size());
    Tile mean = machine.initialize("mean", I.size());
    for (Index group = 0; group < by.groups; ++group) {
      const Range at = by.left(group, I);
      Tile weight = read(kMaxima, at);
      {
        Tile rescale = machine.initialize("rescale", I.size());
        raise_maximum(weight, maximum, rescale);
        scale_rows(sum, rescale);
      }
      exponentiate(weight, maximum, weight);
      {
        const Tile sums = read(kSums, at);
        multiply_words(weight, sums);
      }
      add(sum, weight);
      Tile delta = read(kMeans, at);
      subtract_rows(delta, mean);
      multiply_words(delta, weight);
      divide_unless_0(delta, sum);
      add(mean, delta);
    }
    add_logarithm(maximum, sum);
    machine.write(maximum, io.out(kL.name).row_block(I));
    machine.write(mean, io.out(kOfRows.name).row_block(I));
  }
}

PhaseCost merge_groups_cost(const GroupedRows& by, Range units) {
  const Units::Sum of = by.row_blocks.sum(units);
  const Words sum_words = by.by.problem.sum_words;
  return {.path = "merge",
          .reads = 3 * sum_words * by.groups * of.rows,
          .writes = 2 * sum_words * of.rows,
          .peak = 5 * sum_words * of.largest,
          .flops = 0};
}

void merge_groups_nest(NestWriter& nest, const NestLoop& I, const NestLoop& groups) {
  const NestTile maximum("max", I), sum("sum", I), mean("mean", I);
  const std::string P = groups.variable;
  nest.phase("merge", [&] {
    nest.loop(I, [&] {
      nest.loop(groups, {maximum, sum, mean}, [&] {
        nest.step("e = exp(max_I of " + P + " - max_I) sum_I of " + P +
                      "; mean_I += e (mean_I of " + P + " - mean_I) / sum_I",
                  {maximum, sum, mean});
      });
      nest.step("L_I = max_I + log(sum_I); v_I = mean_I", {}, {{"L", I}, {"v", I}});
    });
  });
}

Tile sum_of_group(Machine& machine, const GroupedRows& by, const Operands& io, Index unit) {
  const Range I = by.rows(unit);
  const Range at = by.left(by.group(unit), I);
  const auto read = [&](const Signature& of, Range rows) {
    return machine.read(std::as_const(io.out(of.name)).row_block(rows));
  };
  Tile weight = read(kMaxima, at);  // (r)
  {
    const Tile L = read(kL, I);
    exponentiate(weight, L, weight);
  }
  Tile moved = read(kOfRows, I);  // v - mean of the group (r)
  {
    const Tile mean = read(kMeans, at);
    subtract_rows(moved, mean);
  }
  Tile W = read(kPartOfU, at);  // (r, d)
  {
    const Tile Z = read(kPartOfZ, at);
    subtract_scaled_rows(W, moved, Z);
  }
  scale_rows(W, weight);
  return W;
}

PhaseCost sum_of_group_cost(std::string path, const GroupedRows& by, Range units) {
  const Words d = by.by.problem.shape.d, sum_words = by.by.problem.sum_words;
  const Units::Sum of = by.sum(units);
  return {.path = std::move(path),
          .reads = of.rows * (2 * d + 4) * sum_words,
          .writes = 0,
          .peak = of.largest * (2 * d + 2) * sum_words,
          .flops = 0};
}

void sum_of_group_nest(NestWriter& nest, const Problem& problem, const NestLoop& I,
                       const std::string& result) {
  const Index d = problem.shape.d;
  nest.step(result + "_I = exp(max_I of P - L_I) (U_I of P + (mean_I of P - v_I) Z_I of P)",
            {{"max", I}, {"L", I}, {"mean", I}, {"v", I}, {"U", I, d}, {"Z", I, d}});
}

}  // namespace redblue
