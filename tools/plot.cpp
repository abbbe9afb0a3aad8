// redblue plot: pictures of what kernels do. A kind of picture is one function, which adds its
// options to a subcommand of its own and draws.

#include <memory>

#include <CLI/CLI.hpp>

#include "runtime/experiment.hpp"
#include "runtime/occupancy_picture.hpp"
#include "tools/command.hpp"
#include "tools/picture.hpp"
#include "tools/problem_options.hpp"
#include "tools/sizes.hpp"

namespace redblue {
namespace {

Action occupancy(CLI::App& app) {
  struct Options {
    explicit Options(CLI::App& command)
        : problem(command),
          inputs(command),
          out(command, "-o,--out", "the picture, .svg or .png", "FILE") {}
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
          picture = occupancy_picture(occupancy, plan);
        }));
    picture.caption = command_line(app);
    file.draw(picture);
    return 0;
  };
}

}  // namespace

Action add_plot(CLI::App& app) {
  const auto chosen = std::make_shared<Action>();
  app.require_subcommand(1);
  const auto add = [&](const char* name, const char* help, Action (*kind)(CLI::App&)) {
    CLI::App& command = *app.add_subcommand(name, help);
    command.final_callback([chosen, action = kind(command)] { *chosen = action; });
  };
  add("occupancy", "what is in fast memory in the course of a run, by tile", occupancy);
  return [chosen] { return (*chosen)(); };
}

}  // namespace redblue
