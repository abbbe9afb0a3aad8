#pragma once
// A kernel: its name, what it is given and returns, its plan with exact formulas, the least
// M that it runs in, and its code. Kernels are constants; everything here may be used from
// several threads at once.
//
//   const Kernel& kernel = find_kernel("backward/small");
//   Machine machine(M);
//   RamWorkspace workspace;
//   kernel.run(machine, kernel.plan({n, m, d}, M),
//              {{&A1, &A2, &A3, &X, &Y, &dO}, {&g}}, workspace);

#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/plan.hpp"
#include "memsim/range.hpp"
#include "memsim/slow_matrix.hpp"

namespace redblue {

class Machine;
class Workspace;

// M is below the least M of the kernel for this shape.
class FastMemoryTooSmall : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

// The matrices that a kernel works on, found by their names.
class Operands {
 public:
  Operands() = default;
  Operands(std::initializer_list<const SlowMatrix*> given,
           std::initializer_list<SlowMatrix*> returned)
      : given_(given), returned_(returned) {}
  void give(const SlowMatrix& matrix) { given_.push_back(&matrix); }
  void take(SlowMatrix& matrix) { returned_.push_back(&matrix); }

  // Throws: ShapeMismatch naming the operand that is missing.
  [[nodiscard]] const SlowMatrix& in(std::string_view name) const;
  [[nodiscard]] SlowMatrix& out(std::string_view name) const;
  [[nodiscard]] bool gives(std::string_view name) const;

 private:
  std::vector<const SlowMatrix*> given_;
  std::vector<SlowMatrix*> returned_;
};

// What a plan's blocks are chosen for.
enum class Objective { words, time };

// A matrix of a kernel's signature; its extents are members of Shape, or 1 where null.
struct Signature {
  std::string_view name;
  Index Shape::*rows;
  Index Shape::*cols;

  [[nodiscard]] Index rows_of(const Shape& shape) const { return shape.*rows; }
  [[nodiscard]] Index cols_of(const Shape& shape) const {
    return cols == nullptr ? 1 : shape.*cols;
  }
};

// A kernel whose row blocks (of Br queries: the units) know nothing of each other, so that
// several machines may work on different ones. What they return is in disjoint rows; or is g,
// and then each writes a partial g of its own, d rows of `partials`, and the partials are
// added in the order of the units by whoever has the rows.
struct RowSplit {
  // Without partials: adds to g, as the whole kernel on one machine does.
  void (*part)(Machine& machine, const Plan& plan, const Operands& io, Range units,
               SlowMatrix* partials);
  std::vector<PhaseCost> (*part_cost)(const Shape& shape, const Blocks& blocks, Range units,
                                      bool partials);
  // Null where nothing is summed.
  void (*reduce)(Machine& machine, const Plan& plan, Range rows, const SlowMatrix& partials,
                 SlowMatrix& g) = nullptr;
  std::vector<PhaseCost> (*reduce_cost)(const Shape& shape, const Blocks& blocks,
                                        Range rows) = nullptr;
};

struct Kernel {
  std::string_view name;
  std::string_view summary;
  std::vector<Signature> given;
  std::vector<Signature> returns;

  // The fitting blocks that move the fewest words. Where nothing fits: the smallest blocks.
  Blocks (*fit)(const Shape& shape, Index M);
  // What each phase moves and holds with these blocks.
  std::vector<PhaseCost> (*cost)(const Shape& shape, const Blocks& blocks);
  // The most words of the slow store that intermediates take at a time.
  Words (*intermediates)(const Shape& shape, const Blocks& blocks);
  void (*code)(Machine& machine, const Plan& plan, const Operands& io, Workspace& workspace);
  // The paper's own block sizes where they do not fit as printed; else null.
  Blocks (*printed)(const Shape& shape, Index M) = nullptr;
  // For error bounds: how often a row's sum is rescaled at most, where not 0; and the most
  // roundings between a p_ij and a word of g, where more than n + m; else null.
  Words (*rescales)(const Shape& shape, const Blocks& blocks) = nullptr;
  Words (*chain)(const Shape& shape, const Blocks& blocks) = nullptr;
  // Y meets rows, not keys: q = (dO Y^T) A3^T and O = (f A3) Y in place of h = A3 Y. X meets keys,
  // not rows: s = A1 (X A2^T) in place of S = A1 X.
  bool Y_meets_rows = false;
  bool X_meets_keys = false;
  // Sums over some keys, or queries, go into g before they are whole. For lower bounds.
  bool folds_partial_sums = false;
  // The number of key blocks, where q is kept relative to its running mean; else null.
  Words (*recentred_blocks)(const Shape& shape, const Blocks& blocks) = nullptr;
  // The fitting blocks that run fastest, where they are others than those of fewest words.
  Blocks (*fit_time)(const Shape& shape, Index M) = nullptr;
  // Fitting blocks for several key blocks in fast memory at a time, where keys are streamed.
  Blocks (*fit_ahead)(const Shape& shape, Index M, Index prefetch) = nullptr;
  // The windows in which an operand is mostly read or written, for a store that lays it out so;
  // null: some rows at a time.
  Window (*window)(const Signature& operand, const Shape& shape, const Blocks& blocks) = nullptr;
  // For kernels that may be split among machines.
  std::optional<RowSplit> split = std::nullopt;
  // A block that a caller may choose though the fitted plan may lack it; else empty.
  std::string_view optional_block = {};

  // The fitting blocks; where nothing fits, the smallest. Throws: ShapeMismatch for a prefetch of
  // more than 1 where no keys are streamed, as do plan() and least_M().
  [[nodiscard]] Blocks blocks(const Shape& shape, Index M, Objective objective,
                              Index prefetch = 1) const;
  // Throws: FastMemoryTooSmall; CountOverflow.
  [[nodiscard]] Plan plan(const Shape& shape, Index M, Objective objective = Objective::words,
                          Index prefetch = 1) const;
  // The same with blocks of the caller's choice, whether they fit or not.
  [[nodiscard]] Plan plan(const Shape& shape, Index M, const Blocks& blocks) const;
  [[nodiscard]] Index least_M(const Shape& shape, Index prefetch = 1) const;
  // Throws: ShapeMismatch unless the plan is this kernel's and the operands are those it names.
  void check(const Plan& plan, const Operands& io) const;
  // Throws: what check() does, before anything moves; FastMemoryOverflow where the machine has less
  // than the plan's M; what the store throws.
  void run(Machine& machine, const Plan& plan, const Operands& io, Workspace& workspace) const;
};

// Whether a kernel's keys are streamed, so that some of their blocks may be fetched ahead.
inline bool streams(const Kernel& kernel) {
  return kernel.fit_ahead != nullptr;
}

// Null where none of them has this name.
const Signature* find_operand(const std::vector<Signature>& operands, std::string_view name);

// A3 is A2 to this kernel, and read once.
bool has_one_source(const Kernel& kernel);

// All kernels, in the order in which `redblue list` shows them.
const std::vector<Kernel>& kernels();
// Throws: std::out_of_range.
const Kernel& find_kernel(std::string_view name);

}  // namespace redblue
