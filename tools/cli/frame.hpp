#pragma once
// The frame of all commands that have subcommands: their --help, their --version, and the messages
// and exit codes of failures.

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/cli/command.hpp"

namespace redblue {

// The variables of the environment that commands read, and what each is for.
inline constexpr std::pair<std::string_view, std::string_view> kVariables[] = {
    {"REDBLUE_SIMD", "vector instructions to use; --simd overrides it"},
    {"XDG_CACHE_HOME", "directory of redblue/calibration.json (default: ~/.cache)"},
    {"PAPI_EVENTS", "event counters that `measure` reads, comma-separated"},
    {"HWLOC_XMLFILE", "describes another machine, in hwloc's format"},
    {"TMPDIR", "directory of temporary files (default: /tmp)"}};

struct Subcommand {
  std::string name;
  std::string help;
  std::function<Action(CLI::App&)> make;
  std::string group = "Subcommands";  // its heading in --help
};

// Says what went wrong: on standard error, where it is not one of several ranks that would all say
// it.
using Complaint = std::function<void(const std::string& what)>;
void say_it(const std::string& what);

// Throws: whatever goes wrong. Returns the exit code.
int execute_command(int argc, char** argv, const std::string& name, const std::string& description,
                    const std::vector<Subcommand>& subcommands);

// What an exception says to a person, and the exit code. Requires: one is being handled.
struct Failure {
  std::string what;
  int code;
};
Failure current_failure();

// Exit codes: 0 done; 1 failed: an input's content, a file, the memory, a verification; 2 usage:
// the command line asks for something that does not exist; 3 a difference from a baseline.
int run_command(int argc, char** argv, const std::string& name, const std::string& description,
                const std::vector<Subcommand>& subcommands, const Complaint& complain = say_it);

}  // namespace redblue
