#include "kernels/parts/rows.hpp"

#include <algorithm>
#include <utility>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/parts/activations.hpp"
#include "memsim/machine.hpp"

namespace redblue {

Blocks RowPlan::blocks() const {
  Blocks blocks{{"Br", rows}, {"Bc", keys}};
  if (problem.inputs == Inputs::weighted) {
    blocks.add("Bw", weights);
  }
  if (prefetch > 1) {
    blocks.add(std::string(kPrefetch), prefetch);
  }
  if (kept > 0) {
    blocks.add(std::string(kKept), kept);
  }
  for (std::size_t level = 0; level < inner.size(); ++level) {
    blocks.add(level_block(level, "Br"), inner[level].rows);
    blocks.add(level_block(level, "Bc"), inner[level].keys);
    if (problem.inputs == Inputs::weighted) {
      blocks.add(level_block(level, "Bw"), inner[level].weights);
    }
    if (inner[level].apart) {
      blocks.add(level_block(level, kApart), 1);
    }
  }
  return blocks;
}

// If the prefetch takes more than all keys, they are all in fast memory, and the last block is as
// short as the keys make it. Under a mask the prefetched ranges may be short.
Words RowPlan::key_words(Index longest, Index all) const {
  const Words ahead = Words(prefetch) * std::min(keys, longest);
  return std::min(ahead, Words(all)) * problem.key_words();
}

namespace {

// Computes product_J^T = W_J^T A^T. Columns J of W (or rows, if it is transposed) meet all rows of
// A.
void multiply_rows(Machine& machine, const RowPlan& by, const Tile& a_t, Range K, const Tile& w,
                   bool transposes, Range J, Tile& product_t, bool adds = false) {
  const auto near_w = transposes ? Near{w, Axis::passing, Axis::whole, Use::reads, J.begin}
                                 : Near{w, Axis::whole, Axis::passing, Use::reads, 0, J.begin};
  LevelWalk(machine, by.inner, &LevelBlocks::rows, &LevelBlocks::weights,
            {{{a_t, Axis::whole, Axis::staying, Use::reads},
              near_w,
              {product_t, Axis::passing, Axis::staying, Use::makes}}})
      .each({0, a_t.cols()}, J, [&](Range S, Range P) {
        const Range of_w{P.begin - J.begin, P.end - J.begin};
        const ConstView a = a_t.part({0, a_t.rows()}, S);
        const View c = product_t.part(P, S);
        if (transposes) {
          multiply(w.part(of_w), a, c);
        } else if (adds) {
          multiply_add(transposed(w.part(K, of_w)), a, c);
        } else {
          multiply(transposed(w.part(K, of_w)), a, c);
        }
      });
}

}  // namespace

// (A W)^T = W^T A^T, by columns of W.
Tile rows_times(Machine& machine, const RowPlan& by, std::string_view name, const SlowMatrix& A,
                Range I, const SlowMatrix& W) {
  const Phase phase(machine, name);
  const Range all{0, W.rows()};
  const Tile a_t = machine.read(transposed(A.row_block(I)), by.cut_rows());
  Tile product_t = machine.initialize(name, W.cols(), I.size(), Holds::operands, by.cut_rows());
  for (const Range J : blocks(W.cols(), by.weights)) {
    const Tile w = machine.read(W.block(all, J), by.cut_weights());
    multiply_rows(machine, by, a_t, all, w, false, J, product_t);
  }
  return product_t;
}

Tile rows_times_transposed(Machine& machine, const RowPlan& by, std::string_view name,
                           const SlowMatrix& A, Range I, const SlowMatrix& W) {
  const Phase phase(machine, name);
  const Tile a_t = machine.read(transposed(A.row_block(I)), by.cut_rows());
  return times_transposed(machine, by, name, a_t, W);
}

// (A W^T)^T = W A^T, by rows of W.
Tile times_transposed(Machine& machine, const RowPlan& by, std::string_view name, const Tile& a_t,
                      const SlowMatrix& W) {
  Tile product_t = machine.initialize(name, W.rows(), a_t.cols(), Holds::operands, by.cut_rows());
  for (const Range J : blocks(W.rows(), by.weights)) {
    const Tile w = machine.read(W.row_block(J));
    multiply_rows(machine, by, a_t, {}, w, true, J, product_t);
  }
  return product_t;
}

Tile scaled_rows(Machine& machine, const RowPlan& by, const SlowMatrix& Q, Range I) {
  Tile q_t = machine.read(transposed(Q.row_block(I)), by.cut_rows());
  each_rows(machine, by.inner, &LevelBlocks::rows, I.size(),
            {{q_t, Axis::whole, Axis::staying, Use::changes}}, [&](Range S) {
              scale(q_t.part({0, q_t.rows()}, S), by.problem.scale());
            });
  return q_t;
}

void add_row_dots(Machine& machine, const RowPlan& by, const Tile& a_t, const Tile& b_t, Tile& v) {
  const auto panels_of = [](const Tile& tile) {
    return Near(tile, Axis::whole, Axis::staying, Use::reads).at_a_time(kByPanels);
  };
  each_rows(machine, by.inner, &LevelBlocks::rows, v.rows(),
            {panels_of(a_t), panels_of(b_t), {v, Axis::staying, Axis::whole, Use::makes}},
            [&](Range S) {
              const Range all{0, a_t.rows()};
              add_row_dots(transposed(a_t.part(all, S)), transposed(b_t.part(all, S)), v.part(S));
            });
}

Tile query_rows(Machine& machine, const RowPlan& by, const Operands& io, Range I) {
  if (by.problem.inputs == Inputs::weighted) {
    return rows_times(machine, by, "S", io.in("A1"), I, io.in("X"));
  }
  const Phase phase(machine, "Q");
  return scaled_rows(machine, by, io.in("Q"), I);
}

PhaseCost query_rows_cost(const RowPlan& by, const Units::Sum& of) {
  if (by.problem.inputs == Inputs::weighted) {
    return rows_times_cost("S", by, of);
  }
  return {.path = "Q",
          .reads = Words(of.rows) * by.problem.shape.d,
          .writes = 0,
          .peak = Words(of.largest) * by.problem.shape.d,
          .flops = 0};
}

RowGradients row_gradients(Machine& machine, const RowPlan& by, const Operands& io, Range I) {
  const Phase phase(machine, "G");
  const Tile do_t = machine.read(transposed(io.in("dO").row_block(I)), by.cut_rows());
  Tile v = row_values(machine, by.problem, "v", I.size());
  if (by.problem.normalised()) {
    const Tile o_t = machine.read(transposed(io.in("O").row_block(I)), by.cut_rows());
    add_row_dots(machine, by, do_t, o_t, v);
  }
  return {times_transposed(machine, by, "G", do_t, io.in("Y")), std::move(v)};
}

// The peak: dO, v and O, then dO, v, G and a block of Y.
PhaseCost row_gradients_cost(const RowPlan& by, const Units::Sum& of) {
  PhaseCost cost = rows_times_cost("G", by, of);
  cost.reads += Words(of.rows) * by.problem.shape.d * by.problem.row_columns();
  cost.peak += of.largest * by.problem.row_words();
  return cost;
}

KeyStream::KeyStream(Machine& machine, const RowPlan& by, const Operands& io, Range I,
                     const Ranges& keys)
    : index_(by.units().read_index(machine, I)),
      blocks_(keys, by.keys),
      a2_(machine, io.in(input_names(by.problem).keys).row_blocks(blocks_), Orientation::straight,
          by.prefetch) {
  if (by.problem.sharing == Sharing::none) {
    own_a3_.emplace(machine, io.in(input_names(by.problem).values).row_blocks(blocks_),
                    Orientation::straight, by.prefetch);
  }
}

void KeyStream::advance() {
  while (a2_.begin_read() && (!own_a3_ || own_a3_->begin_read())) {
  }
  a2_.await();
  if (own_a3_) {
    own_a3_->await();
  }
}

void KeyStream::drop() {
  if (own_a3_) {
    own_a3_->drop();
  }
  a2_.drop();
}

PhaseCost rows_times_cost(std::string path, const RowPlan& by, const Units::Sum& of) {
  const Index d = by.problem.shape.d;
  const Words nd = Words(of.rows) * d;
  return {.path = std::move(path),
          .reads = nd + Words(d) * d * of.units,
          .writes = 0,
          .peak = of.units == 0 ? Words(0)
                                : Words(2) * of.largest * d + Words(std::min(by.weights, d)) * d,
          .flops = 2 * nd * d};
}

namespace {

// The second part of rows_times_nest(). The rows of the left factor are in fast memory.
void columns_nest(NestWriter& nest, const RowPlan& by, const NestLoop& I,
                  const RowProductNames& names, const NestWriter::Tiles& stays) {
  const Index d = by.problem.shape.d;
  const NestLoop J("J", "columns", d, by.weights);
  const NestTile left(names.left, I, d);
  const NestTile right =
      names.transposed ? NestTile(names.right, J, d) : NestTile(names.right, d, J);
  NestWriter::Tiles all = stays;
  all.insert(all.end(), {left, {names.result, I, d}});
  nest.loop(J, all, [&] {
    nest.step(NestTile(names.result, I, J).text() + " = " + left.text() + " " + right.text() +
                  (names.transposed ? "^T" : ""),
              {right});
  });
}

}  // namespace

void rows_times_nest(NestWriter& nest, const RowPlan& by, const NestLoop& I,
                     const RowProductNames& names, const NestWriter::Tiles& stays) {
  nest.phase(names.result, [&] {
    nest.read({{names.left, I, by.problem.shape.d}});
    columns_nest(nest, by, I, names, stays);
  });
}

void query_rows_nest(NestWriter& nest, const RowPlan& by, const NestLoop& I) {
  if (by.problem.inputs == Inputs::weighted) {
    rows_times_nest(nest, by, I, {"S", "A1", "X"}, {});
  } else {
    nest.phase("Q", [&] { nest.step("Q_I = c Q_I", {{"Q", I, by.problem.shape.d}}); });
  }
}

void row_gradients_nest(NestWriter& nest, const RowPlan& by, const NestLoop& I,
                        const NestWriter::Tiles& stays) {
  const Index d = by.problem.shape.d;
  NestWriter::Tiles all = stays;
  all.emplace_back("v", I, by.problem.row_columns());
  nest.phase("G", [&] {
    nest.read({{"dO", I, d}});
    if (by.problem.normalised()) {
      nest.step("v_I = rowsum(dO_I * O_I)", {{"O", I, d}});
    }
    columns_nest(nest, by, I, {"G", "dO", "Y", true}, all);
  });
}

NestLoop key_loop(const Problem& problem, const NestLoop& I, Index keys) {
  if (problem.mask.full()) {
    return {"J", "keys", problem.shape.m, keys};
  }
  const Units::Sum of = Units::of_queries(problem, I.block).sum();
  return I.met("J", "live keys", of.met.value(), of.longest, keys);
}

NestWriter::Tiles key_tiles(const Problem& problem, const NestExtent& keys) {
  const InputNames names = input_names(problem);
  NestWriter::Tiles tiles = {{names.keys, keys, problem.shape.d}};
  if (problem.sharing == Sharing::none) {
    tiles.emplace_back(names.values, keys, problem.shape.dv);
  }
  return tiles;
}

std::string scores_text(const Problem& problem) {
  const InputNames names = input_names(problem);
  return std::string(names.rows) + "_I " + std::string(names.keys) + "_J^T";
}

std::string values_text(const Problem& problem) {
  return std::string(input_names(problem).values) + "_J";
}

std::string weights_text(const Problem& problem) {
  return problem.normalised() ? "e = exp(" + scores_text(problem) + " - max_I); Z_I += e "
                              : "f = phi(" + scores_text(problem) + "); Z_I += f ";
}

// S^T = X^T A1^T. A1_I^T is in two tiles: the kept columns, and the rest.
RowScores row_scores(Machine& machine, const RowPlan& by, const Operands& io, Range I) {
  const SlowMatrix& A1 = io.in("A1");
  const SlowMatrix& X = io.in("X");
  if (by.kept == 0) {
    return {rows_times(machine, by, "S", A1, I, X), {}};
  }
  const Phase phase(machine, "S");
  const Range kept{0, by.kept};
  const Range rest{by.kept, X.rows()};
  Tile kept_t = machine.read(transposed(A1.block(I, kept)), by.cut_rows());
  Tile rest_t;
  if (rest.size() > 0) {
    rest_t = machine.read(transposed(A1.block(I, rest)), by.cut_rows());
  }
  Tile s_t = machine.initialize("S", X.cols(), I.size(), Holds::operands, by.cut_rows());
  for (const Range J : blocks(X.cols(), by.weights)) {
    const Tile x = machine.read(X.block({0, X.rows()}, J), by.cut_weights());
    multiply_rows(machine, by, kept_t, kept, x, false, J, s_t);
    if (rest.size() > 0) {
      multiply_rows(machine, by, rest_t, rest, x, false, J, s_t, true);
    }
  }
  return {std::move(s_t), std::move(kept_t)};
}

namespace {

// Under a mask the queries of smaller row blocks may have more keys in common. This tries the least
// number of row blocks, and up to kMore more, and returns the rows with the fewest words.
Index fewest_words_under_mask(const Problem& problem, Index most_rows,
                              const CostOfBlocks& cost_of) {
  constexpr Index kMore = 64;
  const Index n = problem.shape.n;
  Index best = most_rows;
  Words fewest;
  for (Index T = ceil_div(n, most_rows), k = 0; k <= kMore && T + k <= n; ++k) {
    const Index r = ceil_div(n, T + k);
    const PhaseCost all = total(cost_of(problem, RowPlan(problem, r, 1, 1).blocks()));
    if (const Words words = all.reads + all.writes; k == 0 || words < fewest) {
      best = r;
      fewest = words;
    }
  }
  return best;
}

}  // namespace

Blocks fewest_words(const Problem& problem, Index M, const CostOfBlocks& cost_of) {
  const auto [n, m, d] = problem.shape;
  const auto fits = [&](Index r, Index c, Index w) {
    return total(cost_of(problem, RowPlan(problem, r, c, w).blocks())).peak <= Words(M);
  };
  Index r = even(n, largest(std::min(n, M), [&](Index tried) { return fits(tried, 1, 1); }));
  if (!problem.mask.full()) {
    r = fewest_words_under_mask(problem, r, cost_of);
  }
  const Index c = even(m, largest(std::min(m, M), [&](Index tried) { return fits(r, tried, 1); }));
  const Index w = even(d, largest(std::min(d, M), [&](Index tried) { return fits(r, c, tried); }));
  return RowPlan(problem, r, c, w).blocks();
}

Index busy_keys(const Problem& problem) {
  constexpr Index kEnough = 24;
  constexpr Index kShare = 16;
  constexpr Index kLarge = 4096;  // keeps products of sizes from overflow
  const Index d = std::min(problem.shape.d, kLarge);
  const Index words = 2 * d + 2 * 3 * kPanel;  // of a key, a value and their strips
  return std::clamp<Index>(std::min(problem.shape.n, kLarge) * d / (kShare * words), 1,
                           std::min(problem.shape.m, kEnough));
}

// The kept columns are a whole number of the pieces in which g and the rest of A1 move. If fewer
// than half of the columns of A1_I are kept, they are one piece. A store may lay out its matrices
// in such pieces.
Blocks fewest_words_keeping(const Problem& problem, Index M, const CostOfBlocks& cost_of) {
  const Blocks plain = fewest_words(problem, M, cost_of);
  const Index n = problem.shape.n;
  const bool many = ceil_div(n, plain["Br"]) > kFewRowBlocks;
  if (many && (problem.mask.full() || !problem.mask.irregular())) {
    return plain;
  }
  const Index d = problem.shape.d;
  const auto least_weights = [&](Index k) { return 2 * k < d ? std::max(k, Index{1}) : 1; };
  const auto cost = [&](Index r, Index c, Index w, Index k) {
    return total(cost_of(problem, RowPlan(problem, r, c, w, 1, k).blocks()));
  };
  const auto fits = [&](Index r, Index c, Index w, Index k) {
    return cost(r, c, w, k).peak <= Words(M);
  };
  const auto words = [&](Index r, Index k) {
    const PhaseCost all = cost(r, 1, 1, k);
    return all.reads + all.writes;
  };
  const Index keys = many ? 1 : busy_keys(problem);
  const auto most_kept = [&](Index r) {
    Index k = largest(d, [&](Index tried) { return fits(r, keys, 1, tried); });
    while (k > 0 && !fits(r, keys, least_weights(k), k)) {
      --k;
    }
    return k;
  };
  const auto [r, k] =
      fewest_words_beside(n, plain["Br"], d, most_kept, words, sizes_tried(problem));
  if (k == 0) {
    return plain;
  }
  RowPlan best(problem, r, 1, least_weights(k), 1, k);
  best.keys = even(problem.shape.m, largest(std::min(problem.shape.m, M), [&](Index tried) {
                     return fits(best.rows, tried, best.weights, best.kept);
                   }));
  if (2 * best.kept >= d) {
    best.weights = even(best.kept, largest(std::min(best.kept, M), [&](Index tried) {
                          return fits(best.rows, best.keys, tried, best.kept);
                        }));
    while (best.kept < d && best.kept % best.weights > 0) {
      --best.weights;
    }
  }
  return best.blocks();
}

Blocks fewest_words_ahead(const Problem& problem, Index M, Index prefetch,
                          const CostOfBlocks& cost_of) {
  constexpr Index kShare = 16;
  const auto [n, m, d] = problem.shape;
  const Index width = std::max(d, problem.shape.dv);
  const Index c = std::clamp<Index>(M / kShare / width / prefetch, 1, m);
  const auto fits = [&](Index r, Index w) {
    return total(cost_of(problem, RowPlan(problem, r, c, w, prefetch).blocks())).peak <= Words(M);
  };
  const Index r = even(n, largest(std::min(n, M), [&](Index tried) { return fits(tried, 1); }));
  const Index w = even(d, largest(std::min(d, M), [&](Index tried) { return fits(r, tried); }));
  return RowPlan(problem, r, c, w, prefetch).blocks();
}

std::vector<InnerBlock> row_inner_blocks() {
  return {{.name = "Br", .cuts = true}, {.name = "Bc"}, {.name = "Bw", .cuts = true}};
}

namespace {

// The windows that both kinds of kernel share: some keys together, other operands a row block.
Window common_window(const Signature& operand, const RowPlan& by) {
  const bool keys = operand.rows == &Shape::m;
  return window_of(operand, by.problem, keys ? by.keys : by.rows,
                   operand.cols_of(by.problem.shape));
}

}  // namespace

Window row_window(const Signature& operand, const Problem& problem, const Blocks& blocks) {
  const RowPlan by(problem, blocks);
  const Index d = problem.shape.d;
  if (operand.name == kX.name) {
    return window_of(operand, problem, d, by.weights);
  }
  if (operand.name == kY.name || operand.name == kg.name) {
    return window_of(operand, problem, by.weights, d);
  }
  if (operand.name == kA1.name) {
    return window_of(operand, problem, by.rows, by.kept > 0 ? by.kept : by.weights);
  }
  return common_window(operand, by);
}

Window forward_row_window(const Signature& operand, const Problem& problem, const Blocks& blocks) {
  const RowPlan by(problem, blocks);
  if (operand.name == kX.name || operand.name == kY.name) {
    return window_of(operand, problem, problem.shape.d, by.weights);
  }
  if (operand.name == kO.name && problem.inputs == Inputs::weighted) {
    return window_of(operand, problem, by.rows, by.weights);
  }
  return common_window(operand, by);
}

// The cost of a key block and of a row block beyond their flops, in units of 1 / r and 1 / c of the
// time of the products. Copies and maps of r queries are spread over c keys, and the other way
// round. The factors were measured, and are not critical.
Blocks fastest(const Problem& problem, Index M, const CostOfBlocks& cost_of) {
  constexpr Index kMostKeys = 96;
  constexpr Index kKeyStep = 12;  // register tiles of 1, 2, 4 or 6 rows of a strip divide it
  constexpr double kPerKey = 8;
  constexpr double kPerQuery = 16;
  const auto [n, m, d] = problem.shape;
  const auto fits = [&](Index r, Index c, Index w) {
    return total(cost_of(problem, RowPlan(problem, r, c, w).blocks())).peak <= Words(M);
  };
  const Index most = std::min(most_dealt_out(problem, n, Units::of_queries), M);
  Index best_r = 1;
  Index best_c = 1;
  double least = 0;
  for (Index c = std::min(m, kMostKeys); c >= 1;
       c = c > kKeyStep ? (c - 1) / kKeyStep * kKeyStep : c / 2) {
    if (!fits(1, c, 1)) {
      continue;
    }
    Index r = largest(most, [&](Index tried) { return fits(tried, c, 1); });
    if (r < n && r > kPanel) {
      r = r / kPanel * kPanel;
    }
    const double cost = kPerKey / static_cast<double>(c) + kPerQuery / static_cast<double>(r);
    if (least == 0 || cost < least) {
      least = cost;
      best_r = r;
      best_c = c;
    }
  }
  best_r = in_even_blocks(n, best_r);
  const Index w =
      even(d, largest(std::min(d, M), [&](Index tried) { return fits(best_r, best_c, tried); }));
  return RowPlan(problem, best_r, best_c, w).blocks();
}

}  // namespace redblue
