#pragma once
// The redblue command, whole. Data goes to standard output, words to standard error.

#include <string>
#include <vector>

#include "memsim/ranks/transport.hpp"
#include "tools/cli/frame.hpp"

namespace redblue {

struct Arrays;  // runtime/run/arrays.hpp

inline constexpr const char* kDescription =
    "Counts every word that an attention kernel moves between a fast memory of M words and a "
    "slow store, and computes its results.";

// The subcommands. `transport` as below; `arrays`: of a program that calls, in place of files of
// `run`; null: none. They must outlive what is made here.
std::vector<Subcommand> redblue_subcommands(Transport* transport, Arrays* arrays);

// For the first line of main(), before any thread: reads the environment, which later is that of
// this moment, and hides what hwloc says of what it cannot find out, unless the user wants that.
void prepare_environment();

// `transport`: of the job of which this process is a rank; null: of none. Returns the exit code.
int run_redblue(int argc, char** argv, Transport* transport = nullptr,
                const Complaint& complain = say_it);

}  // namespace redblue
