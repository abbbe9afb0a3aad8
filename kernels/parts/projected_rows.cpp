#include "kernels/parts/projected_rows.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "kernels/parts/scores.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace {

ProductShape extents(const Problem& problem) {
  return Products(problem).S;
}

PhaseCost as_needed(std::string_view name, const RowPlan& by) {
  return rows_times_cost(std::string(name), by, by.units().sum());
}

PhaseCost product_and_reads(std::string_view name, const RowPlan& by, const Blocks& blocks) {
  PhaseCost cost = product_phase_cost(name, extents(by.problem), blocks);
  cost.reads += Words(by.problem.shape.n) * by.problem.shape.d;
  return cost;
}

}  // namespace

ProjectedRows::ProjectedRows(Machine& machine, const RowPlan& by, const Blocks& blocks,
                             std::string_view name, const SlowMatrix& A, const Factor& W,
                             Workspace& workspace)
    : by_(by), name_(name), A_(A), W_(W) {
  if (made_before(name, blocks)) {
    before_ = workspace.matrix(std::string(name), A.rows(), W.cols(),
                               Window{std::min(by.rows, A.rows()), W.cols()});
    product_phase(machine, name, blocks, A, W, *before_);
  }
}

Tile ProjectedRows::read(Machine& machine, Range I) const {
  if (before_) {
    const Phase phase(machine, name_);
    return machine.read(transposed(before_->row_block(I)));
  }
  return W_.transposed ? rows_times_transposed(machine, by_, name_, A_, I, W_.stored)
                       : rows_times(machine, by_, name_, A_, I, W_.stored);
}

void plan_projected_rows(std::string_view name, const RowPlan& by, Index M, Objective objective,
                         Blocks& blocks, Words more) {
  Blocks with = blocks;
  plan_product(name, extents(by.problem), M, objective, with);
  const PhaseCost before = product_and_reads(name, by, with);
  if (before.reads + before.writes + more < as_needed(name, by).reads) {
    blocks = std::move(with);
  }
}

bool made_before(std::string_view name, const Blocks& blocks) {
  return blocks.contains(std::string(name) + ".rows");
}

PhaseCost projected_rows_cost(std::string_view name, const RowPlan& by, const Blocks& blocks,
                              Words beside) {
  const bool before = made_before(name, blocks);
  PhaseCost cost = before ? product_and_reads(name, by, blocks) : as_needed(name, by);
  if (before) {
    cost.peak = std::max(
        cost.peak, Words(std::min(by.rows, by.problem.shape.n)) * by.problem.shape.d + beside);
  } else {
    cost.peak += beside;
  }
  return cost;
}

void projected_rows_nest(NestWriter& nest, const RowPlan& by, const Blocks& blocks,
                         const RowProductNames& names) {
  if (made_before(names.result, blocks)) {
    const std::string right = std::string(names.right) + (names.transposed ? "^T" : "");
    product_phase_nest(nest, {names.result, names.left, right}, extents(by.problem), blocks);
  }
}

void read_projected_rows_nest(NestWriter& nest, const RowPlan& by, const Blocks& blocks,
                              const NestLoop& I, const RowProductNames& names,
                              const NestWriter::Tiles& stays) {
  if (made_before(names.result, blocks)) {
    nest.phase(names.result, [&] { nest.read({{names.result, I, by.problem.shape.d}}); });
  } else {
    rows_times_nest(nest, by, I, names, stays);
  }
}

}  // namespace redblue
