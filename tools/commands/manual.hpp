#pragma once
// Manual pages in troff, for man(1): of a command, and of each of its subcommands.

#include <functional>
#include <string>
#include <vector>

#include "tools/cli/command.hpp"
#include "tools/commands/command_tree.hpp"

namespace redblue {

struct ManualPage {
  std::string name;  // redblue-run
  std::string text;
};

// The page of a subcommand with subcommands of its own has these, too.
std::vector<ManualPage> manual_pages(const CommandTree& root);

Action add_manual(CLI::App& app, const std::function<CommandTree()>& tree);

}  // namespace redblue
