#pragma once
// A part of a run on ranks, on one rank, that leaves checkpoints and resumes from an earlier run.
// In the rank's folder are a checkpoint (redblue.checkpoint, or forward.checkpoint of a part that
// makes O and L) and a log of the rows of its home (redblue.words). Ranks that had got further than
// others resume there; what others need of them over links comes again, and is counted as if it
// came once.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "memsim/ranks/transport.hpp"
#include "runtime/ranks/rank_run.hpp"
#include "runtime/ranks/rank_steps.hpp"
#include "runtime/run/checkpoint.hpp"

namespace redblue {

// The folder of a rank in the directory of a request's store, and the checkpoint there of a part
// that makes O and L for another one, or of the other.
std::filesystem::path folder_of_rank(const Request& request, Index rank);
std::filesystem::path checkpoint_of_rank(const Request& request, Index rank, bool makes_forward);

// The counts of links since then.
Links links_since(const Links& before, const Links& now);
void add_links(const Links& more, Links& links);

class RankLog;

// `request` must outlive it; the home and the transport are used until run_rank() returns.
class RankResumption {
 public:
  // The operands that the rank begins with are at the home, which is brought to where the earlier
  // run left it. `dealt`: rows of others are dealt out before the stages of the kernel. Every rank
  // calls. Throws: as Resumption(), and note() of the facts; InputError for a damaged log;
  // std::runtime_error where another process has the files; std::system_error.
  RankResumption(const Request& request, bool makes_forward, const std::vector<std::string>& facts,
                 RankHome& home, Transport& transport, bool dealt);
  ~RankResumption();

  // Whether these rows are to be dealt out, because they are not yet there on all ranks.
  [[nodiscard]] bool deals() const { return dealt_ && of_all_ == 0; }
  void have_dealt() { exchanged(1); }
  // The rest; the home must not move meanwhile.
  [[nodiscard]] RankSteps steps();
  // The counts of links in earlier runs, of messages that are not sent again.
  [[nodiscard]] Links links_before() const;

  // The checkpoints and bytes that this run wrote, 1 if it resumed, and the units done before it.
  struct Told {
    Index checkpoints = 0, bytes = 0, resumed = 0, units = 0;
  };
  [[nodiscard]] Told told() const;
  void remove();

 private:
  void exchanged(Index exchanges);
  void worked(Index units, const RunCounts& counts);
  void keep();

  const Request& request_;
  RankHome* home_;
  Transport* transport_;
  bool dealt_;
  std::unique_ptr<RankLog> log_;
  Resumption resumption_;
  Index before_ = 0;  // units
  Index of_all_ = 0;  // exchanges that every rank has
  Links at_start_;
  Index bytes_ = 0;  // of the log, that this run wrote
};

}  // namespace redblue
