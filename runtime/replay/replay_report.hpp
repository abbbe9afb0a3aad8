#pragma once
// The report of `redblue replay`: what caches of some sizes move for the accesses of a trace, or of
// a kernel's run, beside what the kernel moves.

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

// What a cache finds or lacks as a whole: a word, or a piece of at most d words of a row, as the
// kernel's blocks cut it (run_accesses.hpp).
enum class ReplayUnit { word, row };
std::string_view to_string(ReplayUnit unit);

// A run: what it moves by its schedule, and what it touches.
struct TouchedRun {
  struct Level {
    Index M;
    RunCounts::Level counted;
  };
  FollowedRun run;
  PhaseCounts moved;
  std::vector<PhaseCounts> phases;
  Accesses accesses;
  std::vector<Level> inner = {};  // levels, from the innermost out
  // The words that any algorithm of its kind moves at least with M words; null: none is known.
  std::function<Index(Index M)> bound = nullptr;
  std::string note = {};  // for people: what is touched, where arithmetic does not say it
};

struct ReplayReport {
  Replayed replayed = {};
  std::vector<Index> at = {};  // the sizes M that are shown, rising
  // Of a run; its accesses are not looked at.
  std::optional<TouchedRun> kernel = {};
  ReplayUnit unit = ReplayUnit::word;
  bool per_phase = false;  // reads of each phase, too, at these sizes
};

// Powers of two below the number of words, that number, and the peak of a run, where a unit fits.
std::vector<Index> sizes_shown(const ReplayReport& report);

// CSV has a row for each size; with per_phase for each size of each phase.
Description describe(const ReplayReport& report);

// The words of LRU, and the reads of OPT, against M; the kernel's own and the lower bound.
// Requires: a run of a kernel.
Picture replay_picture(const ReplayReport& report);

}  // namespace redblue
