#pragma once
// Jobs of mpirun, in the directory of a test.

#include <filesystem>
#include <string>
#include <vector>

#include "memsim/words.hpp"
#include "tests/support/process.hpp"

namespace redblue {

// So many ranks that run these words, the program first.
struct MpiRanks {
  Index ranks;
  std::vector<std::string> words;
};

// Empty, or the reason why this build or this machine runs no jobs.
std::string why_no_mpi_jobs();
// The ranks of each, one after the other. mpirun is quiet, or says which rank ended the job.
Process mpi_job(const std::vector<MpiRanks>& of, const std::filesystem::path& directory,
                bool quiet = true);
// The processes that work in this directory; and those that are left, after those that are ending
// have had some seconds.
std::vector<int> running_in(const std::filesystem::path& directory);
std::vector<int> left_running_in(const std::filesystem::path& directory);

}  // namespace redblue
