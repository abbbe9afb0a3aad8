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
  } catch (const std::exception&) {  // the failure before it is the one to say
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
  // What several ranks find wrong the first of them says, and ends the others before they say it,
  // too. On a busy machine that takes tenths of a second.
  constexpr redblue::Index kMost = 10;
  std::this_thread::sleep_for(std::chrono::milliseconds(400) * std::min(rank, kMost));
  const bool named = rank == 0 || failure->starts_with("rank ");
  redblue::say_it(named ? *failure : "rank " + std::to_string(rank) + ": " + *failure);
  job.abandon(code);
}
