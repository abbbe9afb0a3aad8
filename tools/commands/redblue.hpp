#pragma once
// The complete redblue command. Data goes to standard output, messages to standard error.

#include <string>
#include <vector>

#include "memsim/ranks/transport.hpp"
#include "tools/cli/frame.hpp"

namespace redblue {

struct Arrays;  // runtime/run/arrays.hpp

inline constexpr const char* kDescription =
    "Counts every word that an attention kernel moves between a fast memory of M words and a "
    "slow memory, and computes its results.";

// Returns the subcommands. `transport` is as in run_redblue(). `arrays` holds the arrays of a
// calling program, which replace the files of `run`; null without one. Both must outlive the
// result.
std::vector<Subcommand> redblue_subcommands(Transport* transport, Arrays* arrays);

// Prepares the environment; must be the first call of main(), before any thread starts. Copies the
// environment variables, which later reads use. Hides hwloc's error messages unless the user asks
// for them.
void prepare_environment();

// Runs the command. `transport` belongs to the MPI job in which this process is a rank; null
// outside a job. Returns the exit code.
int run_redblue(int argc, char** argv, Transport* transport = nullptr,
                const Complaint& complain = say_it);

}  // namespace redblue
