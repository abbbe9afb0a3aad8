// redblue report: a sweep as one HTML page.

#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "runtime/html_report.hpp"
#include "runtime/whole_file.hpp"
#include "tools/command.hpp"
#include "tools/print.hpp"
#include "tools/suite.hpp"

namespace redblue {
namespace {

// JOIN HERE: the figures of runtime/figures.hpp.
std::vector<ReportFigure> figures_of(const Sweep&) {
  return {};
}

int report(const std::filesystem::path& directory, const std::filesystem::path& target) {
  const std::filesystem::path source = directory / "sweep.json";
  if (!std::filesystem::exists(source)) {
    throw InputError(fmt::format("{0} has no sweep.json: `redblue sweep SUITE -o {0}` makes one",
                                 directory.string()));
  }
  WholeFile page(target);  // that cannot be written is better known before figures are drawn
  const Sweep sweep = parse_sweep(read_text(source), source);
  const std::vector<ReportFigure> figures = figures_of(sweep);
  page.append(to_html(sweep, figures));
  page.finish();
  page.commit();
  say(fmt::format("{}: {} points, {} figures", target.string(), sweep.points.size(),
                  figures.size()));
  return 0;
}

}  // namespace

Action add_report(CLI::App& app) {
  struct Options {
    explicit Options(CLI::App& command)
        : directory(command, "DIR", "what `redblue sweep -o DIR` made"),
          out(command, "-o,--out", "the page; else report.html in DIR", "FILE.html") {}
    Argument directory;
    TextOption out;
  };
  const auto options = std::make_shared<Options>(app);
  return [options] {
    const std::filesystem::path directory = options->directory.get();
    const auto out = options->out.get();
    return report(directory, out ? std::filesystem::path(out->text) : directory / "report.html");
  };
}

}  // namespace redblue
