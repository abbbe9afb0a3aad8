#include "runtime/report/problem_cost.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kernels/attention.hpp"
#include "runtime/report/as_rows.hpp"
#include "runtime/report/plan_report.hpp"
#include "runtime/text/sizes.hpp"

namespace redblue {
namespace {

[[noreturn]] void refuse_tiles(const std::string& tiles) {
  std::vector<std::string> names;
  for (const Project& project : projects()) {
    names.push_back(project.name);
  }
  throw UsageError(
      fmt::format("tiles '{}': expected {}, a nest, or a kernel such as attention/rows", tiles,
                  fmt::join(names, ", ")));
}

// Returns the choice of a kernel that is no nest.
Choice planned_tiles(const Kernel& kernel, const Task& task, const std::string& name) {
  std::vector<Choice> found = choices(task, {.only = name});
  if (found.empty()) {
    const Index least = kernel.least_M(task.problem);
    throw FastMemoryTooSmall(
        fmt::format("tiles '{}' do not fit in M = {} words: they need M of at least {}", name,
                    task.memory.M, least),
        least);
  }
  return std::move(found.front());
}

// Returns the row of a project or of a nest; nothing for other names.
std::optional<AsRow> row_of_tiles(const std::string& tiles, const Kernel* nest, const Task& task) {
  if (nest != nullptr) {
    return as_row(*nest, task, false);
  }
  const auto project = std::ranges::find(projects(), tiles, &Project::name);
  return project == projects().end() ? std::nullopt : std::optional(as_row(*project, task, false));
}

}  // namespace

OperandWords operand_words(const Task& task) {
  const Words compulsory = lower_bounds(task).front().words;
  Words all = compulsory;
  if (task.pass == Pass::gradients && task.problem.normalised()) {
    const Words row = Words(task.problem.shape.dv) + 1;
    all += Words(size_of(task.problem.live_queries())) * row * task.heads;
  }
  return {compulsory, all};
}

CountedTiles counted_tiles(const Task& task, const std::string& tiles) {
  if (!task.memory.inner.empty()) {
    throw UsageError("M has several levels: expected one");
  }
  const Bound bound = largest(lower_bounds(task), {.sharing = task.problem.sharing});
  if (tiles.empty()) {
    std::vector<Choice> found = choices(task);
    if (found.empty()) {
      throw no_kernel_fits(task);
    }
    return {std::move(found.front()), bound};
  }
  const auto name =
      names_nest(tiles) ? parse_kernel_name(load_nest_named(tiles)) : parse_kernel_name(tiles);
  if (name && name->kernel->pass != task.pass) {
    throw UsageError(fmt::format("tiles '{}': they are of {}, and the problem is {}", tiles,
                                 to_string(name->kernel->pass), to_string(task.pass)));
  }
  if (name && !name->kernel->is_nest) {
    return {planned_tiles(*name->kernel, task, tiles), bound};
  }
  std::optional<AsRow> row = row_of_tiles(tiles, name ? name->kernel : nullptr, task);
  if (!row) {
    refuse_tiles(tiles);
  }
  if (!row->counted) {
    throw UsageError(fmt::format("tiles '{}': {}", tiles, row->missing));
  }
  return {*std::move(row->counted), bound, row->too_many};
}

}  // namespace redblue
