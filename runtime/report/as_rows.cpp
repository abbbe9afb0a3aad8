#include "runtime/report/as_rows.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kernels/nests/text_nest.hpp"
#include "kernels/registry.hpp"
#include "runtime/report/context.hpp"
#include "runtime/report/plan_report.hpp"
#include "runtime/report/word_width.hpp"
#include "runtime/text/table.hpp"

namespace redblue {
namespace {

// Returns the name of a nest: flash-attention-2-forward.
std::string nest_name(const KnownFile& nest) {
  const std::string_view file = nest.name;
  return std::string(file.substr(0, file.rfind('.')));
}

// Returns the lines of the comment at the beginning of a nest, without their marks.
std::vector<std::string> comment_of(std::string_view text) {
  std::vector<std::string> lines;
  while (text.starts_with('#')) {
    const std::size_t end = text.find('\n');
    lines.emplace_back(text.substr(1, end - 1));
    text.remove_prefix(end + 1);
  }
  return lines;
}

std::string title_of(const KnownFile& nest) {
  const std::vector<std::string> lines = comment_of(nest.text);
  std::string title;
  for (auto line = lines.begin(); line != lines.end() && !line->empty(); ++line) {
    title += line == lines.begin() ? line->substr(1) : *line;
  }
  return title;
}

std::string in_one_line(const std::vector<std::string>& lines) {
  return fmt::format("{}", fmt::join(lines, " "));
}

std::vector<Project> find_projects() {
  std::vector<std::string> names;
  for (const KnownFile& nest : known_nests()) {
    names.push_back(nest_name(nest));
  }
  std::vector<Project> found;
  for (std::size_t k = 0; k < names.size(); ++k) {
    const std::size_t end = names[k].rfind('-');
    const std::string pass = names[k].substr(end);
    std::string name = names[k].substr(0, end);
    for (std::size_t at = 0; (at = name.find('-', at + 1)) != std::string::npos;) {
      if (std::ranges::find(names, name.substr(0, at) + pass) != names.end()) {
        name.resize(at);
      }
    }
    auto project = std::ranges::find(found, name, &Project::name);
    if (project == found.end()) {
      project = found.insert(found.end(), Project{name});
    }
    project->nests.push_back(&known_nests()[k]);
  }
  std::ranges::sort(found, {}, &Project::name);
  return found;
}

TextNest parsed(const KnownFile& nest) {
  return parse_nest(nest.text, nest.name);
}

// In `takes`, n are the queries of one head.
NestExtents extents_of(const Task& task) {
  const Problem one = task.problem.one_head();
  return {.n = one.shape.n,
          .m = one.shape.m,
          .d = one.shape.d,
          .dv = one.shape.dv,
          .heads = task.heads * task.problem.stacked,
          .kv_heads = task.heads,
          .group = task.problem.stacked};
}

// Returns the choice of this nest alone; nothing if it does not fit.
std::optional<Choice> choice_of(const Kernel& nest, Task task) {
  task.nests = {&nest};
  std::vector<Choice> found = choices(task, {.only = nest.name});
  return found.empty() ? std::nullopt : std::optional(std::move(found.front()));
}

void count_nest(AsRow& row, const Kernel& nest, Task task, bool plans) {
  row.nest = nest.name;
  row.word_bytes = task.problem.word_bytes;
  if (!nest.takes(task.problem.activation)) {
    row.missing = "it computes softmax alone";
  } else if (!nest.can_return(task.problem)) {
    row.missing = "it computes all results";
  } else {
    Problem apart = task.problem;
    apart.sharing = Sharing::none;
    const Blocks own = nest.blocks(apart, task.memory, Objective::words);
    const Index needed = total(nest.plan(apart, task.memory, own).phases).peak.value();
    row.too_many = std::max<Index>(needed - task.memory.M, 0);
    task.memory.M += row.too_many;
    row.counted = choice_of(nest, task);
    if (!plans) {
      return;
    }
    task.memory.all_blocks = true;
    row.planned = choice_of(nest, task);
    // The search may find none that moves fewer words, or none that fits in multiples.
    if (!row.planned || row.counted->words < row.planned->words) {
      row.planned = row.counted;
    }
  }
}

Index peak_of(const Choice& choice) {
  return total(choice.plan.phases).peak.value();
}

}  // namespace

const std::vector<Project>& projects() {
  static const std::vector<Project> all = find_projects();
  return all;
}

std::vector<std::string> source_of(const KnownFile& nest) {
  constexpr std::string_view kBegin = " Source: ";
  const std::vector<std::string> lines = comment_of(nest.text);
  auto line =
      std::ranges::find_if(lines, [&](const std::string& its) { return its.starts_with(kBegin); });
  std::vector<std::string> source;
  for (; line != lines.end() && !line->empty(); ++line) {
    source.push_back(line->substr(source.empty() ? kBegin.size() : line->find_first_not_of(' ')));
  }
  return source;
}

bool has_nests(Pass pass) {
  return std::ranges::any_of(known_nests(),
                             [&](const KnownFile& nest) { return parsed(nest).pass == pass; });
}

AsRow as_row(const Project& project, const Task& task, bool plans) {
  AsRow row{.as = project.name};
  for (const KnownFile* file : project.nests) {
    const TextNest nest = parsed(*file);
    if (nest.pass != task.pass) {
      continue;
    }
    if (const NestTakes* takes = untaken(nest, extents_of(task))) {
      row.missing +=
          fmt::format("{}{} takes {}", row.missing.empty() ? "" : ", ", nest.name, takes->text);
      continue;
    }
    row.missing.clear();
    row.title = title_of(*file);
    row.source = source_of(*file);
    count_nest(row, find_kernel(load_nest_named("nest:" + nest_name(*file))), task, plans);
    return row;
  }
  if (row.missing.empty()) {
    row.missing = fmt::format("redblue has no nest of its {} pass",
                              is_backward(task.pass) ? "backward" : "forward");
  }
  return row;
}

AsRow as_row(const Kernel& nest, const Task& task, bool plans) {
  AsRow row{.as = std::string(nest.name), .title = std::string(nest.summary)};
  count_nest(row, nest, task, plans);
  return row;
}

Cells as_cells(const AsRow& row) {
  const auto of = [&](const auto& value) -> CellValue {
    return row.counted ? CellValue(value(*row.counted)) : CellValue(nullptr);
  };
  const auto text = [](const Choice& its) { return blocks_text(its.plan.blocks); };
  const std::optional<Index> words =
      row.counted ? std::optional(row.counted->words.value()) : std::nullopt;
  return joined(
      {{{"as", "as"}, row.as},
       {in_json("kernel"), of([&](const Choice&) { return row.nest; })},
       {in_table("its blocks"), of(text)},
       {in_json("blocks"), of([](const Choice& its) { return blocks_json(its.plan.blocks); })},
       {in_csv("blocks"), of(text)},
       {"words", words},
       bytes_cell(row.word_bytes, words),
       {"ratio", decimals(row.counted ? std::optional(over_bound(*row.counted)) : std::nullopt, 3)},
       {"bound", of([](const Choice& its) { return its.bound.name; })}},
      tiles_cells(&row));
}

Cells tiles_cells(const AsRow* row) {
  const bool counted = row != nullptr && row->counted;
  const auto of = [&](const auto& value) -> CellValue {
    return counted ? CellValue(value(*row)) : CellValue(nullptr);
  };
  const auto words = [](const AsRow& its) { return its.planned->words.value(); };
  const std::optional<double> ratio =
      counted ? std::optional(over_bound(*row->planned)) : std::nullopt;
  const std::optional<double> times =
      counted ? quotient(row->counted->words.value(), words(*row)) : std::nullopt;
  return {{{"needs M", "peak"}, of([](const AsRow& its) { return peak_of(*its.counted); })},
          {{"words beyond M", "too_many"}, of([](const AsRow& its) { return its.too_many; })},
          {in_table("planned"), of(words)},
          {in_table("planned ratio"), decimals(ratio, 3)},
          {{"times planned", "times_planned"}, decimals(times, 3)},
          {in_json("planned.blocks"),
           of([](const AsRow& its) { return blocks_json(its.planned->plan.blocks); })},
          {in_csv("planned_blocks"),
           of([](const AsRow& its) { return blocks_text(its.planned->plan.blocks); })},
          {{"", "planned.words", "planned_words"}, of(words)},
          bytes_cell(row == nullptr ? std::nullopt : row->word_bytes,
                     counted ? std::optional(words(*row)) : std::nullopt, in_json("planned.bytes")),
          {{"", "planned.ratio", "planned_ratio"}, decimals(ratio, 3)},
          {in_json(row == nullptr || row->missing.empty() ? "" : "missing"),
           row == nullptr ? "" : row->missing},
          {in_json(counted && !row->source.empty() ? "source" : ""),
           counted ? in_one_line(row->source) : ""}};
}

std::string to_words(const std::vector<AsRow>& rows) {
  std::string text;
  for (const AsRow& row : rows) {
    if (!row.counted) {
      text += fmt::format("{}: {}\n", row.as, row.missing);
      continue;
    }
    text += fmt::format("{}: {}\n", row.as, row.title);
    if (row.nest != row.as) {
      text += fmt::format("  {}\n", row.nest);
    }
    for (const std::string& line : row.source) {
      text += fmt::format("  {}\n", line);
    }
    const Plan& planned = row.planned->plan;
    text +=
        fmt::format("  planned in M = {}: {}\n", grouped(planned.M), blocks_text(planned.blocks));
  }
  return text;
}

}  // namespace redblue
