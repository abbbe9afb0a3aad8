// Computes dQ, dK and dV in two passes, so that no incomplete sum leaves fast memory. In the first
// pass, rows of Q, dO and dQ are resident while keys stream. In the second, keys, values and their
// gradients are resident while queries stream, with the v of the first pass. Scores are computed
// twice, which costs 14 products of n m d instead of 10.
//
//   dQ    reads 3 n d + n + 2 m d T,   T = ceil(n / Br);   writes n d + n
//   dKV   reads 2 m d + C (2 n d + 2 n),   C = ceil(m / Bc);   writes 2 m d
//
// rows-keys gets O and L, and its first pass computes v = rowsum(dO * O). rows-keys-onepass does
// not get them. Its first pass holds q relative to its running mean, and two sums, as
// backward/rows-onepass does; the last mean is v:
//
//   dQ    reads 2 n d + 2 m d T;   writes n d + 2 n
//
// If values are keys, they are read once, and one sum dK + dV is resident. Each 2 m d then becomes
// m d, and T and C are smaller because more of M is free.
//
// Under a mask, each block streams only the rows that it meets. The first pass computes dQ, and v
// for dK. The second pass computes dK and dV. A pass without wanted results is left out.
//
// Words in units of n^2, with x = d / sqrt(M) and n = m >> d: 14 x^2, and 16 x^2 without O and L.
//
// Inner levels of fast memory hold resident rows in the first pass (kernels/parts/rows.hpp) and
// resident keys in the second (kernels/parts/key_gradients.hpp). Take a level with b rows, and c
// keys in a block of the next level. Up to terms of n d or m d words:
//
//   dQ    reads  C (3 n d + 2 n) + 2 m d T;   writes  C n d        C = ceil(m / c), T = ceil(n / b)
//         reads  C (4 n d + 3 n) + 2 m d T;   writes  C (2 n d + 3 n)   without O and L
//   dKV   as above
//
// Keys may be split into G groups in the first pass, and queries into H groups in the second. Then
// several machines may work on one row block, or on one key. Each group writes a sum over its keys
// or queries, and these are added in the order of groups. A group of queries consists of row blocks
// of the first pass, so there are at most as many groups. Each block still streams everything once.
// With O and L given, and with any groups, a phase v comes first:
//
//   v         reads 2 n d;   writes n
//   dQ        reads G (2 n d + 2 n) + 2 m d T;   writes G n d
//   dKV       reads H 2 m d + C (2 n d + 2 n);   writes H 2 m d   (C: within groups of keys)
//   sum/dQ    reads G n d;   writes n d         if G > 1
//   sum/dKV   reads H 2 m d;   writes 2 m d     if H > 1
//
// Without O and L, key groups write the sums that kernels/parts/group_means.hpp describes. If
// G > 1, these phases replace v and dQ:
//
//   core      reads G 2 n d + 2 m d T;   writes G (2 n d + 3 n)
//   merge     reads 3 G n;   writes 2 n
//   dQ        reads G (2 n d + 4 n);   writes G n d

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/parts/activations.hpp"
#include "kernels/parts/group_means.hpp"
#include "kernels/parts/grouped_rows.hpp"
#include "kernels/parts/key_gradients.hpp"
#include "kernels/parts/level_costs.hpp"
#include "kernels/parts/row_sums.hpp"
#include "kernels/parts/rows.hpp"
#include "kernels/parts/split_stages.hpp"
#include "kernels/parts/v_first.hpp"
#include "kernels/registry.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace in_gradients_rows_keys {
namespace {

// Sums of groups, stacked one below the other.
constexpr Signature kPartOfdQ{"dQ of groups", &Shape::n, &Shape::d, Holds::sums};
constexpr Signature kPartOfdK{"dK of groups", &Shape::m, &Shape::d, Holds::sums};
constexpr Signature kPartOfdV{"dV of groups", &Shape::m, &Shape::dv, Holds::sums};

// The plans of the first pass: for all keys, and in key groups.
RowPlan row_plan(const Problem& problem, const Blocks& blocks) {
  RowPlan plan(problem, blocks["dQ.Br"], blocks["dQ.Bc"], problem.shape.d);
  plan.inner = level_blocks(blocks, "dQ.");
  return plan;
}
GroupedRows row_groups(const Problem& problem, const Blocks& blocks) {
  return {row_plan(problem, blocks), blocks};
}

// Whether there are several groups, perhaps on other ranks. This also holds for a part of the
// queries, which may have fewer row blocks than there are groups.
bool merges_keys(const Problem& problem, const Blocks& blocks) {
  return std::min(key_groups_of(blocks), problem.shape.m) > 1 || blocks.contains(kSomeGroups);
}
bool merges_queries(const Blocks& blocks) {
  return (blocks.contains(kQueryGroups) && blocks[kQueryGroups] > 1) ||
         blocks.contains(kSomeQueryGroups);
}

// The second pass in groups. Each group of queries (whole row blocks of the first pass) and each
// group of keys form an independent pass of the queries past the keys. Without groups, there is
// one pass.
struct GroupedKeys {
  GroupedKeys(const Problem& of, const Blocks& blocks)
      : problem(of),
        by{.rows = blocks["dKV.Br"],
           .keys = blocks["dKV.Bc"],
           .inner = level_blocks(blocks, "dKV.")},
        row_blocks(of.shape.n, blocks["dQ.Br"]),
        groups(blocks.contains(kQueryGroups) ? std::min(blocks[kQueryGroups], row_blocks.size())
                                             : 1),
        key_groups(std::clamp<Index>(key_groups_of(blocks), 1, std::max<Index>(of.shape.m, 1))),
        merges(merges_queries(blocks)),
        in_groups(merges || merges_keys(of, blocks)) {}

  const Problem& problem;
  KeyBlocks by;
  BlockRanges row_blocks;
  Index groups, key_groups;  // of queries, of keys
  bool merges, in_groups;

  [[nodiscard]] Range queries(Index group) const {
    const Range blocks = keys_of_group(row_blocks.size(), groups, group);
    return {row_blocks[blocks.begin].begin, row_blocks[blocks.end - 1].end};
  }
  [[nodiscard]] Range keys(Index group) const {
    return keys_of_group(problem.shape.m, key_groups, group);
  }
  // key_blocks() returns the number of key blocks for each group of queries; key_blocks(group)
  // returns the number in one group of keys. first_key() returns the first key of a block, or m
  // after the last block.
  [[nodiscard]] Index key_blocks() const {
    const Index more = problem.shape.m % key_groups;
    return more * key_blocks(0) + (key_groups - more) * key_blocks(key_groups - 1);
  }
  [[nodiscard]] Index key_blocks(Index group) const {
    return ceil_div(keys(group).size(), by.keys);
  }
  [[nodiscard]] Index first_key(Index block) const {
    const Index more = problem.shape.m % key_groups;
    const Index of_more = more * key_blocks(0);
    const Index group = block < of_more ? block / key_blocks(0)
                                        : more + (block - of_more) / key_blocks(key_groups - 1);
    if (group == key_groups) {
      return problem.shape.m;
    }
    const Index before = std::min(group, more) * key_blocks(0) +
                         std::max<Index>(group - more, 0) * key_blocks(key_groups - 1);
    return keys(group).begin + (block - before) * by.keys;
  }
  [[nodiscard]] Index units() const { return (Words(key_blocks()) * groups).value(); }
  // Returns the problem of one group of queries and one group of keys.
  [[nodiscard]] Problem of_groups(Index of_queries, Index of_keys) const {
    Problem part = problem;
    part.shape.n = queries(of_queries).size();
    part.shape.m = keys(of_keys).size();
    if (in_groups && !problem.mask.full()) {
      part.mask = problem.mask.part({queries(of_queries)}, {keys(of_keys)});
    }
    return part;
  }
  // Calls visit(group of keys, its blocks) for some of the blocks.
  template <class Visit>
  void each_key_group(Range blocks, const Visit& visit) const {
    Index before = 0;
    for (Index group = 0; group < key_groups && before < blocks.end; ++group) {
      const Index its = key_blocks(group);
      const Range own{std::max(blocks.begin - before, Index{0}),
                      std::min(blocks.end - before, its)};
      if (own.size() > 0) {
        visit(group, own);
      }
      before += its;
    }
  }
  // Calls visit(sum) for parts of some units.
  void each_sum(Range units, const std::function<void(const Units::Sum& of)>& visit) const {
    each_part(units, key_blocks(), [&](Range of_queries, Range blocks) {
      each_key_group(blocks, [&](Index group, Range own) {
        if (problem.mask.full()) {
          const Range first = queries(of_queries.begin), last = queries(of_queries.end - 1);
          visit(of_all_groups(Units::of_keys(of_groups(0, group), by.keys).sum(own),
                              of_queries.size(), first.size(), last.end - first.begin));
          return;
        }
        for (Index which = of_queries.begin; which < of_queries.end; ++which) {
          visit(Units::of_keys(of_groups(which, group), by.keys).sum(own));
        }
      });
    });
  }
};

KeySums sums_of_keys(const Problem& problem, bool of_parts = false) {
  KeySums sums = key_sums(problem);
  sums.dQ = false;
  sums.of_parts = of_parts;
  sums.in_strips = true;
  return sums;
}

// needs_v(): whether a pass needs v. makes_v_first(): whether v is computed before the first pass.
// This happens if O and L are given, and groups, or the second pass without the first, read v.
// leaves_v(): whether v is written; usually the first pass does that.
bool needs_v(const Problem& problem, Start start) {
  return problem.normalised() &&
         (start == Start::nothing || problem.wants("dQ") || problem.wants("dK"));
}
bool makes_v_first(const Problem& problem, const Blocks& blocks, Start start) {
  return start == Start::given && needs_v(problem, start) &&
         (!problem.wants("dQ") || merges_keys(problem, blocks) || merges_queries(blocks));
}
bool leaves_v(const Problem& problem, const Blocks& blocks, Start start) {
  return problem.normalised() &&
         (start == Start::nothing || problem.wants("dK") || makes_v_first(problem, blocks, start));
}

// Returns whether key groups write sums from which dQ is computed after the last group.
bool leaves_sums(const Problem& problem, const Blocks& blocks, Start start) {
  return start_of(problem, start) == Start::nothing && merges_keys(problem, blocks);
}

// Returns L of all queries. It is an operand if O and L are given; otherwise the first pass writes
// it for the second.
const SlowMatrix* L_of(const Problem& problem, const Operands& io, Start start) {
  return !problem.normalised() ? nullptr : start == Start::given ? &io.in("L") : &io.out("L");
}

// ---- dQ --------------------------------------------------------------------------------------

template <class Sums>
void over_keys(Machine& machine, const RowPlan& by, const Operands& io, Range I,
               const Ranges& keys_met, const Tile& q_t, const Tile& do_t, Sums& sums) {
  for (const KeyTiles& keys : KeyStream(machine, by, io, I, keys_met)) {
    sums.add(keys, I, q_t, do_t);
  }
}

// Returns v_I. If it is not yet computed, this computes it and writes it for later stages.
Tile v_of_rows(Machine& machine, const RowPlan& by, const Blocks& blocks, const Operands& io,
               Range I, const Tile& do_t) {
  const Problem& problem = by.problem;
  if (makes_v_first(problem, blocks, Start::given)) {
    return machine.read(std::as_const(io.out("v")).row_block(I));
  }
  Tile v = row_values(machine, problem, "v", I.size());  // v_I (r)
  if (problem.normalised()) {
    const Tile o_t = machine.read(transposed(io.in("O").row_block(I)), by.cut_rows());  // (d, r)
    add_row_dots(machine, by, do_t, o_t, v);
  }
  if (leaves_v(problem, blocks, Start::given)) {
    machine.write(v, io.out("v").row_block(I));
  }
  return v;
}

// Computes dQ_I = c p_I K. If there are several key groups, it writes the group's p_I K, or the
// sums that p_I K is computed from. It also computes v_I, and L_I if it is not given.
void row_pass(Machine& machine, const GroupedRows& grouped, const Blocks& blocks,
              const Operands& io, Start start, Index unit) {
  const Index group = grouped.group(unit);
  const RowPlan by = grouped.of_group(group);
  const Range I = grouped.rows(unit);
  const Ranges keys = common(by.problem.keys(I), {grouped.keys(group)});
  const auto scale_rows = [&](Tile& dq) {
    each_rows(machine, by.inner, &LevelBlocks::rows, dq.rows(),
              {{dq, Axis::staying, Axis::whole, Use::changes}},
              [&](Range S) { scale(dq.part(S), by.problem.scale()); });
  };
  const Tile q_t = scaled_rows(machine, by, io.in("Q"), I);  // c Q_I^T (d, r)
  const Tile do_t = machine.read(transposed(io.in("dO").row_block(I)), by.cut_rows());  // (d, r)
  if (start_of(by.problem, start) == Start::nothing) {
    GradientSums sums(machine, by, I.size());
    over_keys(machine, by, io, I, keys, q_t, do_t, sums);
    if (grouped.merges()) {
      leave_group(machine, io, grouped.left(group, I), std::move(sums));
      return;
    }
    auto [dq, l, mean] = sums.take_all();
    machine.write(l, io.out("L").row_block(I));
    machine.write(mean, io.out("v").row_block(I));
    scale_rows(dq);
    machine.write(dq, io.out("dQ").row_block(I));
    return;
  }
  Tile v = v_of_rows(machine, grouped.by, blocks, io, I, do_t);
  Tile l = read_row_values(machine, by.problem, io, "L", I);  // L_I (r)
  KnownGradientSums sums(machine, by, I.size(), std::move(l), std::move(v));
  over_keys(machine, by, io, I, keys, q_t, do_t, sums);
  Tile dq = sums.take();  // dQ_I (r, d)
  if (grouped.merges()) {
    machine.write(dq, io.out(kPartOfdQ.name).row_block(grouped.left(group, I)));
    return;
  }
  scale_rows(dq);
  machine.write(dq, io.out("dQ").row_block(I));
}

std::string row_phase(const Problem& problem, const Blocks& blocks, Start start) {
  return leaves_sums(problem, blocks, start) ? "core" : "dQ";
}

void row_part(Machine& machine, const Plan& plan, const Operands& io, Start start, Range units) {
  const Phase phase(machine, row_phase(plan.problem, plan.blocks, start));
  const GroupedRows by = row_groups(plan.problem, plan.blocks);
  for (Index unit = units.begin; unit < units.end; ++unit) {
    row_pass(machine, by, plan.blocks, io, start, unit);
  }
}

// Peak: Q, dO and O with v, if O is given and v is not yet computed; then Q, dO, the sums and the
// keys.
PhaseCost row_pass_cost(const Problem& problem, const Blocks& blocks, Start start, Range units) {
  const GroupedRows grouped = row_groups(problem, blocks);
  const RowPlan& by = grouped.by;
  const Words d = problem.shape.d;
  const Words dv = problem.shape.dv;
  const bool given = start_of(problem, start) == Start::given;
  const bool has_v = makes_v_first(problem, blocks, start);
  const Words one = problem.row_words();
  const Words of_O = dv * problem.row_columns();
  const Words of_row = !given ? Words(0) : has_v ? 2 * one : of_O + one;  // or v, and L
  const Words of_dQ = d * (grouped.merges() ? problem.sum_words : 1);
  const Words left = leaves_sums(problem, blocks, start)          ? words_of_group(problem)
                     : !leaves_v(problem, blocks, start) || has_v ? of_dQ
                     : given                                      ? of_dQ + one
                                                                  : of_dQ + 2 * one;
  const Index products = given ? KnownGradientSums::kProducts : GradientSums::kProducts;
  PhaseCost sum{
      .path = row_phase(problem, blocks, start), .reads = 0, .writes = 0, .peak = 0, .flops = 0};
  grouped.each_sum(units, [&](const Units::Sum& of, Index keys) {
    const auto peak = [&](const Units::Unit& unit) {
      const Words r = unit.rows;
      const Words sums = given ? KnownGradientSums::words(by, r) : GradientSums::words(by, r);
      return std::max(given && !has_v ? r * (d + dv + of_O + one) : Words(0),
                      r * (d + dv) + sums + by.key_words(unit.longest, keys) + of.index_live);
    };
    add(sum, with_index({.path = sum.path,
                         .reads = of.rows * (d + dv + of_row) + of.met * problem.key_words(),
                         .writes = of.rows * left,
                         .peak = of.peak(peak),
                         .flops = 2 * of.pairs * ((products - 1) * d + dv)},
                        of));
  });
  return sum;
}

PhaseCost row_pass_level_cost(const Problem& problem, const Blocks& blocks, Start start,
                              Range units, std::size_t level) {
  const RowPlan by = row_plan(problem, blocks);
  const PlanLevel in{by, level};
  const Units::Sum of = by.units().sum(units);
  const Words d = problem.shape.d;
  const bool given = start_of(problem, start) == Start::given;
  PhaseCost cost = level_core_cost(
      "dQ", in, units,
      given ? KnownGradientSums::in_level(by, of.largest) : GradientSums::in_level(by, of.largest));
  // Scaling Q at the start and dQ at the end.
  cost.reads += 2 * of.rows * d;
  cost.writes += 2 * of.rows * d;
  if (given && problem.normalised() && !makes_v_first(problem, blocks, start)) {
    add(cost, level_row_dots_cost("dQ", in, of));
  }
  // U is divided by its sums, and L is computed from them.
  if (!given) {
    cost.reads += of.rows * (d + 3);
    cost.writes += of.rows * (d + 1);
  }
  return cost;
}

// Computes each group's part of dQ from the sums that the group wrote.
void sums_part(Machine& machine, const Plan& plan, const Operands& io, Range units) {
  const Phase phase(machine, "dQ");
  const GroupedRows by = row_groups(plan.problem, plan.blocks);
  for (Index unit = units.begin; unit < units.end; ++unit) {
    const Tile dq = sum_of_group(machine, by, io, unit);
    const Range at = by.left(by.group(unit), by.rows(unit));
    machine.write(dq, io.out(kPartOfdQ.name).row_block(at));
  }
}

PhaseCost sums_cost(const Problem& problem, const Blocks& blocks, Range units) {
  const GroupedRows by = row_groups(problem, blocks);
  PhaseCost cost = sum_of_group_cost("dQ", by, units);
  cost.writes = Words(by.sum(units).rows) * problem.shape.d * problem.sum_words;
  return cost;
}

// ---- dK and dV -------------------------------------------------------------------------------

// Returns some rows of a matrix, or nullopt if the matrix is null.
std::optional<SlowMatrix> rows_of(const SlowMatrix* matrix, Range rows) {
  return matrix == nullptr ? std::nullopt : std::optional(selected_rows(*matrix, {rows}));
}
std::optional<SlowMatrix> rows_of(SlowMatrix* matrix, Range rows) {
  return matrix == nullptr ? std::nullopt : std::optional(selected_rows(*matrix, {rows}));
}

// Streams a group of queries past some blocks of a group of keys. Writes their sums to rows of dK
// and dV from `first_row` on.
void pass_group(Machine& machine, const Problem& part, const KeyBlocks& by, const KeyGradients& x,
                Range queries, Range keys, Index first_row, Range blocks) {
  const Range written{first_row + keys.begin, first_row + keys.end};
  const auto Q = rows_of(&x.Q, queries), dO = rows_of(&x.dO, queries), L = rows_of(x.L, queries),
             v = rows_of(x.v, queries), K = rows_of(&x.K, keys), V = rows_of(&x.V, keys);
  auto dK = rows_of(x.dK, written), dV = rows_of(x.dV, written);
  key_gradients(machine, part, by,
                {.Q = *Q,
                 .K = *K,
                 .V = *V,
                 .dO = *dO,
                 .L = L ? &*L : nullptr,
                 .v = v ? &*v : nullptr,
                 .dK = dK ? &*dK : nullptr,
                 .dV = dV ? &*dV : nullptr,
                 .dQ = nullptr,
                 .scale = x.scale,
                 .scales_dK = x.scales_dK,
                 .in_strips = true},
                blocks);
}

void key_part(Machine& machine, const Plan& plan, const Operands& io, Start start, Range units) {
  const Phase phase(machine, "dKV");
  const Problem& problem = plan.problem;
  const KeySums sums = sums_of_keys(problem);
  const GroupedKeys grouped(problem, plan.blocks);
  const bool merges = grouped.merges;
  const KeyGradients x{
      .Q = io.in("Q"),
      .K = io.in("K"),
      .V = io.in(input_names(problem).values),
      .dO = io.in("dO"),
      .L = L_of(problem, io, start),
      .v = sums.dK && problem.normalised() ? &io.out("v") : nullptr,
      .dK = sums.dK ? &io.out(merges ? kPartOfdK.name : kdK.name) : nullptr,
      .dV = sums.dV && !sums.one_of_keys ? &io.out(merges ? kPartOfdV.name : kdV.name) : nullptr,
      .dQ = nullptr,
      .scale = problem.scale(),
      .scales_dK = !merges,
      .in_strips = true};
  if (!grouped.in_groups) {
    key_gradients(machine, problem, grouped.by, x, units);
    return;
  }
  const Index all = grouped.key_blocks();
  for (Index group = units.begin / all; group * all < units.end; ++group) {
    const Range blocks{std::max(units.begin - group * all, Index{0}),
                       std::min(units.end - group * all, all)};
    grouped.each_key_group(blocks, [&](Index of_keys, Range own) {
      pass_group(machine, grouped.of_groups(group, of_keys), grouped.by, x, grouped.queries(group),
                 grouped.keys(of_keys), group * problem.shape.m, own);
    });
  }
}

PhaseCost key_pass_level_cost(const Problem& problem, const Blocks& blocks, Range units,
                              std::size_t level) {
  const GroupedKeys grouped(problem, blocks);
  return key_gradients_level_cost("dKV", problem, grouped.by, sums_of_keys(problem), units, level);
}

PhaseCost key_pass_cost(const Problem& problem, const Blocks& blocks, Range units) {
  const GroupedKeys grouped(problem, blocks);
  PhaseCost sum{.path = "dKV", .reads = 0, .writes = 0, .peak = 0, .flops = 0};
  grouped.each_sum(units, [&](const Units::Sum& of) {
    add(sum,
        key_gradients_cost("dKV", problem, grouped.by, sums_of_keys(problem, grouped.merges), of));
  });
  return sum;
}

// ---- sums of groups --------------------------------------------------------------------------

// Returns the sum, in the order of groups, of the rows that all groups wrote.
Tile sum_of_groups(Machine& machine, const SlowMatrix& parts, Index groups, Index rows, Range I) {
  Tile sum = machine.read(parts.row_block(I));
  for (Index group = 1; group < groups; ++group) {
    const Tile part = machine.read(parts.row_block({group * rows + I.begin, group * rows + I.end}));
    add(sum, part);
  }
  return sum;
}

// The number of rows of some blocks, and the largest block.
struct BlockRows {
  Index rows, largest;
};
BlockRows rows_of_blocks(const BlockRanges& all, Range units) {
  return units.size() <= 0
             ? BlockRows{0, 0}
             : BlockRows{all[units.end - 1].end - all[units.begin].begin, all[units.begin].size()};
}

PhaseCost sum_cost(std::string path, Index groups, BlockRows of, Words cols, Words widest,
                   Index sum_words) {
  return {.path = std::move(path),
          .reads = Words(of.rows) * groups * cols * sum_words,
          .writes = of.rows * cols,
          .peak = Words(of.largest) * widest * std::min<Index>(groups, 2) * sum_words,
          .flops = 0};
}

void sum_rows(Machine& machine, const Plan& plan, const Operands& io, Range units) {
  const Phase sum(machine, "sum");
  const Phase phase(machine, "dQ");
  const GroupedRows by = row_groups(plan.problem, plan.blocks);
  for (Index unit = units.begin; unit < units.end; ++unit) {
    const Range I = by.rows(unit);
    Tile dq = sum_of_groups(machine, io.out(kPartOfdQ.name), by.groups, plan.problem.shape.n, I);
    scale(dq, plan.problem.scale());
    machine.write(dq, io.out("dQ").row_block(I));
  }
}

PhaseCost sum_rows_cost(const Problem& problem, const Blocks& blocks, Range units) {
  const GroupedRows by = row_groups(problem, blocks);
  const Words d = problem.shape.d;
  return sum_cost("sum/dQ", by.groups, rows_of_blocks(by.row_blocks, units), d, d,
                  problem.sum_words);
}

// If values are keys, Q already includes the factor c.
void sum_keys(Machine& machine, const Plan& plan, const Operands& io, Range units) {
  const Phase sum(machine, "sum");
  const Phase phase(machine, "dKV");
  const Problem& problem = plan.problem;
  const KeySums sums = sums_of_keys(problem);
  const GroupedKeys by(problem, plan.blocks);
  const BlockRanges key_blocks(problem.shape.m, by.by.keys);
  const auto sum_of = [&](std::string_view parts, Range J) {
    return sum_of_groups(machine, io.out(parts), by.groups, problem.shape.m, J);
  };
  for (Index unit = units.begin; unit < units.end; ++unit) {
    const Range J = key_blocks[unit];
    if (sums.dK) {
      Tile dk = sum_of(kPartOfdK.name, J);
      if (!sums.one_of_keys) {
        scale(dk, problem.scale());
      }
      machine.write(dk, io.out("dK").row_block(J));
    }
    if (sums.dV && !sums.one_of_keys) {
      machine.write(sum_of(kPartOfdV.name, J), io.out("dV").row_block(J));
    }
  }
}

PhaseCost sum_keys_cost(const Problem& problem, const Blocks& blocks, Range units) {
  const KeySums sums = sums_of_keys(problem);
  const GroupedKeys by(problem, blocks);
  const Words of_K = sums.dK ? problem.shape.d : 0;
  const Words of_V = sums.dV && !sums.one_of_keys ? problem.shape.dv : 0;
  const BlockRanges key_blocks(problem.shape.m, by.by.keys);
  return sum_cost("sum/dKV", by.groups, rows_of_blocks(key_blocks, units), of_K + of_V,
                  std::max(of_K, of_V), problem.sum_words);
}

// ---- the kernel ------------------------------------------------------------------------------

// The units of each stage.
Index v_units(const Problem& problem, const Blocks& blocks, Start start) {
  return makes_v_first(problem, blocks, start) ? row_groups(problem, blocks).row_blocks.size() : 0;
}
Index row_units(const Problem& problem, const Blocks& blocks) {
  return problem.wants("dQ") ? row_groups(problem, blocks).units() : 0;
}
Index merge_units(const Problem& problem, const Blocks& blocks, Start start) {
  return leaves_sums(problem, blocks, start) ? row_groups(problem, blocks).row_blocks.size() : 0;
}
Index sums_units(const Problem& problem, const Blocks& blocks, Start start) {
  return leaves_sums(problem, blocks, start) ? row_units(problem, blocks) : 0;
}
Index key_units(const Problem& problem, const Blocks& blocks) {
  return sums_of_keys(problem).any() ? GroupedKeys(problem, blocks).units() : 0;
}
Index sum_rows_units(const Problem& problem, const Blocks& blocks) {
  const GroupedRows by = row_groups(problem, blocks);
  return problem.wants("dQ") && by.merges() ? by.row_blocks.size() : 0;
}
Index sum_keys_units(const Problem& problem, const Blocks& blocks) {
  const GroupedKeys by(problem, blocks);
  return sums_of_keys(problem).any() && by.merges ? all_key_blocks(problem, by.by).end : 0;
}

std::vector<SplitStage> stages(Start start) {
  const auto with_start = [start](auto function) {
    return [start, function](const Problem& problem, const Blocks& blocks) {
      return function(problem, blocks, start);
    };
  };
  SplitStage of_rows = stage(
      row_units,
      [start](Machine& machine, const Plan& plan, const Operands& io, Range units) {
        row_part(machine, plan, io, start, units);
      },
      [start](const Problem& problem, const Blocks& blocks, Range units) {
        return row_pass_cost(problem, blocks, start, units);
      },
      [start](const Problem& problem, const Blocks& blocks, Range units, std::size_t level) {
        return row_pass_level_cost(problem, blocks, start, units, level);
      });
  SplitStage merge = stage(
      with_start(merge_units),
      [](Machine& machine, const Plan& plan, const Operands& io, Range units) {
        merge_groups(machine, row_groups(plan.problem, plan.blocks), io, units);
      },
      [](const Problem& problem, const Blocks& blocks, Range units) {
        return merge_groups_cost(row_groups(problem, blocks), units);
      });
  SplitStage of_sums = stage(with_start(sums_units), sums_part, sums_cost);
  SplitStage of_keys = stage(
      key_units,
      [start](Machine& machine, const Plan& plan, const Operands& io, Range units) {
        key_part(machine, plan, io, start, units);
      },
      key_pass_cost, key_pass_level_cost);
  SplitStage sum_of_rows = stage(sum_rows_units, sum_rows, sum_rows_cost);
  SplitStage sum_of_keys = stage(sum_keys_units, sum_keys, sum_keys_cost);
  of_rows.brings = of_keys.brings = {kQ.name, kdO.name, kL.name, kOfRows.name};
  merge.of = StageRows::own_queries;
  merge.merges = {kMaxima.name, kSums.name, kMeans.name};
  of_sums.brings = {kL.name, kOfRows.name};
  sum_of_rows.of = StageRows::own_queries;
  sum_of_rows.merges = {kPartOfdQ.name};
  sum_of_keys.of = StageRows::own_keys;
  sum_of_keys.merges = {kPartOfdK.name, kPartOfdV.name};
  if (start == Start::given) {
    return {v_stage(with_start(v_units), row_plan), of_rows, of_keys, sum_of_rows, sum_of_keys};
  }
  of_rows.brings = {kQ.name, kdO.name};
  return {of_rows, merge, of_sums, of_keys, sum_of_rows, sum_of_keys};
}

Words words_left(const Problem& problem, const Blocks& blocks, Start start) {
  const KeySums sums = sums_of_keys(problem);
  const Shape& shape = problem.shape;
  Words words = leaves_v(problem, blocks, start) ? Words(shape.n) * (start == Start::given ? 1 : 2)
                                                 : Words(0);
  if (sum_rows_units(problem, blocks) > 0) {
    const Words of_sums =
        leaves_sums(problem, blocks, start) ? columns_of_group(problem) : Words(0);
    words += Words(row_groups(problem, blocks).groups) * shape.n * (shape.d + of_sums);
  }
  if (sum_keys_units(problem, blocks) > 0) {
    const Index of_V = sums.dV && !sums.one_of_keys ? shape.dv : 0;
    words +=
        Words(GroupedKeys(problem, blocks).groups) * shape.m * ((sums.dK ? shape.d : 0) + of_V);
  }
  return words;
}

// Returns a matrix that stages write: its rows after some units, and its copies. `before` is the
// number of units before the stage, and `units` is its number of units.
Left left_by(const Signature& matrix, const UnitsOfStage& before, const UnitsOfStage& units,
             const UnitsOfStage& copies) {
  const bool of_keys = matrix.rows == &Shape::m;
  return {.matrix = matrix,
          .rows =
              [=](const Problem& problem, const Blocks& blocks, Index done) {
                const Index own =
                    std::clamp<Index>(done - before(problem, blocks), 0, units(problem, blocks));
                if (of_keys) {
                  const GroupedKeys by(problem, blocks);
                  return own / by.key_blocks() * problem.shape.m +
                         by.first_key(own % by.key_blocks());
                }
                const Index rows = blocks["dQ.Br"];
                return rows_left(own, ceil_div(problem.shape.n, rows), rows, problem.shape.n);
              },
          .copies = copies};
}

Split split(Start start) {
  // v is written by the first stage that has units, or by the merge if groups write sums. The
  // groups' parts of dQ are written by the first stage after that.
  const auto before_v = [start](const Problem& problem, const Blocks& blocks) -> Index {
    return leaves_sums(problem, blocks, start) ? row_units(problem, blocks) : 0;
  };
  const auto before_dQ = [=](const Problem& problem, const Blocks& blocks) {
    return v_units(problem, blocks, start) + before_v(problem, blocks) +
           merge_units(problem, blocks, start);
  };
  const auto before_keys = [=](const Problem& problem, const Blocks& blocks) {
    return before_dQ(problem, blocks) + row_units(problem, blocks);
  };
  const auto before_all = [](const Problem&, const Blocks&) -> Index { return 0; };
  const auto row_blocks = [](const Problem& problem, const Blocks& blocks) {
    return row_groups(problem, blocks).row_blocks.size();
  };
  const auto one_of_rows = [start](const Problem& problem, const Blocks& blocks) -> Index {
    return leaves_v(problem, blocks, start) ? 1 : 0;
  };
  const auto of_key_groups = [](const Problem& problem, const Blocks& blocks) -> Index {
    return sum_rows_units(problem, blocks) > 0 ? row_groups(problem, blocks).groups : 0;
  };
  const auto of_sums = [start, of_key_groups](const Problem& problem, const Blocks& blocks) {
    return leaves_sums(problem, blocks, start) ? of_key_groups(problem, blocks) : 0;
  };
  const auto of_query_groups = [](bool KeySums::*made) -> UnitsOfStage {
    return [made](const Problem& problem, const Blocks& blocks) -> Index {
      return sums_of_keys(problem).*made && sum_keys_units(problem, blocks) > 0
                 ? GroupedKeys(problem, blocks).groups
                 : 0;
    };
  };
  Split split{.stages = stages(start),
              .left = {left_by(kOfRows, before_v, row_blocks, one_of_rows),
                       left_by(kPartOfdQ, before_dQ, row_units, of_key_groups),
                       left_by(kPartOfdK, before_keys, key_units, of_query_groups(&KeySums::dK)),
                       left_by(kPartOfdV, before_keys, key_units, of_query_groups(&KeySums::dV))},
              .on_grid = true};
  if (start == Start::nothing) {
    split.left.push_back(left_by(kL, before_v, row_blocks, one_of_rows));
    for (const Signature& matrix : kPartsOfGroups) {
      split.left.push_back(left_by(matrix, before_all, row_units, of_sums));
    }
  }
  return split;
}

// Writes the nest of the sums over groups.
void sums_nest(NestWriter& nest, const Problem& problem, const Blocks& blocks) {
  const Index d = problem.shape.d;
  const GroupedRows grouped = row_groups(problem, blocks);
  const GroupedKeys of_keys(problem, blocks);
  const KeySums sums = sums_of_keys(problem);
  const NestLoop I("I", "queries", problem.shape.n, grouped.by.rows);
  const NestLoop R("R", "groups of queries", of_keys.groups, 1);
  const NestTile dQ("dQ", I, d);
  if (sum_rows_units(problem, blocks) > 0) {
    const NestLoop P("P", "groups of keys", grouped.groups, 1);
    nest.phase("sum", [&] {
      nest.phase("dQ", [&] {
        nest.loop(I, [&] {
          nest.loop(P, {dQ}, [&] { nest.step("dQ_I += dQ_I of P", {dQ}); });
          nest.step("dQ_I = c dQ_I", {}, {dQ});
        });
      });
    });
  }
  if (sum_keys_units(problem, blocks) > 0) {
    const NestLoop J("J", "keys", problem.shape.m, of_keys.by.keys);
    const bool of_V = sums.dV && !sums.one_of_keys;
    nest.phase("sum", [&] {
      nest.phase("dKV", [&] {
        nest.loop(J, [&] {
          if (sums.dK) {
            const NestTile dK("dK", J, d);
            nest.loop(R, {dK}, [&] { nest.step("dK_J += dK_J of R", {dK}); });
            nest.step(sums.one_of_keys ? "write dK_J" : "dK_J = c dK_J", {}, {dK});
          }
          if (of_V) {
            const NestTile dV("dV", J, problem.shape.dv);
            nest.loop(R, {dV}, [&] { nest.step("dV_J += dV_J of R", {dV}); });
            nest.write({dV});
          }
        });
      });
    });
  }
}

Nest loop_nest(const Problem& problem, const Blocks& blocks, Start start) {
  const Index d = problem.shape.d;
  const GroupedRows grouped = row_groups(problem, blocks);
  const RowPlan& by = grouped.by;
  const NestLoop I("I", "queries", problem.shape.n, by.rows);
  const Index dv = problem.shape.dv;
  const NestTile Q("Q", I, d), dO("dO", I, dv), dQ("dQ", I, d), L("L", I, problem.row_columns()),
      v("v", I, problem.row_columns());
  const std::string values = values_text(problem);
  const bool has_v = makes_v_first(problem, blocks, start);
  NestWriter nest;
  const auto of_rows = [&](const NestLoop& J, const NestWriter::Tiles& keys) {
    nest.loop(I, [&] {
      nest.read({Q, dO});
      if (start_of(problem, start) == Start::nothing) {
        index_nest(nest, grouped.sum({0, grouped.units()}));
        const NestTile U("U", I, d), Z("Z", I, d), maximum("max", I), sum("sum", I),
            mean("mean", I);
        nest.loop(J, {Q, dO, U, Z, maximum, sum, mean}, [&] {
          nest.step("e = exp(c Q_I K_J^T - max_I); q = dO_I " + values +
                        "^T - mean_I; U_I += e q K_J; "
                        "Z_I += e K_J",
                    keys);
        });
        if (grouped.merges()) {
          nest.step("write U_I, Z_I, max_I, sum_I, mean_I of P", {}, {U, Z, maximum, sum, mean});
          return;
        }
        nest.step("dQ_I = c U_I / sum_I; L_I = max_I + log(sum_I); v_I = mean_I", {}, {dQ, L, v});
        return;
      }
      if (problem.normalised() && !has_v) {
        nest.step("v_I = rowsum(dO_I * O_I)", {{"O", I, dv}},
                  leaves_v(problem, blocks, start) ? NestWriter::Tiles{v} : NestWriter::Tiles{});
      }
      nest.read(has_v ? NestWriter::Tiles{L, v} : NestWriter::Tiles{L});
      index_nest(nest, grouped.sum({0, grouped.units()}));
      nest.loop(J, {Q, dO, L, v, dQ}, [&] {
        nest.step(p_text(problem, "c Q_I K_J^T", "dO_I " + values + "^T") +
                      (grouped.merges() ? "; dQ_I of P += p K_J" : "; dQ_I += c p K_J"),
                  keys);
      });
      if (grouped.merges()) {
        nest.step("write dQ_I of P", {}, {dQ});
      } else {
        nest.write({dQ});
      }
    });
  };
  const auto of_groups = [&] {
    if (!grouped.merges()) {
      const NestLoop J = key_loop(by, I);
      of_rows(J, key_tiles(problem, J));
      return;
    }
    const NestLoop P("P", "groups of keys", grouped.groups, 1);
    const GroupNest of_group = group_nest(grouped, P);
    nest.loop(P, [&] { of_rows(of_group.J, of_group.keys); });
  };
  if (has_v) {
    v_nest(nest, problem, I);
  }
  if (problem.wants("dQ")) {
    nest.phase(row_phase(problem, blocks, start), of_groups);
  }
  if (leaves_sums(problem, blocks, start)) {
    const NestLoop P("P", "groups of keys", grouped.groups, 1);
    merge_groups_nest(nest, I, P);
    nest.phase("dQ", [&] {
      nest.loop(P, [&] {
        nest.loop(I, [&] {
          sum_of_group_nest(nest, problem, I, "dQ");
          nest.step("write dQ_I of P", {}, {dQ});
        });
      });
    });
  }
  const KeySums sums = sums_of_keys(problem);
  const GroupedKeys of_keys(problem, blocks);
  const NestLoop R("R", "groups of queries", of_keys.groups, 1);
  if (sums.any()) {
    nest.phase("dKV", [&] {
      if (!of_keys.in_groups) {
        key_gradients_nest(nest, problem, of_keys.by, sums);
        return;
      }
      Units::Sum all;
      of_keys.each_sum({0, of_keys.units()}, [&](const Units::Sum& of) { add(all, of); });
      const NestLoop P("P", "groups of keys", of_keys.key_groups, 1);
      const NestLoop J =
          P.met("J", "keys of P", problem.shape.m, of_keys.keys(0).size(), of_keys.by.keys);
      nest.loop(R, [&] {
        nest.loop(P, [&] { key_gradients_nest(nest, problem, of_keys.by, sums, R, J, all); });
      });
    });
  }
  sums_nest(nest, problem, blocks);
  return nest.lines();
}

Blocks blocks_of(const RowPlan& rows, const KeyBlocks& keys) {
  Blocks blocks{
      {"dQ.Br", rows.rows}, {"dQ.Bc", rows.keys}, {"dKV.Br", keys.rows}, {"dKV.Bc", keys.keys}};
  for (std::size_t level = 0; level < rows.inner.size(); ++level) {
    blocks.add(level_block(level, "dQ.Br"), rows.inner[level].rows);
    blocks.add(level_block(level, "dQ.Bc"), rows.inner[level].keys);
    blocks.add(level_block(level, "dKV.Br"), keys.inner[level].rows);
    blocks.add(level_block(level, "dKV.Bc"), keys.inner[level].keys);
  }
  for (const auto& [pass, inner] : {std::pair{"dQ.", rows.inner}, {"dKV.", keys.inner}}) {
    if (!inner.empty() && inner.front().apart) {
      blocks.add(level_block(0, pass + std::string(kApart)), 1);
    }
  }
  return blocks;
}

// Returns the costs of some stages, which come before the second pass.
template <class CostOf>
std::vector<PhaseCost> first_pass(const std::vector<SplitStage>& stages, const Problem& problem,
                                  const Blocks& blocks, const CostOf& cost_of) {
  const RowPlan rows(problem, blocks);
  const Blocks all = blocks_of(rows, {1, 1, Levels(rows.inner.size(), {1, 1, 1})});
  std::vector<PhaseCost> phases;
  for (const SplitStage& stage : stages) {
    if (const Index units = stage.units(problem, all); units > 0) {
      std::ranges::move(cost_of(stage, all, Range{0, units}), std::back_inserter(phases));
    }
  }
  return phases;
}

// Each pass has the whole of M.
Blocks fit(const Problem& problem, const Memory& memory, Objective objective, Start start) {
  std::vector<SplitStage> before = stages(start);
  before.resize(2);  // v and dQ; or dQ, with no merge
  const CostOfBlocks cost = [&before](const Problem& of, const Blocks& blocks) {
    return first_pass(before, of, blocks,
                      [&](const SplitStage& stage, const Blocks& all, Range units) {
                        return stage.part_cost(of, all, units, false);
                      });
  };
  const LevelCostOfBlocks level_cost = [&before](const Problem& of, const Blocks& blocks,
                                                 std::size_t level) {
    return first_pass(before, of, blocks,
                      [&](const SplitStage& stage, const Blocks& all, Range units) {
                        return stage.level_cost(of, all, units, false, level);
                      });
  };
  const Blocks rows = !memory.inner.empty()
                          ? fit_levels(problem, memory, objective, cost, level_cost)
                      : objective == Objective::time ? fastest(problem, memory.M, cost)
                                                     : fewest_words(problem, memory.M, cost);
  return blocks_of(RowPlan(problem, rows),
                   fit_key_gradients(problem, memory, objective, sums_of_keys(problem)));
}

Index written(const Signature& result, const Problem&, const Blocks& blocks) {
  return blocks[result.name == kdQ.name ? "dQ.Br" : "dKV.Bc"];
}

}  // namespace
}  // namespace in_gradients_rows_keys

Kernel gradients_rows_keys(std::string_view name, std::string_view summary, Start start) {
  using namespace in_gradients_rows_keys;
  Kernel kernel{
      .name = name,
      .summary = summary,
      .pass = Pass::gradients,
      .operands = {kQ, kK, kV, kdO},
      .returns = {kdQ, kdK, kdV},
      .shares_keys = true,
      .takes_activations = true,
      .kin = start == Start::given ? "backward/rows" : "backward/rows-onepass",
      .schedule = in_stages(split(start)),
      .formula = {
          .cost = cost_of_stages(stages(start)),
          .level_cost = level_cost_of_stages(stages(start)),
          .intermediates = [start](
                               const Problem& problem,
                               const Blocks& blocks) { return words_left(problem, blocks, start); },
          .nest = [start](const Problem& problem,
                          const Blocks& blocks) { return loop_nest(problem, blocks, start); }},
      .fitting = {.fit =
                      [start](const Problem& problem, const Memory& memory, Objective objective) {
                        return fit(problem, memory, objective, start);
                      },
                  .written = written,
                  .inner_blocks = {{.name = "dQ.Br", .cuts = true},
                                   {.name = "dQ.Bc"},
                                   {.name = "dKV.Br"},
                                   {.name = "dKV.Bc", .cuts = true}}},
      .numerics = {.recomputes = true}};
  kernel.fitting.optional_blocks = {{kKeyGroups, &Shape::m}, {kQueryGroups, &Shape::n}};
  kernel.fitting.apart_blocks = {"L1.dQ.apart", "L1.dKV.apart"};
  if (start == Start::given) {
    kernel.operands.insert(kernel.operands.end(), {kO, kL});
    kernel.optional_results = {kdQ.name, kdK.name, kdV.name};
  } else {
    kernel.numerics.recentred_blocks = [](const Problem& problem, const Blocks& blocks) {
      return moves_of_mean(row_groups(problem, blocks));
    };
    kernel.numerics.key_groups = [](const Problem& problem, const Blocks& blocks) -> Words {
      return row_groups(problem, blocks).groups;
    };
  }
  return kernel;
}

}  // namespace redblue
