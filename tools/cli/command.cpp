#include "tools/cli/command.hpp"

#include <CLI/CLI.hpp>

#include "runtime/system/build_info.hpp"
#include "runtime/text/shell_word.hpp"
#include "runtime/text/sizes.hpp"

namespace redblue {
namespace {

std::string flag_of(const CLI::Option& option) {
  return "--" + option.get_lnames().front();
}

}  // namespace

CLI::App& add_subcommand(CLI::App& app, const std::string& name, const std::string& help) {
  CLI::App& command = *app.add_subcommand(name, help);
  command.set_version_flag("--version", "redblue " + std::string(build_info::kVersion));
  return command;
}

TextOption::TextOption(CLI::App& app, const std::string& flags, const std::string& help,
                       const std::string& type, std::string_view group, bool repeats)
    : flag_(flags.substr(flags.find("--"))),
      option_(app.add_option(flags)->description(help)->type_name(type)) {
  // In both policies CLI11 keeps all texts, so that get() can count them.
  option_->expected(1)->multi_option_policy(repeats ? CLI::MultiOptionPolicy::TakeAll
                                                    : CLI::MultiOptionPolicy::TakeLast);
  if (!group.empty()) {
    option_->group(std::string(group));
  }
}

std::optional<Given> TextOption::get() const {
  return at_most_one(all());
}

std::vector<Given> TextOption::all() const {
  std::vector<Given> given;
  for (const std::string& text : option_->results()) {
    given.push_back({text, flag()});
  }
  return given;
}

std::vector<Given> TextOption::items() const {
  return between_commas(all());
}

Switch::Switch(CLI::App& app, const std::string& flag, const std::string& help,
               std::string_view group)
    : option_(app.add_flag(flag)->description(help)) {
  if (!group.empty()) {
    option_->group(std::string(group));
  }
}

std::optional<std::string> Switch::from() const {
  if (option_->count() == 0) {
    return std::nullopt;
  }
  if (option_->results().back() != "true") {
    throw UsageError(flag_of(*option_) + " takes no value");
  }
  return flag_of(*option_);
}

Argument::Argument(CLI::App& app, const std::string& name, const std::string& help)
    : option_(app.add_option(name)->description(help)->required()->expected(1)->option_text(" ")) {}

const std::string& Argument::get() const {
  return option_->results().front();
}

OptionalArgument::OptionalArgument(CLI::App& app, const std::string& name, const std::string& help)
    : option_(app.add_option(name)->description(help)->expected(1)->option_text(" ")) {}

std::optional<std::string> OptionalArgument::get() const {
  return option_->count() > 0 ? std::optional(option_->results().front()) : std::nullopt;
}

ArgumentList::ArgumentList(CLI::App& app, const std::string& name, const std::string& help)
    : option_(app.add_option(name)
                  ->description(help)
                  ->required()
                  ->expected(-1)
                  ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
                  ->option_text("...")) {}

std::vector<std::string> ArgumentList::get() const {
  return option_->results();
}

std::vector<std::string> command_words(const CLI::App& app,
                                       const std::map<std::string, std::string>& instead) {
  if (app.get_parent() == nullptr) {
    return {};
  }
  std::vector<std::string> words = command_words(*app.get_parent(), instead);
  words.push_back(app.get_name());
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) {
      words.insert(words.end(), option->results().begin(), option->results().end());
    } else if (option != app.get_help_ptr() && option != app.get_version_ptr()) {
      const std::string flag = flag_of(*option);
      const bool takes_a_value = option->get_expected_max() > 0;
      for (const std::string& text : option->results()) {
        words.push_back(flag);
        if (takes_a_value) {
          const auto other = instead.find(flag);
          words.push_back(other == instead.end() ? text : other->second);
        }
      }
    }
  }
  return words;
}

std::string program_name(const CLI::App& app) {
  const CLI::App* root = &app;
  while (root->get_parent() != nullptr) {
    root = root->get_parent();
  }
  return root->get_name();
}

std::string command_line(const CLI::App& app) {
  std::string line = program_name(app);
  for (const std::string& word : command_words(app)) {
    line += " " + shell_word(word);
  }
  return line;
}

Format parse_format(const TextOption& option) {
  const auto given = option.get();
  if (!given || given->text == "table") {
    return Format::table;
  }
  if (given->text == "json") {
    return Format::json;
  }
  if (given->text == "csv") {
    return Format::csv;
  }
  throw UsageError(given->from + " '" + given->text + "': expected table, json or csv");
}

}  // namespace redblue
