#pragma once
// Command-line options that come from the table in runtime/run/options.hpp.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/run/options.hpp"
#include "tools/cli/command.hpp"

namespace redblue {

using Keys = std::vector<std::string_view>;

// The options that one command takes, chosen from the table by key.
class TableOptions {
 public:
  // `changed` replaces the help of options of the table, key by key.
  TableOptions(CLI::App& app, const Keys& keys, const std::vector<Option>& changed = {});
  [[nodiscard]] Settings settings() const;
  // Applies the options to the request. Throws: UsageError, also if the command takes an M and none
  // is given; as redblue::fill().
  void fill(Request& request) const { fill(settings(), request); }
  // Applies `settings` to the request.
  void fill(const Settings& settings, Request& request) const;

 private:
  std::vector<std::pair<std::string_view, TextOption>> texts_;
  std::vector<std::pair<std::string_view, Switch>> switches_;
  bool takes_M_;
};

// Options for a kernel, its problem and its M, and for the further keys `others`.
class ProblemOptions {
 public:
  ProblemOptions(CLI::App& app, const Keys& others);
  // Fills in the kernel and all other options. Throws: UsageError; for an unknown kernel, the
  // message lists the nearest names.
  void fill(Request& request) const;
  // Fills in all options except the kernel. Throws: UsageError.
  void fill_problem(Request& request) const;
  // Returns the kernel, or file:FILE for a nest.
  [[nodiscard]] std::optional<std::string> kernel() const;
  [[nodiscard]] Settings settings() const { return table_.settings(); }

 private:
  OptionalArgument kernel_;
  TextOption nest_;
  TableOptions table_;
};

// Keys of the options that say where operands come from: files or generated values.
inline const Keys kOperandKeys = {"in", "make", "seed", "scale"};

// Throws: UsageError if `out` is also an input file of an operand or of the mask.
void refuse_inputs(const Given& out, const Request& request);

}  // namespace redblue
