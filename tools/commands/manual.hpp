#pragma once
// Makes manual pages of a command and its subcommands: in troff for man(1), or in Markdown for the
// project's pages.

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

// Returns a page for the command and for each subcommand. Nested subcommands are part of their
// parent's page.
std::vector<ManualPage> manual_pages(const CommandTree& root);

// Returns the pages in Markdown: the usage of each subcommand, and its options by group.
std::vector<ManualPage> markdown_pages(const CommandTree& root);

Action add_manual(CLI::App& app, const std::function<CommandTree()>& tree);

}  // namespace redblue
