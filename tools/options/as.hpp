#pragma once
// The option --as: schedules of other projects, counted with their own tiles.

#include <optional>
#include <string>
#include <vector>

#include "runtime/report/as_rows.hpp"
#include "runtime/run/run.hpp"
#include "runtime/theory/bounds.hpp"
#include "tools/cli/command.hpp"

namespace redblue {

class AsOption {
 public:
  // `where` is the start of the help text. It says how these tiles relate to the command's own.
  AsOption(CLI::App& app, const std::string& where);
  [[nodiscard]] std::optional<Given> get() const { return as_.get(); }
  [[nodiscard]] std::string flag() const { return as_.flag(); }
  // Returns the projects that --as names; empty without --as. Throws: UsageError, also for a
  // problem or a machine that their nests do not support.
  [[nodiscard]] std::vector<const Project*> asked(const Request& request, Pass pass) const;
  // Returns a row for each project, to print with the kernels that solve `task`. Throws:
  // UsageError; as choices().
  [[nodiscard]] std::vector<AsRow> rows(const Request& request, const Task& task) const;

 private:
  TextOption as_;
};

}  // namespace redblue
