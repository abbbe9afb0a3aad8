#include "tools/gate/swept.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "runtime/system/read_text.hpp"
#include "runtime/text/table.hpp"
#include "tools/cli/print.hpp"

namespace redblue {

Sweep read_sweep(const std::filesystem::path& directory, const SweepTool& tool) {
  const std::filesystem::path file = directory / kDocumentFile;
  if (!std::filesystem::exists(file)) {
    throw std::runtime_error(
        fmt::format("there is no {}: `{} sweep SUITE -o {}` makes it, or goes on with it",
                    file.string(), tool.name, directory.string()));
  }
  Sweep sweep = parse_sweep(read_text(file), file.string());
  if (sweep.program.empty() == tool.own) {
    throw InputError(fmt::format("{} is of {}: {} draws it", file.string(),
                                 tool.own ? "redblue's kernels" : "other kernels",
                                 tool.own ? "redblue" : sweep.program));
  }
  if (sweep.points.empty()) {
    throw std::runtime_error(file.string() + " has no points: there is nothing to show");
  }
  return sweep;
}

void say_swept(const Sweep& sweep, const std::filesystem::path& directory) {
  say(fmt::format("{} in {}: {}, {}", counted(std::ssize(sweep.points), "point"),
                  directory.string(), kTableFile, kDocumentFile));
  if (const auto failed = std::ranges::count(sweep.points, true, &Swept::failed); failed > 0) {
    const Swept& first = *std::ranges::find(sweep.points, true, &Swept::failed);
    say(fmt::format("{} of them cannot run: {}: {}{}", failed, to_string(first.point), first.why,
                    failed > 1 ? " (the others are in the files)" : ""));
  }
}

}  // namespace redblue
