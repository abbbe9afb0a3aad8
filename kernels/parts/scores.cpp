#include "kernels/parts/scores.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/fit.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace {

// The most columns, up to a piece, whose multiples straddle no panel: a power of two, or whole
// panels.
Index column_piece(Index piece) {
  return piece < kPanel ? static_cast<Index>(std::bit_floor(static_cast<std::uint64_t>(piece)))
                        : piece / kPanel * kPanel;
}

// A tile of scores stays, and a slice of A or of B with it, along its shorter side, while the other
// passes in pieces; it is used in pieces of rows, each with its rows' words.
void tiles(Machine& machine, const StationaryBlocks& by, const SlowMatrix& A, const SlowMatrix& B,
           ScoreUse& use, SlowMatrix& result) {
  const bool wide = is_wide({A.rows(), B.rows(), A.cols()}, by);
  for (const Range I : blocks(A.rows(), by.rows)) {
    for (const Range J : blocks(B.rows(), by.cols)) {
      Tile s = machine.initialize(result.name(), I.size(), J.size());
      for (const Range K : blocks(A.cols(), by.depth)) {
        if (wide) {
          const Tile a = machine.read(A.block(I, K));
          for (const Range P : blocks(J.size(), column_piece(by.piece))) {
            const Tile b = machine.read(transposed(B.block(part_of(J, P), K)));
            multiply_add(a, b, s.part({0, I.size()}, P));
          }
        } else {
          const Tile b = machine.read(transposed(B.block(J, K)));
          for (const Range P : blocks(I.size(), by.piece)) {
            const Tile a = machine.read(A.block(part_of(I, P), K));
            multiply_add(a, b, s.part(P));
          }
        }
      }
      if (use.writes_raw) {
        machine.write(s, result.block(I, J));
      }
      for (const Range P : blocks(I.size(), by.piece)) {
        const Range rows = part_of(I, P);
        ScoreUse::OfRows of = use.enter(machine, rows, J, nullptr);
        use.use(machine, s, P, rows, J, of, {0, P.size()});
        use.leave(machine, of, rows, J);
      }
      if (!use.writes_raw) {
        machine.write(s, result.block(I, J));
      }
    }
  }
}

// A block of rows stays, as a or as a^T: with rows of B beside it, and scores in pieces; or with
// scores, and B in pieces; whichever is smaller.
void rows(Machine& machine, const StationaryBlocks& by, const SlowMatrix& A, const SlowMatrix& B,
          ScoreUse& use, SlowMatrix& result) {
  const bool holds_B = A.cols() <= std::min(A.rows(), by.rows);
  const Range columns{0, B.rows()};
  const auto used = [&](Tile& s, Range I, Range J, ScoreUse::OfRows& of, Index first_row) {
    if (use.writes_raw) {
      machine.write(s, result.block(I, J));
    }
    for (const Range P : blocks(I.size(), by.piece)) {
      const Range at = part_of(I, P);
      use.use(machine, s, P, at, J, of, {at.begin - first_row, at.end - first_row});
    }
    if (!use.writes_raw) {
      machine.write(s, result.block(I, J));
    }
  };
  for (const Range I : blocks(A.rows(), by.rows)) {
    const Tile a =
        holds_B ? machine.read(A.row_block(I)) : machine.read(transposed(A.row_block(I)));
    const StayingRows staying{
        .tile = a, .transposed = !holds_B, .room = std::min(by.cols, B.rows())};
    ScoreUse::OfRows of = use.enter(machine, I, columns, &staying);
    for (const Range J : blocks(B.rows(), by.cols)) {
      if (holds_B) {
        const Tile b = machine.read(transposed(B.row_block(J)));
        for (const Range P : blocks(I.size(), by.piece)) {
          Tile s = machine.initialize(result.name(), P.size(), J.size());
          multiply(a.part(P), b, s);
          used(s, part_of(I, P), J, of, I.begin);
        }
      } else {
        Tile s = machine.initialize(result.name(), I.size(), J.size());
        for (const Range P : blocks(A.cols(), by.piece)) {
          const Tile b = machine.read(transposed(B.block(J, P)));
          multiply_add(transposed(a.part(P)), b, s);
        }
        used(s, I, J, of, I.begin);
      }
    }
    use.leave(machine, of, I, columns);
  }
}

}  // namespace

void scores(Machine& machine, const StationaryBlocks& by, const SlowMatrix& A, const SlowMatrix& B,
            ScoreUse& use, SlowMatrix& result) {
  require(A.cols() == B.cols() && result.rows() == A.rows() && result.cols() == B.rows(),
          "scores = A B^T: the matrices conform");
  (rows_stay({A.rows(), B.rows(), A.cols()}, by) ? rows : tiles)(machine, by, A, B, use, result);
}

PhaseCost scores_cost(std::string path, const Extents& of, const StationaryBlocks& by,
                      const UseCost& use) {
  const auto [n, m, d] = of;
  const bool whole = rows_stay(of, by);
  const Words r = std::min(n, by.rows);
  const Words c = std::min(m, by.cols);
  const Words s = std::min(d, by.depth);
  const Words p = std::min(r, Words(by.piece));
  const Words all = Words(n) * m;
  const Index entered = whole ? 1 : ceil_div(m, by.cols);
  const Words used = p * use.scratch + p * c * use.tiles;
  PhaseCost cost{
      .path = std::move(path),
      .reads =
          Words(n) * d * entered + Words(m) * d * ceil_div(n, by.rows) + all * use.reads +
          Words(n) * (Words(use.row_reads) * entered + Words(use.row_reads_again) * (entered - 1)),
      .writes = all + Words(n) * (Words(use.row_writes) * entered +
                                  Words(use.row_writes_before) * (entered - 1)),
      .peak = 0,
      .flops = 2 * all * d};
  if (!whole) {
    const Words passing = is_wide(of, by) ? std::min(c, Words(column_piece(by.piece))) : p;
    cost.peak = r * c + std::max(s * std::min(r, c) + passing * s, p * use.columns + used);
  } else if (s <= r) {
    cost.peak = r * d + r * use.columns + d * c + p * c + used;
  } else {
    const Words slice = std::min(s, Words(by.piece)) * c;
    cost.peak = r * d + r * use.columns + r * c + std::max(slice, used);
  }
  return cost;
}

void scores_phase(Machine& machine, std::string_view name, const Blocks& blocks,
                  const SlowMatrix& A, const SlowMatrix& B, ScoreUse& use, SlowMatrix& result) {
  const Phase phase(machine, name);
  scores(machine, StationaryBlocks::get(name, blocks), A, B, use, result);
}

void put_pairs(std::string_view name, Index rows, Index cols, Index columns, Index M,
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

void put_row_dots(const Problem& problem, Index M, Blocks& blocks) {
  put_pairs("v", problem.shape.n, problem.shape.d, 1, M, blocks);
}

PhaseCost row_dots_cost(const Problem& problem, const Blocks& blocks) {
  return {.path = "v",
          .reads = Words(2) * problem.shape.n * problem.shape.d,
          .writes = problem.shape.n,
          .peak = pairs_peak("v", problem.shape.n, problem.shape.d, 1, blocks),
          .flops = 0};
}

void row_dots(Machine& machine, const Blocks& by, const SlowMatrix& dO, const SlowMatrix& O,
              SlowMatrix& v) {
  const Phase phase(machine, "v");
  for (const Range I : blocks(dO.rows(), by["v.rows"])) {
    Tile dots = machine.initialize("v", I.size());
    for (const Range K : blocks(dO.cols(), by["v.cols"])) {
      const Tile a = machine.read(dO.block(I, K));
      const Tile b = machine.read(O.block(I, K));
      add_row_dots(a, b, dots);
    }
    machine.write(dots, v.row_block(I));
  }
}

ScoreUse::OfRows Exponentiated::enter(Machine& machine, Range I, Range, const StayingRows*) {
  return {machine.read(L_.row_block(I)), {}};
}

void Exponentiated::use(Machine&, Tile& s, Range part, Range, Range, OfRows& of, Range within) {
  exponentiate(s.part(part), of.first.part(within), s.part(part));
}

ScoreUse::OfRows Measured::enter(Machine& machine, Range I, Range J, const StayingRows*) {
  J.begin == 0 ? softmax_.emplace(machine, I.size()) : softmax_.emplace(machine, L_, sums_, I);
  return {};
}

void Measured::use(Machine& machine, Tile& scores, Range part, Range I, Range, OfRows&,
                   Range within) {
  Tile rescale = machine.initialize("rescale", I.size());
  const View s = scores.part(part);
  softmax_->raise(s, within, rescale);
  softmax_->add(s, within);
}

void Measured::leave(Machine& machine, OfRows&, Range I, Range J) {
  if (J.end < columns_) {
    softmax_->write(machine, L_, sums_, I);
  } else {
    machine.write(softmax_->log_sum_exp(), L_.row_block(I));
  }
  softmax_.reset();
}

Words rescales_by_tiles(const Problem& problem, const Blocks& blocks) {
  return ceil_div(problem.shape.m, blocks["s.cols"]) - 1;
}

}  // namespace redblue
