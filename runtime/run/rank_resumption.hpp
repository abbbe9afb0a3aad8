#pragma once
// A part of a run on ranks, on one rank, that leaves checkpoints and resumes from those of an
// earlier run. Ranks that had got further than others resume there; what others need of them over
// links comes again, and is counted as if it came once.

#include <filesystem>
#include <string>

#include "memsim/ranks/transport.hpp"
#include "runtime/ranks/rank_run.hpp"
#include "runtime/ranks/rank_steps.hpp"
#include "runtime/run/rank_checkpoint.hpp"
#include "runtime/run/run.hpp"

namespace redblue {

// What went over links since then.
Links links_since(const Links& before, const Links& now);
void add_links(const Links& more, Links& links);

// `request` must outlive it; the home and the transport are used until run_rank() returns.
class RankResumption {
 public:
  // The operands that the rank begins with are at the home. `dealt`: rows of others are dealt out
  // before the stages of the kernel. Every rank calls. Throws: as RankCheckpoints.
  RankResumption(const Request& request, const std::string& name,
                 const RankCheckpoints::Facts& facts, RankHome& home, Transport& transport,
                 bool dealt);
  RankResumption(const RankResumption&) = delete;
  RankResumption& operator=(const RankResumption&) = delete;

  // Whether these rows are to be dealt out, because they are not yet there on all ranks.
  [[nodiscard]] bool deals() const { return dealt_ && of_all_ == 0; }
  void have_dealt() { exchanged(1); }
  // The rest; the home must not move meanwhile.
  [[nodiscard]] RankSteps steps();
  // What went over links in earlier runs and does not come again.
  [[nodiscard]] Links links_before() const;

  struct Told {
    Index checkpoints = 0, bytes = 0;
    bool resumed = false;
    Index units = 0;  // that were done before
  };
  [[nodiscard]] const Told& told() const { return told_; }
  void remove() { checkpoints_.remove(); }

 private:
  void exchanged(Index exchanges);
  void worked(Index stage, Index units, const RunCounts& counts);
  void keep();

  const Request& request_;
  RankHome* home_;
  Transport* transport_;
  bool dealt_;
  RankCheckpoints checkpoints_;
  RankProgress progress_;
  Index of_all_ = 0;  // exchanges that every rank has
  Links at_start_;
  Told told_;
};

}  // namespace redblue
