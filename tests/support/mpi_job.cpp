#include "tests/support/mpi_job.hpp"

#include <charconv>
#include <chrono>
#include <system_error>
#include <thread>

namespace redblue {
std::vector<int> running_in(const std::filesystem::path& directory) {
  std::vector<int> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    int process = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), process).ec != std::errc()) {
      continue;
    }
    std::error_code gone;
    if (std::filesystem::read_symlink(entry.path() / "cwd", gone) == directory && !gone) {
      found.push_back(process);
    }
  }
  return found;
}

std::string why_no_mpi_jobs() {
  static const std::string why = []() -> std::string {
    const std::filesystem::path with_mpi =
        std::filesystem::path(REDBLUE_COMMAND).parent_path() / "redblue-mpi";
    if (!std::filesystem::exists(with_mpi)) {
      return "built without MPI";
    }
    const Outcome job = mpi_job({{1, {"/bin/true"}}}, "/tmp").run();
    return job.code == 0 ? "" : "mpirun starts nothing on this machine: " + job.err;
  }();
  return why;
}

Process mpi_job(const std::vector<MpiRanks>& of, const std::filesystem::path& directory,
                bool quiet) {
  Process job{
      // mpirun may hang when a rank was killed, on a lock of PMIx while it ends.
      .words = {"/usr/bin/timeout", "-s", "KILL", "60", "/usr/bin/mpirun", "--oversubscribe",
                "--allow-run-as-root", "--bind-to", "none"},
      .environment = {"PATH=/usr/bin:/bin", "HOME=" + directory.string(),
                      "OMPI_MCA_plm_rsh_agent=", "OMPI_MCA_btl_vader_single_copy_mechanism=none"},
      .directory = directory};
  if (quiet) {
    job.words.emplace_back("-q");
  }
  for (const MpiRanks& some : of) {
    if (&some != &of.front()) {
      job.words.emplace_back(":");
    }
    job.words.insert(job.words.end(), {"-n", std::to_string(some.ranks)});
    job.words.insert(job.words.end(), some.words.begin(), some.words.end());
  }
  return job;
}

std::vector<int> left_running_in(const std::filesystem::path& directory) {
  std::vector<int> left = running_in(directory);
  for (int tries = 0; !left.empty() && tries < 1000; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    left = running_in(directory);
  }
  return left;
}

}  // namespace redblue
