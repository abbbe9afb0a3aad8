#include "kernels/parts/scores.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <utility>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/fit.hpp"
#include "kernels/parts/live_pairs.hpp"
#include "kernels/parts/rows.hpp"
#include "memsim/machine.hpp"
#include "memsim/partial.hpp"
#include "memsim/workspace.hpp"

namespace redblue {
namespace {

// The most columns, up to a piece, whose multiples straddle no panel: a power of two, or whole
// panels.
Index column_piece(Index piece) {
  return piece < kPanel ? static_cast<Index>(std::bit_floor(static_cast<std::uint64_t>(piece)))
                        : piece / kPanel * kPanel;
}

void scaled(Tile& s, const ScoreEpilogue& epilogue) {
  if (epilogue.scale) {
    scale(s, *epilogue.scale);
  }
}

// A tile of scores stays, and a slice of A or of B with it, along its shorter side, while the other
// passes in pieces; it is used in pieces of rows, each with its rows' words.
void tiles(Machine& machine, const StationaryBlocks& by, const Problem& problem,
           const SlowMatrix& all_of_A, const SlowMatrix& all_of_B, ScoreEpilogue& epilogue,
           SlowMatrix& result) {
  const bool wide = is_wide({all_of_A.rows(), all_of_B.rows(), all_of_A.cols()}, by);
  const Units queries = Units::of_queries(problem, by.rows);
  for (const Range I : queries) {
    const Tile index = queries.read_index(machine, I);
    const LiveRows B(all_of_B, problem.mask, problem.keys(I));
    for (const Range J : blocks(all_of_B.rows(), by.cols)) {
      const LivePairs live(problem, I, J);
      if (live.none()) {
        continue;
      }
      const LiveRows A(all_of_A, problem.mask, live.met());
      const auto meets = [&](Range rows, Range columns) {
        return !LivePairs(problem, part_of(I, rows), part_of(J, columns)).none();
      };
      const Range rows_of_s{0, I.size()}, columns_of_s{0, J.size()};
      Tile s = machine.initialize(result.name(), I.size(), J.size(), Holds::scores);  // s_IJ (r, c)
      for (const Range K : blocks(A->cols(), by.depth)) {
        if (wide) {
          const Tile a = machine.read(A->block(I, K));  // A_IK (r, s)
          for (const Range P : blocks(J.size(), column_piece(by.piece))) {
            if (meets(rows_of_s, P)) {
              const Tile b = machine.read(transposed(B->block(part_of(J, P), K)));  // B_PK^T (s, p)
              multiply_add(a, b, s.part(rows_of_s, P));
            }
          }
        } else {
          const Tile b = machine.read(transposed(B->block(J, K)));  // B_JK^T (s, c)
          for (const Range P : blocks(I.size(), by.piece)) {
            if (meets(P, columns_of_s)) {
              const Tile a = machine.read(A->block(part_of(I, P), K));  // A_PK (p, s)
              multiply_add(a, b, s.part(P));
            }
          }
        }
      }
      scaled(s, epilogue);
      if (epilogue.writes_raw) {
        machine.write(s, result.block(I, J));
      }
      for (const Range P : blocks(I.size(), by.piece)) {
        const LivePairs of_P(problem, part_of(I, P), J);
        if (!of_P.none()) {
          ScoreEpilogue::OfRows of = epilogue.enter(machine, of_P, nullptr);
          epilogue.apply(machine, s, P, of_P, of, {0, P.size()});
          epilogue.leave(machine, of, of_P);
        }
      }
      if (!epilogue.writes_raw) {
        machine.write(s, result.block(I, J));
      }
    }
  }
}

// A block of rows stays, as a or as a^T: with rows of B beside it, and scores in pieces; or with
// scores, and B in pieces; whichever is smaller.
void rows(Machine& machine, const StationaryBlocks& by, const Problem& problem, const SlowMatrix& A,
          const SlowMatrix& B, ScoreEpilogue& epilogue, SlowMatrix& result) {
  const bool holds_B = A.cols() <= std::min(A.rows(), by.rows);
  const auto used = [&](Tile& s, Range I, Range J, ScoreEpilogue::OfRows& of, Index first_row) {
    scaled(s, epilogue);
    if (epilogue.writes_raw) {
      machine.write(s, result.block(I, J));
    }
    for (const Range P : blocks(I.size(), by.piece)) {
      const Range at = part_of(I, P);
      epilogue.apply(machine, s, P, LivePairs(problem, at, J), of,
                     {at.begin - first_row, at.end - first_row});
    }
    if (!epilogue.writes_raw) {
      machine.write(s, result.block(I, J));
    }
  };
  for (const Range I : blocks(A.rows(), by.rows)) {
    const Tile a = holds_B ? machine.read(A.row_block(I))               // A_I (r, d)
                           : machine.read(transposed(A.row_block(I)));  // A_I^T (d, r)
    const StayingRows staying{
        .tile = a, .transposed = !holds_B, .room = std::min(by.cols, B.rows())};
    const LivePairs of_rows(problem, I, {0, B.rows()});
    ScoreEpilogue::OfRows of = epilogue.enter(machine, of_rows, &staying);
    Tile index = read_index(machine, problem.mask, I);
    const Pieces keys(problem.keys(I), by.cols);
    for (Index which = 0; which < keys.size(); ++which) {
      const Range J = keys[which];
      if (holds_B) {
        const Tile b = machine.read(transposed(B.row_block(J)));  // B_J^T (d, c)
        for (const Range P : blocks(I.size(), by.piece)) {
          const auto live = LivePairs::near(problem, part_of(I, P), J, kPanel);
          if (live.none()) {
            continue;
          }
          const Range met{live.keys().begin - J.begin, live.keys().end - J.begin};
          Tile s = machine.initialize(result.name(), P.size(), met.size(),
                                      Holds::scores);  // s_PJ (p, c)
          multiply(a.part(P), b.part({0, b.rows()}, met), s);
          used(s, part_of(I, P), live.keys(), of, I.begin);
        }
      } else {
        Tile s =
            machine.initialize(result.name(), I.size(), J.size(), Holds::scores);  // s_IJ (r, c)
        for (const Range P : blocks(A.cols(), by.piece)) {
          const Tile b = machine.read(transposed(B.block(J, P)));  // B_JP^T (p, c)
          multiply_add(transposed(a.part(P)), b, s);
        }
        used(s, I, J, of, I.begin);
      }
    }
    index.reset();
    epilogue.leave(machine, of, of_rows);
  }
}

}  // namespace

namespace {

// How often rows are entered in all, and rows of B come; and how often rows are entered again.
struct Entries {
  Words rows, columns, again;
};
Entries entries(const Problem& problem, const StationaryBlocks& by) {
  const Index n = problem.shape.n;
  const Words rows = rows_stay(Products(problem).scores, by)
                         ? Words(n)
                         : Units::of_keys(problem, by.cols).sum().met;
  return {rows, Units::of_queries(problem, by.rows).sum().met,
          rows.overflowed() ? rows : Words(rows.value() - n)};
}

}  // namespace

PhaseCost scores_cost(std::string path, const Problem& problem, const StationaryBlocks& by,
                      const EpilogueCost& epilogue) {
  const auto [n, m, d] = problem.shape;
  const ProductShape of = Products(problem).scores;
  const bool whole = rows_stay(of, by);
  const Entries met = entries(problem, by);
  const Words r = std::min(n, by.rows);
  const Words c = std::min(m, by.cols);
  const Words s = std::min(d, by.depth);
  const Words p = std::min(r, Words(by.piece));
  const Words all = problem.pairs();
  const Words used = p * epilogue.scratch + p * c * epilogue.tiles;
  PhaseCost cost{
      .path = std::move(path),
      .reads = (met.rows + met.columns) * d + all * epilogue.reads + met.rows * epilogue.row_reads +
               met.again * epilogue.row_reads_again,
      .writes = all + met.rows * epilogue.row_writes + met.again * epilogue.row_writes_before,
      .peak = 0,
      .flops = 2 * all * d};
  if (!whole) {
    const Words passing = is_wide(of, by) ? std::min(c, Words(column_piece(by.piece))) : p;
    cost.peak = r * c + std::max(s * std::min(r, c) + passing * s, p * epilogue.columns + used);
  } else if (s <= r) {
    cost.peak = r * d + r * epilogue.columns + d * c + p * c + used;
  } else {
    const Words slice = std::min(s, Words(by.piece)) * c;
    cost.peak = r * d + r * epilogue.columns + r * c + std::max(slice, used);
  }
  const Units::Sum of_rows = Units::of_queries(problem, by.rows).sum();
  cost.peak += of_rows.index_live;
  return with_index(std::move(cost), of_rows);
}

namespace {

// Tiles of scores stay.
void tiles_nest(NestWriter& nest, const ProductNames& names, const Problem& problem,
                const StationaryBlocks& by, const EpilogueCost& epilogue) {
  const ProductShape of = Products(problem).scores;
  const bool wide = is_wide(of, by);
  const Entries met = entries(problem, by);
  const auto live = [&](const NestTile& tile, Words all) {
    return problem.mask.full() ? tile : tile.of_words(all);
  };
  const NestLoop I("I", "queries", of.rows, by.rows);
  const NestLoop J("J", "keys", of.cols, by.cols);
  const NestLoop K("K", "depth", of.depth, by.depth);
  const NestLoop P = wide ? J.pieces("P", column_piece(by.piece)) : I.pieces("P", by.piece);
  const NestTile a = live({names.left, wide ? I : P, K}, met.rows * of.depth);
  const NestTile b = live({names.right, K, wide ? P : J}, met.columns * of.depth);
  const NestTile& held = wide ? a : b;
  const NestTile& passing = wide ? b : a;
  const NestTile s = live({names.result, I, J}, problem.pairs());
  const NestTile s_part(names.result, wide ? I : P, wide ? P : J);
  const NestLoop used = I.pieces("P", by.piece);
  const auto of_rows = [&](std::string_view name, Index words) {
    return live({name, used, words}, met.rows * words);
  };
  const auto of_rows_again = [&](std::string_view name, Index words) {
    return live(NestTile(name, used, words).but_once(J), met.again * words);
  };
  NestWriter::Tiles reads(static_cast<std::size_t>(epilogue.reads),
                          live({names.result, used, J}, problem.pairs()));
  reads.push_back(of_rows(epilogue.names.row_reads, epilogue.row_reads));
  reads.push_back(of_rows_again(epilogue.names.row_reads, epilogue.row_reads_again));
  const NestWriter::Tiles writes = {
      of_rows(epilogue.names.row_writes, epilogue.row_writes),
      of_rows_again(epilogue.names.row_writes, epilogue.row_writes_before)};
  nest.loop(I, [&] {
    index_nest(nest, Units::of_queries(problem, by.rows).sum());
    nest.loop(J, [&] {
      nest.loop(K, {s}, [&] {
        nest.read({held});
        nest.loop(P, {held}, [&] { nest.step(sum_text(s_part, a, b), {passing}); });
      });
      if (epilogue.writes_raw) {
        nest.write({s});
      }
      nest.loop(used, {s}, [&] { nest.step(std::string(epilogue.names.text), reads, writes); });
      if (!epilogue.writes_raw) {
        nest.write({s});
      }
    });
  });
}

// Rows of A stay. No row is entered again.
void rows_nest(NestWriter& nest, const ProductNames& names, const Problem& problem,
               const StationaryBlocks& by, const EpilogueCost& epilogue) {
  const ProductShape of = Products(problem).scores;
  const NestLoop I("I", "queries", of.rows, by.rows);
  const NestLoop J = key_loop(problem, I, by.cols);
  const NestLoop K("K", "depth", of.depth, by.piece);
  const NestLoop P = I.pieces("P", by.piece);
  const bool holds_B = of.depth <= I.block;
  const NestTile a(names.left, I, of.depth);
  const NestTile b = holds_B ? NestTile(names.right, of.depth, J) : NestTile(names.right, K, J);
  const NestTile s = NestTile(names.result, holds_B ? P : I, J).of_words(problem.pairs());
  const NestTile row_reads(epilogue.names.row_reads, I, epilogue.row_reads);
  const NestTile row_writes(epilogue.names.row_writes, I, epilogue.row_writes);
  const NestWriter::Tiles reads(static_cast<std::size_t>(epilogue.reads), s);
  NestWriter::Tiles staying = columns_of(epilogue.names.columns, I);
  staying.insert(staying.begin(), a);
  const auto use_and_write = [&] {
    if (epilogue.writes_raw) {
      nest.write({s});
    }
    nest.step(std::string(epilogue.names.text), reads);
    if (!epilogue.writes_raw) {
      nest.write({s});
    }
  };
  nest.loop(I, [&] {
    nest.read({a});
    if (epilogue.row_reads > 0) {
      nest.read({row_reads});
    }
    index_nest(nest, Units::of_queries(problem, by.rows).sum());
    nest.loop(J, staying, [&] {
      if (holds_B) {
        nest.read({b});
        nest.loop(P, {b}, [&] {
          nest.step(s.text() + " = " + NestTile(names.left, P, of.depth).text() + " " + b.text());
          use_and_write();
        });
      } else {
        nest.loop(K, {s}, [&] { nest.step(sum_text(s, NestTile(names.left, I, K), b), {b}); });
        use_and_write();
      }
    });
    if (epilogue.row_writes > 0) {
      nest.write({row_writes});
    }
  });
}

}  // namespace

void scores_nest(NestWriter& nest, const ProductNames& names, const Problem& problem,
                 const StationaryBlocks& by, const EpilogueCost& epilogue) {
  const ProductShape of = Products(problem).scores;
  if (rows_stay(of, by)) {
    rows_nest(nest, names, problem, by, epilogue);
  } else {
    tiles_nest(nest, names, problem, by, epilogue);
  }
}

void scores_phase(Machine& machine, std::string_view name, const Plan& plan, const SlowMatrix& A,
                  const SlowMatrix& B, ScoreEpilogue& epilogue, SlowMatrix& result) {
  const Problem& problem = plan.problem;
  const auto by = StationaryBlocks::get(name, plan.blocks);
  require(A.cols() == B.cols() && result.rows() == A.rows() && result.cols() == B.rows(),
          "scores = A B^T: the matrices conform");
  const bool whole = rows_stay({A.rows(), B.rows(), A.cols()}, by);
  const Phase phase(machine, name);
  if (whole) {
    rows(machine, by, problem, A, B, epilogue, result);
  } else {
    tiles(machine, by, problem, A, B, epilogue, result);
  }
}

StationaryBlocks fit_score_rows(const Problem& problem, Index M, Objective objective,
                                const StationaryCost& cost) {
  const auto [n, m, d] = problem.shape;
  const auto blocks_of = [&, m = m, d = d](Index rows, Index wide) {
    return StationaryBlocks{.rows = rows, .cols = std::min(wide, m), .depth = d, .piece = wide};
  };
  const auto fits = [&](Index rows, Index wide) {
    return cost(blocks_of(rows, wide)).peak <= Words(M);
  };
  const Index slice = objective == Objective::time ? narrow_slice(M) : 1;
  const Index rows =
      even(n, largest(std::min(n, M), [&](Index tried) { return fits(tried, slice); }));
  return blocks_of(rows, largest(kWidestSlice, [&](Index tried) { return fits(rows, tried); }));
}

StationaryBlocks fit_live_scores(const Problem& problem, Index M, Objective objective,
                                 const StationaryCost& cost, const StationaryCost& all_live) {
  const StationaryBlocks rows = fit_score_rows(problem, M, objective, all_live);
  const StationaryBlocks tiles =
      fit_stationary(Products(problem).scores, M, objective, cost, all_live);
  const PhaseCost of_rows = cost(rows);
  const PhaseCost of_tiles = cost(tiles);
  return of_rows.peak <= Words(M) &&
                 of_rows.reads + of_rows.writes <= of_tiles.reads + of_tiles.writes
             ? rows
             : tiles;
}

SlowMatrix score_matrix(Workspace& workspace, std::string name, const Problem& problem) {
  const auto [n, m, d] = problem.shape;
  if (problem.mask.full()) {
    return workspace.matrix(std::move(name), n, m).holding(Holds::scores);
  }
  KeptWords live(m);
  for (Index i = 0; i < n; ++i) {
    live.add_row(problem.keys({i, i + 1}));
  }
  SlowMatrix words = workspace.matrix(name, 1, live.words());
  return partial(std::move(name), std::move(words), std::move(live)).holding(Holds::scores);
}

void plan_pairs(std::string_view name, Index rows, Index cols, Index columns, Index M,
                Blocks& blocks) {
  const auto fits = [&](Index r, Index c) {
    return Words(columns) * r + Words(2) * r * c <= Words(M);
  };
  const Index c = largest(std::min(cols, M), [&](Index tried) { return fits(1, tried); });
  const Index r = largest(std::min(rows, M), [&](Index tried) { return fits(tried, c); });
  blocks.add(std::string(name) + ".rows", r);
  blocks.add(std::string(name) + ".cols", c);
}

Words pairs_peak(std::string_view name, Index rows, Index cols, Index columns,
                 const Blocks& blocks) {
  const Words r = std::min(rows, blocks[std::string(name) + ".rows"]);
  const Words c = std::min(cols, blocks[std::string(name) + ".cols"]);
  return columns * r + 2 * r * c;
}

void plan_row_dots(const Problem& problem, Index M, Blocks& blocks) {
  plan_pairs("v", problem.shape.n, problem.shape.dv, 1, M, blocks);
}

PhaseCost row_dots_cost(const Problem& problem, const Blocks& blocks) {
  return {.path = "v",
          .reads = Words(2) * problem.shape.n * problem.shape.dv,
          .writes = problem.shape.n,
          .peak = pairs_peak("v", problem.shape.n, problem.shape.dv, 1, blocks),
          .flops = 0};
}

void row_dots_nest(NestWriter& nest, const Problem& problem, const Blocks& blocks) {
  const NestLoop I("I", "queries", problem.shape.n, blocks["v.rows"]);
  const NestLoop K("K", "columns", problem.shape.dv, blocks["v.cols"]);
  const NestTile v("v", I);
  nest.loop(I, [&] {
    nest.loop(K, {v}, [&] {
      nest.step("v_I += rowsum(dO_IK * O_IK)", {{"dO", I, K}, {"O", I, K}});
    });
    nest.write({v});
  });
}

void row_dots(Machine& machine, const Blocks& by, const SlowMatrix& dO, const SlowMatrix& O,
              SlowMatrix& v) {
  const Phase phase(machine, "v");
  for (const Range I : blocks(dO.rows(), by["v.rows"])) {
    Tile dots = machine.initialize("v", I.size());  // v_I (r)
    for (const Range K : blocks(dO.cols(), by["v.cols"])) {
      const Tile a = machine.read(dO.block(I, K));  // dO_IK (r, c)
      const Tile b = machine.read(O.block(I, K));   // O_IK (r, c)
      add_row_dots(a, b, dots);
    }
    machine.write(dots, v.row_block(I));
  }
}

Words rescales_by_tiles(const Problem& problem, const Blocks& blocks) {
  return problem.normalised() ? Words(problem.key_pieces(blocks["s.cols"]) - 1) : Words(0);
}

}  // namespace redblue
