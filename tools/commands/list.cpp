// redblue list: the kernels, their operands and results, and the least M of each.

#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "kernels/kernel.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/print.hpp"
#include "tools/cli/sizes.hpp"
#include "tools/options/problem.hpp"

namespace redblue {
namespace {

std::vector<std::string> names(const std::vector<Signature>& operands) {
  std::vector<std::string> found;
  for (const Signature& operand : operands) {
    found.emplace_back(operand.name);
  }
  return found;
}

std::string list_json(const std::optional<Shape>& shape) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const KernelName& name : kernel_names()) {
    const Kernel& kernel = *name.kernel;
    nlohmann::ordered_json entry = {{"name", name.text()},
                                    {"given", names(name.given())},
                                    {"returns", names(kernel.returns)},
                                    {"summary", name.summary()}};
    if (shape) {
      entry["least_M"] = kernel.least_M(Problem(*shape, name.sharing));
    }
    all.push_back(std::move(entry));
  }
  return nlohmann::ordered_json{{"schema", 1}, {"kernels", std::move(all)}}.dump(2) + "\n";
}

std::string list_text(const std::optional<Shape>& shape, Format format) {
  const bool csv = format == Format::csv;
  const auto line = [&](const auto& name, const auto& given, const auto& returns, const auto& least,
                        const auto& summary) {
    if (csv) {
      return fmt::format("{},{},{},{}\"{}\"\n", name, given, returns,
                         shape ? fmt::format("{},", least) : "", summary);
    }
    return fmt::format("{:<29} {:<24} {:<12} {}{}\n", name, given, returns,
                       shape ? fmt::format("{:>14}  ", least) : "", summary);
  };
  std::string text = csv ? fmt::format("kernel,given,returns,{}summary\n", shape ? "least_M," : "")
                         : line("kernel", "given", "returns", "least M", "summary");
  for (const KernelName& name : kernel_names()) {
    const Kernel& kernel = *name.kernel;
    text += line(name.text(), fmt::format("{}", fmt::join(names(name.given()), " ")),
                 fmt::format("{}", fmt::join(names(kernel.returns), " ")),
                 shape ? kernel.least_M(Problem(*shape, name.sharing)) : 0, name.summary());
  }
  return text;
}

}  // namespace

Action add_list(CLI::App& app) {
  struct Options {
    explicit Options(CLI::App& command)
        : shape(command), format(command, "--format", "table, json or csv", "FORMAT") {}
    ShapeOptions shape;
    TextOption format;
  };
  const auto options = std::make_shared<Options>(app);
  return [options] {
    Request request;
    options->shape.fill(request);
    std::optional<Shape> shape;
    if (request.n && request.d) {
      shape = Shape{*request.n, request.m.value_or(*request.n), *request.d};
    } else if (request.n || request.m || request.d) {
      const char* given = request.n ? "--n" : request.d ? "--d" : "--m";
      throw UsageError(fmt::format("{} is given: the least M needs --n and --d, and {} missing",
                                   request.said(given),
                                   request.n   ? "--d is"
                                   : request.d ? "--n is"
                                               : "these are"));
    }
    const Format format = parse_format(options->format);
    print(format == Format::json ? list_json(shape) : list_text(shape, format));
    return 0;
  };
}

}  // namespace redblue
