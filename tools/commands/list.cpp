// redblue list: the kernels with their operands, results and least M; or the known devices.

#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kernels/kernel.hpp"
#include "runtime/report/as_report.hpp"
#include "runtime/report/context.hpp"
#include "runtime/report/device_figures.hpp"
#include "runtime/run/nest_file.hpp"
#include "runtime/text/sizes.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/print.hpp"
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

std::string in_words(const std::vector<Signature>& operands) {
  return fmt::format("{}", fmt::join(names(operands), " "));
}

// Returns the least M. It is unknown for sparse kernels, because it depends on their entries
// (`redblue count` shows it), and for kernels of one source if n is not m.
std::optional<Index> least_M(const KernelName& name, const Shape& shape) {
  return name.kernel->takes_sparse || (name.kernel->of_one_source && shape.n != shape.m)
             ? std::nullopt
             : std::optional(name.kernel->least_M(Problem(shape, name.sharing)));
}

// Returns the properties that programs use to choose kernels.
Json axes_of(const KernelName& name) {
  const Kernel& kernel = *name.kernel;
  Json axes = {{"problem", to_string(kernel.pass)}, {"sharing", to_string(name.sharing)}};
  if (is_backward(kernel.pass)) {
    axes["start"] = to_string(kernel.needs_forward() ? Known::O_and_L : Known::nothing);
  }
  for (const auto& [axis, value] : kernel.axes) {
    axes[axis] = value;
  }
  return axes;
}

Description list_of(const std::optional<Shape>& shape) {
  Description of;
  of.fact("schema", kSchema);
  of.table(
      "kernels", rows_of(all_kernel_names(), [&](const KernelName& name) -> Cells {
        const Kernel& kernel = *name.kernel;
        return {{{"kernel", "name", "kernel"}, name.text()},
                {in_json("given"), names(name.given())},
                {{"given", "", "given"}, to_the_left(in_words(name.given()))},
                {in_json("returns"), names(name.results())},
                {{"returns", "", "returns"}, to_the_left(in_words(name.results()))},
                {in_json("axes"), axes_of(name)},
                {in_json("kernel"), kernel.name},
                {in_json("threads"), kernel.schedule.split.has_value()},
                {in_json("prefetch"), kernel.streams_keys()},
                {in_json("sparse"), kernel.takes_sparse},
                {in_json("activations"), kernel.takes_activations},
                {in_json("masks"), kernel.takes_causal ? Json("causal") : Json(kernel.takes_masks)},
                {in_json("summary"), name.summary()},
                {shape ? CellNames("least M", "least_M") : "",
                 shape ? least_M(name, *shape) : std::nullopt},
                {in_table("summary"), to_the_left(name.summary())},
                {in_csv("summary"), always_quoted(name.summary())}};
      }));
  return of;
}

// Returns the first line of a nest, which is a comment, without its mark.
std::string first_comment(std::string_view text) {
  return std::string(text.substr(2, text.find('\n') - 2));
}

Description nests_of_others() {
  Description of;
  of.fact("schema", kSchema);
  of.table("nests", rows_of(known_nests(), [](const KnownFile& nest) -> Cells {
             const std::string name(nest.name);
             const std::string kernel = load_nest_named("nest:" + name.substr(0, name.find('.')));
             return {{{"nest", "name"}, kernel},
                     {"problem", to_string(find_kernel(kernel).pass)},
                     {"summary", to_the_left(first_comment(nest.text))}};
           }));
  return of;
}

}  // namespace

Action add_list(CLI::App& app) {
  struct Options {
    explicit Options(CLI::App& command)
        : shape(command, {"n", "m", "d"}),
          devices(command, "--devices", "list the devices of --device instead of kernels"),
          as(command, "--as", "list the schedules of --as instead of kernels"),
          nests(command, "--nests", "list the schedules of other projects for --nest nest:NAME"),
          format(command, "--format", "output format (default: table)", "table|json|csv") {}
    TableOptions shape;
    Switch devices, as, nests;
    TextOption format;
  };
  const auto options = std::make_shared<Options>(app);
  return [options] {
    Request request;
    options->shape.fill(request);
    const Format format = parse_format(options->format);
    std::optional<std::string> from;
    for (const Switch* other : {&options->devices, &options->as, &options->nests}) {
      if (from && other->get()) {
        throw UsageError(
            fmt::format("{}: {} lists others; give one of the two", *other->from(), *from));
      }
      from = from ? from : other->from();
    }
    if (from) {
      if (const auto given = options->shape.settings().first_of({"n", "m", "d"})) {
        throw UsageError(fmt::format("{} {}: {} lists no kernels, whose least M it is for",
                                     given->from, given->text, *from));
      }
      if (options->devices.get()) {
        print(devices(), format);
      } else if (options->as.get()) {
        print(projects(), format);
      } else {
        print(nests_of_others(), format);
      }
      return 0;
    }
    std::optional<Shape> shape;
    if (request.n && request.d) {
      shape = Shape{*request.n, request.m.value_or(*request.n), *request.d};
    } else if (request.n || request.m || request.d) {
      const char* given = request.n ? "n" : request.d ? "d" : "m";
      throw UsageError(fmt::format("{} is given: the least M needs --n and --d, and {} missing",
                                   request.said(given),
                                   request.n   ? "--d is"
                                   : request.d ? "--n is"
                                               : "these are"));
    }
    print(list_of(shape), format);
    return 0;
  };
}

}  // namespace redblue
