#pragma once
// The report of `redblue replay`: what caches of some sizes move for the accesses of a trace, or of
// a kernel's run, beside what the kernel moves.

#include <optional>
#include <string>
#include <vector>

#include "runtime/replay/replay.hpp"
#include "runtime/report/kernel_replay.hpp"
#include "runtime/text/gnuplot.hpp"

namespace redblue {

struct ReplayReport {
  Replayed replayed;
  std::vector<Index> at;  // the sizes M that are shown, rising
  // Of a run; its accesses are not looked at.
  std::optional<KernelAccesses> kernel = {};
  ReplayUnit unit = ReplayUnit::word;
  bool per_phase = false;  // reads of each phase, too, at these sizes
};

// Powers of two below the number of words, that number, and the peak of a run, where a unit fits.
std::vector<Index> sizes_shown(const ReplayReport& report);

std::string to_table(const ReplayReport& report);
std::string to_json(const ReplayReport& report);
// A row for each size; with per_phase for each size of each phase.
std::string to_csv(const ReplayReport& report);

// The words of LRU, and the reads of OPT, against M; the kernel's own and the lower bound.
// Requires: a run of a kernel.
Picture replay_picture(const ReplayReport& report);

}  // namespace redblue
