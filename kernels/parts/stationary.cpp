#include "kernels/parts/stationary.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/fit.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace {

// C, or C^T where the factors have changed places.
struct Result {
  SlowMatrix& stored;
  bool transposed = false;
};

Factor mirrored(const Factor& A) {
  return A.transposed ? Factor(A.stored) : Factor(transposed(A.stored));
}
ProductShape mirrored(const ProductShape& of) {
  return {.rows = of.cols, .cols = of.rows, .depth = of.depth};
}
StationaryBlocks mirrored(const StationaryBlocks& by) {
  return {.rows = by.cols, .cols = by.rows, .depth = by.depth, .piece = by.piece};
}

Tile read_transposed(Machine& machine, const Factor& A, Range rows, Range cols) {
  return read(machine, mirrored(A), cols, rows);
}

void write(Machine& machine, const Tile& c, const Result& C, Range rows, Range cols) {
  if (C.transposed) {
    machine.write(c, transposed(C.stored.block(cols, rows)));
  } else {
    machine.write(c, C.stored.block(rows, cols));
  }
}

// Sums begin at 0; those of earlier blocks of the depth come back from the slow store.
Tile begin_sums(Machine& machine, const Result& C, Range rows, Range cols, bool first) {
  return first ? machine.initialize(C.stored.name(), rows.size(), cols.size())
               : read(machine, C.transposed ? Factor(transposed(C.stored)) : Factor(C.stored), rows,
                      cols);
}

// A slice of B is held, rows of A's pass in pieces.
void C_stays(Machine& machine, const StationaryBlocks& by, const Factor& A, const Factor& B,
             const Result& C) {
  for (const Range I : blocks(A.rows(), by.rows)) {
    for (const Range J : blocks(B.cols(), by.cols)) {
      Tile c = machine.initialize(C.stored.name(), I.size(), J.size());  // C_IJ (r, c)
      for (const Range K : blocks(A.cols(), by.depth)) {
        const Tile b = read(machine, B, K, J);  // B_KJ (s, c)
        for (const Range P : blocks(I.size(), by.piece)) {
          const Tile a = read(machine, A, part_of(I, P), K);  // A_PK (p, s)
          multiply_add(a, b, c.part(P));
        }
      }
      write(machine, c, C, I, J);
    }
  }
}

// A slice of B is held, C passes in pieces; or a slice of C, and B.
void A_stays(Machine& machine, const StationaryBlocks& by, const Factor& A, const Factor& B,
             const Result& C) {
  const bool holds_B = std::min(A.cols(), by.depth) <= std::min(A.rows(), by.rows);
  for (const Range I : blocks(A.rows(), by.rows)) {
    for (const Range K : blocks(A.cols(), by.depth)) {
      const bool first = K.begin == 0;
      const Tile a = holds_B ? read(machine, A, I, K)              // A_IK (r, s)
                             : read_transposed(machine, A, I, K);  // A_IK^T (s, r)
      for (const Range J : blocks(B.cols(), by.cols)) {
        if (holds_B) {
          const Tile b = read(machine, B, K, J);  // B_KJ (s, c)
          for (const Range P : blocks(I.size(), by.piece)) {
            const Range rows = part_of(I, P);
            Tile c = begin_sums(machine, C, rows, J, first);  // C_PJ (p, c)
            multiply_add(a.part(P), b, c);
            write(machine, c, C, rows, J);
          }
        } else {
          Tile c = begin_sums(machine, C, I, J, first);  // C_IJ (r, c)
          for (const Range P : blocks(K.size(), by.piece)) {
            const Tile b = read(machine, B, part_of(K, P), J);  // B_PJ (p, c)
            multiply_add(transposed(a.part(P)), b, c);
          }
          write(machine, c, C, I, J);
        }
      }
    }
  }
}

// C^T = B^T A^T has the same words, and the loops that are wanted.
bool is_mirrored(const ProductShape& of, const StationaryBlocks& by, Stays what) {
  return what == Stays::B || (what == Stays::C && is_wide(of, by));
}

Words words(const PhaseCost& cost) {
  return cost.reads + cost.writes;
}

}  // namespace

void StationaryBlocks::put(std::string_view name, Blocks& blocks) const {
  const std::string prefix = name.empty() ? "" : std::string(name) + ".";
  blocks.add(prefix + "rows", rows);
  blocks.add(prefix + "cols", cols);
  blocks.add(prefix + "depth", depth);
  blocks.add(prefix + "piece", piece);
}

StationaryBlocks StationaryBlocks::get(std::string_view name, const Blocks& blocks) {
  const std::string prefix = name.empty() ? "" : std::string(name) + ".";
  return {.rows = blocks[prefix + "rows"],
          .cols = blocks[prefix + "cols"],
          .depth = blocks[prefix + "depth"],
          .piece = blocks[prefix + "piece"]};
}

void stationary_product(Machine& machine, const StationaryBlocks& by, Stays what, const Factor& A,
                        const Factor& B, SlowMatrix& C) {
  require_conforming(A, B, C);
  const auto code = what == Stays::C ? C_stays : A_stays;
  if (is_mirrored({A.rows(), B.cols(), A.cols()}, by, what)) {
    code(machine, mirrored(by), mirrored(B), mirrored(A), {C, true});
  } else {
    code(machine, by, A, B, {C, false});
  }
}

PhaseCost stationary_cost(std::string path, const ProductShape& of, const StationaryBlocks& by,
                          Stays what) {
  if (what == Stays::B) {
    return stationary_cost(std::move(path), mirrored(of), mirrored(by), Stays::A);
  }
  const auto [rows, cols, depth] = of;
  const Words r = std::min(rows, by.rows);
  const Words c = std::min(cols, by.cols);
  const Words s = std::min(depth, by.depth);
  const Words all = Words(rows) * cols;
  PhaseCost cost{.path = std::move(path),
                 .reads = Words(depth) * cols * ceil_div(rows, by.rows),
                 .writes = all,
                 .peak = 0,
                 .flops = 2 * all * depth};
  if (what == Stays::C) {
    cost.reads += Words(rows) * depth * ceil_div(cols, by.cols);
    const Words p = std::min(Words(by.piece), std::max(r, c));
    cost.peak = r * c + s * std::min(r, c) + s * p;
  } else {
    const Index again = ceil_div(depth, by.depth) - 1;
    cost.reads += Words(rows) * depth + all * again;
    cost.writes += all * again;
    const Words p = std::min(Words(by.piece), std::max(r, s));
    cost.peak = r * s + c * std::min(r, s) + c * p;
  }
  return cost;
}

// What the code calls I and J are the columns and rows of C where it is mirrored: `outer` and
// `inner` here.
void stationary_nest(NestWriter& nest, const ProductNames& names, const ProductShape& of,
                     const StationaryBlocks& by, Stays what) {
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
    return mirror ? NestTile(names.right, depth, rows) : NestTile(names.left, rows, depth);
  };
  const auto second = [&](const NestLoop& depth, const NestLoop& cols) {
    return mirror ? NestTile(names.left, cols, depth) : NestTile(names.right, depth, cols);
  };
  const auto sum = [&](const NestTile& c, const NestTile& a, const NestTile& b) {
    return mirror ? sum_text(c, b, a) : sum_text(c, a, b);
  };

  if (what == Stays::C) {
    const NestLoop P = outer.pieces("P", by.piece);
    const NestTile c = result(outer, inner), a = first(P, K), b = second(K, inner);
    nest.loop(outer, [&] {
      nest.loop(inner, [&] {
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
  const NestTile c = holds_B ? result(P, inner) : result(outer, inner);
  const NestTile sums_before = c.but_once(K);
  nest.loop(outer, [&] {
    nest.loop(K, [&] {
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

namespace {

// The sizes that cut `extent` evenly, from `most` down; of large ones some in each thousand, for
// more would make plans slow and hardly better.
template <class Try>
void for_even_sizes(Index extent, Index most, const Try& tried) {
  constexpr Index kAll = 4096;
  for (Index size = std::min(extent, most); size > 0; size -= size <= kAll ? 1 : size / 512) {
    size = even(extent, size);
    tried(size);
  }
}

// The block that stays is `first` by `second` of its own rows and columns (or depth).
struct Sides {
  Index StationaryBlocks::*first;
  Index StationaryBlocks::*second;
  Index StationaryBlocks::*slice;
  Index ProductShape::*first_extent;
  Index ProductShape::*second_extent;
  Index ProductShape::*slice_extent;
};
Sides sides(Stays what) {
  using B = StationaryBlocks;
  using E = ProductShape;
  switch (what) {
    case Stays::A:
      return {&B::rows, &B::depth, &B::cols, &E::rows, &E::depth, &E::cols};
    case Stays::B:
      return {&B::cols, &B::depth, &B::rows, &E::cols, &E::depth, &E::rows};
    case Stays::C:
      break;
  }
  return {&B::rows, &B::cols, &B::depth, &E::rows, &E::cols, &E::depth};
}

}  // namespace

Index narrow_slice(Index M) {
  Index slice = 32;
  while (slice > 1 && Words(slice) * slice * 64 > Words(M)) {
    slice /= 2;
  }
  return slice;
}

StationaryBlocks fit_stationary(const ProductShape& of, Index M, Objective objective,
                                const StationaryCost& cost) {
  constexpr Index kWidePiece = 24;
  const auto fits = [&](const StationaryBlocks& by) { return cost(by).peak <= Words(M); };
  const Index slice = objective == Objective::time ? narrow_slice(M) : 1;

  std::optional<StationaryBlocks> best;
  Sides side = sides(Stays::C);
  Words least = 0;
  for (const Stays what : {Stays::C, Stays::A, Stays::B}) {
    const Sides tried = sides(what);
    for_even_sizes(of.*tried.second_extent, M, [&](Index second) {
      StationaryBlocks by{.piece = std::min(slice, kWidePiece)};
      by.*tried.second = second;
      by.*tried.slice = std::min(slice, of.*tried.slice_extent);
      if (!fits(by)) {
        return;
      }
      // Not more words than there are in M, and then fewer than so far.
      StationaryBlocks most = by;
      most.*tried.first = std::min(of.*tried.first_extent, std::max<Index>(M / second, 1));
      if (best && words(cost(most)) >= least) {
        return;
      }
      by.*tried.first = even(of.*tried.first_extent, largest(most.*tried.first, [&](Index size) {
                               most.*tried.first = size;
                               return fits(most);
                             }));
      // A tile made smaller may be held along its other side, and its pieces be larger.
      if (!fits(by)) {
        return;
      }
      if (const Words moved = words(cost(by)); !best || moved < least) {
        best = by;
        side = tried;
        least = moved;
      }
    });
  }
  if (!best) {
    return {};
  }
  // What is left of M goes to slices and pieces.
  for (Index wide = kWidestSlice; wide > 0; --wide) {
    StationaryBlocks by = *best;
    by.*side.slice = std::max(by.*side.slice, std::min(wide, of.*side.slice_extent));
    by.piece = std::max(by.piece, wide);
    if (const PhaseCost wider = cost(by); wider.peak <= Words(M) && words(wider) <= least) {
      return by;
    }
  }
  return *best;
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
                   const Factor& B, SlowMatrix& C) {
  const Phase phase(machine, name);
  const auto by = StationaryBlocks::get(name, blocks);
  stationary_product(machine, by, stays({A.rows(), B.cols(), A.cols()}, by), A, B, C);
}

}  // namespace redblue
