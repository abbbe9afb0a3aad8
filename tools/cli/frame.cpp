#include "tools/cli/frame.hpp"

#include <algorithm>
#include <csignal>
#include <exception>
#include <filesystem>
#include <new>
#include <span>
#include <sstream>
#include <stdexcept>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kernels/nearest.hpp"
#include "memsim/errors.hpp"
#include "runtime/system/build_info.hpp"
#include "runtime/text/sizes.hpp"
#include "tools/cli/interruption.hpp"
#include "tools/cli/print.hpp"

namespace redblue {
namespace {

// Throws: UsageError if a word is not a subcommand of `app`, or of the subcommand before it.
void check_subcommands(const CLI::App& app, std::span<char* const> words) {
  const std::vector<const CLI::App*> subcommands = app.get_subcommands(nullptr);
  if (subcommands.empty() || words.empty() || words.front()[0] == '-') {
    return;
  }
  const std::string_view word = words.front();
  std::vector<std::string_view> names;
  for (const CLI::App* subcommand : subcommands) {
    if (subcommand->get_name() == word) {
      return check_subcommands(*subcommand, words.subspan(1));
    }
    names.emplace_back(subcommand->get_name());
  }
  if (word.find('/') != std::string_view::npos) {
    throw UsageError(fmt::format("'{0}' is no subcommand; a kernel comes after one: {1} count {0}",
                                 word, app.get_name()));
  }
  throw UsageError(fmt::format("no subcommand is called '{}': did you mean {}?", word,
                               fmt::join(nearest(word, names), " or ")));
}

// Returns the subcommand that the first word names. Otherwise returns all of them, for the help and
// for messages.
std::span<const Subcommand> spoken_of(std::span<char* const> words,
                                      std::span<const Subcommand> all) {
  const auto found =
      words.empty() ? all.end() : std::ranges::find(all, words.front(), &Subcommand::name);
  return found == all.end() ? all : all.subspan(static_cast<std::size_t>(found - all.begin()), 1);
}

// Returns the command that the words named, such as `count` below `redblue`.
const CLI::App& command_of(const CLI::App& app) {
  return app.get_subcommands().empty() ? app : command_of(*app.get_subcommands().front());
}

// Returns the line that prints the options: "redblue count --help".
std::string help_of(const CLI::App& app) {
  const CLI::App& command = command_of(app);
  std::string line = command.get_name() + " --help";
  for (const CLI::App* above = command.get_parent(); above != nullptr;
       above = above->get_parent()) {
    line = above->get_name() + " " + line;
  }
  return line;
}

// Returns a hint with the option that is nearest to the first unknown word.
std::string meant_by(const CLI::App& app, const std::vector<std::string>& extras) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command_of(app).get_options()) {
    names.insert(names.end(), option->get_lnames().begin(), option->get_lnames().end());
  }
  constexpr std::string_view kDashes = "--";
  std::string word = extras.front().substr(0, extras.front().find('='));
  if (!word.starts_with(kDashes)) {
    return "";
  }
  word.erase(0, kDashes.size());
  const std::string meant = near(word, std::vector<std::string_view>(names.begin(), names.end()));
  return meant.empty() ? "" : fmt::format(": did you mean {}{}?", kDashes, meant);
}

// Rewrites "filesystem error: cannot create directories: Not a directory [x]" in the style of
// redblue's messages.
std::string said_of(const std::filesystem::filesystem_error& error) {
  constexpr std::string_view kHead = "filesystem error: ";
  const std::string reason = error.code().message();
  std::string_view what = error.what();
  what.remove_prefix(what.starts_with(kHead) ? kHead.size() : 0);
  std::string line(what.substr(0, what.find(": " + reason)));
  for (const std::filesystem::path& path : {error.path1(), error.path2()}) {
    line += path.empty() ? "" : fmt::format(" '{}'", path.string());
  }
  return line + ": " + reason;
}

}  // namespace

int execute_command(int argc, char** argv, const std::string& name, const std::string& description,
                    const std::vector<Subcommand>& subcommands) {
  CLI::App app(description, name);
  app.set_version_flag("--version", "redblue " + std::string(build_info::kVersion));
  app.require_subcommand(1);
  app.footer([] {
    std::string text = "Environment:";
    for (const auto& [variable, help] : kVariables) {
      text += fmt::format("\n  {:<27}{}", variable, help);
    }
    return text;
  });
  const std::span<char* const> words(argv + std::min(argc, 1), argv + argc);
  Action action;
  // Makes only the needed subcommands: making all options takes milliseconds at each start.
  const std::span<const Subcommand> spoken = spoken_of(words, subcommands);
  for (const Subcommand& subcommand : spoken) {
    CLI::App& command = add_subcommand(app, subcommand.name, subcommand.help);
    command.group(subcommand.group);
    if (spoken.size() == 1 || std::ranges::find(words, subcommand.name) != words.end()) {
      command.final_callback([&action, chosen = subcommand.make(command)] { action = chosen; });
    }
  }

  try {
    check_subcommands(app, words);
    app.parse(argc, argv);
  } catch (const CLI::Success& asked_for_words) {  // --help, --version
    std::ostringstream text;
    app.exit(asked_for_words, text, text);
    print(text.str());
    return 0;
  } catch (const CLI::ExtrasError&) {  // its text has the arguments in reverse order
    constexpr bool kOfSubcommandsToo = true;
    const std::vector<std::string> extras = app.remaining(kOfSubcommandsToo);
    throw UsageError(fmt::format("The following argument{} not expected: {}{} ({})",
                                 extras.size() == 1 ? " was" : "s were", fmt::join(extras, " "),
                                 meant_by(app, extras), help_of(app)));
  } catch (const CLI::Error& error) {
    throw UsageError(fmt::format("{} ({})", error.what(), help_of(app)));
  }
  return action();
}

void say_it(const std::string& what) {
  say(what);
}

Failure current_failure() {
  try {
    throw;
  } catch (const UsageError& error) {
    return {error.what(), 2};
  } catch (const std::invalid_argument& error) {  // an impossible request: M too small
    return {error.what(), 2};
  } catch (const CountOverflow& error) {
    return {error.what(), 2};
  } catch (const std::bad_alloc&) {
    return {"out of memory: take smaller n, m or d", 1};
  } catch (const std::filesystem::filesystem_error& error) {
    return {said_of(error), 1};
  } catch (const std::exception& error) {
    return {error.what(), 1};
  } catch (...) {
    return {"ended by an exception that is no std::exception", 1};
  }
}

int run_command(int argc, char** argv, const std::string& name, const std::string& description,
                const std::vector<Subcommand>& subcommands, const Complaint& complain) {
  // Without the signal a write to a closed pipe fails and is reported, like a full disk.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a write over the file size limit then fails
  remove_files_when_ended();
  try {
    return execute_command(argc, argv, name, description, subcommands);
  } catch (...) {
    const Failure failure = current_failure();
    complain(failure.what);
    return failure.code;
  }
}

}  // namespace redblue
