// The redblue command as a rank of an MPI job.

#include <chrono>
#include <string>
#include <thread>

#include "runtime/mpi/mpi_transport.hpp"
#include "tools/commands/redblue.hpp"

int main(int argc, char** argv) {
  redblue::MpiJob job;
  const redblue::Index rank = job.transport().rank();
  // What all ranks find wrong the first says, and ends the others before they say it, too.
  const auto complain = [rank](const std::string& what) {
    if (rank > 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
    }
    redblue::say_it(rank == 0 ? what : "rank " + std::to_string(rank) + ": " + what);
  };
  const int code = redblue::run_redblue(argc, argv, &job.transport(), complain);
  if (code != 0) {
    job.abandon(code);
  }
  return 0;
}
