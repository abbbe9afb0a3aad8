// The redblue command as a rank of an MPI job.

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

#include "runtime/mpi/mpi_transport.hpp"
#include "tools/commands/redblue.hpp"

int main(int argc, char** argv) {
  redblue::MpiJob job;
  const redblue::Index rank = job.transport().rank();
  // What several ranks find wrong the first of them says, and ends the others before they say it,
  // too.
  const auto complain = [rank](const std::string& what) {
    constexpr redblue::Index kMost = 10;
    std::this_thread::sleep_for(std::chrono::milliseconds(100) * std::min(rank, kMost));
    const bool named = rank == 0 || what.starts_with("rank ");
    redblue::say_it(named ? what : "rank " + std::to_string(rank) + ": " + what);
  };
  const int code = redblue::run_redblue(argc, argv, &job.transport(), complain);
  if (code != 0) {
    job.abandon(code);
  }
  return 0;
}
