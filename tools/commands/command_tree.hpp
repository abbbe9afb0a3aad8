#pragma once
// Describes a command with all its subcommands, for manual pages and completions.

#include <string>
#include <vector>

#include "tools/cli/frame.hpp"

namespace redblue {

struct CommandOption {
  std::vector<std::string> names;  // -o, --out
  std::string help;
  std::string type;   // type of its value, such as NUMBER or table|json|csv; empty for a switch
  std::string group;  // its heading in --help
  bool repeats = false;
};

struct CommandArgument {
  std::string name;
  std::string help;
  bool required = false;
  bool several = false;
};

struct CommandTree {
  std::vector<std::string> path;  // the program and the names of subcommands
  std::string help;
  std::vector<CommandArgument> arguments = {};
  std::vector<CommandOption> options = {};
  std::vector<CommandTree> subcommands = {};
};

CommandTree command_tree(const std::string& name, const std::string& description,
                         const std::vector<Subcommand>& subcommands);

}  // namespace redblue
