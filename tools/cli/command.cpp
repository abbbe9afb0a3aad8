#include "tools/cli/command.hpp"

#include <algorithm>
#include <cctype>
#include <sstream>

#include <CLI/CLI.hpp>

#include "runtime/system/build_info.hpp"
#include "runtime/system/environment.hpp"
#include "runtime/text/shell_word.hpp"
#include "tools/cli/sizes.hpp"

namespace redblue {
namespace {

std::string upper(std::string name) {
  std::ranges::transform(name, name.begin(), [](unsigned char c) {
    return static_cast<char>(c == '-' ? '_' : std::toupper(c));
  });
  return name;
}

// REDBLUE_BLOCKS for --blocks. The twin of --m keeps its case, because REDBLUE_M is that of --M.
std::string twin_of(const CLI::App& app, const std::string& flag, Twin twin) {
  const std::string name = flag.substr(2);
  std::string command;
  if (twin == Twin::of_command) {
    const CLI::App* top = &app;  // plot, for its kinds of pictures
    while (top->get_parent()->get_parent() != nullptr) {
      top = top->get_parent();
    }
    command = upper(top->get_name()) + "_";
  }
  return "REDBLUE_" + command + (name == "m" ? name : upper(name));
}

std::string with_twin(const std::string& help, const std::string& twin) {
  return help + " [" + twin + "]";
}

// The option's help text holds the name of its twin.
std::string twin_of(const CLI::Option& option) {
  const std::string help = option.get_description();
  const std::size_t from = help.rfind('[') + 1;
  return help.substr(from, help.size() - 1 - from);
}

std::string flag_of(const CLI::Option& option) {
  return "--" + option.get_lnames().front();
}

std::optional<Given> from_environment(const CLI::Option& option) {
  const std::string name = twin_of(option);
  const char* text = variable(name);
  if (text == nullptr || *text == '\0') {
    return std::nullopt;
  }
  return Given{text, name};
}

std::vector<Given> given_to(const CLI::Option& option) {
  std::vector<Given> given;
  if (option.count() > 0) {
    for (const std::string& text : option.results()) {
      given.push_back({text, flag_of(option)});
    }
  } else if (const auto twin = from_environment(option)) {
    std::istringstream list(twin->text);
    for (std::string text; std::getline(list, text, ',');) {
      given.push_back({text, twin->from});
    }
  }
  return given;
}

}  // namespace

CLI::App& add_subcommand(CLI::App& app, const std::string& name, const std::string& help) {
  CLI::App& command = *app.add_subcommand(name, help);
  command.set_version_flag("--version", "redblue " + std::string(build_info::kVersion));
  return command;
}

TextOption::TextOption(CLI::App& app, const std::string& flags, const std::string& help,
                       const std::string& type, Twin twin)
    : flag_(flags.substr(flags.find("--"))),
      option_(app.add_option(flags)
                  ->description(with_twin(help, twin_of(app, flag_, twin)))
                  ->type_name(type)) {
  option_->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

std::string TextOption::said() const {
  const std::vector<Given> given = all();
  return given.empty() ? flag_ : given.front().from;
}

std::optional<Given> TextOption::get() const {
  const std::vector<Given> given = all();
  if (given.size() > 1) {
    throw UsageError(given.front().from + " is given " + std::to_string(given.size()) +
                     " times; once is enough");
  }
  return given.empty() ? std::nullopt : std::optional(given.front());
}

std::vector<Given> TextOption::all() const {
  return given_to(*option_);
}

std::vector<Given> TextOption::items() const {
  std::vector<Given> items;
  for (const Given& given : all()) {
    std::istringstream list(given.text + ',');  // so that an empty last item counts
    for (std::string text; std::getline(list, text, ',');) {
      items.push_back({text, given.from});
    }
  }
  return items;
}

std::optional<GivenList> TextOption::list() const {
  if (option_->count() > 1) {
    static_cast<void>(get());
  }
  const std::vector<Given> given = items();
  if (given.empty()) {
    return std::nullopt;
  }
  Given whole = given.front();
  for (std::size_t k = 1; k < given.size(); ++k) {
    whole.text += "," + given[k].text;
  }
  return GivenList{std::move(whole), given};
}

Switch::Switch(CLI::App& app, const std::string& flag, const std::string& help)
    : option_(app.add_flag(flag)->description(with_twin(help, twin_of(app, flag, Twin::shared)))) {}

std::optional<std::string> Switch::from() const {
  if (option_->count() > 0) {
    if (option_->results().back() != "true") {
      throw UsageError(flag_of(*option_) + " takes no value");
    }
    return flag_of(*option_);
  }
  const auto twin = from_environment(*option_);
  if (twin && twin->text != "0" && twin->text != "1") {
    throw UsageError(twin->from + " '" + twin->text + "': expected 0 or 1");
  }
  return twin && twin->text == "1" ? std::optional(twin->from) : std::nullopt;
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
      for (const auto& [text, from] : given_to(*option)) {
        if (takes_a_value || text != "0") {
          words.push_back(flag);
        }
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
