#include "kernels/parts/stationary.hpp"

#include <algorithm>
#include <utility>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/parts/levels.hpp"
#include "kernels/parts/live_pairs.hpp"
#include "kernels/parts/product_levels.hpp"
#include "kernels/parts/tile_levels.hpp"
#include "kernels/units.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace {

// C, or C^T if the factors are exchanged.
struct Result {
  SlowMatrix& stored;
  bool transposed = false;
};

Factor mirrored(const Factor& A) {
  return A.transposed ? Factor(A.stored) : Factor(transposed(A.stored));
}
ProductShape mirrored(const ProductShape& of) {
  ProductShape other = of;
  std::swap(other.rows, other.cols);
  return other;
}
StationaryBlocks mirrored(const StationaryBlocks& by) {
  StationaryBlocks other{.rows = by.cols, .cols = by.rows, .depth = by.depth, .piece = by.piece};
  for (const ProductBlocks& in : by.inner) {
    other.inner.push_back({.rows = in.cols, .cols = in.rows, .depth = in.depth});
  }
  return other;
}

Tile read_transposed(Machine& machine, const Factor& A, Range rows, Range cols, CutEvery cut) {
  return read(machine, mirrored(A), cols, rows, cut);
}

// Writes words of C, or sums if they are not finished (`whole` is false).
void write(Machine& machine, const Tile& c, const Result& C, Range rows, Range cols,
           bool whole = true) {
  const Block plain = C.transposed ? C.stored.block(cols, rows) : C.stored.block(rows, cols);
  const Block block = whole ? plain : plain.holding(Holds::sums);
  if (C.transposed) {
    machine.write(c, transposed(block));
  } else {
    machine.write(c, block);
  }
}

// The live words of A or of B. They are pairs of a row of A (or a column of B) and an index of the
// depth.
struct Live {
  Problem pairs;
  bool of_B = false;  // true if the factors are exchanged

  // Read the index of a mask that is data: the part of the depth that some rows meet, or the rows
  // that some of the depth meets.
  [[nodiscard]] Tile index_of_rows(Machine& machine, Range rows) const {
    return read_index(machine, pairs.mask, rows);
  }
  [[nodiscard]] Tile index_of_depth(Machine& machine, Range depth) const {
    return pairs.mask.full() ? Tile() : read_index(machine, pairs.mask.transposed(), depth);
  }
  // The pairs of the block of A and B that makes these rows and columns of C from some of the
  // depth.
  [[nodiscard]] LivePairs of(Range rows, Range cols, Range depth) const {
    return {pairs, of_B ? cols : rows, depth};
  }
};
Problem pairs_of(const ProductShape& of, const Mask& live) {
  Problem pairs(of.rows, of.depth, 1);
  pairs.mask = live;
  return pairs;
}

// A factor without the rows of its matrix that meet no live word of the other factor. These rows
// belong to the depth.
class LiveFactor {
 public:
  LiveFactor(const Factor& all, const Problem& pairs, Range others)
      : transposed_(all.transposed), rows_(all.stored, pairs.mask, pairs.keys(others)) {}
  operator Factor() const { return transposed_ ? Factor(transposed(*rows_)) : Factor(*rows_); }

 private:
  bool transposed_;
  LiveRows<const SlowMatrix> rows_;
};
// Both factors, for some rows and columns of C.
struct LiveFactors {
  LiveFactors(const Live& live, const Factor& A, const Factor& B, Range rows, Range cols)
      : other(live.of_B ? A : B, live.pairs, live.of_B ? cols : rows),
        a(live.of_B ? Factor(other) : A),
        b(live.of_B ? B : Factor(other)) {}

  LiveFactor other;
  Factor a, b;
};

// Sums begin at 0. Sums of earlier blocks of the depth are read back from slow memory, and are
// written there again until the last block.
Tile begin_sums(Machine& machine, const Result& C, Range rows, Range cols, const LivePairs& live,
                CutEvery cut) {
  const Ranges before = live.met_before();
  if (before.empty()) {
    return machine.initialize(C.stored.name(), rows.size(), cols.size(), Holds::sums, cut);
  }
  const LiveRows sums(std::as_const(C.stored), live.problem().mask, before);
  return C.transposed ? machine.read(transposed(sums->block(cols, rows).holding(Holds::sums)), cut)
                      : machine.read(sums->block(rows, cols).holding(Holds::sums), cut);
}

void write_sums(Machine& machine, const Tile& c, const Result& C, Range rows, Range cols,
                const LivePairs& live) {
  const Ranges after = live.met_after();
  const auto write_some = [&](const Ranges& some, bool whole) {
    if (!some.empty()) {
      const LiveRows sums(C.stored, live.problem().mask, some);
      write(machine, c, {*sums, C.transposed}, rows, cols, whole);
    }
  };
  write_some(after, false);
  write_some(without(live.met(), after), true);
}

// The part of C that is made.
struct Extent {
  Range rows, cols;
};

// A slice of B is held, and rows of the slice of A pass in pieces.
void C_stays(Machine& machine, const StationaryBlocks& by, const Factor& A, const Factor& B,
             const Result& C, const Extent& of_C, const Live& live) {
  const CutEvery cut_cols = cut_of(by.inner, &ProductBlocks::cols);
  const CutEvery cut_depth = cut_of(by.inner, &ProductBlocks::depth);
  const Pieces columns({of_C.cols}, by.cols);
  for (const Range I : Pieces({of_C.rows}, by.rows)) {
    for (const Range J : columns) {
      const Tile index = live.index_of_rows(machine, live.of_B ? J : I);
      const LiveFactors of(live, A, B, I, J);
      Tile c = machine.initialize(C.stored.name(), I.size(), J.size(), Holds::sums,
                                  cut_cols);  // C_IJ (r, c)
      std::vector<bool> begun(static_cast<std::size_t>(ceil_div(I.size(), by.piece)));
      for (const Range K : blocks(A.cols(), by.depth)) {
        if (live.of(I, J, K).none()) {
          continue;
        }
        const Tile b = read(machine, of.b, K, J, cut_cols);  // B_KJ (s, c)
        for (const Range piece : blocks(I.size(), by.piece)) {
          const Range P = part_of(I, piece);
          if (!live.of(P, J, K).none()) {
            const Tile a = read(machine, of.a, P, K, cut_depth);  // A_PK (p, s)
            if (by.inner.empty()) {
              multiply_add(a, b, c.part(piece));
            } else {
              auto has_begun = begun[static_cast<std::size_t>(piece.begin / by.piece)];
              add_product(machine, by.inner, Stays::C, {a, P.begin, K.begin}, {b, K.begin, J.begin},
                          {c, I.begin, J.begin}, P, J, K, !has_begun);
              has_begun = true;
            }
          }
        }
      }
      write(machine, c, C, I, J);
    }
  }
}

// Whether a slice of B is held while C passes in pieces. Else a slice of C is held while B passes
// in pieces.
bool holds_slice_of_B(const ProductShape& of, const StationaryBlocks& by) {
  return std::min(of.depth, by.depth) <= std::min(of.rows, by.rows);
}
void A_stays(Machine& machine, const StationaryBlocks& by, const Factor& A, const Factor& B,
             const Result& C, const Extent& of_C, const Live& live) {
  const bool holds_B = holds_slice_of_B({of_C.rows.size(), of_C.cols.size(), A.cols()}, by);
  const CutEvery cut_cols = cut_of(by.inner, &ProductBlocks::cols);
  const Range all = of_C.cols;
  const Pieces columns({all}, by.cols);
  for (const Range I : Pieces({of_C.rows}, by.rows)) {
    const Tile of_rows = live.of_B ? Tile() : live.index_of_rows(machine, I);
    const LiveFactors of(live, A, B, I, all);
    for (const Range K : blocks(A.cols(), by.depth)) {
      if (live.of(I, all, K).none()) {
        continue;
      }
      const Tile of_depth = live.of_B ? live.index_of_depth(machine, K) : Tile();
      const Tile a =
          holds_B ? read(machine, of.a, I, K, cut_of(by.inner, &ProductBlocks::depth))  // (r, s)
                  : read_transposed(machine, of.a, I, K,
                                    cut_of(by.inner, &ProductBlocks::rows));  // (s, r)
      const Placed<const Tile> a_IK{a, I.begin, K.begin, !holds_B};
      for (const Range J : columns) {
        const LivePairs of_IJ = live.of(I, J, K);
        if (of_IJ.none()) {
          continue;
        }
        if (holds_B) {
          const Tile b = read(machine, of.b, K, J, cut_cols);  // B_KJ (s, c)
          for (const Range P : blocks(I.size(), by.piece)) {
            const Range rows = part_of(I, P);
            const LivePairs of_PJ = live.of(rows, J, K);
            if (!of_PJ.none()) {
              Tile c = begin_sums(machine, C, rows, J, of_PJ, cut_cols);  // C_PJ (p, c)
              if (by.inner.empty()) {
                multiply_add(a.part(P), b, c);
              } else {
                add_product(machine, by.inner, Stays::A, a_IK, {b, K.begin, J.begin},
                            {c, rows.begin, J.begin}, rows, J, K, of_PJ.met_before().empty());
              }
              write_sums(machine, c, C, rows, J, of_PJ);
            }
          }
        } else {
          Tile c = begin_sums(machine, C, I, J, of_IJ, cut_cols);  // C_IJ (r, c)
          bool begins = of_IJ.met_before().empty();
          for (const Range piece : blocks(K.size(), by.piece)) {
            const Range P = part_of(K, piece);
            if (!live.of(I, J, P).none()) {
              const Tile b = read(machine, of.b, P, J, cut_cols);  // B_PJ (p, c)
              if (by.inner.empty()) {
                multiply_add(transposed(a.part(piece)), b, c);
              } else {
                add_product(machine, by.inner, Stays::A, a_IK, {b, P.begin, J.begin},
                            {c, I.begin, J.begin}, I, J, P, begins);
                begins = false;
              }
            }
          }
          write_sums(machine, c, C, I, J, of_IJ);
        }
      }
    }
  }
}

// Whether the product is made as C^T = B^T A^T. It moves the same words, in the loops that
// C_stays() or A_stays() has.
bool is_mirrored(const ProductShape& of, const StationaryBlocks& by, Stays what) {
  return what == Stays::B || (what == Stays::C && is_wide(of, by));
}

// Makes some rows of C.
void make_rows(Machine& machine, const StationaryBlocks& by, Stays what, const Factor& A,
               const Factor& B, SlowMatrix& C, Range rows, const Mask& live) {
  require_conforming(A, B, C);
  const auto code = what == Stays::C ? C_stays : A_stays;
  const Range cols{0, B.cols()};
  const Problem pairs = pairs_of({A.rows(), B.cols(), A.cols()}, live);
  if (is_mirrored({rows.size(), B.cols(), A.cols()}, by, what)) {
    code(machine, mirrored(by), mirrored(B), mirrored(A), {C, true}, {cols, rows}, {pairs, true});
  } else {
    code(machine, by, A, B, {C, false}, {rows, cols}, {pairs, false});
  }
}

}  // namespace

void StationaryBlocks::put(std::string_view name, Blocks& blocks) const {
  const std::string prefix = name.empty() ? "" : std::string(name) + ".";
  blocks.add(prefix + "rows", rows);
  blocks.add(prefix + "cols", cols);
  blocks.add(prefix + "depth", depth);
  blocks.add(prefix + "piece", piece);
  for (std::size_t level = 0; level < inner.size(); ++level) {
    blocks.add(level_block(level, prefix + "rows"), inner[level].rows);
    blocks.add(level_block(level, prefix + "cols"), inner[level].cols);
    blocks.add(level_block(level, prefix + "depth"), inner[level].depth);
  }
}

StationaryBlocks StationaryBlocks::get(std::string_view name, const Blocks& blocks) {
  const std::string prefix = name.empty() ? "" : std::string(name) + ".";
  StationaryBlocks by{.rows = blocks[prefix + "rows"],
                      .cols = blocks[prefix + "cols"],
                      .depth = blocks[prefix + "depth"],
                      .piece = blocks[prefix + "piece"]};
  for (std::size_t level = 0; blocks.contains(level_block(level, prefix + "rows")); ++level) {
    by.inner.push_back({.rows = blocks[level_block(level, prefix + "rows")],
                        .cols = blocks[level_block(level, prefix + "cols")],
                        .depth = blocks[level_block(level, prefix + "depth")]});
  }
  return by;
}

void stationary_product(Machine& machine, const StationaryBlocks& by, Stays what, const Factor& A,
                        const Factor& B, SlowMatrix& C, const Mask& live) {
  make_rows(machine, by, what, A, B, C, {0, C.rows()}, live);
}

namespace {

// The words moved of each matrix. `sums` are the unfinished words of C, if C streams: they are
// written, and read back.
struct Moved {
  Words pairs;  // number of live words of A
  Words left, right, sums, whole;

  [[nodiscard]] Words written() const { return sums + whole; }
};
Moved moved(const ProductShape& of, const StationaryBlocks& by, Stays what, const Mask& live) {
  const auto [rows, cols, depth, of_sum, of_result] = of;
  const Words pairs = all_pairs(live, rows, depth);
  const Words left = what == Stays::A ? pairs : pairs * ceil_div(cols, by.cols);
  const Words right =
      Words(cols) * (what == Stays::B ? depth : met_by_blocks(live, rows, by.rows, depth));
  const Words whole = Words(rows) * cols * of_result;
  if (what == Stays::C) {
    return {pairs, left, right, 0, whole};
  }
  const Words met = met_by_blocks(live.full() ? live : live.transposed(), depth, by.depth, rows);
  const Words again = met.overflowed() ? met : Words(met.value() - rows);
  return {pairs, left, right, again * cols * of_sum, whole};
}

// The groups that read the index of the mask, and the number of times: rows of a block of C or of
// A, or blocks of the depth of B.
struct Asking {
  Units::Sum groups;
  Index passes;
};
Asking asking(const ProductShape& of, const StationaryBlocks& by, Stays what, const Mask& live) {
  const Index rows = of.rows, cols = of.cols, depth = of.depth;
  const Units units = what == Stays::B ? Units::of_columns(live, depth, rows, by.depth)
                                       : Units::of_rows(live, rows, depth, by.rows);
  return {units.sum(), what == Stays::A ? 1 : ceil_div(cols, by.cols)};
}

}  // namespace

PhaseCost stationary_cost(std::string path, const ProductShape& of, const StationaryBlocks& by,
                          Stays what, const Mask& live) {
  const Moved words = moved(of, by, what, live);
  PhaseCost cost{.path = std::move(path),
                 .reads = words.left + words.right + words.sums,
                 .writes = words.written(),
                 .peak = 0,
                 .flops = 2 * words.pairs * of.cols};
  const bool mirror = what == Stays::B;
  const auto [rows, cols, depth, of_sum, of_result] = mirror ? mirrored(of) : of;
  const StationaryBlocks blocks = mirror ? mirrored(by) : by;
  const Words r = std::min(rows, blocks.rows);
  const Words c = std::min(cols, blocks.cols);
  const Words s = std::min(depth, blocks.depth);
  if (what == Stays::C) {
    const Words p = std::min(Words(by.piece), std::max(r, c));
    cost.peak = r * c * of_sum + s * std::min(r, c) + s * p;
  } else {
    const Words p = std::min(Words(by.piece), std::max(r, s));
    cost.peak = r * s + (s <= r ? c * s + c * p * of_sum : c * r * of_sum + c * p);
  }
  const Asking index = asking(of, by, what, live);
  cost.peak += index.groups.index_live;
  return with_index(std::move(cost), index.groups, index.passes);
}

namespace {

// Follows the steps of C_stays() or A_stays().
PhaseCost live_level_cost(std::string path, const ProductShape& of, const StationaryBlocks& by,
                          Stays what, std::size_t level, const Live& live) {
  LevelTally tally(by.inner, level);
  const Pieces columns({{0, of.cols}}, by.cols);
  if (what == Stays::C) {
    for (const Range I : blocks(of.rows, by.rows)) {
      for (const Range piece : blocks(I.size(), by.piece)) {
        const Range P = part_of(I, piece);
        for (const Range J : columns) {
          bool begins = true;
          for (const Range K : blocks(of.depth, by.depth)) {
            if (!live.of(P, J, K).none()) {
              tally.product({P.size(), J.size(), K.size()}, what, begins);
              begins = false;
            }
          }
        }
      }
    }
    return tally.cost(std::move(path));
  }
  const bool holds_B = holds_slice_of_B(of, by);
  for (const Range I : blocks(of.rows, by.rows)) {
    for (const Range K : blocks(of.depth, by.depth)) {
      for (const Range J : columns) {
        bool begins = live.of(I, J, K).met_before().empty();
        for (const Range piece : blocks(holds_B ? I.size() : K.size(), by.piece)) {
          const Range rows = holds_B ? part_of(I, piece) : I;
          const Range depth = holds_B ? K : part_of(K, piece);
          const LivePairs pairs = live.of(rows, J, depth);
          if (pairs.none()) {
            continue;
          }
          tally.product({rows.size(), J.size(), depth.size()}, what,
                        holds_B ? pairs.met_before().empty() : begins);
          begins = false;
        }
      }
    }
  }
  return tally.cost(std::move(path));
}

}  // namespace

PhaseCost stationary_level_cost(std::string path, const ProductShape& of,
                                const StationaryBlocks& by, Stays what, std::size_t level,
                                const Mask& live) {
  const bool mirror = is_mirrored(of, by, what);
  if (!live.full()) {
    const Live pairs{pairs_of(of, live), mirror};
    const Stays which = what == Stays::B ? Stays::A : what;
    return mirror
               ? live_level_cost(std::move(path), mirrored(of), mirrored(by), which, level, pairs)
               : live_level_cost(std::move(path), of, by, which, level, pairs);
  }
  if (mirror) {
    return stationary_level_cost(std::move(path), mirrored(of), mirrored(by),
                                 what == Stays::B ? Stays::A : what, level);
  }
  ProductBlocks pieces{of.rows, of.cols, of.depth};
  (what == Stays::C || holds_slice_of_B(of, by) ? pieces.rows : pieces.depth) = by.piece;
  ProductLevels blocks(by.inner.begin() + static_cast<std::ptrdiff_t>(level), by.inner.end());
  blocks.push_back(pieces);
  blocks.push_back({by.rows, by.cols, by.depth});
  return product_level_cost(std::move(path), of, blocks, what);
}

// If the product is mirrored, the I and J of the code are the columns and rows of C: `outer` and
// `inner` here.
void stationary_nest(NestWriter& nest, const ProductNames& names, const ProductShape& of,
                     const StationaryBlocks& by, Stays what, const Mask& live) {
  const Moved words = moved(of, by, what, live);
  const Asking index = asking(of, by, what, live);
  const auto of_live = [&](const NestTile& tile, Words all) {
    return live.full() ? tile : tile.of_words(all);
  };
  const bool mirror = is_mirrored(of, by, what);
  const NestLoop I("I", "rows", of.rows, by.rows);
  const NestLoop J("J", "columns", of.cols, by.cols);
  const NestLoop K("K", "depth", of.depth, by.depth);
  const NestLoop& outer = mirror ? J : I;
  const NestLoop& inner = mirror ? I : J;
  const auto result = [&](const NestLoop& rows, const NestLoop& cols) {
    return mirror ? NestTile(names.result, cols, rows) : NestTile(names.result, rows, cols);
  };
  const auto first = [&](const NestLoop& rows, const NestLoop& depth) {
    return mirror ? of_live({names.right, depth, rows}, words.right)
                  : of_live({names.left, rows, depth}, words.left);
  };
  const auto second = [&](const NestLoop& depth, const NestLoop& cols) {
    return mirror ? of_live({names.left, cols, depth}, words.left)
                  : of_live({names.right, depth, cols}, words.right);
  };
  const auto sum = [&](const NestTile& c, const NestTile& a, const NestTile& b) {
    return mirror ? sum_text(c, b, a) : sum_text(c, a, b);
  };

  if (what == Stays::C) {
    const NestLoop P = outer.pieces("P", by.piece);
    const NestTile c = result(outer, inner), a = first(P, K), b = second(K, inner);
    nest.loop(outer, [&] {
      nest.loop(inner, [&] {
        index_nest(nest, index.groups, index.passes);
        nest.loop(K, {c}, [&] {
          nest.read({b});
          nest.loop(P, {b}, [&] { nest.step(sum(result(P, inner), a, b), {a}); });
        });
        nest.write({c});
      });
    });
    return;
  }
  const NestTile a = first(outer, K);
  const bool holds_B = K.block <= outer.block;
  const NestLoop P = (holds_B ? outer : K).pieces("P", by.piece);
  const NestTile b = holds_B ? second(K, inner) : second(P, inner);
  const NestTile sums = holds_B ? result(P, inner) : result(outer, inner);
  const NestTile c = of_live(sums, words.written());
  const NestTile sums_before = of_live(sums.but_once(K), words.sums);
  nest.loop(outer, [&] {
    if (!mirror) {
      index_nest(nest, index.groups, index.passes);
    }
    nest.loop(K, [&] {
      if (mirror) {
        index_nest(nest, index.groups, index.passes);
      }
      nest.read({a});
      nest.loop(inner, {a}, [&] {
        if (holds_B) {
          nest.read({b});
          nest.loop(P, {b}, [&] { nest.step(sum(c, first(P, K), b), {sums_before}, {c}); });
        } else {
          if (K.trips > 1) {
            nest.read({sums_before});
          }
          nest.loop(P, {c}, [&] { nest.step(sum(c, first(outer, P), b), {b}); });
          nest.write({c});
        }
      });
    });
  });
}

bool is_wide(const ProductShape& of, const StationaryBlocks& by) {
  return std::min(of.cols, by.cols) > std::min(of.rows, by.rows);
}

Stays stays(const ProductShape& of, const StationaryBlocks& by) {
  if (by.depth < of.depth) {
    return Stays::C;
  }
  return stationary_cost("", of, by, Stays::A).reads <= stationary_cost("", of, by, Stays::B).reads
             ? Stays::A
             : Stays::B;
}

StationaryCost all_live_cost(StationaryCost of_all, const Mask& live) {
  if (live.full()) {
    return nullptr;
  }
  return [of_all = std::move(of_all), live](const StationaryBlocks& by) {
    PhaseCost cost = of_all(by);
    cost.peak += live.index().live();
    return cost;
  };
}

void plan_product(std::string_view name, const ProductShape& of, Index M, Objective objective,
                  Blocks& blocks) {
  fit_stationary(of, M, objective, [&](const StationaryBlocks& by) {
    return stationary_cost("", of, by, stays(of, by));
  }).put(name, blocks);
}

PhaseCost product_phase_cost(std::string_view name, const ProductShape& of, const Blocks& blocks) {
  const auto by = StationaryBlocks::get(name, blocks);
  return stationary_cost(std::string(name), of, by, stays(of, by));
}

void product_phase_nest(NestWriter& nest, const ProductNames& names, const ProductShape& of,
                        const Blocks& blocks) {
  const auto by = StationaryBlocks::get(names.result, blocks);
  nest.phase(names.result, [&] { stationary_nest(nest, names, of, by, stays(of, by)); });
}

void product_phase(Machine& machine, std::string_view name, const Blocks& blocks, const Factor& A,
                   const Factor& B, SlowMatrix& C, const Mask& live) {
  const Phase phase(machine, name);
  const auto by = StationaryBlocks::get(name, blocks);
  stationary_product(machine, by, stays({A.rows(), B.cols(), A.cols()}, by), A, B, C, live);
}

namespace {

Index rows_of_unit(const StationaryBlocks& by, Index rows) {
  return by.rows < rows ? by.rows : kPanel;
}
Range rows_of_units(const StationaryBlocks& by, Index rows, Range units) {
  const Index unit = rows_of_unit(by, rows);
  return {std::min(rows, units.begin * unit), std::min(rows, units.end * unit)};
}

}  // namespace

Index product_units(std::string_view name, const ProductShape& of, const Blocks& blocks) {
  const auto by = StationaryBlocks::get(name, blocks);
  return ceil_div(of.rows, rows_of_unit(by, of.rows));
}

PhaseCost product_part_cost(std::string_view name, const ProductShape& of, const Blocks& blocks,
                            Range units) {
  const auto by = StationaryBlocks::get(name, blocks);
  ProductShape part = of;
  part.rows = rows_of_units(by, of.rows, units).size();
  return stationary_cost(std::string(name), part, by, stays(of, by));
}

void product_part(Machine& machine, std::string_view name, const Blocks& blocks, const Factor& A,
                  const Factor& B, SlowMatrix& C, Range units) {
  const Phase phase(machine, name);
  const auto by = StationaryBlocks::get(name, blocks);
  const Stays what = stays({A.rows(), B.cols(), A.cols()}, by);
  make_rows(machine, by, what, A, B, C, rows_of_units(by, C.rows(), units), {});
}

}  // namespace redblue
