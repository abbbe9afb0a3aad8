#pragma once
// Rows of a product of small weights, A W, for kernels in which a row block needs its own of them:
// made when the row block comes, for which W is read each time; or all of them before, by a product
// that writes them to the slow store. Where a plan takes the second, because it moves fewer words,
// the product has blocks of the rows' name. Both ways move their words in a phase of that name.

#include <optional>
#include <string_view>

#include "kernels/parts/rows.hpp"
#include "kernels/parts/stationary.hpp"
#include "memsim/workspace.hpp"

namespace redblue {

class ProjectedRows {
 public:
  // Rows of A W, n x d. Opens the product's phase where they are made before.
  ProjectedRows(Machine& machine, const RowPlan& by, const Blocks& blocks, std::string_view name,
                const SlowMatrix& A, const Factor& W, Workspace& workspace);
  // The rows I, transposed.
  [[nodiscard]] Tile read(Machine& machine, Range I) const;

 private:
  RowPlan by_;
  std::string_view name_;
  const SlowMatrix& A_;
  Factor W_;
  std::optional<SlowMatrix> before_;
};

// Adds the blocks of the product only if making the rows before moves fewer words, `more` words
// elsewhere included. Their presence in the plan is the decision.
void plan_projected_rows(std::string_view name, const RowPlan& by, Index M, Objective objective,
                         Blocks& blocks, Words more = 0);
bool made_before(std::string_view name, const Blocks& blocks);
// With `beside` words in fast memory while a row block's are made or read.
PhaseCost projected_rows_cost(std::string_view name, const RowPlan& by, const Blocks& blocks,
                              Words beside = 0);

// The loops of the product, where they are made before; and of one row block.
void projected_rows_nest(NestWriter& nest, const RowPlan& by, const Blocks& blocks,
                         const RowProductNames& names);
void read_projected_rows_nest(NestWriter& nest, const RowPlan& by, const Blocks& blocks,
                              const NestLoop& I, const RowProductNames& names,
                              const NestWriter::Tiles& stays);

}  // namespace redblue
