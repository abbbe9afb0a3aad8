#include "runtime/report/context.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/report/device_figures.hpp"
#include "runtime/report/word_width.hpp"
#include "runtime/run/mask_spec.hpp"
#include "runtime/text/table.hpp"

namespace redblue {

Json context_json(const std::optional<FastMemoryOrigin>& M_from) {
  Json context = build_json();
  if (M_from) {
    context["M_from"] = {{"text", M_from->text},       {"cache", to_string(M_from->part.level)},
                         {"bytes", M_from->bytes},     {"share", M_from->part.share},
                         {"sharers", M_from->sharers}, {"source", M_from->source}};
    if (M_from->file) {
      context["M_from"]["file"] = *M_from->file;
    }
  }
  return context;
}

Description begin_report(std::string title, const std::optional<FastMemoryOrigin>& M_from,
                         const std::vector<FastMemoryOrigin>& inner_from,
                         const std::optional<Device>& device) {
  Description of;
  of.facts({{in_json("schema"), kSchema}, {in_json("context"), context_json(M_from)}});
  of.text(std::move(title) + "\n");
  for (const FastMemoryOrigin& from : inner_from) {
    of.say("{}", to_words(from));
  }
  if (M_from) {
    of.say("{}", to_words(*M_from));
  }
  if (device) {
    of.say("{}", to_words(*device));
  }
  return of;
}

std::string goal_text(Objective objective, double share) {
  switch (objective) {
    case Objective::words:
      return "fewest words (objective words)";
    case Objective::balanced:
      return fmt::format("fastest within {:.0f}% of the fewest words (objective balanced)",
                         100 * (share - 1));
    case Objective::time:
      return "fastest (objective time)";
  }
  return "";
}

std::string narrow_text(const Plan& narrow) {
  return fmt::format("not within {:.0f}%: there {} has narrow blocks, {}",
                     100 * (kBalancedShare - 1), spelled(narrow), blocks_text(narrow.blocks));
}

Cells task_cells(const Task& task, bool everywhere) {
  const auto [n, m, d] = task.problem.one_head().shape;
  const auto where = [&](bool meant, std::string_view text) {
    return meant || everywhere ? CellValue(text) : absent();
  };
  const Cells sizes = {{in_json_and_csv("problem"), to_string(task.pass)},
                       {in_json_and_csv("n"), n},
                       {in_json_and_csv("m"), m},
                       {in_json_and_csv("d"), d}};
  return joined(joined(sizes, heads_cells(task.pass, task.problem, task.heads)),
                {{in_json_and_csv("M"), task.memory.M},
                 {in_json_and_csv("sharing"),
                  where(task.pass != Pass::product, to_string(task.problem.sharing))},
                 {in_json_and_csv("given"), where(is_backward(task.pass), to_string(task.known))}});
}

Cells problem_cells(Pass pass, const Problem& problem, const std::vector<Signature>& results,
                    const std::map<std::string, std::string>& sources) {
  const bool dense = problem.sparsity.dense(), product = pass == Pass::product;
  return {{in_json("sparse"), dense ? absent() : sparse_json(pass, problem, sources)},
          {in_json("mask"), dense && !product ? mask_json(problem) : absent()},
          {in_json("wanted"), product ? absent() : wanted_json(results, problem)},
          {in_json("activation"),
           problem.normalised() ? absent() : CellValue(to_string(problem.activation))}};
}

Cells problem_cells(const Task& task) {
  return problem_cells(task.pass, task.problem,
                       of_sharing(of_activation(results_of(task.pass), task.problem.activation),
                                  task.problem.sharing));
}

Cells heads_cells(Pass pass, const Problem& problem, Index kv_heads) {
  Cells cells = {
      {in_json_and_csv("heads"), problem.stacked * kv_heads},
      {in_json_and_csv("kv_heads"),
       inputs_of(pass) == Inputs::plain ? CellValue(kv_heads) : absent()},
      {in_json_and_csv("dv"),
       inputs_of(pass) == Inputs::plain ? CellValue(problem.shape.dv) : absent()},
  };
  std::ranges::move(width_cells(problem), std::back_inserter(cells));
  return cells;
}

Cells kernel_cells(const std::string& kernel, const Shape& shape, Index M) {
  return {{in_json_and_csv("kernel"), kernel},
          {in_json_and_csv("n"), shape.n},
          {in_json_and_csv("m"), shape.m},
          {in_json_and_csv("d"), shape.d},
          {in_json_and_csv("M"), M}};
}

std::string blocks_text(const Blocks& blocks) {
  std::string text;
  for (const auto& [name, size] : blocks) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, size);
  }
  return text.empty() ? "-" : text;
}

Json blocks_json(const Blocks& blocks) {
  Json json = Json::object();
  for (const auto& [name, size] : blocks) {
    json[name] = size;
  }
  return json;
}

Json mask_json(const Problem& of_heads) {
  const Problem problem = of_heads.one_head();
  const Mask& mask = problem.mask;
  return {{"spec", !mask.spec().empty() ? mask.spec()
                   : mask.full()        ? "full"
                                        : "unnamed"},
          {"fingerprint", fingerprint_of(mask, problem.shape)},
          {"pairs", problem.pairs().overflowed() ? Json() : Json(problem.pairs().value())},
          {"live_queries", size_of(problem.live_queries())},
          {"live_keys", size_of(problem.live_keys())}};
}

Json sparse_json(Pass pass, const Problem& problem,
                 const std::map<std::string, std::string>& sources) {
  const Sparsity& sparsity = problem.sparsity;
  const auto stored = [](const BlockPattern& pattern) {
    return Json{{"stored", pattern.stored()}};
  };
  Json json = pass == Pass::product ? Json{{"A", stored(sparsity.A1())},
                                           {"B", stored(sparsity.X())},
                                           {"C", stored(sparsity.S())}}
                                    : Json{{"A1", stored(sparsity.A1())},
                                           {"X", stored(sparsity.X())},
                                           {"A2", stored(sparsity.A2())},
                                           {"S", stored(sparsity.S())},
                                           {"pairs", sparsity.pairs().value()}};
  for (const auto& [name, source] : sources) {
    json[name]["from"] = source;
  }
  return json;
}

Json wanted_json(const std::vector<Signature>& results, const Problem& problem) {
  Json names = Json::array();
  for (const Signature& result : results) {
    if (problem.wanted.contains(result.name)) {
      names.push_back(result.name);
    }
  }
  return names;
}

std::string costs_text(const Memory& memory, const std::string& from) {
  std::vector<std::string> costs;
  for (std::size_t level = 0; level < memory.levels(); ++level) {
    costs.push_back(memory.word_costs.empty() ? grouped(memory.words(level))
                                              : fmt::format("{:.4g}", memory.word_costs[level]));
  }
  return fmt::format("{}{}", fmt::join(costs, " / "),
                     from.empty() ? "" : fmt::format(" ns ({})", from));
}

std::string levels_text(const Memory& memory) {
  std::string text;
  for (const Index words : memory.inner) {
    text += fmt::format("{}/", words);
  }
  return text + std::to_string(memory.M);
}

Json bound_json(const Bound& bound) {
  return {{"words", bound.words}, {"term", bound.name}, {"status", to_string(bound.status)}};
}

Json regrouping_json(const Regrouping& sum) {
  return {{"reads", sum.reads.value()}, {"writes", sum.writes.value()}};
}

std::string to_words(const Regrouping& sum) {
  return fmt::format(
      "prepare: the pattern is regrouped once, for many calls: {} words read, {} written\n",
      grouped(sum.reads.value()), grouped(sum.writes.value()));
}

Json links_json(const LinkCosts& links) {
  return {{"origin", links.origin},
          {"seconds_a_message", links.seconds_a_message},
          {"seconds_a_word", links.seconds_a_word}};
}

std::string to_words(const FastMemoryOrigin& M_from) {
  const std::string_view cache = to_string(M_from.part.level);
  return fmt::format(
      "M is {}{}{}: {} has {} bytes ({})", M_from.text,
      M_from.text == "auto" ? fmt::format(", that is {}*{:.6g} by {}", cache, M_from.part.share,
                                          M_from.file.value_or("the rule"))
                            : std::string(),
      M_from.sharers > 1 ? fmt::format(", divided by {} workers", M_from.sharers) : std::string(),
      cache, grouped(static_cast<Index>(M_from.bytes)), M_from.source);
}

}  // namespace redblue
