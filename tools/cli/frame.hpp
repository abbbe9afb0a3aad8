#pragma once
// Runs a command that has subcommands: --help, --version, and messages and exit codes of failures.

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/cli/command.hpp"

namespace redblue {

// The environment variables that commands read, each with its purpose.
inline constexpr std::pair<std::string_view, std::string_view> kVariables[] = {
    {"REDBLUE_SIMD", "vector instructions to use, unless --simd names some"},
    {"XDG_CACHE_HOME",
     "directory of redblue/calibration.json, the file of `calibrate` (default: ~/.cache)"},
    {"PAPI_EVENTS", "event counters that `measure` reads, comma-separated"},
    {"HWLOC_XMLFILE",
     "file of `lstopo FILE.xml` that describes the machine to use instead of this one"},
    {"TMPDIR", "directory of temporary files (default: /tmp)"}};

struct Subcommand {
  std::string name;
  std::string help;
  std::function<Action(CLI::App&)> make;
  std::string group = "Subcommands";  // its heading in --help
};

// Reports a failure. The default, say_it(), prints it to standard error. Ranks of a job replace it,
// so that they do not all print the same message.
using Complaint = std::function<void(const std::string& what)>;
void say_it(const std::string& what);

// Runs the command and returns its exit code. Throws: any exception of the command.
int execute_command(int argc, char** argv, const std::string& name, const std::string& description,
                    const std::vector<Subcommand>& subcommands);

// The message and the exit code of the current exception. Requires: an exception is being handled.
struct Failure {
  std::string what;
  int code;
};
Failure current_failure();

// Runs the command, reports failures to `complain` and returns the exit code. 0: done. 1: failed,
// for example an input file, memory or a verification. 2: usage, when the command line asks for
// something that does not exist. 3: a difference from a baseline.
int run_command(int argc, char** argv, const std::string& name, const std::string& description,
                const std::vector<Subcommand>& subcommands, const Complaint& complain = say_it);

}  // namespace redblue
