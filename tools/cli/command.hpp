#pragma once
// The frame of the `redblue` command, shared by all subcommands.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/sizes.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace redblue {

class Transport;
struct Arrays;

// Adds a subcommand with the --help and --version of all commands.
CLI::App& add_subcommand(CLI::App& app, const std::string& name, const std::string& help);

// An option of a subcommand. Options are taken as text and parsed by their subcommand, so that a
// message can name the culprit.
class TextOption {
 public:
  // `flags` is "--out", or "-o,--out" with a short flag in front. Help shows options of one group
  // together. One that repeats may be given several times.
  TextOption(CLI::App& app, const std::string& flags, const std::string& help,
             const std::string& type, std::string_view group = {}, bool repeats = false);

  [[nodiscard]] const std::string& flag() const { return flag_; }
  // Throws: UsageError for a flag that is given several times.
  [[nodiscard]] std::optional<Given> get() const;
  [[nodiscard]] std::vector<Given> all() const;
  // The parts between commas, of all occurrences.
  [[nodiscard]] std::vector<Given> items() const;

 private:
  std::string flag_;
  CLI::Option* option_;
};

// An option without a value.
class Switch {
 public:
  Switch(CLI::App& app, const std::string& flag, const std::string& help,
         std::string_view group = {});
  [[nodiscard]] bool get() const { return from().has_value(); }
  // The flag, for messages; nothing if it is not set.
  [[nodiscard]] std::optional<std::string> from() const;

 private:
  CLI::Option* option_;
};

// A word that a subcommand requires, without a flag: its kernel, its file.
class Argument {
 public:
  Argument(CLI::App& app, const std::string& name, const std::string& help);
  [[nodiscard]] const std::string& get() const;

 private:
  CLI::Option* option_;
};

// Such a word that may be left out.
class OptionalArgument {
 public:
  OptionalArgument(CLI::App& app, const std::string& name, const std::string& help);
  [[nodiscard]] std::optional<std::string> get() const;

 private:
  CLI::Option* option_;
};

// Several such words: its directories, its files.
class ArgumentList {
 public:
  ArgumentList(CLI::App& app, const std::string& name, const std::string& help);
  [[nodiscard]] std::vector<std::string> get() const;

 private:
  CLI::Option* option_;
};

// The words that ask for the same, from the subcommand's name on. A flag
// that has a value, and is in `instead`, has the value there.
std::vector<std::string> command_words(const CLI::App& app,
                                       const std::map<std::string, std::string>& instead = {});
// The same as a shell takes it, on one line, after the program's name: the command that made a
// file.
std::string command_line(const CLI::App& app);

// The name of the program that a subcommand is of.
std::string program_name(const CLI::App& app);

enum class Format { table, json, csv };
// Throws: UsageError.
Format parse_format(const TextOption& option);

// Each adds its subcommand to the application. The action runs once all is parsed, prints its data
// on standard output and returns the exit code.
using Action = std::function<int()>;
Action add_list(CLI::App& app);
Action add_info(CLI::App& app);
Action add_bounds(CLI::App& app);
Action add_plan(CLI::App& app);
Action add_curve(CLI::App& app);
Action add_history(CLI::App& app);
Action add_count(CLI::App& app);
// `transport`: of the job of which this process is a rank; null: of none. `arrays`: of a program
// that calls; null: none.
Action add_run(CLI::App& app, Transport* transport, Arrays* arrays);
Action add_store(CLI::App& app);
Action add_measure(CLI::App& app);
Action add_calibrate(CLI::App& app, Transport* transport);
Action add_table1(CLI::App& app);
Action add_sweep(CLI::App& app);
Action add_trace(CLI::App& app);
Action add_pebble(CLI::App& app);
Action add_replay(CLI::App& app);
Action add_plot(CLI::App& app);
Action add_report(CLI::App& app);

}  // namespace redblue
