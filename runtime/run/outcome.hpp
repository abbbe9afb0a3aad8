#pragma once
// The outcome of a run or a count. runtime/report/run_report.hpp formats it. All types are values.

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
#include "runtime/theory/rates.hpp"

namespace redblue {

// One kernel of a run. The plan is for one head of keys on one machine. The formulas and counts are
// sums over all workers and heads.
struct Part {
  Part() = default;
  Part(Plan of, Team by);
  // A part on sets of ranks. Each set is a grid, and the sets divide the heads. `forward` computes
  // O and L for this part on the same grids.
  Part(Plan of, const Grid& grid, const Plan* forward, Index heads, Index sets);

  Plan plan;
  Team team;
  std::optional<Ranks> ranks;  // set if the part runs on ranks
  std::vector<PhaseCost> formula;
  std::vector<LevelPlan> levels;     // formulas of inner levels, innermost first
  Words largest;                     // words moved by the busiest worker
  std::optional<RunCounts> counted;  // set after the run, with all members
  std::string unpinned;              // reason why worker threads were not pinned; empty: they were
  // Speed of multiply-adds right after the run, on as many workers. 0: not measured.
  double peak_gflops = 0;

  [[nodiscard]] Index heads() const { return plan.problem.stacked * team.heads; }
  // Returns the words moved: counted if the kernel ran, else by the formula.
  [[nodiscard]] Index io() const;
};

// The comparison of results with a double-precision evaluation. The element named here is the worst
// one: its error is the largest share of the allowed error.
struct Verdict {
  double error = 0;
  double allowed = 0;         // infinite if no limit is known
  std::optional<Index> head;  // a query head, for dK and dV a key head; set if there are several
  std::string output;
  Index row = 0;
  Index col = 0;
  bool ok = true;       // every element is within its allowed error
  double relative = 0;  // largest error over largest element, of the worst output
  // If the request gives O and L, the members above treat them as exact. given_off is their
  // distance from O and L computed from the other operands, measured as `relative`.
  std::optional<double> given_off;
  // For a nest, which computes no values: `ok` says whether the counts equal the formulas.
  bool of_counts = false;

  // Returns error / allowed.
  [[nodiscard]] double part() const;
};

// Facts about a run in a store on disk, or with stores of ranks.
struct StoreReport {
  struct OfPurpose {
    Purpose purpose;
    StoreTraffic traffic;
  };
  using Traffic = std::array<OfPurpose, kPurposes.size()>;
  // Facts about one rank with its home on disk. `buffered` is the most words of messages in memory
  // at once. `resident` is the most bytes of memory that its process used. Trivially copyable,
  // because ranks send it.
  struct OfRank {
    Traffic traffic = {};
    Index buffered = 0;
    std::uint64_t resident = 0;
  };

  std::string directory, engine;
  std::string no_uring, indirect;  // reasons why io_uring or direct I/O is off; empty: it is on
  Index granule_bytes = 0;
  int depth = 0;
  Traffic traffic = {};  // sum over all ranks
  std::vector<OfRank> ranks;
  Index checkpoints = 0, checkpoint_bytes = 0;
  std::vector<std::string> found;   // operands already in the store before the run
  std::optional<Index> resumed_at;  // units done when the run resumed; on ranks their sum
  std::uint64_t resident = 0;       // most bytes of memory that the process used
};

// The source of an operand.
enum class Origin { file, array, store, seed, made };
inline constexpr std::array kOrigins = {Origin::file, Origin::array, Origin::store, Origin::seed,
                                        Origin::made};
std::string_view to_string(Origin origin);
// Throws: std::invalid_argument.
Origin parse_origin(std::string_view text);
using Origins = std::map<std::string, Origin>;  // by operand

struct Report {
  std::string asked;  // name in the request, such as backward/auto
  Part kernel;
  Objective objective = Objective::words;  // objective by which the blocks were chosen
  double balanced_share = kBalancedShare;  // for balanced blocks: most words over the fewest
  std::optional<Plan> narrow = {};         // as in Choice
  Index multiple = 1;                      // block sizes are multiples of this
  std::vector<std::string> given_blocks;   // block sizes that the request set, not the objective
  // The largest proven lower bound for the kernel, on one machine, for all heads together.
  std::optional<Bound> bound;
  std::vector<std::string> given;          // names of the kernel's operands
  std::optional<Part> forward;             // the kernel that computed O and L for `kernel`
  bool from_nothing = true;                // false if the request gave O and L
  std::optional<FastMemoryOrigin> M_from;  // the cache that M is a share of
  // For each inner level: the cache that it is a share of, and its lower bound if one is known.
  std::vector<FastMemoryOrigin> inner_from;
  std::vector<std::optional<Bound>> level_bounds;
  std::size_t equal_levels = 1;  // number of levels of M words, if there are no inner levels
  std::optional<Device> device;  // the device that gave M and the inner levels
  // Cost of a word at each level, if the request sets it, and the calibration that it comes from.
  std::vector<double> word_costs;
  std::string word_costs_from;
  // The source of each sparse operand: a rule or a file. An operand not listed here has all
  // entries.
  std::map<std::string, std::string> sparse_sources;
  // The entries of sparse operands if the kernel takes them as dense matrices. Otherwise dense().
  Sparsity densified;
  Origins operands;  // sources of operands in a run, without O and L that it computes
  // Operands read from dense files that are not float32, with the type of the file.
  std::map<std::string, std::string> converted;
  std::optional<std::uint64_t> seed;  // seed of the operands that come from a seed
  // Seconds of each of several equal runs, forward pass included. The report describes the first
  // run.
  std::vector<double> repeated;
  // The calibration of this machine, if there is one.
  std::optional<Rates> calibration;
  std::optional<Verdict> error;
  std::optional<StoreReport> store;
};

}  // namespace redblue
