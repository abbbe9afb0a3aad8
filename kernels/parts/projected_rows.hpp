#pragma once
// Rows of A W with small weights W, for kernels that need them one row block after another.
//
// There are two ways to make them: each row block when it comes, which reads W each time, or all
// rows in advance, by a product that writes them to slow memory. A plan takes the second way if it
// moves fewer words. The plan then has blocks with the name of the rows. Both ways count their
// words in a phase of that name.

#include <optional>
#include <string_view>

#include "kernels/parts/rows.hpp"
#include "kernels/parts/stationary.hpp"
#include "memsim/workspace.hpp"

namespace redblue {

class ProjectedRows {
 public:
  // Prepares rows of A W (n x d). Runs the phase of the product if the rows are made in advance.
  ProjectedRows(Machine& machine, const RowPlan& by, const Blocks& blocks, std::string_view name,
                const SlowMatrix& A, const Factor& W, Workspace& workspace);
  // Returns the rows I, transposed.
  [[nodiscard]] Tile read(Machine& machine, Range I) const;

 private:
  RowPlan by_;
  std::string_view name_;
  const SlowMatrix& A_;
  Factor W_;
  std::optional<SlowMatrix> before_;
};

// Adds the blocks of the product only if making the rows in advance moves fewer words, with `more`
// words counted for it elsewhere. These blocks in the plan record the decision.
void plan_projected_rows(std::string_view name, const RowPlan& by, Index M, Objective objective,
                         Blocks& blocks, Words more = 0);
bool made_before(std::string_view name, const Blocks& blocks);
// The cost of both ways. `beside` counts the other words in fast memory while a row block is made
// or read.
PhaseCost projected_rows_cost(std::string_view name, const RowPlan& by, const Blocks& blocks,
                              Words beside = 0);

// The loops of the product, if the rows are made in advance, and the loops of one row block.
void projected_rows_nest(NestWriter& nest, const RowPlan& by, const Blocks& blocks,
                         const RowProductNames& names);
void read_projected_rows_nest(NestWriter& nest, const RowPlan& by, const Blocks& blocks,
                              const NestLoop& I, const RowProductNames& names,
                              const NestWriter::Tiles& stays);

}  // namespace redblue
