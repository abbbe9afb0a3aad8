// Computes dQ, dK and dV without O and L, in five products. For a row block I, the scores of all
// keys (e and q) are resident, so each score is computed once. Only then are the sums of a row
// complete. dQ_I, dK and dV follow while keys stream again. This is for M far above m, as in a
// large cache. If less fits, gradients/rows-keys-onepass moves fewer words with three more
// products.
//
// If values are keys, they stream once for s and q together, and dK + dV is one sum. K then streams
// twice:
//
//   reads and writes   3 n d + 2 kept d + (4 T - 1) (m - kept) d
//
// The first `kept` keys, if any, are resident, with their values and both gradients. For each row
// block, the other keys stream twice in K and once in V, and their dK and dV are read and written:
//
//   reads and writes   3 n d + 4 kept d + (7 T - 2) (m - kept) d,   T = ceil(n / Br)
//
// Row blocks form independent groups, for several machines. With several groups, each has its own
// dK and dV, which are added at the end in the order of groups. G > 1 groups move 4 (G - 1) kept d
// + 2 (G + 1) m d words more, and 2 (G - 1) (m - kept) d words less. These formulas are for dv = d
// and no mask. Under a mask, each row block streams only the keys that it meets. Each group then
// writes sums for the resident keys and for the keys that it meets.

#include "kernels/gradients/score_rows.hpp"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <utility>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/parts/live_pairs.hpp"
#include "kernels/parts/partial_sums.hpp"
#include "kernels/registry.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace in_gradients_score_rows {
namespace {

// Rows of a matrix: a part of a tile if they are resident, otherwise a tile that is read for them.
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

// The resident keys of a group, and the matrices for its sums. If values are keys, there is no dV.
struct GroupState {
  SlowMatrix& all_dK;
  SlowMatrix* all_dV;
  Index first_row;  // first row of the group's dK and dV in these matrices
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

// Same, if values are keys: they stream once for s and q. Dead scores have no weight.
ScoreRows shared_score_rows(Machine& machine, const ScoreRowPlan& by, const Operands& io,
                            const GroupState& group, const Tile& queries_t, Range I,
                            const std::vector<KeyPiece>& pieces) {
  const Range met{0, pieces.back().at.end};
  const BlockRanges strips = blocks(I.size(), kStrip);
  Tile do_t = machine.read(transposed(io.in("dO").row_block(I)));
  Tile e_t = machine.initialize("e", met.size(), I.size(), kUnset, Holds::scores);
  Tile q_t = machine.initialize("q", met.size(), I.size(), kUnset, Holds::scores);
  Tile maximum = machine.initialize("max", I.size(), 1, kNoMaximum);
  Tile index = by.row_blocks.read_index(machine, I);
  for (const KeyPiece& piece : pieces) {
    const KeyRows k(machine, group.K, io.in("K"), piece.J, by.kept);
    for (const Range S : strips) {
      const LivePairs live(by.problem, part_of(I, S), piece.J);
      const View s_t = e_t.part(piece.at, S);
      const View of_q = q_t.part(piece.at, S);
      if (!live.none()) {
        multiply(k.view(), queries_t.part({0, queries_t.rows()}, S), s_t);
        multiply(k.view(), do_t.part({0, do_t.rows()}, S), of_q);
      }
      live.set_dead(transposed(s_t), kDeadScore);
      live.set_dead(transposed(of_q), 0);
      if (!live.none()) {
        raise_maximum(transposed(s_t), maximum.part(S));
      }
    }
  }
  index.reset();
  Tile sum = machine.initialize("sum", I.size());
  Tile v = machine.initialize("v", I.size());
  for (const Range S : strips) {
    exponentiate(transposed(e_t.part(met, S)), maximum.part(S), sum.part(S),
                 transposed(q_t.part(met, S)), v.part(S));
  }
  divide_rows(v, sum, v);
  return {std::move(e_t), std::move(q_t), std::move(sum), std::move(v), std::move(do_t)};
}

// Returns a / sum, from a^T.
Tile divided(Machine& machine, std::string_view name, Tile a_t, const Tile& sum) {
  Tile a = machine.initialize(name, a_t.cols(), a_t.rows(), Holds::operands);
  transpose(a_t, a);
  a_t.reset();
  divide_rows(a, sum, a);
  return a;
}

// Rows of a^T (keys), to be multiplied with rows of queries.
struct Addend {
  const Tile& a_t;
  const Tile& rows;
};

// Adds a^T rows, for some keys, to dK or dV: to resident sums, or to sums in slow memory.
void add_to_sums(Machine& machine, const ScoreRowPlan& by, const GroupState& group,
                 const KeyPiece& piece, Tile& staying, SlowMatrix& all,
                 std::initializer_list<Addend> addends) {
  const auto add_to = [&](const View& sums) {
    for (const auto& [a_t, rows] : addends) {
      multiply_add(a_t.part(piece.at), rows, sums);
    }
  };
  if (piece.J.begin < by.kept) {
    add_to(staying.part(piece.J));
    return;
  }
  const Range at = group.rows_of(piece.J);
  const Block partial = all.row_block(at).holding(Holds::sums);
  Tile sums = piece.first ? machine.initialize(all.name(), piece.J.size(), all.cols())
                          : machine.read(partial);
  add_to(sums);
  Ranges later;
  for (const Range keys : piece.later) {
    later.push_back(group.rows_of(keys));
  }
  write_sums(machine, sums, all, at, later);
}

// Adds p^T Q to dK and f^T dO to dV, or both to their one sum.
void add_to_dK_and_dV(Machine& machine, const ScoreRowPlan& by, GroupState& group,
                      const KeyPiece& piece, const Addend& of_dK, const Addend& of_dV) {
  if (group.all_dV == nullptr) {
    add_to_sums(machine, by, group, piece, group.dK, group.all_dK, {of_dK, of_dV});
    return;
  }
  add_to_sums(machine, by, group, piece, group.dK, group.all_dK, {of_dK});
  add_to_sums(machine, by, group, piece, group.dV, *group.all_dV, {of_dV});
}

// Computes dQ_I, and adds the contributions of I to dK and dV. Q_I and dO_I are divided by the sums
// of e, so that e and e (q - v) act as f and p.
void row_block(Machine& machine, const ScoreRowPlan& by, const Operands& io, GroupState& group,
               Range I, const std::vector<KeyPiece>& pieces) {
  const float c = by.problem.scale();
  Tile queries_t = machine.read(transposed(io.in("Q").row_block(I)));
  scale(queries_t, c);
  const auto make_scores = by.shares_keys() ? shared_score_rows : score_rows;
  ScoreRows scores = make_scores(machine, by, io, group, queries_t, I, pieces);
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
    add_to_dK_and_dV(machine, by, group, piece, {q_t, queries}, {e_t, dO});
  }
  index.reset();
  divide_rows(dQ, sum, dQ);
  scale(dQ, c);
  machine.write(dQ, io.out("dQ").row_block(I));
}

// Same, for an activation other than softmax. No row sums are needed, so each block of keys streams
// once.
void activated_row_block(Machine& machine, const ScoreRowPlan& by, const Operands& io,
                         GroupState& group, Range I, const std::vector<KeyPiece>& pieces) {
  const float c = by.problem.scale();
  const auto& [n, m, d] = by.problem.shape;
  const Index dv = by.problem.shape.dv;
  const BlockRanges strips = blocks(I.size(), kStrip);
  Tile queries_t = machine.read(transposed(io.in("Q").row_block(I)));  // c Q_I^T (d, r)
  scale(queries_t, c);
  Tile queries = machine.initialize("Q", I.size(), d, Holds::operands);
  transpose(queries_t, queries);
  const Tile do_t = machine.read(transposed(io.in("dO").row_block(I)));  // dO_I^T (dv, r)
  Tile dO = machine.initialize("dO", I.size(), dv, Holds::operands);
  transpose(do_t, dO);
  Tile dQ = machine.initialize("dQ", I.size(), d);
  const Index most = std::min(by.keys, pieces.back().at.end);
  Tile f_t = machine.initialize("f", most, I.size(), kUnset, Holds::scores);
  Tile p_t = machine.initialize("p", most, I.size(), kUnset, Holds::scores);
  const Tile index = by.row_blocks.read_index(machine, I);
  for (const KeyPiece& met : pieces) {
    const KeyPiece piece{met.J, {0, met.J.size()}, met.first, met.later};
    const KeyRows k(machine, group.K, io.in("K"), piece.J, by.kept);
    {
      std::optional<KeyRows> own_values;
      if (!by.shares_keys()) {
        own_values.emplace(machine, group.V, io.in("V"), piece.J, by.kept);
      }
      const ConstView values = own_values ? own_values->view() : k.view();
      for (const Range S : strips) {
        const LivePairs live(by.problem, part_of(I, S), piece.J);
        const View f = f_t.part(piece.at, S);
        const View p = p_t.part(piece.at, S);
        if (!live.none()) {
          multiply(k.view(), queries_t.part({0, d}, S), f);
          multiply(values, do_t.part({0, dv}, S), p);
          activation_gradient(by.problem.activation, f, p, p);
          activate(by.problem.activation, f, f);
        }
        live.set_dead(transposed(f), 0);
        live.set_dead(transposed(p), 0);
      }
    }
    for (const Range S : strips) {
      multiply_add(transposed(p_t.part(piece.at, S)), k.view(), dQ.part(S));
    }
    add_to_dK_and_dV(machine, by, group, piece, {p_t, queries}, {f_t, dO});
  }
  scale(dQ, c);
  machine.write(dQ, io.out("dQ").row_block(I));
}

void group_part(Machine& machine, const Plan& plan, const Operands& io, Range groups) {
  const ScoreRowPlan by(plan.problem, plan.blocks);
  const auto& [n, m, d] = plan.problem.shape;
  const Phase phase(machine, "core");
  const bool apart = by.groups() > 1;
  for (Index g = groups.begin; g < groups.end; ++g) {
    GroupState group{
        .all_dK = io.out(apart ? kPartOfdK.name : kdK.name),
        .all_dV = by.shares_keys() ? nullptr : &io.out(apart ? kPartOfdV.name : kdV.name),
        .first_row = g * m};
    const Range kept{0, by.kept};
    if (by.kept > 0) {
      group.K = machine.read(io.in("K").row_block(kept));
      group.dK = machine.initialize("dK", by.kept, d);
      if (group.all_dV != nullptr) {
        group.V = machine.read(io.in("V").row_block(kept));
        group.dV = machine.initialize("dV", by.kept, plan.problem.shape.dv);
      }
    }
    const Range mine = by.of_groups[g];
    for (Index block = mine.begin; block < mine.end; ++block) {
      const auto of_rows = by.problem.normalised() ? row_block : activated_row_block;
      of_rows(machine, by, io, group, by.row_blocks[block], key_pieces(by, mine, block));
    }
    if (by.kept > 0) {
      machine.write(group.dK, group.all_dK.row_block(group.rows_of(kept)));
      if (group.all_dV != nullptr) {
        machine.write(group.dV, group.all_dV->row_block(group.rows_of(kept)));
      }
    }
  }
}

// ---- the sums of groups ------------------------------------------------------------------

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
    if (!by.shares_keys()) {
      add_groups(machine, by, keys[unit], io.out(kPartOfdV.name), io.out("dV"));
    }
  }
}

Left left_by_groups(const Signature& matrix) {
  return {.matrix = matrix,
          .rows =
              [](const Problem& problem, const Blocks& of, Index units) {
                return std::min(units, ScoreRowPlan(problem, of).groups()) * problem.shape.m;
              },
          .copies =
              [](const Problem& problem, const Blocks& of) {
                const Index groups = ScoreRowPlan(problem, of).groups();
                return groups > 1 ? groups : 0;
              }};
}

Split split() {
  return {
      .stages = {{.units = [](const Problem& problem,
                              const Blocks& of) { return ScoreRowPlan(problem, of).groups(); },
                  .part = [](Machine& machine, const Plan& plan, const Operands& io, Range units,
                             SlowMatrix*) { group_part(machine, plan, io, units); },
                  .part_cost = [](const Problem& problem, const Blocks& of, Range units,
                                  bool) -> std::vector<PhaseCost> {
                    return {score_rows_core_cost(problem, of, units)};
                  }},
                 {.units = [](const Problem& problem,
                              const Blocks& of) { return sum_blocks(problem, of).size(); },
                  .part = [](Machine& machine, const Plan& plan, const Operands& io, Range units,
                             SlowMatrix*) { sum_part(machine, plan, io, units); },
                  .part_cost = [](const Problem& problem, const Blocks& of, Range units,
                                  bool) -> std::vector<PhaseCost> {
                    return {score_rows_sum_cost(problem, of, units)};
                  }}},
      .left = {left_by_groups(kPartOfdK), left_by_groups(kPartOfdV)}};
}

Index written(const Signature& result, const Problem& problem, const Blocks& blocks) {
  return blocks[result.name == kdQ.name                      ? "Br"
                : ScoreRowPlan(problem, blocks).groups() > 1 ? "sum.Bc"
                                                             : "Bc"];
}

}  // namespace
}  // namespace in_gradients_score_rows

Kernel gradients_score_rows() {
  using namespace in_gradients_score_rows;
  return {.name = "gradients/score-rows",
          .summary =
              "from nothing in five products: row blocks of e and q stay whole, keys pass "
              "twice, or stay with dK and dV",
          .pass = Pass::gradients,
          .operands = {kQ, kK, kV, kdO},
          .returns = {kdQ, kdK, kdV},
          .shares_keys = true,
          .takes_activations = true,
          .kin = "backward/score-rows",
          .schedule = in_stages(split()),
          .formula = {.cost = score_rows_cost,
                      .intermediates =
                          [](const Problem& problem, const Blocks& blocks) {
                            const Index groups = ScoreRowPlan(problem, blocks).groups();
                            return groups > 1 ? problem.key_words() * problem.shape.m * groups
                                              : Words(0);
                          },
                      .nest = score_rows_nest},
          .fitting = {.fit =
                          [](const Problem& problem, const Memory& memory, Objective objective) {
                            return score_rows_blocks(problem, memory.M, objective);
                          },
                      .written = written,
                      .optional_blocks = {{kKept}}}};
}

}  // namespace redblue
