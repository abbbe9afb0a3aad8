#pragma once
// --as: schedules of other attention kernels, with their tiles.

#include <optional>
#include <string>
#include <vector>

#include "runtime/report/as_rows.hpp"
#include "runtime/theory/bounds.hpp"
#include "tools/cli/command.hpp"

namespace redblue {

class AsOption {
 public:
  // `where` begins the help: what the tiles are in place of, or beside.
  AsOption(CLI::App& app, const std::string& where);
  [[nodiscard]] std::optional<Given> get() const { return as_.get(); }
  [[nodiscard]] std::string flag() const { return as_.flag(); }
  // Those that are asked for, of a problem that they take; none where none are. Throws: UsageError.
  [[nodiscard]] std::vector<const KnownSchedule*> schedules(const Request& request,
                                                            Pass pass) const;
  // Their rows beside the kernels that solve a task. Throws: UsageError; as count().
  [[nodiscard]] std::vector<AsRow> rows(const Request& request, const Task& task) const;

 private:
  TextOption as_;
};

}  // namespace redblue
