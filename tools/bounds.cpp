// redblue bounds: how few words a problem can move, and how near our kernels come.

#include <memory>

#include <fmt/format.h>

#include "runtime/bounds_report.hpp"
#include "tools/command.hpp"
#include "tools/print.hpp"
#include "tools/problem_options.hpp"
#include "tools/sizes.hpp"

namespace redblue {
namespace {

// The value of that name; `otherwise` where nothing is given.
template <class Value>
Value choose(const TextOption& option, std::initializer_list<Value> values, Value otherwise) {
  const auto given = option.get();
  if (!given) {
    return otherwise;
  }
  std::string names;
  for (const Value value : values) {
    if (given->text == to_string(value)) {
      return value;
    }
    const bool last = value == *(values.end() - 1);
    names += fmt::format("{}{}", names.empty() ? "" : last ? " or " : ", ", to_string(value));
  }
  throw UsageError(fmt::format("{} '{}': expected {}", given->from, given->text, names));
}

// An option that this problem has nothing to do with.
void refuse(const TextOption& option, std::string_view why) {
  if (const auto given = option.get()) {
    throw UsageError(fmt::format("{} '{}': {}", given->from, given->text, why));
  }
}

Index required(const std::optional<Index>& size, std::string_view flag) {
  return size ? *size : throw UsageError(fmt::format("{} is missing", flag));
}

}  // namespace

Action add_bounds(CLI::App& app) {
  struct Options {
    explicit Options(CLI::App& command)
        : shape(command),
          M(command),
          problem(command, "--problem", "product, forward or backward; backward", "PASS"),
          sharing(command, "--sharing",
                  "sources that are one matrix: none; kv: A2 = A3; self: A1 = A2 = A3; none",
                  "WHICH"),
          given(command, "--given", "what backward starts from: nothing; OL: O and L; OL", "WHAT"),
          format(command, "--format", "table, json or csv", "FORMAT") {}
    ShapeOptions shape;
    FastMemoryOption M;
    TextOption problem, sharing, given, format;
  };
  const auto options = std::make_shared<Options>(app);
  return [options] {
    Request request;
    options->shape.fill(request);
    Task task;
    task.pass =
        choose(options->problem, {Pass::product, Pass::forward, Pass::backward}, Pass::backward);
    task.sharing =
        choose(options->sharing, {Sharing::none, Sharing::kv, Sharing::self}, Sharing::none);
    task.known = choose(options->given, {Known::nothing, Known::O_and_L}, Known::O_and_L);
    if (task.pass != Pass::backward) {
      refuse(options->given, "only --problem backward is given anything");
    }
    if (task.pass == Pass::product) {
      refuse(options->sharing, "a product has no sources to share");
    }
    const Index n = required(request.n, "--n");
    task.shape = {n, request.m.value_or(n), required(request.d, "--d")};
    if (task.sharing == Sharing::self && task.shape.m != n) {
      throw UsageError(
          fmt::format("{} {} is not {} {}: with --sharing self, queries and keys are one",
                      request.said("--m"), task.shape.m, request.said("--n"), n));
    }
    options->M.fill(request);
    task.M = request.M;
    const Format format = parse_format(options->format);
    BoundReport report = report_bounds(task);
    report.M_from = request.M_from;
    print(format == Format::table  ? to_table(report)
          : format == Format::json ? to_json(report)
                                   : to_csv(report));
    return 0;
  };
}

}  // namespace redblue
