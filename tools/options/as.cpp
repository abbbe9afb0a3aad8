#include "tools/options/as.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/text/sizes.hpp"

namespace redblue {

AsOption::AsOption(CLI::App& app, const std::string& where)
    : as_(app, "--as",
          where + " the tiles of another attention kernel (see `redblue list --as`), or all",
          "SCHEDULE") {}

std::vector<const KnownSchedule*> AsOption::schedules(const Request& request, Pass pass) const {
  const auto as = get();
  if (!as) {
    return {};
  }
  std::vector<const KnownSchedule*> found;
  std::vector<std::string> names;
  for (const KnownSchedule& schedule : known_schedules()) {
    names.push_back(schedule.name);
    if (as->text == schedule.name || as->text == "all") {
      found.push_back(&schedule);
    }
  }
  if (found.empty()) {
    throw UsageError(
        fmt::format("{} '{}': expected {} or all", as->from, as->text, fmt::join(names, ", ")));
  }
  if (!has_tiles(pass)) {
    throw UsageError(fmt::format(
        "{} {}: other kernels have tiles of attention and gradients: give --problem attention or "
        "--problem gradients",
        as->from, as->text));
  }
  if (!request.inner.empty() || request.on_ranks || request.prefetch > 1) {
    throw UsageError(fmt::format(
        "{} {}: tiles are of one level of fast memory of one machine, without a prefetch", as->from,
        as->text));
  }
  return found;
}

std::vector<AsRow> AsOption::rows(const Request& request, const Task& task) const {
  const std::vector<const KnownSchedule*> asked = schedules(request, task.pass);
  if (asked.empty()) {
    return {};
  }
  if (is_backward(task.pass) && task.problem.normalised() && task.known == Known::nothing) {
    throw UsageError(
        fmt::format("{} {}: tiles of gradients start from O and L: leave out {} nothing",
                    get()->from, get()->text, request.said("given")));
  }
  return as_rows(request, task.problem, task.pass, asked);
}

}  // namespace redblue
