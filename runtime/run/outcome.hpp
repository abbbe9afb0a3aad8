#pragma once
// What a run or a count found, as values; runtime/report/run_report.hpp writes them down.

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
#include "runtime/observe/topology.hpp"
#include "runtime/run/workers.hpp"
#include "runtime/theory/bounds.hpp"

namespace redblue {

// One kernel: its plan for one head on one machine, who works on it, what the formulas say of all
// heads and workers together, and what was counted if it ran.
struct Part {
  Part() = default;
  Part(Plan of, Team by);

  Plan plan;
  Team team;
  std::vector<PhaseCost> formula;
  Words largest;                     // the most words that one worker moves
  std::optional<RunCounts> counted;  // with seconds, where it ran
  std::string unpinned;              // why its workers' threads were not pinned; empty: they were
  double peak_gflops = 0;  // what multiply-adds reached beside it, by as many workers; or 0

  // Words moved: as counted, else by the formula.
  [[nodiscard]] Index io() const;
};

// How the results compare with the double-precision evaluation: the element that comes closest
// to its proven bound, or exceeds it most, and what holds of all elements.
struct Verdict {
  double error = 0;
  double bound = 0;
  double expected = 0;        // what independent roundings explain
  std::optional<Index> head;  // where there are several
  std::string output;
  Index row = 0;
  Index col = 0;
  bool ok = true;         // every element keeps its proven bound
  bool explained = true;  // every element keeps what is expected
  double relative = 0;    // the largest error over the largest element, of the worst output
  // Where O and L came with the request, and are data to the above: how far they are, in the
  // same measure, from those of A1, A2, A3, X and Y.
  std::optional<double> given_off;
};

// What a run in a store on disk has to say of it.
struct StoreReport {
  std::string directory, engine;
  std::string no_uring, indirect;  // empty, or why
  Index granule_bytes = 0;
  int depth = 0;
  std::map<Purpose, StoreTraffic> traffic;
  Index checkpoints = 0, checkpoint_bytes = 0;
  std::vector<std::string> found;   // operands that the store had
  std::optional<Index> resumed_at;  // row block
  std::uint64_t resident = 0;       // bytes of the process, at most so far
};

// Where an operand comes from.
enum class Origin { file, store, seed, made };
inline constexpr std::array kOrigins = {Origin::file, Origin::store, Origin::seed, Origin::made};
std::string_view to_string(Origin origin);
// Throws: std::invalid_argument for what is none.
Origin parse_origin(std::string_view text);
using Origins = std::map<std::string, Origin>;  // by the names of operands

struct Report {
  std::string asked;  // the kernel's name, or that which left the choice to the planner
  Part kernel;
  // The largest proven bound that holds for the kernel, on one machine and for one head.
  std::optional<Bound> bound;
  std::vector<std::string> given;          // names of the kernel's operands
  std::optional<Part> forward;             // the kernel that made O and L when nobody gave them
  bool from_nothing = true;                // false when O and L came with the request
  std::optional<FastMemoryOrigin> M_from;  // where M is a part of a cache
  Origins operands;                        // of a run; without O and L that it makes itself
  std::optional<std::uint64_t> seed;       // where an operand comes from it
  std::optional<Verdict> error;
  std::optional<StoreReport> store;
};

}  // namespace redblue
