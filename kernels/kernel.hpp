#pragma once
// A kernel: its name, operands and results, its plan with exact formulas, its least M, and its
// code. Kernels are constants. Several threads may use everything here at once.
//
//   const Kernel& kernel = find_kernel("backward/small");
//   Machine machine(M);
//   RamWorkspace workspace;
//   kernel.run(machine, kernel.plan({n, m, d}, M),
//              {{&A1, &A2, &A3, &X, &Y, &dO}, {&g}}, workspace);

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/nest.hpp"
#include "kernels/plan.hpp"
#include "memsim/range.hpp"
#include "memsim/slow_matrix.hpp"

namespace redblue {

class Machine;
class Workspace;

// M is below the least M of the kernel for this problem.
class FastMemoryTooSmall : public std::invalid_argument {
 public:
  explicit FastMemoryTooSmall(const std::string& what, std::optional<Index> least = std::nullopt)
      : std::invalid_argument(what), least_M(least) {}

  std::optional<Index> least_M;  // where that much is known to be enough
};

// The matrices that a kernel works on, found by their names.
class Operands {
 public:
  Operands() = default;
  Operands(std::initializer_list<const SlowMatrix*> given,
           std::initializer_list<SlowMatrix*> returned) {
    for (const SlowMatrix* matrix : given) {
      give(*matrix);
    }
    for (SlowMatrix* matrix : returned) {
      take(*matrix);
    }
  }
  // By its own name; or under another, which must outlive these.
  void give(const SlowMatrix& matrix) { give(matrix.name(), matrix); }
  void take(SlowMatrix& matrix) { take(matrix.name(), matrix); }
  void give(std::string_view name, const SlowMatrix& matrix) { given_.emplace_back(name, &matrix); }
  void take(std::string_view name, SlowMatrix& matrix) { returned_.emplace_back(name, &matrix); }

  // Throws: ShapeMismatch naming the operand that is missing.
  [[nodiscard]] const SlowMatrix& in(std::string_view name) const;
  [[nodiscard]] SlowMatrix& out(std::string_view name) const;

 private:
  std::vector<std::pair<std::string_view, const SlowMatrix*>> given_;
  std::vector<std::pair<std::string_view, SlowMatrix*>> returned_;
};

// The blocks of a plan make its words fewest, or its time shortest. Or, balanced, they are the
// fastest ones whose words are at most 5% above the fewest (kernels/balanced.hpp).
enum class Objective { words, balanced, time };
inline constexpr double kBalancedShare = 1.05;
std::string_view to_string(Objective objective);

// A matrix of a kernel's signature; its extents are members of Shape, or 1 where null.
struct Signature {
  std::string_view name;
  Index Shape::*rows;
  Index Shape::*cols;
  Holds holds = Holds::operands;
  bool of_softmax = false;  // there is none of it under another activation

  [[nodiscard]] Index rows_of(const Shape& shape) const { return shape.*rows; }
  [[nodiscard]] Index cols_of(const Shape& shape) const {
    return cols == nullptr ? 1 : shape.*cols;
  }
};

// The words of each phase with these blocks.
using CostOfBlocks =
    std::function<std::vector<PhaseCost>(const Problem& problem, const Blocks& blocks)>;
// The same for an inner level.
using LevelCostOfBlocks = std::function<std::vector<PhaseCost>(
    const Problem& problem, const Blocks& blocks, std::size_t level)>;
// The loops that move them.
using NestOfBlocks = std::function<Nest(const Problem& problem, const Blocks& blocks)>;
// A number of words that depends on the blocks.
using WordsOfBlocks = std::function<Words(const Problem& problem, const Blocks& blocks)>;

// The share of a rank in a stage, on a grid of ranks (runtime/ranks): its row blocks and groups of
// keys, or only the queries or keys that it owns at the start.
enum class StageRows : std::uint8_t { place, own_queries, own_keys };

// Units of work that are independent and write disjoint rows. Several machines can share them.
struct SplitStage {
  std::function<Index(const Problem& problem, const Blocks& blocks)> units;
  // If the kernel sums into g, each unit writes d rows of `partials`, and reduce() adds them in the
  // order of the units. Without partials it adds to g, as the whole kernel on one machine does.
  std::function<void(Machine& machine, const Plan& plan, const Operands& io, Range units,
                     SlowMatrix* partials)>
      part;
  std::function<std::vector<PhaseCost>(const Problem& problem, const Blocks& blocks, Range units,
                                       bool partials)>
      part_cost;
  // The same for an inner level, if the kernel has inner levels.
  std::function<std::vector<PhaseCost>(const Problem& problem, const Blocks& blocks, Range units,
                                       bool partials, std::size_t level)>
      level_cost = nullptr;
  // The matrices of a stage whose units share tiles in fast memory: a run in steps does all its
  // units in one step, and writes these matrices again. Else empty.
  std::vector<std::string_view> at_once = {};
  // For ranks on a grid (Split::on_grid).
  StageRows of = StageRows::place;
  std::vector<std::string_view> brings = {};  // matrices with rows that their owners send to a rank
  std::vector<std::string_view> merges = {};  // matrices that all groups send to the rows' owner
};

// A matrix that one stage leaves for the next, by live queries or keys. It is a result of `io`.
struct Left {
  Signature matrix;
  // Rows [0, rows) are written after so many units of all stages.
  std::function<Index(const Problem& problem, const Blocks& blocks, Index units)> rows;
  // The number of such matrices, one below the other; empty: one. 0: the matrix does not exist.
  std::function<Index(const Problem& problem, const Blocks& blocks)> copies = nullptr;
};

// For kernels that several machines can share. A stage begins at the end of the stage before.
struct Split {
  std::vector<SplitStage> stages;
  std::vector<Left> left = {};
  // The matrices of `left` that exist, and their numbers.
  struct Copies {
    Signature matrix;
    Index copies;
    Index rows;  // written after `units`
  };
  [[nodiscard]] std::vector<Copies> left_of(const Problem& problem, const Blocks& blocks,
                                            Index units = 0) const;
  // More matrices that stages leave, as large as results. A run in steps keeps them with its
  // results.
  std::vector<Signature> left_as_results = {};
  // The matrices of stages that are not done at once. No earlier stage writes them.
  std::vector<std::string_view> by_units = {};
  // Whether a run that resumes after `units` writes the whole matrix again.
  [[nodiscard]] bool begins_anew(std::string_view matrix, const Plan& plan, Index units) const;
  // Whether it always does, because one step writes all live words.
  [[nodiscard]] bool in_one_step(std::string_view matrix, const Plan& plan) const;
  // For a kernel that sums into g in its last stage; else empty.
  std::function<void(Machine& machine, const Plan& plan, Range rows, const SlowMatrix& partials,
                     SlowMatrix& g)>
      reduce = nullptr;
  std::function<std::vector<PhaseCost>(const Problem& problem, const Blocks& blocks, Range rows)>
      reduce_cost = nullptr;
  std::function<std::vector<PhaseCost>(const Problem& problem, const Blocks& blocks, Range rows,
                                       std::size_t level)>
      reduce_level_cost = nullptr;
  // Ranks with row blocks and groups of keys can share it (runtime/ranks). A rank works on its
  // queries and keys, with the blocks of the whole problem.
  bool on_grid = false;
  // For such a kernel that sums into g: g becomes the sum of these units' partials, in their order.
  // If g is `begun`, they are added to its words.
  std::function<void(Machine& machine, const Plan& plan, Range units, bool begun,
                     const SlowMatrix& partials, SlowMatrix& g)>
      add_partials = nullptr;
  std::function<std::vector<PhaseCost>(const Problem& problem, const Blocks& blocks, Index units,
                                       bool begun)>
      add_partials_cost = nullptr;
};

// The code.
struct KernelSchedule {
  std::function<void(Machine& machine, const Plan& plan, const Operands& io, Workspace& workspace)>
      code;
  // For kernels that several machines can share.
  std::optional<Split> split = std::nullopt;
};

// One machine runs the stages in turn. Their intermediates are in the workspace.
KernelSchedule in_stages(Split split);
// The matrices that stages leave for each other in `workspace`, then the ones in `as_results`.
std::vector<SlowMatrix> left_matrices(const Split& split, const Plan& plan, Workspace& workspace,
                                      Workspace& as_results);
// The operands of a run, and these matrices.
Operands with(Operands io, std::vector<SlowMatrix>& left);

// The cost.
struct Formula {
  CostOfBlocks cost;
  // For kernels with inner levels; else empty.
  LevelCostOfBlocks level_cost = nullptr;
  // The largest number of words of live intermediates in the slow store; empty: 0.
  WordsOfBlocks intermediates = nullptr;
  // The loops with the words of each line. Every kernel of the registry has them.
  NestOfBlocks nest = nullptr;
};

struct OptionalBlock {
  std::string_view name;
  // The largest size: an extent, and a number. Null: a larger block is cut off.
  Index Shape::*limit = nullptr;
  Index most = std::numeric_limits<Index>::max();
};

// A block of each inner level (kernels/parts/levels.hpp), if the plan has a block of this name.
struct InnerBlock {
  std::string name;
  // It cuts tiles. Then it is a multiple of the same block of the next inner level.
  bool cuts = false;
};

// The choice of blocks.
struct Fitting {
  // The blocks that fit and move the fewest words, or take the least time; never asked for balanced
  // ones. If no blocks fit: the smallest.
  std::function<Blocks(const Problem& problem, const Memory& memory, Objective objective)> fit;
  // Takes a prefetch of more than 1.
  bool ahead = false;
  // The paper's block sizes, if they do not fit as printed; else empty.
  std::function<Blocks(const Problem& problem, const Memory& memory)> printed = nullptr;
  // The usual window of reads and writes of an operand: a store lays the operand out by it. Empty:
  // whole rows.
  std::function<Window(const Signature& operand, const Problem& problem, const Blocks& blocks)>
      window = nullptr;
  // For a kernel without windows: the rows in one write of a result.
  std::function<Index(const Signature& result, const Problem& problem, const Blocks& blocks)>
      written = nullptr;
  // Blocks that a caller may choose though the fitted plan may lack them.
  std::vector<OptionalBlock> optional_blocks = {};
  // For a kernel with inner levels.
  std::vector<InnerBlock> inner_blocks = {};
  // If these blocks are 1 in its plan, steps are apart in the innermost level (LevelBlocks::apart).
  std::vector<std::string_view> apart_blocks = {};
  // Under a mask some queries may stay through all blocks of the others (Problem::staying).
  bool rows_stay = false;
};

// For error bounds and lower bounds: in which order things are summed.
struct Numerics {
  // How often a row's sum is rescaled at most; empty: never.
  WordsOfBlocks rescales = nullptr;
  // The groups of keys that each leave O and L, which are merged; empty: one.
  WordsOfBlocks key_groups = nullptr;
  // The most roundings between a p_ij and a word of g, where more than n + m.
  WordsOfBlocks chain = nullptr;
  // The number of key blocks, where q is kept relative to its running mean.
  WordsOfBlocks recentred_blocks = nullptr;
  // Y meets rows, not keys: q = (dO Y^T) A3^T and O = (f A3) Y, and h = A3 Y is not made. X meets
  // keys, not rows: s = A1 (X A2^T), and S = A1 X is not made.
  bool Y_meets_rows = false;
  bool Y_meets_rows_if_shared = false;
  bool X_meets_keys = false;
  // Sums over some keys, or queries, go into g before they are whole: always, or where the plan has
  // several groups of keys.
  bool folds_partial_sums = false;
  bool groups_fold = false;
  // A backward pass makes sums of W, or of T, more than once; gradients and layer make p, which
  // meets some of its factors each time. Bounds of algorithms that make these once do not hold.
  bool recomputes = false;
};

struct Kernel {
  std::string_view name = {};
  std::string_view summary = {};
  Pass pass = Pass::product;
  std::vector<Signature> operands = {};  // of a problem in which none are shared
  std::vector<Signature> returns = {};
  // Takes problems in which values are keys (A3 is A2, V is K), and reads them once.
  bool shares_keys = false;
  // Takes problems with a mask: dead pairs are not computed, dead queries and keys are not read.
  bool takes_masks = false;
  // Takes other activations than softmax.
  bool takes_activations = false;
  // Takes the causal mask, and no other: what queries meet is a running sum.
  bool takes_causal = false;
  // Works on the stored entries of A1, X and A2 (Problem::sparsity), and on no dense ones.
  bool takes_sparse = false;
  // Results that are not computed where they are not wanted. The others are wanted in each problem.
  std::vector<std::string_view> optional_results = {};
  // The rates of this kernel stand for the rates of one that was never timed. Empty: none.
  std::string_view kin = {};
  // The axes of the kernel's family, each with its value for this kernel.
  std::vector<std::pair<std::string_view, std::string_view>> axes = {};

  KernelSchedule schedule;
  Formula formula;
  Fitting fitting;
  Numerics numerics = {};
  // For a kernel with masks: the kernel that works on live queries and keys only
  // (kernels/masked.hpp). Else null.
  std::shared_ptr<const Kernel> of_live = nullptr;

  // All operands, without the values if they are the keys, and without O and L if there is no
  // softmax.
  [[nodiscard]] std::vector<Signature> given(Sharing sharing = Sharing::none,
                                             Activation activation = Activation::softmax) const;
  [[nodiscard]] std::vector<Signature> given(const Problem& problem) const {
    return given(problem.sharing, problem.activation);
  }
  // All results. If values are keys, results of values are left out: dK is dK + dV then, and dA2 is
  // dA2 + dA3. returned() has the wanted ones only.
  [[nodiscard]] std::vector<Signature> results(Sharing sharing = Sharing::none,
                                               Activation activation = Activation::softmax) const;
  [[nodiscard]] std::vector<Signature> results(const Problem& problem) const {
    return results(problem.sharing, problem.activation);
  }
  [[nodiscard]] std::vector<Signature> returned(const Problem& problem) const;
  [[nodiscard]] bool can_return(const Problem& problem) const;
  // Is given O and L.
  [[nodiscard]] bool needs_forward(Activation activation = Activation::softmax) const;
  [[nodiscard]] bool takes(Activation activation) const {
    return activation == Activation::softmax || takes_activations;
  }
  [[nodiscard]] bool takes(const Mask& mask) const {
    return mask.full() || takes_masks ||
           (takes_causal && mask == Mask::causal(mask.queries(), mask.keys()));
  }
  [[nodiscard]] bool Y_meets_rows(const Problem& problem) const {
    return numerics.Y_meets_rows ||
           (numerics.Y_meets_rows_if_shared && problem.sharing != Sharing::none);
  }
  [[nodiscard]] bool streams_keys() const { return fitting.ahead; }
  [[nodiscard]] bool has_levels() const { return formula.level_cost != nullptr; }
  // The units of all stages. Requires: the kernel can be split.
  [[nodiscard]] Index units(const Plan& plan) const;
  [[nodiscard]] Words intermediates(const Plan& plan) const;
  // The problem with this kernel's inputs. Where `wanted` names each result, it becomes empty.
  [[nodiscard]] Problem with_inputs(Problem problem) const {
    problem.inputs = inputs_of(pass);
    if (returned(problem).size() == results(problem).size()) {
      problem.wanted = {};
    }
    return problem;
  }

  // The blocks that fit, or the smallest. `share` is of balanced ones: their words over the fewest.
  // blocks(), plan() and least_M() throw ShapeMismatch for
  // shared keys, a mask or wanted results that the kernel does not take, and for a prefetch above 1
  // if it streams no keys.
  [[nodiscard]] Blocks blocks(const Problem& problem, const Memory& memory, Objective objective,
                              double share = kBalancedShare) const;
  // Throws: FastMemoryTooSmall; CountOverflow.
  [[nodiscard]] Plan plan(const Problem& problem, const Memory& memory,
                          Objective objective = Objective::words) const;
  // The same with the caller's blocks, which need not fit.
  [[nodiscard]] Plan plan(const Problem& problem, const Memory& memory, const Blocks& blocks) const;
  [[nodiscard]] Index least_M(const Problem& problem, Index prefetch = 1, Index multiple = 1) const;
  // Throws: ShapeMismatch unless the plan is this kernel's and the operands are those it names.
  void check(const Plan& plan, const Operands& io) const;
  // Throws, before the first move: the errors of check(), and FastMemoryOverflow if the plan's peak
  // does not fit in the free words of the machine. Later: the errors of the store.
  void run(Machine& machine, const Plan& plan, const Operands& io, Workspace& workspace) const;
};

// Without matrices that this activation does not have.
std::vector<Signature> of_activation(std::vector<Signature> matrices, Activation activation);
// Without the matrices of values, if values are keys.
std::vector<Signature> of_sharing(std::vector<Signature> matrices, Sharing sharing);
// The results of all kernels of a pass.
const std::vector<Signature>& results_of(Pass pass);
// The operand of this name, or null.
const Signature* find_operand(const std::vector<Signature>& operands, std::string_view name);

// A list of kernels. A kernel is made when any thread first asks for it, and never moves.
class KernelList {
 public:
  struct Entry {
    std::string_view name;
    Kernel (*make)();
  };
  class Iterator {
   public:
    using value_type = Kernel;
    using difference_type = std::ptrdiff_t;
    Iterator() = default;
    Iterator(const KernelList& of, std::size_t place) : of_(&of), place_(place) {}
    const Kernel& operator*() const { return (*of_)[place_]; }
    const Kernel* operator->() const { return &**this; }
    Iterator& operator++() {
      ++place_;
      return *this;
    }
    Iterator operator++(int) { return {*of_, place_++}; }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    const KernelList* of_ = nullptr;
    std::size_t place_ = 0;
  };

  // `entries` outlive it.
  explicit KernelList(std::span<const Entry> entries);
  [[nodiscard]] Iterator begin() const { return {*this, 0}; }
  [[nodiscard]] Iterator end() const { return {*this, size()}; }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] const Kernel& operator[](std::size_t place) const;
  [[nodiscard]] std::string_view name(std::size_t place) const { return entries_[place].name; }
  // The kernel of this name, or null.
  [[nodiscard]] const Kernel* find(std::string_view name) const;

 private:
  struct Made {
    std::once_flag once;
    std::optional<Kernel> kernel;
  };
  std::span<const Entry> entries_;
  std::unique_ptr<Made[]> made_;
};

// All kernels, in the order of `redblue list`: first for dense operands, then for sparse ones.
const KernelList& kernels();
const KernelList& sparse_kernels();
// By its registered name; a spelling is for parse_kernel_name(). Throws: std::out_of_range.
const Kernel& find_kernel(std::string_view name);

// A kernel and the sharing of its problem. If values are keys, NAME is also spelled NAME-shared.
struct KernelName {
  const Kernel* kernel = nullptr;
  Sharing sharing = Sharing::none;
  Activation activation = Activation::softmax;

  [[nodiscard]] std::vector<Signature> given() const { return kernel->given(sharing, activation); }
  [[nodiscard]] std::vector<Signature> results() const {
    return kernel->results(sharing, activation);
  }
  [[nodiscard]] std::string text() const { return spelled(kernel->name, sharing); }
  [[nodiscard]] std::string summary() const {
    return (sharing == Sharing::none                      ? ""
            : inputs_of(kernel->pass) == Inputs::weighted ? "where A3 is A2: "
                                                          : "where V is K: ") +
           std::string(kernel->summary);
  }
};
// The operands of the plan's kernel.
std::vector<Signature> given_of(const Plan& plan);
// The spellings of all dense kernels. NAME-shared comes after the others.
const std::vector<KernelName>& kernel_names();
// The same, then the kernels for sparse operands.
const std::vector<KernelName>& all_kernel_names();
// Those of one pass, in the same order. Other kernels are not made.
std::vector<KernelName> all_kernel_names_of(Pass pass);
// Nothing if this is no spelling of a kernel.
std::optional<KernelName> parse_kernel_name(std::string_view text);

}  // namespace redblue
