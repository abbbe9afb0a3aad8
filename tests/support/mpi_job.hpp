#pragma once
// Runs mpirun jobs in a test's directory.

#include <filesystem>
#include <string>
#include <vector>

#include "memsim/words.hpp"
#include "tests/support/process.hpp"

namespace redblue {

// A number of ranks and the command that each one runs, program first.
struct MpiRanks {
  Index ranks;
  std::vector<std::string> words;
};

// Returns the reason why this build or machine cannot run MPI jobs, or "" if it can.
std::string why_no_mpi_jobs();
// Returns a job with the ranks of each entry of `of`, in order. If not quiet, mpirun names the rank
// that ended the job.
Process mpi_job(const std::vector<MpiRanks>& of, const std::filesystem::path& directory,
                bool quiet = true);
// Returns the processes that work in this directory. `left_running_in` first gives ending processes
// some seconds.
std::vector<int> running_in(const std::filesystem::path& directory);
std::vector<int> left_running_in(const std::filesystem::path& directory);

}  // namespace redblue
