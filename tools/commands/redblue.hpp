#pragma once
// The redblue command, whole. Data goes to standard output, words to standard error.

#include "memsim/ranks/transport.hpp"
#include "tools/cli/frame.hpp"

namespace redblue {

// `transport`: of the job of which this process is a rank; null: of none. Returns the exit code.
int run_redblue(int argc, char** argv, Transport* transport = nullptr,
                const Complaint& complain = say_it);

}  // namespace redblue
