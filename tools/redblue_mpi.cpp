// The redblue command as a rank of an MPI job.

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <string>
#include <thread>

#include "runtime/mpi/mpi_transport.hpp"
#include "tools/commands/redblue.hpp"

namespace {

bool all_failed_at_start(redblue::MpiJob& job) {
  try {
    return job.all_failed_at_start();
  } catch (const std::exception&) {  // the earlier failure is the one to report
    return false;
  }
}

}  // namespace

int main(int argc, char** argv) {
  redblue::prepare_environment();
  redblue::MpiJob job;
  const redblue::Index rank = job.transport().rank();
  std::optional<std::string> failure;
  const int code = redblue::run_redblue(argc, argv, &job.transport(),
                                        [&](const std::string& what) { failure = what; });
  if (!failure) {
    return code;
  }
  if (all_failed_at_start(job)) {
    if (rank == 0) {
      redblue::say_it(*failure);
    }
    return code;
  }
  // Several ranks may find the same error. Rank 0 reports first and ends the job, before the others
  // report. On a busy machine that takes tenths of a second, so higher ranks wait longer.
  constexpr redblue::Index kMost = 10;
  std::this_thread::sleep_for(std::chrono::milliseconds(400) * std::min(rank, kMost));
  const bool named = rank == 0 || failure->starts_with("rank ");
  redblue::say_it(named ? *failure : "rank " + std::to_string(rank) + ": " + *failure);
  job.abandon(code);
}
