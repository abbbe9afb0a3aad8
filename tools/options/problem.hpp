#pragma once
// Options of the table (runtime/run/options.hpp) on a command line.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/run/options.hpp"
#include "tools/cli/command.hpp"

namespace redblue {

using Keys = std::vector<std::string_view>;

// The options that one command takes.
class TableOptions {
 public:
  TableOptions(CLI::App& app, const Keys& keys);
  [[nodiscard]] Settings settings() const;
  // Changes the request as the options say. Throws: UsageError, also if an M is missing that the
  // command takes; as fill().
  void fill(Request& request) const { fill(settings(), request); }
  // The same where these are the settings.
  void fill(const Settings& settings, Request& request) const;

 private:
  std::vector<std::pair<std::string_view, TextOption>> texts_;
  std::vector<std::pair<std::string_view, Switch>> switches_;
  bool takes_M_;
};

// A kernel, its problem and its M; and these other keys.
class ProblemOptions {
 public:
  ProblemOptions(CLI::App& app, const Keys& others);
  // Throws: UsageError; for an unknown kernel it has the names nearest to it.
  void fill(Request& request) const;
  // All but the kernel, which is left out. Throws: UsageError.
  void fill_problem(Request& request) const;
  [[nodiscard]] std::optional<std::string> kernel() const { return kernel_.get(); }
  [[nodiscard]] Settings settings() const { return table_.settings(); }

 private:
  OptionalArgument kernel_;
  TableOptions table_;
};

// Keys of operands that are made or come from files.
inline const Keys kOperandKeys = {"in", "make", "seed", "scale"};

// Throws: UsageError if `out` is a file of an operand or of the mask.
void refuse_inputs(const Given& out, const Request& request);

}  // namespace redblue
