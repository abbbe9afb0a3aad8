#include "tools/options/as.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/text/sizes.hpp"

namespace redblue {

AsOption::AsOption(CLI::App& app, const std::string& where)
    : as_(app, "--as", where + " the schedule of another project (see `redblue list --as`), or all",
          "PROJECT") {}

std::vector<const Project*> AsOption::asked(const Request& request, Pass pass) const {
  const auto as = get();
  if (!as) {
    return {};
  }
  std::vector<const Project*> found;
  std::vector<std::string> names;
  for (const Project& project : projects()) {
    names.push_back(project.name);
    if (as->text == project.name || as->text == "all") {
      found.push_back(&project);
    }
  }
  if (found.empty()) {
    throw UsageError(
        fmt::format("{} '{}': expected {} or all", as->from, as->text, fmt::join(names, ", ")));
  }
  if (!has_nests(pass)) {
    throw UsageError(
        fmt::format("{} {}: its nests are for attention and gradients, and not for {}: give "
                    "--problem attention or --problem gradients",
                    as->from, as->text, to_string(pass)));
  }
  if (!request.inner.empty()) {
    throw UsageError(
        fmt::format("{} {}: its nests are for one level of fast memory: give {} one "
                    "size",
                    as->from, as->text, request.said("M")));
  }
  if (request.on_ranks || request.prefetch > 1) {
    throw UsageError(
        fmt::format("{} {}: its nests are for one machine, without a prefetch: leave "
                    "out {}",
                    as->from, as->text, request.said(request.on_ranks ? "ranks" : "prefetch")));
  }
  return found;
}

std::vector<AsRow> AsOption::rows(const Request& request, const Task& task) const {
  const std::vector<const Project*> projects = asked(request, task.pass);
  if (!projects.empty() && is_backward(task.pass) && task.problem.normalised() &&
      task.known == Known::nothing) {
    throw UsageError(
        fmt::format("{} {}: its nests of gradients start from O and L: leave out {} nothing",
                    get()->from, get()->text, request.said("given")));
  }
  std::vector<AsRow> rows;
  for (const Project* project : projects) {
    rows.push_back(as_row(*project, task));
  }
  return rows;
}

}  // namespace redblue
