#pragma once
// Checkpoints and resumes a part of a run on one rank. The rank's folder holds a checkpoint
// (redblue.checkpoint, or forward.checkpoint if the part computes O and L for another part) and a
// log of the rows of its home (redblue.words or forward.words).
//
// Some ranks may have finished more work than others before the run ended. Each rank resumes at its
// own checkpoint. If a slower rank needs rows from a faster rank again, the faster rank sends them
// again. These words are counted once.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "memsim/ranks/transport.hpp"
#include "runtime/ranks/rank_run.hpp"
#include "runtime/ranks/rank_steps.hpp"
#include "runtime/run/checkpoint.hpp"

namespace redblue {

// Return a rank's folder in the directory of the request's store, and the path of its checkpoint
// there. `makes_forward`: the checkpoint of the part that computes O and L.
std::filesystem::path folder_of_rank(const Request& request, Index rank);
std::filesystem::path checkpoint_of_rank(const Request& request, Index rank, bool makes_forward);

// Returns now - before.
Links links_since(const Links& before, const Links& now);
void add_links(const Links& more, Links& links);

class RankLog;

// The request must outlive this object. The home and the transport must live until run_rank()
// returns.
class RankResumption {
 public:
  // Restores the home to its state in the earlier run. Requires: the home holds the rank's initial
  // operands. `dealt`: ranks exchange rows of O and L before the stages of the kernel. Every rank
  // calls this constructor. Throws: as Resumption(), and note() for `facts`; InputError for a
  // damaged log; std::runtime_error if another process uses the files; std::system_error.
  RankResumption(const Request& request, bool makes_forward, const std::vector<std::string>& facts,
                 RankHome& home, Transport& transport, bool dealt);
  ~RankResumption();

  // Returns true if the ranks must exchange these rows, because some rank does not have them yet.
  [[nodiscard]] bool deals() const { return dealt_ && of_all_ == 0; }
  void have_dealt() { exchanged(1); }
  // Returns the remaining steps. The home must not move in memory until they are done.
  [[nodiscard]] RankSteps steps();
  // Returns the counts of links in earlier runs, for messages that are not sent again.
  [[nodiscard]] Links links_before() const;

  // The number of checkpoints and of bytes that this run wrote. `resumed` is 1 if the run resumed,
  // and `units` is the number of units done before.
  struct Summary {
    Index checkpoints = 0, bytes = 0, resumed = 0, units = 0;
  };
  [[nodiscard]] Summary summary() const;
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
  Index before_ = 0;  // units done by earlier runs
  Index of_all_ = 0;  // number of exchanges that every rank has finished
  Links at_start_;
  Index bytes_ = 0;  // bytes that this run added to the log
};

}  // namespace redblue
