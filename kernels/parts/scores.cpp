#include "kernels/parts/scores.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <utility>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/fit.hpp"
#include "kernels/parts/live_pairs.hpp"
#include "kernels/parts/product_levels.hpp"
#include "kernels/parts/rows.hpp"
#include "memsim/machine.hpp"
#include "memsim/partial.hpp"
#include "memsim/workspace.hpp"

namespace redblue {
namespace {

// The largest piece of columns with multiples that straddle no panel: a power of two, or whole
// panels. In a tile that is cut, it is whole cuts.
Index column_piece(const StationaryBlocks& by) {
  if (!by.inner.empty()) {
    const Index cut = by.inner.front().cols;
    return std::max(by.piece / cut, Index{1}) * cut;
  }
  return by.piece < kPanel
             ? static_cast<Index>(std::bit_floor(static_cast<std::uint64_t>(by.piece)))
             : by.piece / kPanel * kPanel;
}
// Ranges of columns that rows meet begin at a multiple of this.
Index column_step(const StationaryBlocks& by) {
  return by.inner.empty() ? kPanel : by.inner.front().cols;
}

void scaled(Machine& machine, const StationaryBlocks& by, Tile& s, const ScoreEpilogue& epilogue) {
  if (epilogue.scale) {
    pass_over(
        machine, by.inner, &ProductBlocks::cols, 0, s.rows(), s.cols(),
        [&]() -> std::vector<Near> { return {of_pairs(s, Use::changes)}; },
        [&](Range rows, Range columns) { scale(s.part(rows, columns), *epilogue.scale); });
  }
}

// A tile of scores stays. A slice of A or of B is held along its shorter side, while the other
// passes in pieces. The epilogue takes the tile in pieces of rows, each with the words of its rows.
void tiles(Machine& machine, const StationaryBlocks& by, const Problem& problem,
           const SlowMatrix& all_of_A, const SlowMatrix& all_of_B, ScoreEpilogue& epilogue,
           SlowMatrix& result) {
  const CutEvery cut_cols = cut_of(by.inner, &ProductBlocks::cols);
  const CutEvery cut_depth = cut_of(by.inner, &ProductBlocks::depth);
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
      Tile s = machine.initialize(result.name(), I.size(), J.size(), Holds::scores,
                                  cut_cols);  // s_IJ (r, c)
      const auto add = [&](const Tile& a, const Tile& b, Range rows, Range columns, Range K) {
        if (by.inner.empty()) {
          multiply_add(a, b, s.part(rows, columns));
          return;
        }
        const Range of_A = part_of(I, rows), of_B = part_of(J, columns);
        add_product(machine, by.inner, Stays::C, {a, of_A.begin, K.begin}, {b, K.begin, of_B.begin},
                    {s, I.begin, J.begin}, of_A, of_B, K, K.begin == 0);
      };
      for (const Range K : blocks(A->cols(), by.depth)) {
        if (wide) {
          const Tile a = machine.read(A->block(I, K), cut_depth);  // A_IK (r, s)
          for (const Range P : blocks(J.size(), column_piece(by))) {
            if (meets(rows_of_s, P)) {
              const Tile b =
                  machine.read(transposed(B->block(part_of(J, P), K)), cut_cols);  // B_PK^T (s, p)
              add(a, b, rows_of_s, P, K);
            }
          }
        } else {
          const Tile b = machine.read(transposed(B->block(J, K)), cut_cols);  // B_JK^T (s, c)
          for (const Range P : blocks(I.size(), by.piece)) {
            if (meets(P, columns_of_s)) {
              const Tile a = machine.read(A->block(part_of(I, P), K), cut_depth);  // A_PK (p, s)
              add(a, b, P, columns_of_s, K);
            }
          }
        }
      }
      scaled(machine, by, s, epilogue);
      if (epilogue.writes_raw) {
        machine.write(s, result.block(I, J));
      }
      for (const Range P : blocks(I.size(), by.piece)) {
        const LivePairs of_P(problem, part_of(I, P), J);
        if (!of_P.none()) {
          ScoreEpilogue::RowTiles of = epilogue.enter(machine, of_P, nullptr);
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

// A block of rows stays, as a or as a^T. The smaller variant is used: with rows of B held and
// scores in pieces, or with scores held and B in pieces.
void rows(Machine& machine, const StationaryBlocks& by, const Problem& problem, const SlowMatrix& A,
          const SlowMatrix& B, ScoreEpilogue& epilogue, SlowMatrix& result) {
  const bool holds_B = A.cols() <= std::min(A.rows(), by.rows);
  const CutEvery cut_cols = cut_of(by.inner, &ProductBlocks::cols);
  const auto used = [&](Tile& s, Range I, Range J, ScoreEpilogue::RowTiles& of, Index first_row) {
    scaled(machine, by, s, epilogue);
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
    const Tile a =
        holds_B ? machine.read(A.row_block(I), cut_of(by.inner, &ProductBlocks::depth))  // (r, d)
                : machine.read(transposed(A.row_block(I)),
                               cut_of(by.inner, &ProductBlocks::rows));  // (d, r)
    const Placed<const Tile> a_I{a, I.begin, 0, !holds_B};
    const StayingRows staying{
        .tile = a, .transposed = !holds_B, .room = std::min(by.cols, B.rows())};
    const LivePairs of_rows(problem, I, {0, B.rows()});
    ScoreEpilogue::RowTiles of = epilogue.enter(machine, of_rows, &staying);
    Tile index = read_index(machine, problem.mask, I);
    const Pieces keys(problem.keys(I), by.cols);
    for (Index which = 0; which < keys.size(); ++which) {
      const Range J = keys[which];
      if (holds_B) {
        const Tile b = machine.read(transposed(B.row_block(J)), cut_cols);  // B_J^T (d, c)
        for (const Range P : blocks(I.size(), by.piece)) {
          const auto live = LivePairs::near(problem, part_of(I, P), J, column_step(by));
          if (live.none()) {
            continue;
          }
          const Range met = live.keys();
          Tile s = machine.initialize(result.name(), P.size(), met.size(), Holds::scores,
                                      cut_cols);  // s_PJ (p, c)
          if (by.inner.empty()) {
            multiply(a.part(P), b.part({0, b.rows()}, {met.begin - J.begin, met.end - J.begin}), s);
          } else {
            add_product(machine, by.inner, Stays::C, a_I, {b, 0, J.begin},
                        {s, live.queries().begin, met.begin}, live.queries(), met, {0, A.cols()},
                        true);
          }
          used(s, part_of(I, P), live.keys(), of, I.begin);
        }
      } else {
        Tile s = machine.initialize(result.name(), I.size(), J.size(), Holds::scores,
                                    cut_cols);  // s_IJ (r, c)
        for (const Range P : blocks(A.cols(), by.piece)) {
          const Tile b = machine.read(transposed(B.block(J, P)), cut_cols);  // B_JP^T (p, c)
          if (by.inner.empty()) {
            multiply_add(transposed(a.part(P)), b, s);
          } else {
            add_product(machine, by.inner, Stays::C, a_I, {b, P.begin, J.begin},
                        {s, I.begin, J.begin}, I, J, P, P.begin == 0);
          }
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

// The rows entered in total, the rows of B read in total, and the rows entered again.
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
  const Index of_sum = problem.sum_words;
  const Words columns = Words(epilogue.columns) * of_sum;
  const auto used = [&](Words rows, Words keys) {
    return rows * epilogue.scratch * of_sum + rows * keys * epilogue.tiles;
  };
  const Units::Sum of_rows = Units::of_queries(problem, by.rows).sum();
  // The peak of a block of rows that stays. Keys pass in blocks of the ranges that it meets.
  const auto rows_peak = [&, d = d](const Units::Unit& unit) {
    const Words rows = unit.rows, keys = std::min(unit.longest, by.cols);
    const Words piece = std::min(rows, Words(by.piece));
    const Words stays = rows * d + rows * columns;
    // A second operand of the rows passes before, in pieces of as many rows, or columns, as a block
    // has keys.
    const Words before = epilogue.row_operands == Words(0) ? Words(0)
                         : s <= r                          ? std::min(rows, c) * d
                                                           : rows * std::min(Words(d), c);
    if (s <= r) {
      return stays + std::max(before, d * keys + piece * keys + used(piece, keys));
    }
    const Words slice = std::min(s, Words(by.piece)) * keys;
    return stays + std::max(before, rows * keys + std::max(slice, used(piece, keys)));
  };
  PhaseCost cost{
      .path = std::move(path),
      .reads = (met.rows + met.columns) * d + all * epilogue.reads +
               met.rows * epilogue.row_operands +
               (met.rows * epilogue.row_reads + met.again * epilogue.row_reads_again) * of_sum,
      .writes =
          all + (met.rows * epilogue.row_writes + met.again * epilogue.row_writes_before) * of_sum,
      .peak = 0,
      .flops = 2 * all * d};
  if (!whole) {
    const Words passing = is_wide(of, by) ? std::min(c, Words(column_piece(by))) : p;
    cost.peak = r * c + std::max(s * std::min(r, c) + passing * s, p * columns + used(p, c));
  } else {
    cost.peak = of_rows.peak(rows_peak);
  }
  cost.peak += of_rows.index_live;
  return with_index(std::move(cost), of_rows);
}

namespace {

// Adds up the cost of an inner level, step by step as tiles() or rows() do.
class ScoreTally {
 public:
  ScoreTally(const Problem& problem, const StationaryBlocks& by, const EpilogueCost& epilogue,
             std::size_t level)
      : problem_(problem),
        by_(by),
        epilogue_(epilogue),
        masked_(!problem.mask.full()),
        tally_(by.inner, level) {}

  PhaseCost tiles(std::string path) {
    const auto [n, m, d] = problem_.shape;
    const bool wide = is_wide(Products(problem_).scores, by_);
    for (const auto& [I, rows] : alike(n, by_.rows, masked_)) {
      for (const auto& [J, columns] : alike(m, by_.cols, masked_)) {
        if (LivePairs(problem_, I, J).none()) {
          continue;
        }
        const Words tiles = Words(rows) * columns;
        for (const auto& [P, pieces] : wide ? alike(J.size(), column_piece(by_), masked_)
                                            : alike(I.size(), by_.piece, masked_)) {
          const Range queries = wide ? I : part_of(I, P), keys = wide ? part_of(J, P) : J;
          if (!LivePairs(problem_, queries, keys).none()) {
            product(queries, keys, by_.depth, tiles * pieces);
          }
        }
        scaled(I, J, tiles);
        for (const auto& [P, pieces] : alike(I.size(), by_.piece, masked_)) {
          if (const LivePairs live(problem_, part_of(I, P), J); !live.none()) {
            pass(P, J, epilogue_.near, tiles * pieces);
            left(live, tiles * pieces);
          }
        }
      }
    }
    return tally_.cost(std::move(path));
  }

  PhaseCost rows(std::string path) {
    const auto [n, m, d] = problem_.shape;
    for (const auto& [I, rows] : alike(n, by_.rows, masked_)) {
      for (const auto& [J, columns] : keys_of(I)) {
        const Words tiles = Words(rows) * columns;
        if (d > std::min(n, by_.rows)) {
          product(I, J, by_.piece, tiles);
          scaled(I, J, tiles);
        }
        for (const auto& [P, pieces] : alike(I.size(), by_.piece, masked_)) {
          Range met = J;
          if (d <= std::min(n, by_.rows)) {
            const auto live = LivePairs::near(problem_, part_of(I, P), J, column_step(by_));
            if (live.none()) {
              continue;
            }
            met = live.keys();
            product(P, met, d, tiles * pieces);
            scaled(P, met, tiles * pieces);
          }
          pass(P, met, epilogue_.near, tiles * pieces);
        }
      }
      left(LivePairs(problem_, I, {0, m}), rows);
    }
    return tally_.cost(std::move(path));
  }

 private:
  [[nodiscard]] std::vector<Alike> keys_of(Range I) const {
    if (!masked_) {
      return alike(problem_.shape.m, by_.cols, false);
    }
    std::vector<Alike> keys;
    for (const Range J : Pieces(problem_.keys(I), by_.cols)) {
      keys.push_back({J, 1});
    }
    return keys;
  }
  void product(Range queries, Range keys, Index slice, const Words& times) {
    for (const auto& [K, slices] : alike(problem_.shape.d, slice, false)) {
      tally_.product({queries.size(), keys.size(), K.size()}, Stays::C, K.begin == 0,
                     times * slices);
    }
  }
  void pass(Range queries, Range keys, const PassCost& cost, const Words& times) {
    if (cost.reads > 0) {
      tally_.pass(queries.size(), keys.size(), &ProductBlocks::cols, cost, times);
    }
  }
  void scaled(Range queries, Range keys, const Words& times) {
    pass(queries, keys, {.reads = epilogue_.scaled, .writes = epilogue_.scaled}, times);
  }
  // Adds the cost of leaving rows, if these keys are the last for some of them.
  void left(const LivePairs& live, const Words& times) {
    if (!without(live.met(), live.met_after()).empty()) {
      tally_.rows(live.queries().size(), epilogue_.leaving, times);
    }
  }

  const Problem& problem_;
  const StationaryBlocks& by_;
  const EpilogueCost& epilogue_;
  bool masked_;
  LevelTally tally_;
};

}  // namespace

PhaseCost scores_level_cost(std::string path, const Problem& problem, const StationaryBlocks& by,
                            const EpilogueCost& epilogue, std::size_t level) {
  ScoreTally tally(problem, by, epilogue, level);
  return rows_stay(Products(problem).scores, by) ? tally.rows(std::move(path))
                                                 : tally.tiles(std::move(path));
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
  const NestLoop P = wide ? J.pieces("P", column_piece(by)) : I.pieces("P", by.piece);
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
  reads.push_back(of_rows(epilogue.names.row_reads, epilogue.row_reads + epilogue.row_operands));
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

// Rows of A stay. Each row is entered once.
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
  const NestTile row_reads(epilogue.names.row_reads, I, epilogue.row_reads + epilogue.row_operands);
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
    if (epilogue.row_reads + epilogue.row_operands > 0) {
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
  epilogue.work_in(by.inner);
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

void plan_pairs(std::string_view name, Index rows, Index cols, Index columns, const Memory& memory,
                Blocks& blocks) {
  const auto sizes = [&](Index M, const ProductBlocks& inside) -> ProductBlocks {
    const auto fits = [&](Index r, Index c) {
      return Words(columns) * r + Words(2) * r * c <= Words(M);
    };
    const auto most = [](Index extent, Index step, const auto& fit) {
      return std::max(largest(extent, fit) / step, Index{1}) * step;
    };
    const Index c =
        most(std::min(cols, M), inside.cols, [&](Index tried) { return fits(inside.rows, tried); });
    const Index r =
        most(std::min(rows, M), inside.rows, [&](Index tried) { return fits(tried, c); });
    return {r, c, 1};
  };
  const std::string prefix = std::string(name) + ".";
  const auto [r, c, none] = sizes(memory.M, square(1));
  blocks.add(prefix + "rows", r);
  blocks.add(prefix + "cols", c);
  ProductBlocks inside = square(1);
  for (std::size_t level = 0; level < memory.inner.size(); ++level) {
    inside = sizes(memory.inner[level], inside);
    blocks.add(level_block(level, prefix + "rows"), 2 * inside.rows);  // a pass takes half of them
    blocks.add(level_block(level, prefix + "cols"), inside.cols);
  }
}

ProductLevels levels_of_pairs(std::string_view name, const Blocks& blocks) {
  const std::string prefix = std::string(name) + ".";
  ProductLevels levels;
  for (std::size_t level = 0; blocks.contains(level_block(level, prefix + "rows")); ++level) {
    levels.push_back({.rows = blocks[level_block(level, prefix + "rows")],
                      .cols = blocks[level_block(level, prefix + "cols")],
                      .depth = 1});
  }
  return levels;
}

Words pairs_peak(std::string_view name, Index rows, Index cols, Index columns,
                 const Blocks& blocks) {
  const Words r = std::min(rows, blocks[std::string(name) + ".rows"]);
  const Words c = std::min(cols, blocks[std::string(name) + ".cols"]);
  return columns * r + 2 * r * c;
}

void plan_row_dots(const Problem& problem, const Memory& memory, Blocks& blocks) {
  plan_pairs("v", problem.shape.n, problem.shape.dv, problem.sum_words, memory, blocks);
}

PhaseCost row_dots_cost(const Problem& problem, const Blocks& blocks) {
  return {.path = "v",
          .reads = Words(2) * problem.shape.n * problem.shape.dv,
          .writes = Words(problem.shape.n) * problem.sum_words,
          .peak = pairs_peak("v", problem.shape.n, problem.shape.dv, problem.sum_words, blocks),
          .flops = 0};
}

PhaseCost row_dots_level_cost(const Problem& problem, const Blocks& blocks, std::size_t level) {
  LevelTally tally(levels_of_pairs("v", blocks), level);
  for (const auto& [I, rows] : alike(problem.shape.n, blocks["v.rows"], false)) {
    for (const auto& [K, columns] : alike(problem.shape.dv, blocks["v.cols"], false)) {
      tally.pass(I.size(), K.size(), &ProductBlocks::cols,
                 {.beside = 1, .row_words = 1, .reads = 2, .row_reads = 1, .row_writes = 1},
                 Words(rows) * columns);
    }
  }
  return tally.cost("v");
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
  const ProductLevels inner = levels_of_pairs("v", by);
  const CutEvery cut = cut_of(inner, &ProductBlocks::cols);
  for (const Range I : blocks(dO.rows(), by["v.rows"])) {
    Tile dots = machine.initialize("v", I.size());  // v_I (r)
    for (const Range K : blocks(dO.cols(), by["v.cols"])) {
      const Tile a = machine.read(dO.block(I, K), cut);  // dO_IK (r, c)
      const Tile b = machine.read(O.block(I, K), cut);   // O_IK (r, c)
      pass_over(
          machine, inner, &ProductBlocks::cols, 1, I.size(), K.size(),
          [&]() -> std::vector<Near> {
            return {of_pairs(a, Use::reads), of_pairs(b, Use::reads),
                    near_rows(dots, Use::changes)};
          },
          [&](Range rows, Range columns) {
            add_row_dots(a.part(rows, columns), b.part(rows, columns), dots.part(rows));
          });
    }
    machine.write(dots, v.row_block(I));
  }
}

Words rescales_by_tiles(const Problem& problem, const Blocks& blocks) {
  if (!problem.normalised()) {
    return 0;
  }
  // An upper limit, because the blocks of the machine also cut the blocks of the innermost level.
  const StationaryBlocks by = StationaryBlocks::get("s", blocks);
  const Index near = by.inner.empty() ? 0 : problem.key_pieces(by.inner.front().cols);
  return Words(problem.key_pieces(by.cols) - 1) + near;
}

}  // namespace redblue
