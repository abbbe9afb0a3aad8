#include <algorithm>
#include <utility>

#include "kernels/fit.hpp"
#include "kernels/gradients/score_rows.hpp"

namespace redblue {

std::vector<KeyPiece> key_pieces(const ScoreRowPlan& by, Range group, Index block) {
  const Ranges met = by.row_blocks.met(block);
  const Ranges before =
      block == group.begin
          ? Ranges()
          : by.problem.keys({by.row_blocks[group.begin].begin, by.row_blocks[block].begin});
  const Ranges after =
      block + 1 == group.end
          ? Ranges()
          : by.problem.keys({by.row_blocks[block + 1].begin, by.row_blocks[group.end - 1].end});
  const Ranges staying = common(met, {{0, by.kept}});
  const Ranges passing = without(met, {{0, by.kept}});
  std::vector<KeyPiece> all;
  Index row = 0;
  const auto add = [&](const Ranges& ranges, bool first) {
    const Pieces pieces(ranges, by.keys);
    for (Index k = 0; k < pieces.size(); ++k) {
      all.push_back({pieces[k], {row, row + pieces[k].size()}, first, common(after, {pieces[k]})});
      row += pieces[k].size();
    }
  };
  add(staying, false);
  add(common(passing, before), false);
  add(without(passing, before), true);
  return all;
}

BlockRanges sum_blocks(const Problem& problem, const Blocks& blocks) {
  return {ScoreRowPlan(problem, blocks).groups() > 1 ? problem.shape.m : 0, blocks["sum.Bc"]};
}

// Returns the keys in J for which a group wrote sums.
Ranges summed(const ScoreRowPlan& by, Index group, Range J) {
  const Ranges others = without({J}, {{0, by.kept}});
  return without({J}, without(others, by.passing(group)));
}

namespace {

// The peak of a row block that streams at most `longest` keys in one range.
Words core_peak(const ScoreRowPlan& by, const Units::Unit& of, Index longest) {
  const Words d = by.problem.shape.d, dv = by.problem.shape.dv;
  const Words r = of.rows, c = std::min(by.keys, longest);
  const Words scores = r * of.most;
  const Words index = by.problem.mask.index().live();
  const Words sum_words = by.problem.sum_words;
  const Words of_dQ = r * d * sum_words;
  const Words of_piece = c * (d + std::max(d, dv) * sum_words);  // K_J, and dK_J or dV_J
  const Words staying = (1 + sum_words) * by.problem.key_words() * by.kept;
  if (!by.problem.normalised()) {
    // Q_I and dO_I, each twice; dQ_I, f and p of a block of keys, K_J, and V_J, dK_J or dV_J.
    return staying + r * 2 * (d + dv) + of_dQ + 2 * r * Words(std::min(by.keys, of.most)) +
           of_piece + index;
  }
  // Q_I and dO_I, one of them twice.
  const Words row = r * sum_words;
  const Words divided = r * (d + dv + std::max(d, dv)) + 2 * scores + 2 * row;
  // Q_I, dO_I and dQ_I, p and e with sum and v
  const Words adding = r * (d + dv) + of_dQ + 2 * scores + 2 * row + of_piece + index;
  if (by.shares_keys()) {
    return staying + std::max({// Q_I, dO_I, e and q with the maximum; K_J
                               2 * r * d + 2 * scores + row + c * d + index,
                               // maximum, sum and v
                               2 * r * d + 2 * scores + 3 * row, divided, adding});
  }
  return staying +
         std::max({// Q_I, e and the maximum; K_J
                   r * d + scores + row + c * d + index,
                   // Q_I, dO_I, e and q with maximum, sum and v; V_J
                   r * (d + dv) + 2 * scores + 3 * row + c * dv + index, divided, adding});
}

Words core_peak(const ScoreRowPlan& by) {
  const Units::Sum of = by.row_blocks.sum(), passing = by.row_blocks.from(by.kept).sum();
  return std::max(core_peak(by, of.full, passing.full.longest),
                  core_peak(by, of.last, passing.last.longest));
}

}  // namespace

PhaseCost score_rows_core_cost(const Problem& problem, const Blocks& blocks, Range groups) {
  const ScoreRowPlan by(problem, blocks);
  const Words d = problem.shape.d, dv = problem.shape.dv;
  const Index G = groups.size();
  Range of_blocks;
  if (G > 0) {
    of_blocks = {by.of_groups[groups.begin].begin, by.of_groups[groups.end - 1].end};
  }
  const Units::Sum of = by.row_blocks.sum(of_blocks);
  const Words passing = by.row_blocks.met_from(by.kept, of_blocks);
  Words first;  // each key of each group
  for (Index g = groups.begin; g < groups.end; ++g) {
    first += size_of(by.passing(g));
  }
  const Words again = passing.overflowed() ? passing : Words(passing.value() - first.value());
  // Words of a key in all passes: K, then V, then K while sums are added. Without softmax, one pass
  // needs each of them once. If values are keys, K and V count once.
  const Words key = problem.key_words(), sum_words = problem.sum_words;
  // Words in memory for each word of a group's sums.
  const Words whole = by.groups() > 1 ? sum_words : Words(1);
  const Index passes = !problem.normalised() ? 1 : by.shares_keys() ? 2 : 3;
  const Words of_key = problem.normalised() ? d + key : key;
  return with_index(
      {.path = "core",
       .reads = of.rows * (d + dv) + by.kept * key * G + passing * of_key + again * key * sum_words,
       .writes = of.rows * d + again * key * sum_words + (by.kept * Words(G) + first) * key * whole,
       .peak = G > 0 ? core_peak(by) : Words(0),
       .flops = 2 * of.pairs * (3 * d + 2 * dv)},
      of, passes);
}

PhaseCost score_rows_sum_cost(const Problem& problem, const Blocks& blocks, Range units) {
  const ScoreRowPlan by(problem, blocks);
  const BlockRanges keys = sum_blocks(problem, blocks);
  const Words d = problem.shape.d, dv = problem.shape.dv;
  Words rows, parts, largest;
  if (units.size() > 0) {
    const Range all{keys[units.begin].begin, keys[units.end - 1].end};
    rows = all.size();
    for (Index g = 0; g < by.groups(); ++g) {
      parts += size_of(summed(by, g, all));
    }
    largest = keys[units.begin].size();
  }
  return {.path = "sum",
          .reads = parts * problem.key_words() * problem.sum_words,
          .writes = rows * problem.key_words(),
          .peak = 2 * largest * std::max(d, dv) * problem.sum_words,
          .flops = 0};
}

std::vector<PhaseCost> score_rows_cost(const Problem& problem, const Blocks& blocks) {
  const BlockRanges keys = sum_blocks(problem, blocks);
  std::vector<PhaseCost> phases = {
      score_rows_core_cost(problem, blocks, {0, ScoreRowPlan(problem, blocks).groups()})};
  if (keys.size() > 0) {
    phases.push_back(score_rows_sum_cost(problem, blocks, {0, keys.size()}));
  }
  return phases;
}

namespace {

Blocks blocks_of(const ScoreRowPlan& by, Index M) {
  Blocks blocks = by.blocks();
  const Index width = std::max(by.problem.shape.d, by.problem.shape.dv) * by.problem.sum_words;
  blocks.add("sum.Bc", std::clamp<Index>(M / (2 * width), 1, by.problem.shape.m));
  return blocks;
}

// One group, with the numbers of rows and resident keys that move the fewest words, as large as
// they fit.
Blocks fewest(const Problem& problem, Index M) {
  const Index n = problem.shape.n, m = problem.shape.m;
  const auto plan = [&](Index r, Index c, Index k) { return ScoreRowPlan(problem, r, c, k, 1); };
  const auto fits = [&](Index r, Index c, Index k) { return core_peak(plan(r, c, k)) <= Words(M); };
  const auto words = [&](Index r, Index k) {
    const PhaseCost core = score_rows_core_cost(problem, blocks_of(plan(r, 1, k), M), {0, 1});
    return core.reads + core.writes;
  };
  const auto most_kept = [&](Index r) {
    return fits(r, 1, 1) ? largest(m, [&](Index tried) { return fits(r, 1, tried); }) : 0;
  };
  const Index most =
      even(n, largest(std::min(n, M), [&](Index tried) { return fits(tried, 1, 0); }));
  const auto [r, k] = fewest_words_beside(n, most, m, most_kept, words, sizes_tried(problem));
  const Index c = largest(m, [&, r = r, k = k](Index tried) { return fits(r, tried, k); });
  return blocks_of(plan(r, c, k), M);
}

// Either all keys are resident, with enough rows to keep the registers busy, or no keys are.
Blocks fastest(const Problem& problem, Index M) {
  constexpr Index kBusyRows = kStrip;
  constexpr Index kMostRows = 6 * kPanel;
  constexpr Index kGroups = 4;
  // Two workers can share ten groups evenly. Under a causal mask, each group has more pairs than
  // the one before, and the last three groups have about as many as the first seven.
  constexpr Index kGroupsOfMask = 10;
  constexpr Index kKeys = 96;
  const Index n = problem.shape.n, m = problem.shape.m;
  const auto fits = [&](Index r, Index k) {
    return core_peak({problem, r, std::min(kKeys, m), k, 1}) <= Words(M);
  };
  if (!fits(std::min(n, kPanel), 0)) {
    return fewest(problem, M);
  }
  const Index k = fits(std::min(n, kBusyRows), m) ? m : 0;
  Index r = largest(std::min(n, kMostRows), [&](Index tried) { return fits(tried, k); });
  if (r < n && r > kPanel) {
    r = r / kPanel * kPanel;
  }
  // More than two groups of a few blocks would take longer to add up than they save.
  const Index blocks = ceil_div(n, r);
  const Index groups = blocks >= 4 * kGroups   ? problem.mask.full() ? kGroups : kGroupsOfMask
                       : blocks >= 2 * kGroups ? 2
                                               : 1;
  return blocks_of({problem, r, kKeys, k, groups}, M);
}

}  // namespace

Blocks score_rows_blocks(const Problem& problem, Index M, Objective objective) {
  return objective == Objective::time ? fastest(problem, M) : fewest(problem, M);
}

}  // namespace redblue
