#pragma once
// The frame of the `redblue` command: what all subcommands share.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace redblue {

// One of a command's, with --help and --version as all have them.
CLI::App& add_subcommand(CLI::App& app, const std::string& name, const std::string& help);

// The text of an option and where it came from, for messages: the flag, or its environment
// twin (REDBLUE_N for --n). The flag wins.
struct Given {
  std::string text;
  std::string from;
};

// The commands that read an environment twin.
enum class Twin {
  shared,     // each that has the flag: REDBLUE_N for --n
  of_command  // one: REDBLUE_RECORD_OUT for --out of record. For files that are written, and
              // where a flag has another meaning than in other commands.
};

// An option of a subcommand with its environment twin. Options are taken as text and parsed
// by their subcommand, so that a message can name the culprit.
class TextOption {
 public:
  // `flags` is "--out", or with a short one before it "-o,--out".
  TextOption(CLI::App& app, const std::string& flags, const std::string& help,
             const std::string& type, Twin twin = Twin::shared);

  [[nodiscard]] const std::string& flag() const { return flag_; }
  // For messages: the flag, or its twin where that is what there is.
  [[nodiscard]] std::string said() const;
  [[nodiscard]] std::optional<Given> get() const;
  // For an option that may be given several times. Its twin holds a list, comma between.
  [[nodiscard]] std::vector<Given> all() const;
  // For one that holds such a list as a flag, too; given several times, all their items.
  [[nodiscard]] std::vector<Given> items() const;

 private:
  std::string flag_;
  CLI::Option* option_;
};

// An option without a value; its twin is 0 or 1.
class Switch {
 public:
  Switch(CLI::App& app, const std::string& flag, const std::string& help);
  [[nodiscard]] bool get() const { return from().has_value(); }
  // What sets it, for messages; nothing where it is not set.
  [[nodiscard]] std::optional<std::string> from() const;

 private:
  CLI::Option* option_;
};

// A word that a subcommand must have, without a flag: its kernel, its file.
class Argument {
 public:
  Argument(CLI::App& app, const std::string& name, const std::string& help);
  [[nodiscard]] const std::string& get() const;

 private:
  CLI::Option* option_;
};

// The words that ask for the same, from the subcommand's name on, with nothing left to the
// environment. Flags of `instead` have these values, where they have any.
std::vector<std::string> command_words(const CLI::App& app,
                                       const std::map<std::string, std::string>& instead = {});
// The same as a shell takes it, on one line, after the program's name: the command that made a
// file.
std::string command_line(const CLI::App& app);

enum class Format { table, json, csv };
// Throws: UsageError.
Format parse_format(const TextOption& option);

// Each adds its subcommand to the application; the action runs once all is parsed, prints its
// data on standard output and returns the exit code.
using Action = std::function<int()>;
Action add_list(CLI::App& app);
Action add_info(CLI::App& app);
Action add_bounds(CLI::App& app);
Action add_plan(CLI::App& app);
Action add_count(CLI::App& app);
Action add_run(CLI::App& app);
Action add_store(CLI::App& app);
Action add_measure(CLI::App& app);
Action add_calibrate(CLI::App& app);
Action add_table1(CLI::App& app);
Action add_sweep(CLI::App& app);
Action add_trace(CLI::App& app);
Action add_plot(CLI::App& app);
Action add_report(CLI::App& app);

}  // namespace redblue
