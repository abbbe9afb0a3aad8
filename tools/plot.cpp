// redblue plot: pictures of what kernels do. A kind of picture is one function, which adds its
// options to a subcommand of its own and draws.

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/experiment.hpp"
#include "runtime/figures.hpp"
#include "runtime/occupancy_picture.hpp"
#include "tools/command.hpp"
#include "tools/picture.hpp"
#include "tools/problem_options.hpp"
#include "tools/sizes.hpp"
#include "tools/swept.hpp"

namespace redblue {
namespace {

Action occupancy(CLI::App& app) {
  struct Options {
    explicit Options(CLI::App& command)
        : problem(command),
          inputs(command),
          out(command, "-o,--out", "the picture, .svg or .png; -: standard output, as SVG", "FILE",
              Twin::of_command) {}
    ProblemOptions problem;
    InputOptions inputs;
    TextOption out;
  };
  const auto options = std::make_shared<Options>(app);
  return [options, &app] {
    Request request;
    options->problem.fill(request);
    options->inputs.fill(request);
    if (request.threads > 1) {
      throw UsageError(request.said("--threads") + ": one fast memory is drawn");
    }
    PictureFile file(options->out);
    Picture picture;
    run(request, Topology(),
        around_asked(request, [&](Machine& machine, const Plan& plan, const auto& go) {
          const Occupancy occupancy(machine, kOccupancyColumns);
          go();
          occupancy.check();
          picture = occupancy_picture(occupancy, plan);
        }));
    picture.caption = command_line(app);
    file.draw(picture);
    return 0;
  };
}

// A sweep, and which of its points.
class SweepOptions {
 public:
  explicit SweepOptions(CLI::App& app)
      : directory_(app, "directory", "of a sweep"),
        where_(app, "--where", "only points with these arguments; several with commas between",
               "NAME=VALUE"),
        out_(app, "-o,--out", "the picture, .svg or .png; -: standard output, as SVG", "FILE",
             Twin::of_command) {}

  [[nodiscard]] const TextOption& out() const { return out_; }
  [[nodiscard]] Sweep sweep() const { return read_sweep(directory_.get()); }
  // Throws: UsageError where no point is so.
  [[nodiscard]] std::vector<Slice> chosen(const Sweep& sweep) const {
    std::map<std::string, std::string> where;
    for (const Given& given : where_.items()) {
      const std::size_t equals = given.text.find('=');
      if (equals == std::string::npos || equals + 1 == given.text.size()) {
        throw UsageError(
            fmt::format("{} '{}': expected NAME=VALUE, for example d=64", given.from, given.text));
      }
      where[given.text.substr(0, equals)] = given.text.substr(equals + 1);
    }
    for (auto& [name, value] : where) {
      const bool known = std::ranges::any_of(sweep.points, [&name = name](const Swept& swept) {
        return swept.point.arguments.contains(name);
      });
      if (!known) {
        throw UsageError(fmt::format("{}: no point has a '{}'", where_.said(), name));
      }
      if (std::isdigit(static_cast<unsigned char>(value.front())) != 0) {
        value = std::to_string(parse_size(value, where_.said()));
      }
    }
    std::vector<Slice> found = slices(sweep, where);
    if (found.empty()) {
      throw UsageError(fmt::format("{}: {} has no such points", where_.said(), directory_.get()));
    }
    return found;
  }
  // The only one. Throws: UsageError naming all of them.
  [[nodiscard]] Slice slice(const Sweep& sweep) const {
    const std::vector<Slice> found = chosen(sweep);
    if (found.size() > 1) {
      std::string names;
      for (const Slice& slice : found) {
        names += (names.empty() ? "" : "; or ") + slice.arguments;
      }
      throw UsageError(
          fmt::format("{} has several: {} says which: {}", directory_.get(), where_.flag(), names));
    }
    return found.front();
  }

 private:
  Argument directory_;
  TextOption where_, out_;
};

// Draws what `picture` makes of the sweep and its options.
template <class Options, class Make>
Action drawn(CLI::App& app, Make picture) {
  const auto options = std::make_shared<Options>(app);
  return [options, picture, &app] {
    const Sweep sweep = options->sweep();
    PictureFile file(options->out());
    Picture made = picture(*options, sweep);
    made.caption = command_line(app);
    file.draw(made);
    return 0;
  };
}

Action figure1(CLI::App& app) {
  return drawn<SweepOptions>(app, [](const SweepOptions& options, const Sweep& sweep) {
    return figure1_picture(options.slice(sweep));
  });
}

Action phases(CLI::App& app) {
  struct Options : SweepOptions {
    explicit Options(CLI::App& command)
        : SweepOptions(command), kernel(command, "--kernel", "whose phases", "KERNEL") {}
    TextOption kernel;
  };
  return drawn<Options>(app, [](const Options& options, const Sweep& sweep) {
    const Slice slice = options.slice(sweep);
    const auto kernel = options.kernel.get();
    if (kernel && only(slice, kernel->text).points.empty()) {
      throw UsageError(fmt::format("{} '{}': the sweep has {}", kernel->from, kernel->text,
                                   fmt::join(subjects_of(slice), ", ")));
    }
    if (!kernel && subjects_of(slice).size() > 1) {
      throw UsageError(fmt::format("{} is missing: the sweep has {}", options.kernel.flag(),
                                   fmt::join(subjects_of(slice), ", ")));
    }
    return phases_picture(kernel ? only(slice, kernel->text) : slice);
  });
}

Action roofline(CLI::App& app) {
  return drawn<SweepOptions>(app, [](const SweepOptions& options, const Sweep& sweep) {
    return roofline_picture(options.chosen(sweep));
  });
}

}  // namespace

Action add_plot(CLI::App& app) {
  const auto chosen = std::make_shared<Action>();
  app.require_subcommand(1);
  const auto add = [&](const char* name, const char* help, Action (*kind)(CLI::App&)) {
    CLI::App& command = add_subcommand(app, name, help);
    command.final_callback([chosen, action = kind(command)] { *chosen = action; });
  };
  add("figure1", "the paper's Figure 1 by measurement: words against M, and over the bound",
      figure1);
  add("phases", "where the words of a kernel go, by phase, over M", phases);
  add("roofline", "GF/s against words a flop, below what the machine reached meanwhile", roofline);
  add("occupancy", "what is in fast memory in the course of a run, by tile", occupancy);
  return [chosen] { return (*chosen)(); };
}

}  // namespace redblue
