#pragma once
// Manual pages of a command and of each of its subcommands: in troff for man(1), or in Markdown for
// the project's pages.

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

// The same in Markdown: how a subcommand is used, and its options by group.
std::vector<ManualPage> markdown_pages(const CommandTree& root);

Action add_manual(CLI::App& app, const std::function<CommandTree()>& tree);

}  // namespace redblue
