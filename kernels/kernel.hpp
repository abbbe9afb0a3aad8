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

// What a plan's blocks are chosen for.
enum class Objective { words, time };

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

// What each phase moves and holds with these blocks.
using CostOfBlocks =
    std::function<std::vector<PhaseCost>(const Problem& problem, const Blocks& blocks)>;
// The same of an inner level.
using LevelCostOfBlocks = std::function<std::vector<PhaseCost>(
    const Problem& problem, const Blocks& blocks, std::size_t level)>;
// Which loops move them.
using NestOfBlocks = std::function<Nest(const Problem& problem, const Blocks& blocks)>;
// A number of words that blocks decide.
using WordsOfBlocks = std::function<Words(const Problem& problem, const Blocks& blocks)>;

// What a stage of a kernel works on where ranks in a grid do (runtime/ranks): row blocks and groups
// of keys; or queries, or keys, alone, each rank on those that it begins with.
enum class StageRows : std::uint8_t { place, own_queries, own_keys };

// Units of work that know nothing of each other, so that several machines may work on different
// ones, and that write disjoint rows.
struct SplitStage {
  std::function<Index(const Problem& problem, const Blocks& blocks)> units;
  // Where the kernel sums into g, each unit writes d rows of `partials`, which reduce() adds in the
  // order of the units. Without partials: adds to g, as the whole kernel on one machine does.
  std::function<void(Machine& machine, const Plan& plan, const Operands& io, Range units,
                     SlowMatrix* partials)>
      part;
  std::function<std::vector<PhaseCost>(const Problem& problem, const Blocks& blocks, Range units,
                                       bool partials)>
      part_cost;
  // The same of an inner level, of kernels that have them.
  std::function<std::vector<PhaseCost>(const Problem& problem, const Blocks& blocks, Range units,
                                       bool partials, std::size_t level)>
      level_cost = nullptr;
  // The matrices that it writes, where the units of a part share what stays in fast memory: a run
  // in steps then does all units in one, which writes these anew. Else empty.
  std::vector<std::string_view> at_once = {};
  // Of ranks in a grid (Split::on_grid). A rank brings rows of these matrices, operands and what
  // was left of own rows before, from those that begin with them; and of these what was left of its
  // own rows by the groups of all ranks.
  StageRows of = StageRows::place;
  std::vector<std::string_view> brings = {};
  std::vector<std::string_view> merges = {};
};

// What stages leave for each other, a matrix of live queries or keys: among the results of `io`.
struct Left {
  Signature matrix;
  // After some of the units of all stages the rows [0, rows) of it are there.
  std::function<Index(const Problem& problem, const Blocks& blocks, Index units)> rows;
  // So many, one below the other; empty: one. Of none there is no matrix.
  std::function<Index(const Problem& problem, const Blocks& blocks)> copies = nullptr;
};

// For kernels that several machines may work on. One stage begins when the one before it is over.
struct Split {
  std::vector<SplitStage> stages;
  std::vector<Left> left = {};
  // Those that there are, and how many of each.
  struct Copies {
    Signature matrix;
    Index copies;
    Index rows;  // after so many units
  };
  [[nodiscard]] std::vector<Copies> left_of(const Problem& problem, const Blocks& blocks,
                                            Index units = 0) const;
  // What stages leave besides, as large as results, of live queries and keys: a run in steps keeps
  // it where it keeps results.
  std::vector<Signature> left_as_results = {};
  // Matrices that the stages write which are not done at once, and no stage before these.
  std::vector<std::string_view> by_units = {};
  // Whether a run in steps that goes on after so many units writes all of a matrix again.
  [[nodiscard]] bool begins_anew(std::string_view matrix, const Plan& plan, Index units) const;
  // Whether it always does: all words that are not dead come in one step.
  [[nodiscard]] bool in_one_step(std::string_view matrix, const Plan& plan) const;
  // Of a kernel that sums into g, in its last stage. Else empty.
  std::function<void(Machine& machine, const Plan& plan, Range rows, const SlowMatrix& partials,
                     SlowMatrix& g)>
      reduce = nullptr;
  std::function<std::vector<PhaseCost>(const Problem& problem, const Blocks& blocks, Range rows)>
      reduce_cost = nullptr;
  std::function<std::vector<PhaseCost>(const Problem& problem, const Blocks& blocks, Range rows,
                                       std::size_t level)>
      reduce_level_cost = nullptr;
  // For ranks that have row blocks and groups of keys each (runtime/ranks): a rank works on the
  // problem of its queries and keys with the blocks of the whole.
  bool on_grid = false;
  // Of such a kernel that sums into g: adds the partials of some units, in their order, to g; to
  // what g holds where that is `begun`.
  std::function<void(Machine& machine, const Plan& plan, Range units, bool begun,
                     const SlowMatrix& partials, SlowMatrix& g)>
      add_partials = nullptr;
  std::function<std::vector<PhaseCost>(const Problem& problem, const Blocks& blocks, Index units,
                                       bool begun)>
      add_partials_cost = nullptr;
};

// What runs.
struct KernelSchedule {
  std::function<void(Machine& machine, const Plan& plan, const Operands& io, Workspace& workspace)>
      code;
  // Of kernels that may be split among machines.
  std::optional<Split> split = std::nullopt;
};

// What one machine runs stage after stage, with what they leave for each other in the workspace.
KernelSchedule in_stages(Split split);
// The matrices that stages leave for each other, in a workspace, and then those that are kept as
// results, in another; and with them what a run finds.
std::vector<SlowMatrix> left_matrices(const Split& split, const Plan& plan, Workspace& workspace,
                                      Workspace& as_results);
Operands with(Operands io, std::vector<SlowMatrix>& left);

// What it costs.
struct Formula {
  CostOfBlocks cost;
  // Of kernels that work in inner levels; else empty.
  LevelCostOfBlocks level_cost = nullptr;
  // The most words of the slow store that intermediates take at a time; empty: none.
  WordsOfBlocks intermediates = nullptr;
  // The loops with the words of each line; empty: not written down. Every kernel of the registry
  // has them.
  NestOfBlocks nest = nullptr;
};

struct OptionalBlock {
  std::string_view name;
  // The extent, and the size, that it must not pass; null: what is more is cut off.
  Index Shape::*limit = nullptr;
  Index most = std::numeric_limits<Index>::max();
};

// A block that each inner level has, of the same name (kernels/parts/levels.hpp), where the plan
// has that block.
struct InnerBlock {
  std::string name;
  // Cuts tiles: then it is of whole ones of the level inside, so that cuts fall together.
  bool cuts = false;
};

// Which blocks.
struct Fitting {
  // The fitting blocks that move the fewest words, or run fastest where they are others. Where
  // nothing fits: the smallest blocks.
  std::function<Blocks(const Problem& problem, const Memory& memory, Objective objective)> fit;
  // Takes a prefetch of more than 1.
  bool ahead = false;
  // The paper's own block sizes where they do not fit as printed; else empty.
  std::function<Blocks(const Problem& problem, const Memory& memory)> printed = nullptr;
  // The windows in which an operand is mostly read or written, for a store that lays it out so;
  // empty: some rows at a time.
  std::function<Window(const Signature& operand, const Problem& problem, const Blocks& blocks)>
      window = nullptr;
  // Of a kernel without: the rows of a result that are written at a time.
  std::function<Index(const Signature& result, const Problem& problem, const Blocks& blocks)>
      written = nullptr;
  // Blocks that a caller may choose though the fitted plan may lack them.
  std::vector<OptionalBlock> optional_blocks = {};
  // Of a kernel that works in inner levels.
  std::vector<InnerBlock> inner_blocks = {};
  // And in whose plans these may be 1: steps are apart in the innermost level (LevelBlocks::apart).
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
  // Y meets rows, not keys: q = (dO Y^T) A3^T and O = (f A3) Y in place of h = A3 Y. X meets
  // keys, not rows: s = A1 (X A2^T) in place of S = A1 X.
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
  // The kernel whose rates are taken where this one was never timed. Empty: none.
  std::string_view kin = {};
  // The axes of the kernel's family, each with its value for this kernel.
  std::vector<std::pair<std::string_view, std::string_view>> axes = {};

  KernelSchedule schedule;
  Formula formula;
  Fitting fitting;
  Numerics numerics = {};
  // Of one that takes masks: the kernel that works on live queries and keys alone
  // (kernels/masked.hpp). Else null.
  std::shared_ptr<const Kernel> of_live = nullptr;

  // All operands, or all but the values where these are the keys, and but O and L where these
  // are of no softmax.
  [[nodiscard]] std::vector<Signature> given(Sharing sharing = Sharing::none,
                                             Activation activation = Activation::softmax) const;
  [[nodiscard]] std::vector<Signature> given(const Problem& problem) const {
    return given(problem.sharing, problem.activation);
  }
  // All results, or all but those of values where these are the keys: dK is dK + dV there, and dA2
  // dA2 + dA3; and those that are wanted.
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
  // Of a kernel that may be split: the units of all stages.
  [[nodiscard]] Index units(const Plan& plan) const;
  [[nodiscard]] Words intermediates(const Plan& plan) const;
  // The problem with the inputs that this kernel has, of which all results are wanted where each is
  // named.
  [[nodiscard]] Problem with_inputs(Problem problem) const {
    problem.inputs = inputs_of(pass);
    if (returned(problem).size() == results(problem).size()) {
      problem.wanted = {};
    }
    return problem;
  }

  // The fitting blocks; where nothing fits, the smallest. Throws: ShapeMismatch for a prefetch of
  // more than 1 where no keys are streamed, and for shared keys, a mask or wanted results that the
  // kernel does not take, as do plan() and least_M().
  [[nodiscard]] Blocks blocks(const Problem& problem, const Memory& memory,
                              Objective objective) const;
  // Throws: FastMemoryTooSmall; CountOverflow.
  [[nodiscard]] Plan plan(const Problem& problem, const Memory& memory,
                          Objective objective = Objective::words) const;
  // The same with blocks of the caller's choice, whether they fit or not.
  [[nodiscard]] Plan plan(const Problem& problem, const Memory& memory, const Blocks& blocks) const;
  [[nodiscard]] Index least_M(const Problem& problem, Index prefetch = 1) const;
  // Throws: ShapeMismatch unless the plan is this kernel's and the operands are those it names.
  void check(const Plan& plan, const Operands& io) const;
  // Throws: what check() does, before anything moves; FastMemoryOverflow where the plan's peak does
  // not fit in what the machine has left; what the store throws.
  void run(Machine& machine, const Plan& plan, const Operands& io, Workspace& workspace) const;
};

// Those that there are under this activation.
std::vector<Signature> of_activation(std::vector<Signature> matrices, Activation activation);
// Without what is of values, where these are the keys.
std::vector<Signature> of_sharing(std::vector<Signature> matrices, Sharing sharing);
// What all kernels of a pass return.
const std::vector<Signature>& results_of(Pass pass);
// Null where none of them has this name.
const Signature* find_operand(const std::vector<Signature>& operands, std::string_view name);

// Kernels, each of which is made when it is first asked for, by any thread, and stays where it is.
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
  // Null where none is called so.
  [[nodiscard]] const Kernel* find(std::string_view name) const;

 private:
  struct Made {
    std::once_flag once;
    std::optional<Kernel> kernel;
  };
  std::span<const Entry> entries_;
  std::unique_ptr<Made[]> made_;
};

// All kernels, in the order in which `redblue list` shows them: those of dense operands, and those
// of sparse ones after them.
const KernelList& kernels();
const KernelList& sparse_kernels();
// By its registered name; a spelling is for parse_kernel_name(). Throws: std::out_of_range.
const Kernel& find_kernel(std::string_view name);

// A kernel and how it is asked to share: NAME-shared is another spelling of NAME where values are
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
    return (sharing == Sharing::none                      ? ""
            : inputs_of(kernel->pass) == Inputs::weighted ? "where A3 is A2: "
                                                          : "where V is K: ") +
           std::string(kernel->summary);
  }
};
// What the plan's kernel is given.
std::vector<Signature> given_of(const Plan& plan);
// All names with their spellings, those that share after the others.
const std::vector<KernelName>& kernel_names();
// The same, and those of sparse operands after them.
const std::vector<KernelName>& all_kernel_names();
// Nothing where no kernel is called so.
std::optional<KernelName> parse_kernel_name(std::string_view text);

}  // namespace redblue
