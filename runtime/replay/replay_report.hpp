#pragma once
// Builds the report of `redblue replay`: the words that caches of several sizes move for the
// accesses of a trace or of a kernel's run. For a run, it also has the words that the kernel moves.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "memsim/phase.hpp"
#include "runtime/replay/replay.hpp"
#include "runtime/text/description.hpp"
#include "runtime/text/gnuplot.hpp"
#include "runtime/trace/followed_run.hpp"

namespace redblue {

// The unit of accesses: a word, or a piece of at most d words of a row, as the kernel's blocks cut
// it (run_accesses.hpp).
enum class ReplayUnit { word, row };
std::string_view to_string(ReplayUnit unit);

// A kernel's run: the words moved by its schedule, and its accesses.
struct TouchedRun {
  struct Level {
    Index M;
    RunCounts::Level counted;
  };
  FollowedRun run;
  PhaseCounts moved;
  std::vector<PhaseCounts> phases;
  Accesses accesses;
  std::vector<Level> inner = {};  // inner levels, from the innermost out
  // Returns the lower bound for fast memory of M words. Null if no lower bound is known.
  std::function<Index(Index M)> bound = nullptr;
  std::string note = {};  // for people: says which words are touched if arithmetic is not reported
};

struct ReplayReport {
  Replayed replayed = {};
  std::vector<Index> at = {};  // the sizes M to show, in rising order
  // The run of a kernel, if the accesses came from one. Its `accesses` are not used.
  std::optional<TouchedRun> kernel = {};
  ReplayUnit unit = ReplayUnit::word;
  bool per_phase = false;  // whether to show the reads of each phase at these sizes
};

// Returns the sizes to show, at least the widest unit: powers of two below the number of words,
// that number, and the peaks of a run.
std::vector<Index> sizes_shown(const ReplayReport& report);

// Describes the report. CSV has a row for each size, or with per_phase for each size of each phase.
Description describe(const ReplayReport& report);

// Draws the words moved by LRU and the reads of OPT against M, with the kernel's words and the
// lower bound. Requires: a run of a kernel.
Picture replay_picture(const ReplayReport& report);

}  // namespace redblue
