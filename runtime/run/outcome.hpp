#pragma once
// The outcome of a run or a count, as values. runtime/report/run_report.hpp writes it down.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/plan.hpp"
#include "memsim/phase.hpp"
#include "memsim/store/ledger.hpp"
#include "runtime/observe/devices.hpp"
#include "runtime/observe/topology.hpp"
#include "runtime/ranks/ranks.hpp"
#include "runtime/run/workers.hpp"
#include "runtime/theory/bounds.hpp"

namespace redblue {

// One kernel of a run: its plan for one head of keys on one machine, its workers and heads of keys,
// the formulas of all of these together, and the counts where it ran.
struct Part {
  Part() = default;
  Part(Plan of, Team by);
  // Of sets of ranks, each a grid, that share out heads; `forward` makes O and L for it on the
  // same.
  Part(Plan of, const Grid& grid, const Plan* forward, Index heads, Index sets);

  Plan plan;
  Team team;
  std::optional<Ranks> ranks;  // of a run on these
  std::vector<PhaseCost> formula;
  std::vector<LevelPlan> levels;     // the same of inner levels, from the innermost out
  Words largest;                     // the most words that one worker moves
  std::optional<RunCounts> counted;  // all members known
  std::string unpinned;              // the reason why the workers' threads were not pinned, if any
  double peak_gflops = 0;  // of multiply-adds right after it, on as many workers; 0: not measured

  [[nodiscard]] Index heads() const { return plan.problem.stacked * team.heads; }
  // The words moved: as counted, else by the formula.
  [[nodiscard]] Index io() const;
};

// The comparison of the results with the double-precision evaluation: the element with the largest
// part of the error that is allowed, and the properties of all elements.
struct Verdict {
  double error = 0;
  double allowed = 0;         // infinite where nothing can be said
  std::optional<Index> head;  // of queries, for dK and dV of keys; where there are several
  std::string output;
  Index row = 0;
  Index col = 0;
  bool ok = true;       // no element is further off than is allowed
  double relative = 0;  // the largest error over the largest element, of the worst output
  // The above takes O and L of the request as data. This is their distance, in the measure of
  // `relative`, from the O and L of the other operands.
  std::optional<double> given_off;

  // The error as a part of what is allowed.
  [[nodiscard]] double part() const;
};

// The facts of a run in a store on disk, or with stores of ranks.
struct StoreReport {
  struct OfPurpose {
    Purpose purpose;
    StoreTraffic traffic;
  };
  using Traffic = std::array<OfPurpose, kPurposes.size()>;
  // Of one rank, whose home is on disk: with the most words of messages that were in memory beside
  // it, and the most bytes that its process had there. Trivially copyable, as ranks send it.
  struct OfRank {
    Traffic traffic = {};
    Index buffered = 0;
    std::uint64_t resident = 0;
  };

  std::string directory, engine;
  std::string no_uring, indirect;  // the reasons why not io_uring and not direct; or empty
  Index granule_bytes = 0;
  int depth = 0;
  Traffic traffic = {};  // of all ranks
  std::vector<OfRank> ranks;
  Index checkpoints = 0, checkpoint_bytes = 0;
  std::vector<std::string> found;   // operands that the store had before the run
  std::optional<Index> resumed_at;  // row block
  std::uint64_t resident = 0;       // the most bytes that the process had in memory
};

// The source of an operand.
enum class Origin { file, array, store, seed, made };
inline constexpr std::array kOrigins = {Origin::file, Origin::array, Origin::store, Origin::seed,
                                        Origin::made};
std::string_view to_string(Origin origin);
// Throws: std::invalid_argument.
Origin parse_origin(std::string_view text);
using Origins = std::map<std::string, Origin>;  // by the names of operands

struct Report {
  std::string asked;  // the kernel's name, or a name such as backward/auto
  Part kernel;
  Objective objective = Objective::words;  // of the blocks that the plan chose
  Index multiple = 1;                      // that they are
  // The largest proven bound that holds for the kernel, on one machine, of all heads together.
  std::optional<Bound> bound;
  std::vector<std::string> given;          // names of the kernel's operands
  std::optional<Part> forward;             // the kernel that made O and L for `kernel`
  bool from_nothing = true;                // false when O and L came with the request
  std::optional<FastMemoryOrigin> M_from;  // the cache that M is a part of
  // Of inner levels: the caches that they are parts of, if they are, and their bounds, where there
  // is one of the machine.
  std::vector<FastMemoryOrigin> inner_from;
  std::vector<std::optional<Bound>> level_bounds;
  std::size_t equal_levels = 1;  // of M words, where there are no inner ones
  std::optional<Device> device;  // of which M and inner levels are
  // What a word costs at each level, where the request says so, and the calibration that does.
  std::vector<double> word_costs;
  std::string word_costs_from;
  // What a request says of sparse operands: a rule, or a file. All entries of the others are there.
  std::map<std::string, std::string> sparse_sources;
  // The entries of sparse operands where the kernel takes these as dense ones; else dense().
  Sparsity densified;
  Origins operands;  // of a run; without O and L that it makes itself
  // Operands whose dense files have another type than float32, and which.
  std::map<std::string, std::string> converted;
  std::optional<std::uint64_t> seed;  // of the operands that come from a seed
  // The seconds of each of several equal runs, with the forward pass. The report is of the first.
  std::vector<double> repeated;
  std::optional<Verdict> error;
  std::optional<StoreReport> store;
};

}  // namespace redblue
