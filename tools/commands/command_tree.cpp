#include "tools/commands/command_tree.hpp"

#include <utility>

#include <CLI/CLI.hpp>

namespace redblue {
namespace {

CommandOption described(const CLI::Option& option) {
  CommandOption described;
  for (const std::string& name : option.get_snames()) {
    described.names.push_back("-" + name);
  }
  for (const std::string& name : option.get_lnames()) {
    described.names.push_back("--" + name);
  }
  described.help = option.get_description();
  described.type = option.get_expected_max() > 0 ? option.get_type_name() : "";
  described.group = option.get_group();
  described.repeats = option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
  return described;
}

CommandTree described(const CLI::App& app, std::vector<std::string> path) {
  CommandTree tree{.path = std::move(path), .help = app.get_description()};
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) {
      tree.arguments.push_back({.name = option->get_name(true),
                                .help = option->get_description(),
                                .required = option->get_required(),
                                .several = option->get_allow_extra_args()});
    } else {
      tree.options.push_back(described(*option));
    }
  }
  for (const CLI::App* subcommand : app.get_subcommands(nullptr)) {
    std::vector<std::string> inner = tree.path;
    inner.push_back(subcommand->get_name());
    tree.subcommands.push_back(described(*subcommand, std::move(inner)));
  }
  return tree;
}

}  // namespace

CommandTree command_tree(const std::string& name, const std::string& description,
                         const std::vector<Subcommand>& subcommands) {
  CLI::App app(description, name);
  app.set_version_flag("--version", "");
  for (const Subcommand& subcommand : subcommands) {
    subcommand.make(add_subcommand(app, subcommand.name, subcommand.help));
  }
  return described(app, {name});
}

}  // namespace redblue
