// The redblue command. As a rank of an MPI job it becomes redblue-mpi, which is beside it.

#include "tools/commands/redblue.hpp"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include <unistd.h>

namespace {

// mpirun says so to each process that it starts.
bool is_rank_of_a_job() {
  return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view subcommand = argc > 1 ? argv[1] : "";
  if ((subcommand == "run" || subcommand == "calibrate") && is_rank_of_a_job()) {
    std::error_code none;
    const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", none);
    const std::string with_mpi = own.parent_path() / "redblue-mpi";
    execv(with_mpi.c_str(), argv);
    redblue::say_it("mpirun started this, but there is no " + with_mpi +
                    ": configure with -DREDBLUE_WITH_MPI=ON");
    return 1;
  }
  return redblue::run_redblue(argc, argv);
}
