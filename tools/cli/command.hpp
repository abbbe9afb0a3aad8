#pragma once
// Building blocks of the `redblue` command, shared by all subcommands.

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

// Adds a subcommand, with the --help and --version that all commands have.
CLI::App& add_subcommand(CLI::App& app, const std::string& name, const std::string& help);

// An option with a value. The value is kept as text and parsed by the subcommand, so that a message
// can name the option and its text.
class TextOption {
 public:
  // `flags` is "--out", or "-o,--out" with a short flag first. The help shows options by `group`.
  // An option that `repeats` may be given several times.
  TextOption(CLI::App& app, const std::string& flags, const std::string& help,
             const std::string& type, std::string_view group = {}, bool repeats = false);

  [[nodiscard]] const std::string& flag() const { return flag_; }
  // Throws: UsageError if the flag is given several times.
  [[nodiscard]] std::optional<Given> get() const;
  [[nodiscard]] std::vector<Given> all() const;
  // Returns the comma-separated parts of all occurrences.
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
  // Returns the flag, for messages; empty if it is not given.
  [[nodiscard]] std::optional<std::string> from() const;

 private:
  CLI::Option* option_;
};

// A required positional argument, such as a kernel or a file.
class Argument {
 public:
  Argument(CLI::App& app, const std::string& name, const std::string& help);
  [[nodiscard]] const std::string& get() const;

 private:
  CLI::Option* option_;
};

// An optional positional argument.
class OptionalArgument {
 public:
  OptionalArgument(CLI::App& app, const std::string& name, const std::string& help);
  [[nodiscard]] std::optional<std::string> get() const;

 private:
  CLI::Option* option_;
};

// One or more positional arguments, such as directories or files.
class ArgumentList {
 public:
  ArgumentList(CLI::App& app, const std::string& name, const std::string& help);
  [[nodiscard]] std::vector<std::string> get() const;

 private:
  CLI::Option* option_;
};

// Returns the words of this command line, starting with the subcommand's name. Flags in `instead`
// get the value given there.
std::vector<std::string> command_words(const CLI::App& app,
                                       const std::map<std::string, std::string>& instead = {});
// Returns the whole command line on one line, quoted for a shell and starting with the program's
// name. Files record it as the command that made them.
std::string command_line(const CLI::App& app);

// Returns the name of the program that has this subcommand.
std::string program_name(const CLI::App& app);

enum class Format { table, json, csv };
// Throws: UsageError.
Format parse_format(const TextOption& option);

// Each function adds its subcommand to the application. The returned action runs after parsing,
// prints its data to standard output and returns the exit code.
using Action = std::function<int()>;
Action add_list(CLI::App& app);
Action add_explore(CLI::App& app);
Action add_info(CLI::App& app);
Action add_bounds(CLI::App& app);
Action add_plan(CLI::App& app);
Action add_curve(CLI::App& app);
Action add_history(CLI::App& app);
Action add_count(CLI::App& app);
// `transport` belongs to the MPI job in which this process is a rank; null outside a job. `arrays`
// belongs to a calling program; null without one.
Action add_run(CLI::App& app, Transport* transport, Arrays* arrays);
Action add_store(CLI::App& app);
Action add_measure(CLI::App& app);
Action add_tune(CLI::App& app);
Action add_calibrate(CLI::App& app, Transport* transport);
Action add_table1(CLI::App& app);
Action add_sweep(CLI::App& app);
Action add_trace(CLI::App& app);
Action add_pebble(CLI::App& app);
Action add_replay(CLI::App& app);
Action add_plot(CLI::App& app);
Action add_report(CLI::App& app);

}  // namespace redblue
