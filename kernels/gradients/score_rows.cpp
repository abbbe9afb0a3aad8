// dQ, dK and dV from nothing in five products: for a row block I the scores of all keys stay, e
// and q, so that each is made once; only then are the sums of a row known, and dQ_I, dK and dV
// follow while keys pass again. For M far above m, a large cache; gradients/rows-keys-onepass
// moves fewer words where less fits, with three more products.
//
// The first `kept` keys, if any, stay, with their values and the gradients of both. Of the others K
// passes twice and V once for each row block, dK and dV are read and written:
//
//   reads and writes   3 n d + 4 kept d + (7 T - 2) (m - kept) d,   T = ceil(n / Br)
//
// Rows come in groups that know nothing of each other, for several machines. Each of several groups
// has its own dK and dV, which are added in the order of groups at last. Of G > 1 groups that is
// 4 (G - 1) kept d + 2 (G + 1) m d words more, and 2 (G - 1) (m - kept) d less. These are the words
// where dv = d and all pairs live; under a mask each block of rows brings the keys that it meets,
// and each group leaves sums of those that stay and those that it meets.

#include <algorithm>
#include <utility>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/fit.hpp"
#include "kernels/parts/live_pairs.hpp"
#include "kernels/parts/rows.hpp"
#include "kernels/registry.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace {

// Queries of a product with keys.
constexpr Index kStrip = 3 * kPanel;

// dK and dV of the groups, one below the other.
constexpr Signature kPartOfdK{"dK of groups", &Shape::m, &Shape::d};
constexpr Signature kPartOfdV{"dV of groups", &Shape::m, &Shape::dv};

struct ScoreRowPlan {
  ScoreRowPlan(const Problem& of, const Blocks& blocks)
      : ScoreRowPlan(of, blocks["Br"], blocks["Bc"], blocks.contains(kKept) ? blocks[kKept] : 0,
                     blocks["groups"]) {}
  ScoreRowPlan(const Problem& of, Index Br, Index Bc, Index kept_keys, Index all_groups)
      : problem(of),
        rows(std::min(Br, of.shape.n)),
        keys(Bc),
        kept(std::min(kept_keys, of.shape.m)),
        row_blocks(Units::of_queries(of, rows)),
        of_groups(row_blocks.size(), ceil_div(row_blocks.size(), all_groups)) {}

  const Problem& problem;
  Index rows, keys, kept;
  Units row_blocks;
  BlockRanges of_groups;  // row blocks

  [[nodiscard]] Index groups() const { return of_groups.size(); }
  // The keys that pass of which a group leaves sums.
  [[nodiscard]] Ranges passing(Index group) const {
    const Range mine = of_groups[group];
    const Range queries{row_blocks[mine.begin].begin, row_blocks[mine.end - 1].end};
    return without(problem.keys(queries), {{0, kept}});
  }
  [[nodiscard]] Blocks blocks() const {
    Blocks blocks{{"Br", rows}, {"Bc", keys}, {"groups", groups()}};
    if (kept > 0) {
      blocks.add(std::string(kKept), kept);
    }
    return blocks;
  }
};

// Some of the keys that a row block meets: in these rows of its scores. No row block of the group
// has met them before where they are the first time here.
struct KeyPiece {
  Range J, at;
  bool first;
};
std::vector<KeyPiece> key_pieces(const ScoreRowPlan& by, Range group, Index block) {
  const Ranges met = by.row_blocks.met(block);
  const Ranges before =
      block == group.begin
          ? Ranges()
          : by.problem.keys({by.row_blocks[group.begin].begin, by.row_blocks[block].begin});
  const Ranges staying = common(met, {{0, by.kept}});
  const Ranges passing = without(met, {{0, by.kept}});
  std::vector<KeyPiece> all;
  Index row = 0;
  const auto add = [&](const Ranges& ranges, bool first) {
    const Pieces pieces(ranges, by.keys);
    for (Index k = 0; k < pieces.size(); ++k) {
      all.push_back({pieces[k], {row, row + pieces[k].size()}, first});
      row += pieces[k].size();
    }
  };
  add(staying, false);
  add(common(passing, before), false);
  add(without(passing, before), true);
  return all;
}

// Rows of a matrix: of a tile where they stay, or of one that was read for them.
class KeyRows {
 public:
  KeyRows(Machine& machine, const Tile& staying, const SlowMatrix& matrix, Range J, Index kept)
      : staying_(staying), J_(J) {
    if (J.begin >= kept) {
      own_ = machine.read(matrix.row_block(J));
    }
  }
  [[nodiscard]] ConstView view() const {
    return own_.words() > 0 ? ConstView(own_) : staying_.part(J_);
  }

 private:
  const Tile& staying_;
  Range J_;
  Tile own_;
};

// The keys that stay, and where sums go.
struct GroupState {
  SlowMatrix &all_dK, &all_dV;
  Index first_row;  // of the group's own dK and dV in these
  Tile K = {}, V = {}, dK = {}, dV = {};

  [[nodiscard]] Range rows_of(Range J) const { return {first_row + J.begin, first_row + J.end}; }
};

// e_I^T and q_I^T (m, r), the sums of e, v, and dO_I^T.
struct ScoreRows {
  Tile e_t, q_t, sum, v, do_t;
};

ScoreRows score_rows(Machine& machine, const ScoreRowPlan& by, const Operands& io,
                     const GroupState& group, const Tile& queries_t, Range I,
                     const std::vector<KeyPiece>& pieces) {
  const Index met = pieces.back().at.end;
  const BlockRanges strips = blocks(I.size(), kStrip);
  Tile e_t = machine.initialize("e", met, I.size(), kUnset, Holds::scores);
  Tile maximum = machine.initialize("max", I.size(), 1, kNoMaximum);
  Tile index = by.row_blocks.read_index(machine, I);
  for (const KeyPiece& piece : pieces) {
    const KeyRows k(machine, group.K, io.in("K"), piece.J, by.kept);
    for (const Range S : strips) {
      const LivePairs live(by.problem, part_of(I, S), piece.J);
      const View s_t = e_t.part(piece.at, S);
      if (!live.none()) {
        multiply(k.view(), queries_t.part({0, queries_t.rows()}, S), s_t);
        live.set_dead(transposed(s_t), kDeadScore);
        raise_maximum(transposed(s_t), maximum.part(S));
      }
    }
  }
  index.reset();
  Tile do_t = machine.read(transposed(io.in("dO").row_block(I)));
  Tile q_t = machine.initialize("q", met, I.size(), kUnset, Holds::scores);
  Tile sum = machine.initialize("sum", I.size());
  Tile v = machine.initialize("v", I.size());
  index = by.row_blocks.read_index(machine, I);
  for (const KeyPiece& piece : pieces) {
    const KeyRows values(machine, group.V, io.in("V"), piece.J, by.kept);
    for (const Range S : strips) {
      const LivePairs live(by.problem, part_of(I, S), piece.J);
      const View of_e = e_t.part(piece.at, S);
      const View of_q = q_t.part(piece.at, S);
      if (live.none()) {
        live.set_dead(transposed(of_e), 0);
        live.set_dead(transposed(of_q), 0);
        continue;
      }
      multiply(values.view(), do_t.part({0, do_t.rows()}, S), of_q);
      live.set_dead(transposed(of_q), 0);
      exponentiate(transposed(of_e), maximum.part(S), sum.part(S), transposed(of_q), v.part(S));
    }
  }
  index.reset();
  divide_rows(v, sum, v);
  return {std::move(e_t), std::move(q_t), std::move(sum), std::move(v), std::move(do_t)};
}

// a / sum, from a^T.
Tile divided(Machine& machine, std::string_view name, Tile a_t, const Tile& sum) {
  Tile a = machine.initialize(name, a_t.cols(), a_t.rows(), Holds::operands);
  transpose(a_t, a);
  a_t.reset();
  divide_rows(a, sum, a);
  return a;
}

// Adds a^T rows, of some keys, to dK or dV: to what stays, or to what passes.
void add_to_sums(Machine& machine, const ScoreRowPlan& by, const GroupState& group,
                 const KeyPiece& piece, Tile& staying, SlowMatrix& all, const Tile& a_t,
                 const Tile& rows) {
  const ConstView of_keys = a_t.part(piece.at);
  if (piece.J.begin < by.kept) {
    multiply_add(of_keys, rows, staying.part(piece.J));
    return;
  }
  const Range at = group.rows_of(piece.J);
  Tile sums = piece.first ? machine.initialize(all.name(), piece.J.size(), all.cols())
                          : machine.read(std::as_const(all).row_block(at));
  multiply_add(of_keys, rows, sums);
  machine.write(sums, all.row_block(at));
}

// dQ_I, and what I adds to dK and dV. With Q_I and dO_I divided by the sums of e, e and
// e (q - v) are f and p.
void row_block(Machine& machine, const ScoreRowPlan& by, const Operands& io, GroupState& group,
               Range I, const std::vector<KeyPiece>& pieces) {
  const float c = by.problem.scale();
  Tile queries_t = machine.read(transposed(io.in("Q").row_block(I)));
  scale(queries_t, c);
  ScoreRows scores = score_rows(machine, by, io, group, queries_t, I, pieces);
  Tile &e_t = scores.e_t, &q_t = scores.q_t;
  const Tile &sum = scores.sum, &v = scores.v;
  const Tile queries = divided(machine, "Q", std::move(queries_t), sum);  // c Q_I / sum (r, d)
  const Tile dO = divided(machine, "dO", std::move(scores.do_t), sum);    // dO_I / sum (r, dv)
  Tile dQ = machine.initialize("dQ", I.size(), by.problem.shape.d);
  Tile index = by.row_blocks.read_index(machine, I);
  for (const KeyPiece& piece : pieces) {
    const KeyRows k(machine, group.K, io.in("K"), piece.J, by.kept);
    for (const Range S : blocks(I.size(), kStrip)) {
      const View p_t = q_t.part(piece.at, S);
      softmax_gradient(transposed(e_t.part(piece.at, S)), v.part(S), transposed(p_t));
      multiply_add(transposed(p_t), k.view(), dQ.part(S));
    }
    add_to_sums(machine, by, group, piece, group.dK, group.all_dK, q_t, queries);
    add_to_sums(machine, by, group, piece, group.dV, group.all_dV, e_t, dO);
  }
  index.reset();
  divide_rows(dQ, sum, dQ);
  scale(dQ, c);
  machine.write(dQ, io.out("dQ").row_block(I));
}

void group_part(Machine& machine, const Plan& plan, const Operands& io, Range groups) {
  const ScoreRowPlan by(plan.problem, plan.blocks);
  const auto& [n, m, d] = plan.problem.shape;
  const Phase phase(machine, "core");
  const bool apart = by.groups() > 1;
  for (Index g = groups.begin; g < groups.end; ++g) {
    GroupState group{.all_dK = io.out(apart ? kPartOfdK.name : kdK.name),
                     .all_dV = io.out(apart ? kPartOfdV.name : kdV.name),
                     .first_row = g * m};
    const Range kept{0, by.kept};
    if (by.kept > 0) {
      group.K = machine.read(io.in("K").row_block(kept));
      group.V = machine.read(io.in("V").row_block(kept));
      group.dK = machine.initialize("dK", by.kept, d);
      group.dV = machine.initialize("dV", by.kept, plan.problem.shape.dv);
    }
    const Range mine = by.of_groups[g];
    for (Index block = mine.begin; block < mine.end; ++block) {
      row_block(machine, by, io, group, by.row_blocks[block], key_pieces(by, mine, block));
    }
    if (by.kept > 0) {
      machine.write(group.dK, group.all_dK.row_block(group.rows_of(kept)));
      machine.write(group.dV, group.all_dV.row_block(group.rows_of(kept)));
    }
  }
}

// ---- the sums of groups ------------------------------------------------------------------

BlockRanges sum_blocks(const Problem& problem, const Blocks& blocks) {
  return {ScoreRowPlan(problem, blocks).groups() > 1 ? problem.shape.m : 0, blocks["sum.Bc"]};
}

// Of some keys, those of which a group left sums.
Ranges summed(const ScoreRowPlan& by, Index group, Range J) {
  const Ranges others = without({J}, {{0, by.kept}});
  return without({J}, without(others, by.passing(group)));
}

void add_groups(Machine& machine, const ScoreRowPlan& by, Range J, const SlowMatrix& parts,
                SlowMatrix& all) {
  const Index m = all.rows();
  Tile sum = machine.initialize(all.name(), J.size(), all.cols());
  for (Index g = 0; g < by.groups(); ++g) {
    for (const Range S : summed(by, g, J)) {
      const Tile part = machine.read(parts.row_block({g * m + S.begin, g * m + S.end}));
      add(sum.part({S.begin - J.begin, S.end - J.begin}), part);
    }
  }
  machine.write(sum, all.row_block(J));
}

void sum_part(Machine& machine, const Plan& plan, const Operands& io, Range units) {
  if (units.size() == 0) {
    return;
  }
  const BlockRanges keys = sum_blocks(plan.problem, plan.blocks);
  const ScoreRowPlan by(plan.problem, plan.blocks);
  const Phase phase(machine, "sum");
  for (Index unit = units.begin; unit < units.end; ++unit) {
    add_groups(machine, by, keys[unit], io.out(kPartOfdK.name), io.out("dK"));
    add_groups(machine, by, keys[unit], io.out(kPartOfdV.name), io.out("dV"));
  }
}

// ---- cost --------------------------------------------------------------------------------

Words core_peak(const ScoreRowPlan& by) {
  const Index m = by.problem.shape.m;
  const Words d = by.problem.shape.d, dv = by.problem.shape.dv;
  const Words r = by.rows, c = std::min(by.keys, m - by.kept);
  const Units::Sum of = by.row_blocks.sum();
  const Words scores = r * of.most;
  const Words index = of.index_live;
  return 2 * (d + dv) * by.kept +
         std::max({// Q_I, e and the maximum; K_J
                   r * d + scores + r + c * d + index,
                   // Q_I, dO_I, e and q with maximum, sum and v; V_J
                   r * (d + dv) + 2 * scores + 3 * r + c * dv + index,
                   // Q_I and dO_I, one of them twice
                   r * (d + dv + std::max(d, dv)) + 2 * scores + 2 * r,
                   // Q_I, dO_I and dQ_I, p and e with sum and v; K_J, and dK_J or dV_J
                   r * (2 * d + dv) + 2 * scores + 2 * r + c * (d + std::max(d, dv)) + index});
}

PhaseCost core_cost(const Problem& problem, const Blocks& blocks, Range groups) {
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
  constexpr Index kPasses = 3;  // K, V, and K with what is added to
  return with_index({.path = "core",
                     .reads = of.rows * (d + dv) + by.kept * (d + dv) * G + passing * (2 * d + dv) +
                              again * (d + dv),
                     .writes = of.rows * d + (by.kept * Words(G) + passing) * (d + dv),
                     .peak = G > 0 ? core_peak(by) : Words(0),
                     .flops = 2 * of.pairs * (3 * d + 2 * dv)},
                    of, kPasses);
}

PhaseCost sum_cost(const Problem& problem, const Blocks& blocks, Range units) {
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
          .reads = parts * (d + dv),
          .writes = rows * (d + dv),
          .peak = 2 * largest * std::max(d, dv),
          .flops = 0};
}

std::vector<PhaseCost> cost(const Problem& problem, const Blocks& blocks) {
  const BlockRanges keys = sum_blocks(problem, blocks);
  std::vector<PhaseCost> phases = {
      core_cost(problem, blocks, {0, ScoreRowPlan(problem, blocks).groups()})};
  if (keys.size() > 0) {
    phases.push_back(sum_cost(problem, blocks, {0, keys.size()}));
  }
  return phases;
}

Split split() {
  return {
      .stages = {{.units = [](const Problem& problem,
                              const Blocks& of) { return ScoreRowPlan(problem, of).groups(); },
                  .part = [](Machine& machine, const Plan& plan, const Operands& io, Range units,
                             SlowMatrix*) { group_part(machine, plan, io, units); },
                  .part_cost = [](const Problem& problem, const Blocks& of, Range units, bool)
                      -> std::vector<PhaseCost> { return {core_cost(problem, of, units)}; }},
                 {.units = [](const Problem& problem,
                              const Blocks& of) { return sum_blocks(problem, of).size(); },
                  .part = [](Machine& machine, const Plan& plan, const Operands& io, Range units,
                             SlowMatrix*) { sum_part(machine, plan, io, units); },
                  .part_cost = [](const Problem& problem, const Blocks& of, Range units, bool)
                      -> std::vector<PhaseCost> { return {sum_cost(problem, of, units)}; }}},
      .left = {kPartOfdK, kPartOfdV},
      .left_rows =
          [](const Problem& problem, const Blocks& of, Index units) {
            return std::min(units, ScoreRowPlan(problem, of).groups()) * problem.shape.m;
          },
      .left_copies =
          [](const Problem& problem, const Blocks& of) {
            const Index groups = ScoreRowPlan(problem, of).groups();
            return groups > 1 ? groups : 0;
          }};
}

Nest loop_nest(const Problem& problem, const Blocks& blocks) {
  const Index m = problem.shape.m, d = problem.shape.d, dv = problem.shape.dv;
  const ScoreRowPlan by(problem, blocks);
  const Index G = by.groups();
  const NestLoop groups("G", "groups of queries", G, 1);
  const NestLoop I("I", "queries", problem.shape.n, by.rows);
  const NestLoop kept("J", "keys that stay", by.kept, by.keys);
  const Units::Sum met = by.row_blocks.sum();
  const Words brought = by.row_blocks.met_from(by.kept);
  const NestLoop passing =
      problem.mask.full() ? NestLoop("J", "keys that pass", m - by.kept, by.keys)
                          : I.met("J", "keys that pass", brought.value(), met.longest, by.keys);
  const NestTile K_kept("K", by.kept, d), V_kept("V", by.kept, dv), dK_kept("dK", by.kept, d),
      dV_kept("dV", by.kept, dv);
  const NestTile Q("Q", I, d), dO("dO", I, dv), dQ("dQ", I, d), e("e", I, met.most),
      q("q", I, met.most);
  const NestTile maximum("max", I), sum("sum", I), v("v", I);
  Words left, passed;  // keys of which groups leave sums, and those of them that pass
  for (Index g = 0; g < G; ++g) {
    passed += size_of(by.passing(g));
    left += size_of(summed(by, g, {0, m}));
  }
  const Words sums = (Words(d) + dv) * (brought.value() - passed.value());
  NestWriter nest;
  nest.phase("core", [&] {
    const auto keys = [&](const NestWriter::Tiles& stays, const std::string& text,
                          const NestWriter::Tiles& reads, const NestWriter::Tiles& writes) {
      index_nest(nest, met);
      nest.loop(kept, stays, [&] { nest.step(text); });
      nest.loop(passing, stays, [&] { nest.step(text, reads, writes); });
    };
    const auto row_blocks = [&] {
      nest.read({Q});
      keys({Q, e, maximum}, "s = c Q_I K_J^T; max_I", {{"K", passing, d}}, {});
      nest.read({dO});
      keys({Q, dO, e, q, maximum, sum, v}, "q = dO_I V_J^T; e = exp(s - max_I); sum_I, v_I",
           {{"V", passing, dv}}, {});
      nest.step("v_I = v_I / sum_I; Q_I = c Q_I / sum_I; dO_I = dO_I / sum_I");
      keys({Q, dO, dQ, e, q, sum, v},
           "p = e (q - v_I); dQ_I += p K_J; dK_J += p^T Q_I; dV_J += e^T dO_I",
           {{"K", passing, d}, NestTile("dK", passing, d).of_words(sums)},
           {{"dK", passing, d}, {"dV", passing, dv}});
      nest.step("dQ_I = c dQ_I / sum_I", {}, {dQ});
    };
    const auto stays = [&](Index times) {
      const auto of = [&](const NestTile& tile) { return tile.of_words(tile.largest() * times); };
      if (by.kept > 0) {
        nest.read({of(K_kept), of(V_kept)});
      }
      nest.loop(I, {K_kept, V_kept, dK_kept, dV_kept}, row_blocks);
      if (by.kept > 0) {
        nest.write({of(dK_kept), of(dV_kept)});
      }
    };
    stays(G);
  });
  if (G > 1) {
    const NestLoop J("J", "keys", m, blocks["sum.Bc"]);
    nest.phase("sum", [&] {
      nest.loop(J, [&] {
        nest.loop(groups, {{"dK", J, d}, {"dV", J, dv}}, [&] {
          nest.step(
              "dK_J += dK_J of G; dV_J += dV_J of G",
              {NestTile("dK", J, d).of_words(left * d), NestTile("dV", J, dv).of_words(left * dv)});
        });
        nest.write({{"dK", J, d}, {"dV", J, dv}});
      });
    });
  }
  return nest.lines();
}

// ---- blocks ------------------------------------------------------------------------------

Blocks blocks_of(const ScoreRowPlan& by, Index M) {
  Blocks blocks = by.blocks();
  const Index width = std::max(by.problem.shape.d, by.problem.shape.dv);
  blocks.add("sum.Bc", std::clamp<Index>(M / (2 * width), 1, by.problem.shape.m));
  return blocks;
}

// The most rows, or keys that stay, for which words are fewest; one group.
Blocks fewest(const Problem& problem, Index M) {
  const Index n = problem.shape.n, m = problem.shape.m;
  const auto plan = [&](Index r, Index c, Index k) { return ScoreRowPlan(problem, r, c, k, 1); };
  const auto fits = [&](Index r, Index c, Index k) { return core_peak(plan(r, c, k)) <= Words(M); };
  const auto words = [&](Index r, Index k) {
    const PhaseCost core = core_cost(problem, blocks_of(plan(r, 1, k), M), {0, 1});
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

// All keys stay beside enough rows to keep the registers busy; or none do.
Blocks fastest(const Problem& problem, Index M) {
  constexpr Index kBusyRows = kStrip;
  constexpr Index kMostRows = 6 * kPanel;
  constexpr Index kGroups = 4;
  // Two workers share ten alike, and the last three with the first seven where, under a causal
  // mask, each group has more pairs than the one before.
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
  const Index groups =
      ceil_div(n, r) >= 4 * kGroups ? problem.mask.full() ? kGroups : kGroupsOfMask : 1;
  return blocks_of({problem, r, kKeys, k, groups}, M);
}

Index written(const Signature& result, const Problem& problem, const Blocks& blocks) {
  return blocks[result.name == kdQ.name                      ? "Br"
                : ScoreRowPlan(problem, blocks).groups() > 1 ? "sum.Bc"
                                                             : "Bc"];
}

}  // namespace

Kernel gradients_score_rows() {
  return {.name = "gradients/score-rows",
          .summary =
              "from nothing in five products: row blocks of e and q stay whole, keys pass "
              "twice, or stay with dK and dV",
          .pass = Pass::gradients,
          .operands = {kQ, kK, kV, kdO},
          .returns = {kdQ, kdK, kdV},
          .kin = "backward/score-rows",
          .schedule = in_stages(split()),
          .formula = {.cost = cost,
                      .intermediates =
                          [](const Problem& problem, const Blocks& blocks) {
                            const Index groups = ScoreRowPlan(problem, blocks).groups();
                            return groups > 1 ? problem.key_words() * problem.shape.m * groups
                                              : Words(0);
                          },
                      .nest = loop_nest},
          .fitting = {.fit =
                          [](const Problem& problem, const Memory& memory, Objective objective) {
                            return objective == Objective::time ? fastest(problem, memory.M)
                                                                : fewest(problem, memory.M);
                          },
                      .written = written,
                      .optional_block = kKept}};
}

}  // namespace redblue
