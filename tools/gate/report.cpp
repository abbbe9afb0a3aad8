#include "tools/gate/report.hpp"

#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "memsim/errors.hpp"
#include "runtime/sweep/html_report.hpp"
#include "runtime/system/input_error.hpp"
#include "runtime/system/whole_file.hpp"
#include "runtime/text/sizes.hpp"
#include "runtime/text/table.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/print.hpp"
#include "tools/gate/picture.hpp"

namespace redblue {
namespace {

constexpr std::size_t kSubjectsWithPhases = 4;

// Returns gnuplot, or nothing if it is missing: the page then has no figures.
std::optional<Gnuplot> gnuplot_if_any() {
  try {
    return Gnuplot();
  } catch (const std::runtime_error& error) {
    say(fmt::format("no figures: {}", error.what()));
    return std::nullopt;
  }
}

// Makes the pictures. A bad argument of a point is reported as an error in the file, not in the
// command line.
std::vector<Picture> drawn_of(const Sweep& sweep, const std::filesystem::path& file,
                              const FiguresOf& figures_of) {
  try {
    return figures_of(sweep, kSubjectsWithPhases);
  } catch (const std::logic_error& error) {
    throw InputError(fmt::format("{}: {}", file.string(), error.what()));
  } catch (const CountOverflow& error) {
    throw InputError(fmt::format("{}: {}", file.string(), error.what()));
  }
}

int report(const std::filesystem::path& directory, const std::filesystem::path& target,
           const std::string& command, const SweepTool& tool, const FiguresOf& figures_of) {
  Sweep sweep = read_sweep(directory, tool);
  sweep.context.emplace_back("this page", command);
  WholeFile page(target);  // opened first, so that an error shows before the work
  std::vector<ReportFigure> figures;
  if (const std::optional<Gnuplot> gnuplot = gnuplot_if_any()) {
    for (Picture& picture : drawn_of(sweep, directory / kDocumentFile, figures_of)) {
      const std::string title = std::exchange(picture.title, "");  // the page has the title
      figures.push_back({title, gnuplot->draw(picture, PictureFormat::svg)});
    }
  }
  page.append(to_html(sweep, figures));
  page.finish();
  page.commit();
  say(fmt::format("{}: {}, {}", target.string(), counted(std::ssize(sweep.points), "point"),
                  counted(std::ssize(figures), "figure")));
  return 0;
}

}  // namespace

Action add_report_of(CLI::App& app, const SweepTool& tool, FiguresOf figures_of) {
  struct Options {
    explicit Options(CLI::App& command)
        : directory(command, "directory", "directory of a sweep"),
          out(command, "-o,--out",
              "page to write (default: report.html in the directory; -: standard output)",
              "FILE.html") {}
    Argument directory;
    TextOption out;
  };
  const auto options = std::make_shared<Options>(app);
  return [options, &app, tool, figures_of = std::move(figures_of)] {
    const std::filesystem::path directory = options->directory.get();
    const auto out = options->out.get();
    for (const char* own : {kPointsFile, kTableFile, kDocumentFile}) {
      if (out && place_of(out->text) == place_of(directory / own)) {
        throw UsageError(
            fmt::format("{} '{}': this file is a part of the sweep: name another for the page",
                        out->from, out->text));
      }
    }
    return report(directory, out ? std::filesystem::path(out->text) : directory / "report.html",
                  command_line(app), tool, figures_of);
  };
}

}  // namespace redblue
