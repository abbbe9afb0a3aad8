#pragma once
// Declares kernels: the algorithms that a caller can plan and run. A kernel has a name, operands,
// results, exact formulas for its words, and its code. Kernels are constants, and any number of
// threads may use everything in this header.
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

// Thrown if M is below the kernel's least M for a problem.
class FastMemoryTooSmall : public std::invalid_argument {
 public:
  explicit FastMemoryTooSmall(const std::string& what, std::optional<Index> least = std::nullopt)
      : std::invalid_argument(what), least_M(least) {}

  std::optional<Index> least_M;  // an M known to be enough, if one is known
};

// The matrices that a kernel reads and writes, found by name.
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
  // Adds a matrix under its own name, or under another name, which must outlive these Operands.
  void give(const SlowMatrix& matrix) { give(matrix.name(), matrix); }
  void take(SlowMatrix& matrix) { take(matrix.name(), matrix); }
  void give(std::string_view name, const SlowMatrix& matrix) { given_.emplace_back(name, &matrix); }
  void take(std::string_view name, SlowMatrix& matrix) { returned_.emplace_back(name, &matrix); }

  // Throws ShapeMismatch if no operand has this name.
  [[nodiscard]] const SlowMatrix& in(std::string_view name) const;
  [[nodiscard]] SlowMatrix& out(std::string_view name) const;

 private:
  std::vector<std::pair<std::string_view, const SlowMatrix*>> given_;
  std::vector<std::pair<std::string_view, SlowMatrix*>> returned_;
};

// Criterion for choosing blocks: fewest words, shortest time, or balanced. Balanced blocks are the
// fastest ones that move at most 5% more words than the fewest (kernels/balanced.hpp).
enum class Objective { words, balanced, time };
inline constexpr double kBalancedShare = 1.05;
std::string_view to_string(Objective objective);

// A matrix in the signature of a kernel. Each extent is a member of Shape; a null `cols` means 1.
struct Signature {
  std::string_view name;
  Index Shape::*rows;
  Index Shape::*cols;
  Holds holds = Holds::operands;
  bool of_softmax = false;  // true if only softmax has this matrix

  [[nodiscard]] Index rows_of(const Shape& shape) const { return shape.*rows; }
  [[nodiscard]] Index cols_of(const Shape& shape) const {
    return cols == nullptr ? 1 : shape.*cols;
  }
};

// Returns the words of each phase for these blocks.
using CostOfBlocks =
    std::function<std::vector<PhaseCost>(const Problem& problem, const Blocks& blocks)>;
// Same, for an inner level.
using LevelCostOfBlocks = std::function<std::vector<PhaseCost>(
    const Problem& problem, const Blocks& blocks, std::size_t level)>;
// Returns the loop nest for these blocks.
using NestOfBlocks = std::function<Nest(const Problem& problem, const Blocks& blocks)>;
// Returns a number of words that depends on the blocks.
using WordsOfBlocks = std::function<Words(const Problem& problem, const Blocks& blocks)>;

// The part of a stage that a rank computes on a grid of ranks (runtime/ranks). `place`: the rank's
// row blocks and key groups. The others: only the queries or keys that the rank owns at the start.
enum class StageRows : std::uint8_t { place, own_queries, own_keys };

// One stage of a kernel: independent units of work that write disjoint rows. Several machines can
// share the units.
struct SplitStage {
  std::function<Index(const Problem& problem, const Blocks& blocks)> units;
  // Computes some units. In a kernel that sums into g, each unit writes d rows of `partials`, and
  // reduce() adds them in the order of the units. If `partials` is null, the units add to g, as
  // they do when one machine runs the whole kernel.
  std::function<void(Machine& machine, const Plan& plan, const Operands& io, Range units,
                     SlowMatrix* partials)>
      part;
  std::function<std::vector<PhaseCost>(const Problem& problem, const Blocks& blocks, Range units,
                                       bool partials)>
      part_cost;
  // Same, for an inner level. Empty if the kernel has no inner levels.
  std::function<std::vector<PhaseCost>(const Problem& problem, const Blocks& blocks, Range units,
                                       bool partials, std::size_t level)>
      level_cost = nullptr;
  // Results of a stage in which units share tiles in fast memory; empty if units share no tiles. A
  // run in steps does all units of such a stage in one step. If it resumes there, it writes these
  // matrices again.
  std::vector<std::string_view> at_once = {};
  // The next three members are for ranks on a grid (Split::on_grid).
  StageRows of = StageRows::place;
  // Matrices with rows that their owners send to a rank.
  std::vector<std::string_view> brings = {};
  // Matrices that all key groups send to the owner of the rows.
  std::vector<std::string_view> merges = {};
};

// A matrix that one stage writes for the next stage, with a row for each live query or key. Stages
// find it among the results of `io`.
struct Left {
  Signature matrix;
  // Returns the number of leading rows written after `units` units, counted over all stages.
  std::function<Index(const Problem& problem, const Blocks& blocks, Index units)> rows;
  // Returns the number of such matrices, stacked one below the other. Empty: one. If it returns 0,
  // the matrix does not exist.
  std::function<Index(const Problem& problem, const Blocks& blocks)> copies = nullptr;
};

// The stages of a kernel that several machines can share. A stage begins when the stage before it
// has ended.
struct Split {
  std::vector<SplitStage> stages;
  std::vector<Left> left = {};
  // The matrices of `left` that exist, with the number of copies of each.
  struct Copies {
    Signature matrix;
    Index copies;
    Index rows;  // rows written after `units` units
  };
  [[nodiscard]] std::vector<Copies> left_of(const Problem& problem, const Blocks& blocks,
                                            Index units = 0) const;
  // Further matrices that stages write for later stages, as large as results. A run in steps stores
  // them with its results.
  std::vector<Signature> left_as_results = {};
  // Matrices that only the stages without `at_once` write, unit by unit.
  std::vector<std::string_view> by_units = {};
  // Returns whether a run that resumes after `units` writes the whole matrix again.
  [[nodiscard]] bool begins_anew(std::string_view matrix, const Plan& plan, Index units) const;
  // Returns whether every resumed run writes the matrix again, because one step writes all live
  // words.
  [[nodiscard]] bool in_one_step(std::string_view matrix, const Plan& plan) const;
  // For a kernel that sums into g in its last stage; otherwise empty.
  std::function<void(Machine& machine, const Plan& plan, Range rows, const SlowMatrix& partials,
                     SlowMatrix& g)>
      reduce = nullptr;
  std::function<std::vector<PhaseCost>(const Problem& problem, const Blocks& blocks, Range rows)>
      reduce_cost = nullptr;
  std::function<std::vector<PhaseCost>(const Problem& problem, const Blocks& blocks, Range rows,
                                       std::size_t level)>
      reduce_level_cost = nullptr;
  // Whether ranks with row blocks and key groups can share the kernel (runtime/ranks). A rank works
  // on its own queries and keys, with the block sizes of the whole problem.
  bool on_grid = false;
  // For a kernel on a grid that sums into g: stores in g the sum of the units' partials, in the
  // order of the units. If `begun`, it adds the partials to the words already in g.
  std::function<void(Machine& machine, const Plan& plan, Range units, bool begun,
                     const SlowMatrix& partials, SlowMatrix& g)>
      add_partials = nullptr;
  std::function<std::vector<PhaseCost>(const Problem& problem, const Blocks& blocks, Index units,
                                       bool begun)>
      add_partials_cost = nullptr;
};

// The code of a kernel.
struct KernelSchedule {
  std::function<void(Machine& machine, const Plan& plan, const Operands& io, Workspace& workspace)>
      code;
  // Empty if several machines cannot share the kernel.
  std::optional<Split> split = std::nullopt;
};

// Returns a schedule in which one machine runs the stages in turn, with intermediates in the
// workspace.
KernelSchedule in_stages(Split split);
// Returns the matrices that stages write for each other: first the ones in `workspace`, then the
// ones in `as_results`.
std::vector<SlowMatrix> left_matrices(const Split& split, const Plan& plan, Workspace& workspace,
                                      Workspace& as_results);
// Returns the operands `io` with these matrices added.
Operands with(Operands io, std::vector<SlowMatrix>& left);

// The cost of a kernel.
struct Formula {
  CostOfBlocks cost;
  // Empty if the kernel has no inner levels.
  LevelCostOfBlocks level_cost = nullptr;
  // The largest number of words of intermediates that are in slow memory at once. Empty: 0.
  WordsOfBlocks intermediates = nullptr;
  // The loop nest with the words of each line. Empty if kernels/nests/text has all of the kernel's
  // loops: activations, masks with indices, every block of its plans.
  NestOfBlocks nest = nullptr;
};

struct OptionalBlock {
  std::string_view name;
  // The largest size is the smaller of this extent and `most`. If null, any size is allowed, and a
  // block larger than its extent is cut.
  Index Shape::*limit = nullptr;
  Index most = std::numeric_limits<Index>::max();
};

// A block that each inner level has (kernels/parts/levels.hpp) if the plan has a block of this
// name.
struct InnerBlock {
  std::string name;
  // Whether the block cuts tiles. Then its size is a multiple of the same block of the next inner
  // level.
  bool cuts = false;
};

// How a kernel chooses its blocks.
struct Fitting {
  // Returns the blocks that fit and move the fewest words or take the least time. If no blocks fit,
  // it returns the smallest. Never called for balanced blocks.
  std::function<Blocks(const Problem& problem, const Memory& memory, Objective objective)> fit;
  // Whether the kernel takes a prefetch above 1.
  bool ahead = false;
  // Returns the paper's block sizes, for kernels in which they do not fit as printed; otherwise
  // empty.
  std::function<Blocks(const Problem& problem, const Memory& memory)> printed = nullptr;
  // Returns the usual window in which the kernel reads or writes an operand. A store lays the
  // operand out in such windows. Empty: whole rows.
  std::function<Window(const Signature& operand, const Problem& problem, const Blocks& blocks)>
      window = nullptr;
  // For a kernel without windows: returns the rows of a result in one write.
  std::function<Index(const Signature& result, const Problem& problem, const Blocks& blocks)>
      written = nullptr;
  // Blocks that a caller may set even if the fitted plan does not have them.
  std::vector<OptionalBlock> optional_blocks = {};
  // The blocks of inner levels, for a kernel that has them.
  std::vector<InnerBlock> inner_blocks = {};
  // If these blocks are 1 in a plan, steps of the innermost level are apart (LevelBlocks::apart).
  std::vector<std::string_view> apart_blocks = {};
  // Whether, under a mask, some queries may be resident while all blocks of the other queries pass
  // (Problem::staying).
  bool rows_stay = false;
};

// The order in which the kernel sums. Error bounds and lower bounds use it.
struct Numerics {
  // Largest number of times that a row's sum is rescaled. Empty: never.
  WordsOfBlocks rescales = nullptr;
  // Number of key groups that each produce O and L, which are merged afterwards. Empty: one.
  WordsOfBlocks key_groups = nullptr;
  // Largest number of roundings between a p_ij and a word of g. Empty: at most n + m.
  WordsOfBlocks chain = nullptr;
  // Number of key blocks, if q is stored relative to its running mean.
  WordsOfBlocks recentred_blocks = nullptr;
  // Y_meets_rows: Y is multiplied with rows, not with keys. Then q = (dO Y^T) A3^T and O = (f A3)
  // Y, and the kernel does not compute h = A3 Y. X_meets_keys: X is multiplied with keys, not with
  // rows. Then s = A1 (X A2^T), and the kernel does not compute S = A1 X.
  // Y_meets_rows_if_shared: as Y_meets_rows, but only if values are keys.
  bool Y_meets_rows = false;
  bool Y_meets_rows_if_shared = false;
  bool X_meets_keys = false;
  // Whether incomplete sums, over only some keys or queries, are added to g. `folds_partial_sums`:
  // always. `groups_fold`: if the plan has several key groups.
  bool folds_partial_sums = false;
  bool groups_fold = false;
  // Whether the kernel computes something twice. In a backward pass: sums of W or T. In gradients
  // and layer: p, each time for some of the products that need it. Lower bounds for algorithms
  // without recomputation do not hold then.
  bool recomputes = false;
};

struct Kernel {
  std::string_view name = {};
  std::string_view summary = {};
  Pass pass = Pass::product;
  std::vector<Signature> operands = {};  // for a problem without sharing
  std::vector<Signature> returns = {};
  // Whether the kernel takes problems in which values are keys (A3 is A2, V is K). It reads them
  // once.
  bool shares_keys = false;
  // Whether the kernel takes problems of one source (Sharing::self) and no others. Its operands
  // have the source under the name of the queries. Its result is the sum of all gradients of the
  // source.
  bool of_one_source = false;
  // Whether the kernel takes masks. It does not compute dead pairs or read dead queries and keys.
  bool takes_masks = false;
  // Whether the kernel takes activations other than softmax.
  bool takes_activations = false;
  // Whether the kernel takes the causal mask and no other: its sums over keys are running sums.
  bool takes_causal = false;
  // Whether A1, X and A2 are sparse (Problem::sparsity). Such a kernel takes no dense operands.
  bool takes_sparse = false;
  // Whether the kernel is a nest (kernels/nests). It moves words and computes no values. It may
  // return only some results of its pass, its blocks may be 0, and its rows keep their order under
  // a mask.
  bool is_nest = false;
  // Whether one call works on all heads (Problem::kv_heads) and not on one head of keys.
  bool of_all_heads = false;
  // For Pass::own: the words of its inputs and results. Otherwise empty.
  std::function<Words(const Problem& problem)> compulsory = nullptr;
  // Results that the kernel computes only if they are wanted. Its other results are always wanted.
  std::vector<std::string_view> optional_results = {};
  // Name of a similar kernel. If this kernel has no measured rates, that kernel's rates are used.
  // Empty: no such kernel.
  std::string_view kin = {};
  // Coordinates in the kernel's family: the name of each axis and its value for this kernel.
  std::vector<std::pair<std::string_view, std::string_view>> axes = {};

  KernelSchedule schedule;
  Formula formula;
  Fitting fitting;
  Numerics numerics = {};
  // For a kernel that takes masks: the kernel that works on live queries and keys only
  // (kernels/masked.hpp). Otherwise null.
  std::shared_ptr<const Kernel> of_live = nullptr;

  // Returns all operands. It leaves out the values if values are keys, and O and L if the
  // activation is not softmax.
  [[nodiscard]] std::vector<Signature> given(Sharing sharing = Sharing::none,
                                             Activation activation = Activation::softmax) const;
  [[nodiscard]] std::vector<Signature> given(const Problem& problem) const {
    return given(problem.sharing, problem.activation);
  }
  // Returns all results. If values are keys, it leaves out results of values: dK is then dK + dV,
  // and dA2 is dA2 + dA3. returned() returns only the wanted results.
  [[nodiscard]] std::vector<Signature> results(Sharing sharing = Sharing::none,
                                               Activation activation = Activation::softmax) const;
  [[nodiscard]] std::vector<Signature> results(const Problem& problem) const {
    return results(problem.sharing, problem.activation);
  }
  [[nodiscard]] std::vector<Signature> returned(const Problem& problem) const;
  [[nodiscard]] bool can_return(const Problem& problem) const;
  // Returns whether O and L are operands.
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
  // Returns the number of units of all stages. Requires: a kernel that can be split.
  [[nodiscard]] Index units(const Plan& plan) const;
  [[nodiscard]] Words intermediates(const Plan& plan) const;
  // Returns the problem with this kernel's inputs. If `wanted` names every result, it becomes
  // empty.
  [[nodiscard]] Problem with_inputs(Problem problem) const {
    problem.inputs = inputs_of(pass);
    if (returned(problem).size() == results(problem).size()) {
      problem.wanted = {};
    }
    return problem;
  }

  // Returns the results of a nest that returns only some of its pass; empty for other kernels.
  [[nodiscard]] Wanted own_results() const;

  // Returns blocks that fit, or the smallest blocks if none fit. `share` is for balanced blocks:
  // the most words they may move, divided by the fewest.
  // Throws (blocks(), plan() and least_M()): ShapeMismatch for shared keys, a mask or wanted
  // results that the kernel does not take, and for a prefetch above 1 if the kernel streams no
  // keys.
  [[nodiscard]] Blocks blocks(const Problem& problem, const Memory& memory, Objective objective,
                              double share = kBalancedShare) const;
  // Throws: FastMemoryTooSmall; CountOverflow.
  [[nodiscard]] Plan plan(const Problem& problem, const Memory& memory,
                          Objective objective = Objective::words) const;
  // Same, with the caller's blocks, which need not fit.
  [[nodiscard]] Plan plan(const Problem& problem, const Memory& memory, const Blocks& blocks) const;
  [[nodiscard]] Index least_M(const Problem& problem, Index prefetch = 1, Index multiple = 1) const;
  // Throws ShapeMismatch if the plan is for another kernel, or if the operands differ from the
  // plan's.
  void check(const Plan& plan, const Operands& io) const;
  // Runs the kernel. Throws the errors of check(), or FastMemoryOverflow if the plan's peak exceeds
  // the free words of the machine, before the first move. Later, it may throw the errors of the
  // store.
  void run(Machine& machine, const Plan& plan, const Operands& io, Workspace& workspace) const;
};

// Returns the matrices without the ones that this activation does not have.
std::vector<Signature> of_activation(std::vector<Signature> matrices, Activation activation);
// Returns the matrices without matrices of values, if values are keys.
std::vector<Signature> of_sharing(std::vector<Signature> matrices, Sharing sharing);
// Returns the results of all kernels of a pass.
const std::vector<Signature>& results_of(Pass pass);
// Returns the operand of this name, or null.
const Signature* find_operand(const std::vector<Signature>& operands, std::string_view name);

// A list of kernels. A kernel is made when any thread first asks for it, and it never moves.
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

  // Requires: `entries` outlives the list.
  explicit KernelList(std::span<const Entry> entries);
  [[nodiscard]] Iterator begin() const { return {*this, 0}; }
  [[nodiscard]] Iterator end() const { return {*this, size()}; }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] const Kernel& operator[](std::size_t place) const;
  [[nodiscard]] std::string_view name(std::size_t place) const { return entries_[place].name; }
  // Returns the kernel of this name, or null.
  [[nodiscard]] const Kernel* find(std::string_view name) const;

 private:
  struct Made {
    std::once_flag once;
    std::optional<Kernel> kernel;
  };
  std::span<const Entry> entries_;
  std::unique_ptr<Made[]> made_;
};

// All kernels, in the order of `redblue list`: for dense operands, then for sparse operands.
const KernelList& kernels();
const KernelList& sparse_kernels();
// Returns the kernel with this registered name. parse_kernel_name() also reads other spellings.
// Throws: std::out_of_range.
const Kernel& find_kernel(std::string_view name);

// A kernel and the sharing of its problem. The kernel NAME is spelled NAME-shared if values are
// keys.
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
    return (sharing != Sharing::kv                        ? ""
            : inputs_of(kernel->pass) == Inputs::weighted ? "where A3 is A2: "
                                                          : "where V is K: ") +
           std::string(kernel->summary);
  }
};
// Returns the operands of the plan's kernel.
std::vector<Signature> given_of(const Plan& plan);
// Returns the spellings of all dense kernels. Every NAME-shared comes after the other names.
const std::vector<KernelName>& kernel_names();
// Same, followed by the kernels for sparse operands.
const std::vector<KernelName>& all_kernel_names();
// Returns the names of one pass, in the same order. Kernels of other passes are not made.
std::vector<KernelName> all_kernel_names_of(Pass pass);
// Returns nullopt if the text is not a spelling of a kernel.
std::optional<KernelName> parse_kernel_name(std::string_view text);

}  // namespace redblue
