#pragma once
// The frame of all commands that have subcommands: their --help, their --version, and the messages
// and exit codes of failures.

#include <functional>
#include <string>
#include <vector>

#include "tools/cli/command.hpp"

namespace redblue {

struct Subcommand {
  std::string name;
  std::string help;
  std::function<Action(CLI::App&)> make;
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
