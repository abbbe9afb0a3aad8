// The redblue command. As a rank of an MPI job it becomes redblue-mpi from the same directory.

#include "tools/commands/redblue.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include <unistd.h>

#include "runtime/system/environment.hpp"

namespace {

// mpirun sets this variable for each process that it starts.
bool is_rank_of_a_job() {
  return redblue::variable("OMPI_COMM_WORLD_SIZE") != nullptr;
}

// Returns whether all ranks would print the same text, because they run no kernel. Then only the
// first rank prints it.
bool is_printed_once(std::span<char* const> words) {
  constexpr std::array<std::string_view, 4> kSubcommands = {"list", "count", "bounds", "plan"};
  constexpr std::array<std::string_view, 3> kFlags = {"--help", "-h", "--version"};
  const auto is_among = [](const auto& names) {
    return
        [&names](std::string_view word) { return std::ranges::find(names, word) != names.end(); };
  };
  return std::ranges::any_of(words.first(std::min<std::size_t>(words.size(), 1)),
                             is_among(kSubcommands)) ||
         std::ranges::any_of(words, is_among(kFlags));
}

bool is_first_rank() {
  const char* const rank = redblue::variable("OMPI_COMM_WORLD_RANK");
  return rank == nullptr || std::string_view(rank) == "0";
}

// Replaces this process by redblue-mpi. Returns only if that fails. Uses the directory of this
// program, not the working directory.
void become_rank(char** argv) {
  std::error_code error;
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!own.is_absolute()) {
    redblue::say_it(
        "mpirun started this, but /proc does not say where redblue is, and redblue-mpi beside it: "
        "mount /proc, or start redblue-mpi itself");
    return;
  }
  const std::string with_mpi = own.parent_path() / "redblue-mpi";
  execv(with_mpi.c_str(), argv);
  redblue::say_it("mpirun started this, but there is no " + with_mpi +
                  ": configure with -DREDBLUE_WITH_MPI=ON");
}

}  // namespace

int main(int argc, char** argv) {
  redblue::prepare_environment();
  const std::string_view subcommand = argc > 1 ? argv[1] : "";
  const bool once = is_printed_once({argv + std::min(argc, 1), argv + argc});
  if (once && is_rank_of_a_job() && !is_first_rank()) {
    return 0;
  }
  if (!once && (subcommand == "run" || subcommand == "calibrate") && is_rank_of_a_job()) {
    become_rank(argv);
    return 1;
  }
  return redblue::run_redblue(argc, argv);
}
