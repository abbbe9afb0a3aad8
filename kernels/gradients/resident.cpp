// Computes dQ, dK and dV in one pass. Each score is computed once.
//
// gradients/resident passes blocks of Br queries. K, V, dK and dV of the keys that the next block
// also meets stay in fast memory, up to `resident` keys. A block first meets the keys that stayed,
// then its other keys in blocks of Bc. A key that leaves before its last query has incomplete sums
// dK and dV. They are written, and read again when the key comes back. Let P be the number of times
// that keys come into fast memory. For dv = d:
//
//   reads   3 n d + n + 2 P d + 2 (P - m) d;   writes   n d + 2 P d
//
// Without a mask P = resident + (m - resident) T, with T = ceil(n / Br). Under a mask P is the sum
// of the keys that each block meets, less the keys that stay from one block to the next. With room
// for all keys P = m. If P = m, each word moves once, and no algorithm moves fewer. For a window
// mask this needs only room for the keys that two neighbouring blocks share.
//
// gradients/resident-queries exchanges the roles: blocks of Bc keys pass, and Q, dO, L, v and dQ of
// up to `resident` queries stay. P counts the arrivals of queries. If a query comes more than once,
// v is written when it first comes:
//
//   reads   2 P d + P + n d + (P - n) (d + 1) + 2 m d;   writes   P d + 2 m d + [n if P > n]
//
// A key takes 4 d words and a query 3 d + 2. If values are keys, K and the one sum dK + dV move
// instead of the four matrices. Scores exist in strips of some queries and up to 96 keys, with c Q
// and dO of the strip transposed.

#include "kernels/parts/resident.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/parts/activations.hpp"
#include "kernels/parts/live_pairs.hpp"
#include "kernels/parts/partial_sums.hpp"
#include "kernels/parts/rolling.hpp"
#include "kernels/registry.hpp"
#include "memsim/machine.hpp"
#include "memsim/workspace.hpp"

namespace redblue {
namespace in_gradients_resident {
namespace {

constexpr Signature kOfRows{"v", &Shape::n, nullptr, Holds::sums};

bool shares_keys(const Problem& problem) {
  return problem.sharing != Sharing::none;
}

// The plan of one of the two kernels. `strips` is the plan of a strip of scores.
struct RollingPlan {
  RollingPlan(const Problem& of, const Blocks& blocks, ResidentRows which)
      : problem(of),
        stays(which),
        rows(blocks["Br"]),
        keys(blocks["Bc"]),
        strips(of, std::min(rows, of.shape.n), std::min(keys, kStripKeys), of.shape.d),
        units(which == ResidentRows::keys ? Units::of_queries(of, rows) : Units::of_keys(of, keys)),
        others(which == ResidentRows::keys ? of.shape.m : of.shape.n),
        room(std::min(blocks["resident"], others)) {}

  static constexpr Index kStripKeys = 96;

  const Problem& problem;
  ResidentRows stays;
  Index rows, keys;
  RowPlan strips;
  Units units;         // that pass
  Index others, room;  // that come, and the most of them that stay

  [[nodiscard]] bool keys_stay() const { return stays == ResidentRows::keys; }
  // P, and P less the others: their first arrivals do not count.
  [[nodiscard]] Words all_arrivals() const { return arrivals(units, others, room); }
  [[nodiscard]] Words later_arrivals() const {
    const Words all = all_arrivals();
    return all.overflowed() ? all : Words(all.value() - others);
  }
  // Whether v is written for later arrivals of queries.
  [[nodiscard]] bool leaves_v() const {
    return !keys_stay() && problem.normalised() && later_arrivals() > Words(0);
  }
};

// ---- blocks in fast memory ---------------------------------------------------------------------

// Keys with their sums. If values are keys, V and dV are empty.
struct KeyBlock {
  Range rows;
  Tile K, V, dK, dV;

  static constexpr std::array kTiles = {&KeyBlock::K, &KeyBlock::V, &KeyBlock::dK, &KeyBlock::dV};
  static constexpr std::array kSums = {&KeyBlock::dK, &KeyBlock::dV};
};

// c Q, dO, L, v and dQ of some queries, dQ without its factor c.
struct QueryBlock {
  Range rows;
  Tile Q, dO, L, v, dQ;

  static constexpr std::array kTiles = {&QueryBlock::Q, &QueryBlock::dO, &QueryBlock::L,
                                        &QueryBlock::v, &QueryBlock::dQ};
  static constexpr std::array kSums = {&QueryBlock::dQ};
};

Tile begun_sums(Machine& machine, SlowMatrix& all, Range rows, bool again) {
  const Block sums = all.row_block(rows).holding(Holds::sums);
  return again ? machine.read(ConstBlock(sums))
               : machine.initialize(all.name(), rows.size(), all.cols());
}

// Moves keys between slow and fast memory.
class Keys {
 public:
  Keys(Machine& machine, const RollingPlan& by, const Operands& io)
      : machine_(machine), by_(by), io_(io) {}
  [[nodiscard]] KeyBlock arriving(Range J, bool again) const {
    KeyBlock keys;
    keys.rows = J;
    keys.K = machine_.read(io_.in("K").row_block(J));
    keys.dK = begun_sums(machine_, io_.out("dK"), J, again);
    if (!shares_keys(by_.problem)) {
      keys.V = machine_.read(io_.in("V").row_block(J));
      keys.dV = begun_sums(machine_, io_.out("dV"), J, again);
    }
    return keys;
  }
  void leave(const KeyBlock& keys, const Ranges& later) const {
    write_sums(machine_, keys.dK, io_.out("dK"), keys.rows, later);
    if (!shares_keys(by_.problem)) {
      write_sums(machine_, keys.dV, io_.out("dV"), keys.rows, later);
    }
  }

 private:
  Machine& machine_;
  const RollingPlan& by_;
  const Operands& io_;
};

// Moves queries. `left_v` is the matrix of v; null if each query comes once.
class Queries {
 public:
  Queries(Machine& machine, const RollingPlan& by, const Operands& io, SlowMatrix* left_v)
      : machine_(machine), by_(by), io_(io), left_v_(left_v) {}
  [[nodiscard]] QueryBlock arriving(Range I, bool again) const {
    const Problem& problem = by_.problem;
    QueryBlock queries;
    queries.rows = I;
    queries.dO = machine_.read(io_.in("dO").row_block(I));  // (r, dv)
    if (!again) {
      queries.v = made_v(queries.dO, I);
    } else if (problem.normalised()) {
      queries.v = machine_.read(std::as_const(*left_v_).row_block(I));
    }
    queries.L = read_row_values(machine_, problem, io_, "L", I);
    queries.Q = machine_.read(io_.in("Q").row_block(I));  // (r, d)
    scale(queries.Q, problem.scale());
    queries.dQ = begun_sums(machine_, io_.out("dQ"), I, again);  // (r, d)
    return queries;
  }
  void leave(QueryBlock& queries, const Ranges& later) const {
    const Range I = queries.rows;
    for (const Range whole : without({I}, later)) {
      scale(queries.dQ.part({whole.begin - I.begin, whole.end - I.begin}), by_.problem.scale());
    }
    write_sums(machine_, queries.dQ, io_.out("dQ"), I, later);
  }

 private:
  // v = rowsum(dO * O). O comes in pieces that have no more words than the strips, which have no
  // room yet.
  [[nodiscard]] Tile made_v(const Tile& dO, Range I) const {
    Tile v = row_values(machine_, by_.problem, kOfRows.name, I.size());
    if (by_.problem.normalised()) {
      for (const Range part : blocks(I.size(), by_.strips.strip_rows(by_.strips.rows).value())) {
        const Tile o = machine_.read(io_.in("O").row_block(part_of(I, part)));
        add_row_dots(dO.part(part), o, v.part(part));
      }
      if (left_v_ != nullptr) {
        machine_.write(v, left_v_->row_block(I));
      }
    }
    return v;
  }

  Machine& machine_;
  const RollingPlan& by_;
  const Operands& io_;
  SlowMatrix* left_v_;
};

// ---- arithmetic --------------------------------------------------------------------------------

// The strips for queries that meet keys. They are transposed: a query is a column.
class Strips {
 public:
  Strips(Machine& machine, const RollingPlan& by) : by_(by), problem_(by.problem) {
    const Index queries = by.strips.strip_rows(by.strips.rows).value();
    const Index keys = by.strips.strip_keys();
    f_ = machine.initialize("f", keys, queries, kUnset, Holds::scores);
    p_ = problem_.normalised() ? machine.initialize("q", std::min(kRegisterCharge, f_.words()), 1,
                                                    kUnset, Holds::scores)
                               : machine.initialize("p", keys, queries, kUnset, Holds::scores);
    q_t_ = machine.initialize("Q^T", problem_.shape.d, queries, kUnset, Holds::operands);
    do_t_ = machine.initialize("dO^T", problem_.shape.dv, queries, kUnset, Holds::operands);
  }
  static Words words(const RollingPlan& by) {
    const Problem& problem = by.problem;
    const Words queries = by.strips.strip_rows(by.strips.rows);
    const Words scores = queries * by.strips.strip_keys();
    return scores + (problem.normalised() ? std::min(scores, Words(kRegisterCharge)) : scores) +
           queries * (Words(problem.shape.d) + problem.shape.dv);
  }

  // Adds all terms of these queries and keys to dQ, dK and dV.
  void meet(QueryBlock& queries, std::span<KeyBlock> blocks_of_keys) {
    for (const Range S : blocks(queries.rows.size(), by_.strips.strip())) {
      bool filled = false;  // whether q_t_ and do_t_ hold the queries S
      for (KeyBlock& keys : blocks_of_keys) {
        for (const Range part : blocks(keys.rows.size(), by_.strips.keys)) {
          const LivePairs live =
              LivePairs::near(problem_, part_of(queries.rows, S), part_of(keys.rows, part));
          if (live.none()) {
            continue;
          }
          if (!std::exchange(filled, true)) {
            transpose(queries.Q.part(S), columns(q_t_, S));
            transpose(queries.dO.part(S), columns(do_t_, S));
          }
          add(queries, S, keys, live);
        }
      }
    }
  }

 private:
  // The columns for the queries S.
  static View columns(Tile& tile, Range S) { return tile.part({0, tile.rows()}, {0, S.size()}); }

  void add(QueryBlock& queries, Range S, KeyBlock& keys, const LivePairs& live) {
    const bool shared = shares_keys(problem_);
    const Range at{live.keys().begin - keys.rows.begin, live.keys().end - keys.rows.begin};
    const ConstView K = std::as_const(keys.K).part(at);
    const ConstView V = shared ? K : std::as_const(keys.V).part(at);
    const View f_t = f_.part({0, at.size()}, {0, S.size()});
    const View p_t = problem_.normalised() ? f_t : p_.part({0, at.size()}, {0, S.size()});
    if (problem_.normalised()) {
      exponentiated_product(K, columns(q_t_, S), queries.L.part(S), f_t);
    } else {
      multiply(K, columns(q_t_, S), f_t);
      multiply(V, columns(do_t_, S), p_t);
      activation_gradient(problem_.activation, f_t, p_t, p_t);
      activate(problem_.activation, f_t, f_t);
    }
    live.set_dead(transposed(f_t), 0);
    multiply_add(f_t, queries.dO.part(S), shared ? keys.dK.part(at) : keys.dV.part(at));
    if (problem_.normalised()) {
      softmax_gradient_product(V, columns(do_t_, S), queries.v.part(S), f_t, p_);
    }
    live.set_dead(transposed(p_t), 0);  // also where q is infinite
    multiply_add(p_t, queries.Q.part(S), keys.dK.part(at));
    multiply_add(transposed(p_t), K, queries.dQ.part(S));
  }

  const RollingPlan& by_;
  const Problem& problem_;
  // Strips of f^T, and of p^T or the words that a product keeps in registers; c Q^T and dO^T.
  Tile f_, p_, q_t_, do_t_;
};

void pass_queries(Machine& machine, const RollingPlan& by, const Operands& io) {
  Keys keys(machine, by, io);
  const Queries queries(machine, by, io, nullptr);
  Rolling<KeyBlock, Keys> rolling(machine, by.units, keys, by.others, by.room, by.keys);
  for (Index unit = 0; unit < by.units.size(); ++unit) {
    QueryBlock block = queries.arriving(by.units[unit], false);
    const Tile index = by.units.read_index(machine, by.units[unit]);
    rolling.pass(unit, [&](std::span<KeyBlock> some) { Strips(machine, by).meet(block, some); });
    queries.leave(block, {});
  }
  rolling.finish();
}

void pass_keys(Machine& machine, const RollingPlan& by, const Operands& io, SlowMatrix* left_v) {
  const Keys keys(machine, by, io);
  Queries queries(machine, by, io, left_v);
  Rolling<QueryBlock, Queries> rolling(machine, by.units, queries, by.others, by.room, by.rows);
  for (Index unit = 0; unit < by.units.size(); ++unit) {
    KeyBlock block = keys.arriving(by.units[unit], false);
    const Tile index = by.units.read_index(machine, by.units[unit]);
    rolling.pass(unit, [&](std::span<QueryBlock> some) {
      Strips strips(machine, by);
      for (QueryBlock& each : some) {
        strips.meet(each, std::span(&block, 1));
      }
    });
    keys.leave(block, {});
  }
  rolling.finish();
}

void code(Machine& machine, const Plan& plan, const Operands& io, Workspace& workspace,
          ResidentRows stays) {
  const Phase phase(machine, "core");
  const RollingPlan by(plan.problem, plan.blocks, stays);
  if (by.keys_stay()) {
    return pass_queries(machine, by, io);
  }
  std::optional<SlowMatrix> v;
  if (by.leaves_v()) {
    v = workspace.matrix(std::string(kOfRows.name), plan.problem.shape.n, 1).holding(Holds::sums);
  }
  pass_keys(machine, by, io, v ? &*v : nullptr);
}

// ---- words -------------------------------------------------------------------------------------

// The peak has the unit that passes, all others in fast memory with it, and the strips.
std::vector<PhaseCost> cost(const Problem& problem, const Blocks& blocks, ResidentRows stays) {
  const RollingPlan by(problem, blocks, stays);
  const Units::Sum of = by.units.sum();
  const Index n = problem.shape.n, m = problem.shape.m;
  const Words d = problem.shape.d, dv = problem.shape.dv, one = problem.row_words();
  const Words key = problem.key_words(), sum_words = problem.sum_words;
  const Words of_key = key * (1 + sum_words), of_query = d + dv + d * sum_words + 2 * one;
  const Words P = by.all_arrivals(), again = by.later_arrivals();
  const Words of_O = Words(n) * dv * problem.row_columns();
  const auto peak = [&](const Units::Unit& unit) {
    const Words together = most_together(by.others, by.room, by.keys_stay() ? by.keys : by.rows,
                                         unit.longest, problem.mask.full());
    return unit.rows * (by.keys_stay() ? of_query : of_key) +
           together * (by.keys_stay() ? of_key : of_query) + Strips::words(by) + of.index_live;
  };
  PhaseCost core{.path = "core",
                 .reads = 0,
                 .writes = n * d + m * key,
                 .peak = of.peak(peak),
                 .flops = 2 * of.pairs * (3 * d + 2 * dv)};
  if (by.keys_stay()) {
    core.reads = n * (d + dv + one) + of_O + P * key + again * key * sum_words;
    core.writes += again * key * sum_words;
  } else {
    core.reads = P * (d + dv + one) + of_O + again * (d * sum_words + one) + m * key;
    core.writes += again * d * sum_words + (by.leaves_v() ? n * one : Words(0));
  }
  return {with_index(core, of)};
}

// For resident queries, the problem and the blocks with queries and keys exchanged.
Problem exchanged(const Problem& problem) {
  Problem other = problem;
  std::swap(other.shape.n, other.shape.m);
  other.mask = problem.mask.full() ? Mask() : problem.mask.transposed();
  return other;
}
Blocks exchanged(const Blocks& blocks) {
  return {{"Br", blocks["Bc"]}, {"Bc", blocks["Br"]}, {"resident", blocks["resident"]}};
}

Blocks fit(const Problem& problem, const Memory& memory, Objective objective, ResidentRows stays) {
  if (stays == ResidentRows::keys) {
    return most_resident(problem, memory.M, objective, [](const Problem& of, const Blocks& blocks) {
      return cost(of, blocks, ResidentRows::keys);
    });
  }
  const CostOfBlocks of_exchanged = [&](const Problem&, const Blocks& blocks) {
    return cost(problem, exchanged(blocks), ResidentRows::queries);
  };
  return exchanged(most_resident(exchanged(problem), memory.M, objective, of_exchanged));
}

Index written(const Signature& result, const Problem&, const Blocks& blocks) {
  return blocks[result.name == kdQ.name ? "Br" : "Bc"];
}

// ---- the loops ---------------------------------------------------------------------------------

std::string text_of_terms(const Problem& problem) {
  const std::string s = "c Q_I K_J^T", q = "dO_I " + values_text(problem) + "^T";
  return (problem.normalised() ? "f = exp(" + s + " - L_I); p = f (" + q + " - v_I)"
                               : "s = " + s + "; f = phi(s); p = phi'(s) (" + q + ")") +
         "; dQ_I += p K_J; dK_J += c p^T Q_I; " + (shares_keys(problem) ? "dK_J" : "dV_J") +
         " += f^T dO_I";
}

// Tiles of some keys or queries, with the words of `times` moves of one row of each; without
// `times`, as they move in the loops.
struct NestRows {
  const Problem& problem;

  [[nodiscard]] NestWriter::Tiles tiles(
      const NestExtent& rows, std::optional<Index> times,
      const std::vector<std::pair<std::string_view, Index>>& matrices) const {
    NestWriter::Tiles all;
    for (const auto& [name, width] : matrices) {
      const NestTile tile(name, rows, width);
      if (width > 0) {
        all.push_back(times ? tile.of_words(Words(*times) * width) : tile);
      }
    }
    return all;
  }
  [[nodiscard]] NestWriter::Tiles keys(const NestExtent& rows, std::optional<Index> times) const {
    return tiles(rows, times, {{"K", problem.shape.d}, {"V", own_values()}});
  }
  [[nodiscard]] NestWriter::Tiles key_sums(const NestExtent& rows,
                                           std::optional<Index> times) const {
    return tiles(rows, times, {{"dK", problem.shape.d}, {"dV", own_values()}});
  }
  [[nodiscard]] NestWriter::Tiles queries(const NestExtent& rows,
                                          std::optional<Index> times) const {
    return tiles(rows, times,
                 {{"Q", problem.shape.d}, {"dO", problem.shape.dv}, {"L", problem.row_columns()}});
  }
  // v is a sum, too: it is made from O.
  [[nodiscard]] NestWriter::Tiles query_sums(const NestExtent& rows,
                                             std::optional<Index> times) const {
    return tiles(rows, times, {{"dQ", problem.shape.d}, {"v", problem.row_columns()}});
  }

 private:
  [[nodiscard]] Index own_values() const { return shares_keys(problem) ? 0 : problem.shape.dv; }
};

NestWriter::Tiles joined(NestWriter::Tiles tiles, const NestWriter::Tiles& more) {
  tiles.insert(tiles.end(), more.begin(), more.end());
  return tiles;
}

void queries_nest(NestWriter& nest, const RollingPlan& by, const Units::Sum& of) {
  const Problem& problem = by.problem;
  const NestRows rows{problem};
  const Index P = by.all_arrivals().value(), again = by.later_arrivals().value();
  const NestLoop I("I", "queries", problem.shape.n, by.rows);
  const NestLoop stayed("J", "keys that stayed", by.room, by.keys);
  const NestLoop others = I.met("J", "other keys", P, of.longest, by.keys);
  const NestTile O("O", I, problem.shape.dv * problem.row_columns());
  const NestTile dQ("dQ", I, problem.shape.d);
  nest.loop(I, joined(rows.keys(by.room, {}), rows.key_sums(by.room, {})), [&] {
    nest.read(rows.queries(I, {}));
    if (problem.normalised()) {
      nest.step("v_I = rowsum(dO_I * O_I)", {O});
    }
    index_nest(nest, of);
    const NestWriter::Tiles stays = joined(rows.queries(I, {}), rows.query_sums(I, {}));
    nest.loop(stayed, stays, [&] { nest.step(text_of_terms(problem)); });
    nest.loop(others, stays, [&] {
      nest.read(joined(rows.keys(others, P), rows.key_sums(others, again)));
      nest.step(text_of_terms(problem), {}, rows.key_sums(others, P));
    });
    nest.step("dQ_I = c dQ_I", {}, {dQ});
  });
}

void keys_nest(NestWriter& nest, const RollingPlan& by, const Units::Sum& of) {
  const Problem& problem = by.problem;
  const NestRows rows{problem};
  const Index n = problem.shape.n;
  const Index P = by.all_arrivals().value(), again = by.later_arrivals().value();
  const NestLoop J("J", "keys", problem.shape.m, by.keys);
  const NestLoop stayed("I", "queries that stayed", by.room, by.rows);
  const NestLoop others = J.met("I", "other queries", P, of.longest, by.rows);
  const NestWriter::Tiles O =
      rows.tiles(others, n, {{"O", problem.shape.dv * problem.row_columns()}});
  const NestWriter::Tiles v =
      rows.tiles(others, n, {{"v", by.leaves_v() ? problem.row_columns() : 0}});
  nest.loop(J, joined(rows.queries(by.room, {}), rows.query_sums(by.room, {})), [&] {
    nest.read(rows.keys(J, {}));
    index_nest(nest, of);
    const NestWriter::Tiles stays = joined(rows.keys(J, {}), rows.key_sums(J, {}));
    nest.loop(stayed, stays, [&] { nest.step(text_of_terms(problem)); });
    nest.loop(others, stays, [&] {
      nest.read(joined(rows.queries(others, P), rows.query_sums(others, again)));
      if (problem.normalised()) {
        nest.step("v_I = rowsum(dO_I * O_I), the first time", O, v);
      }
      nest.step(text_of_terms(problem) + "; the last time dQ_I = c dQ_I", {},
                rows.tiles(others, P, {{"dQ", problem.shape.d}}));
    });
    nest.write(rows.key_sums(J, {}));
  });
}

Nest loop_nest(const Problem& problem, const Blocks& blocks, ResidentRows stays) {
  const RollingPlan by(problem, blocks, stays);
  NestWriter nest;
  nest.phase("core", [&] {
    const Units::Sum of = by.units.sum();
    if (by.keys_stay()) {
      queries_nest(nest, by, of);
    } else {
      keys_nest(nest, by, of);
    }
  });
  return nest.lines();
}

}  // namespace
}  // namespace in_gradients_resident

Kernel gradients_resident(std::string_view name, std::string_view summary, ResidentRows stays) {
  using namespace in_gradients_resident;
  return {
      .name = name,
      .summary = summary,
      .pass = Pass::gradients,
      .operands = {kQ, kK, kV, kdO, kO, kL},
      .returns = {kdQ, kdK, kdV},
      .shares_keys = true,
      .takes_activations = true,
      .kin = "gradients/rows-keys",
      .schedule = {.code =
                       [stays](Machine& machine, const Plan& plan, const Operands& io,
                               Workspace& workspace) {
                         code(machine, plan, io, workspace, stays);
                       }},
      .formula = {
          .cost = [stays](const Problem& problem,
                          const Blocks& blocks) { return cost(problem, blocks, stays); },
          .intermediates =
              [stays](const Problem& problem, const Blocks& blocks) {
                const RollingPlan by(problem, blocks, stays);
                return Words(by.leaves_v() ? problem.shape.n : 0);
              },
          .nest = [stays](const Problem& problem,
                          const Blocks& blocks) { return loop_nest(problem, blocks, stays); }},
      .fitting = {
          .fit = [stays](const Problem& problem, const Memory& memory,
                         Objective objective) { return fit(problem, memory, objective, stays); },
          .written = written}};
}

}  // namespace redblue
