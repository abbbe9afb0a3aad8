#include "kernels/parts/tile_levels.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "kernels/parts/product_levels.hpp"

namespace redblue {
namespace {

Index pass_rows(const ProductBlocks& by, Index beside) {
  return std::max<Index>(by.rows / (1 + beside), 1);
}

}  // namespace

Levels pass_levels(const ProductLevels& levels, PassColumns columns, Index beside) {
  Levels blocks;
  for (const ProductBlocks& by : levels) {
    blocks.push_back({.rows = pass_rows(by, beside), .keys = by.*columns, .weights = 1});
  }
  return blocks;
}

LevelTally::LevelTally(const ProductLevels& inner, std::size_t level)
    : levels_(inner.begin() + static_cast<std::ptrdiff_t>(level), inner.end()) {}

void LevelTally::product(const ProductShape& of, Stays what, bool begins, const Words& times) {
  const PhaseCost step = product_level_cost("", of, levels_, what);
  reads_ += times * (step.reads + (begins ? Words(0) : Words(of.rows) * of.cols));
  writes_ += times * step.writes;
  peak_ = std::max(peak_, step.peak);
}

void LevelTally::pass(Index rows, Index cols, PassColumns columns, const PassCost& cost,
                      const Words& times) {
  std::vector<Index> around;
  Index r = rows, c = cols;
  for (const ProductBlocks& by : levels_) {
    r = std::min(r, pass_rows(by, cost.beside));
    c = std::min(c, by.*columns);
    around.push_back(by.*columns);
  }
  const Index comes =
      around.size() == 1 ? 1 : pieces(cols, around[1], std::span(around).subspan(2));
  const Words scores = Words(rows) * cols, of_rows = Words(rows) * comes;
  reads_ += times * (scores * cost.reads + of_rows * cost.row_reads);
  writes_ += times * (scores * cost.writes + of_rows * cost.row_writes);
  peak_ = std::max(peak_, Words(r) * c * (1 + cost.beside) + Words(r) * cost.row_words);
}

void LevelTally::rows(Index rows, const PassCost& cost, const Words& times) {
  Index r = rows;
  for (const ProductBlocks& by : levels_) {
    r = std::min(r, by.rows);
  }
  reads_ += times * (Words(rows) * cost.row_reads);
  writes_ += times * (Words(rows) * cost.row_writes);
  peak_ = std::max(peak_, Words(r) * cost.row_words);
}

PhaseCost LevelTally::cost(std::string path) const {
  return {.path = std::move(path), .reads = reads_, .writes = writes_, .peak = peak_, .flops = 0};
}

std::vector<Alike> alike(Index extent, Index step, bool masked) {
  std::vector<Alike> all;
  const Index count = ceil_div(extent, step);
  if (masked || count < 4) {
    for (const Range block : blocks(extent, step)) {
      all.push_back({block, 1});
    }
    return all;
  }
  return {{{0, step}, 1}, {{step, 2 * step}, count - 2}, {{(count - 1) * step, extent}, 1}};
}

}  // namespace redblue
