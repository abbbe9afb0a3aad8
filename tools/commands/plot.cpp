// redblue plot: pictures of what kernels do. A kind of picture is one function, which adds its
// options to its subcommand and draws.

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/report/dividing.hpp"
#include "runtime/trace/occupancy_picture.hpp"
#include "runtime/report/followed_plan.hpp"
#include "runtime/replay/replay_report.hpp"
#include "runtime/report/kernel_replay.hpp"
#include "runtime/report/scaling.hpp"
#include "runtime/run/resolve.hpp"
#include "runtime/run/run.hpp"
#include "runtime/run/sparse_operands.hpp"
#include "runtime/sweep/figures.hpp"
#include "runtime/sweep/kernel_subjects.hpp"
#include "runtime/system/input_error.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/print.hpp"
#include "tools/cli/sizes.hpp"
#include "tools/options/picture.hpp"
#include "tools/options/problem.hpp"
#include "tools/options/ranks.hpp"
#include "tools/options/swept.hpp"
#include "tools/options/tabled.hpp"
#include "tools/options/task.hpp"
#include "tools/options/unit.hpp"

namespace redblue {
namespace {

Action occupancy(CLI::App& app) {
  struct Options {
    explicit Options(CLI::App& command) : problem(command), inputs(command), picture(command) {}
    ProblemOptions problem;
    InputOptions inputs;
    PictureOptions picture;
  };
  const auto options = std::make_shared<Options>(app);
  return [options, &app] {
    Request request;
    options->problem.fill(request);
    options->inputs.fill(request);
    if (request.threads > 1) {
      throw UsageError(request.said("--threads") + ": one fast memory is drawn");
    }
    PictureFile file(options->picture);
    Picture picture;
    const RunHook drawn = [&](Machine& machine, const Plan& plan, const auto& work) {
      const Occupancy occupancy(machine, kOccupancyColumns);
      work();
      occupancy.check();
      picture = occupancy_picture(occupancy, followed_of(plan));
    };
    run(request, Topology(), {.kernel = drawn, .peak_gflops = false});
    file.draw(std::move(picture), app);
    return 0;
  };
}

// The first few: "64, 128, 256, ...".
std::string some_of(std::vector<std::string> values) {
  constexpr std::size_t kSome = 3;
  if (values.size() > kSome) {
    values.resize(kSome);
    values.emplace_back("...");
  }
  return fmt::format("{}", fmt::join(values, ", "));
}

// A sweep, and the choice of its points.
class SweepOptions {
 public:
  explicit SweepOptions(CLI::App& app)
      : directory_(app, "directory", "of a sweep"),
        where_(app, "--where", "only points with these arguments; several with commas between",
               "NAME=VALUE"),
        picture_(app) {}

  [[nodiscard]] const PictureOptions& picture() const { return picture_; }
  [[nodiscard]] Sweep sweep() const { return read_sweep(directory_.get()); }
  // Throws: UsageError if no point matches.
  [[nodiscard]] Points points(const Sweep& sweep) const {
    std::map<std::string, std::string> where;
    std::string* last = nullptr;  // the value before, which may have commas: mask=window:4,0
    for (const Given& given : where_.items()) {
      const std::size_t equals = given.text.find('=');
      if (equals == std::string::npos && last != nullptr && !given.text.empty()) {
        *last += "," + given.text;
        continue;
      }
      if (equals == std::string::npos || equals + 1 == given.text.size()) {
        throw UsageError(
            fmt::format("{} '{}': expected NAME=VALUE, for example d=64", given.from, given.text));
      }
      last = &(where[given.text.substr(0, equals)] = given.text.substr(equals + 1));
    }
    for (auto& [name, value] : where) {
      const bool known = std::ranges::any_of(sweep.points, [&name = name](const Swept& swept) {
        return swept.point.arguments.contains(name);
      });
      if (!known) {
        throw UsageError(fmt::format("{}: no point has a '{}'", where_.said(), name));
      }
      if (std::isdigit(static_cast<unsigned char>(value.front())) != 0) {
        value = sizes_in(value);
      }
    }
    Points found = points_of(sweep, where);
    if (found.empty()) {
      throw UsageError(fmt::format("{}: {} has no such points", where_.said(), directory_.get()));
    }
    return found;
  }

 private:
  // "8K,64K", of levels, is 8192,65536.
  [[nodiscard]] std::string sizes_in(const std::string& text) const {
    std::vector<Index> sizes;
    std::size_t begin = 0;
    for (std::size_t comma = 0; comma != std::string::npos; begin = comma + 1) {
      comma = text.find(',', begin);
      sizes.push_back(parse_size(
          text.substr(begin, comma == std::string::npos ? comma : comma - begin), where_.said()));
    }
    return fmt::format("{}", fmt::join(sizes, ","));
  }

 protected:
  [[nodiscard]] const std::string& directory() const { return directory_.get(); }
  [[nodiscard]] const std::string& where_flag() const { return where_.flag(); }

 private:
  Argument directory_;
  TextOption where_;
  PictureOptions picture_;
};

// The choice of points and of the axis to draw them over.
class SliceOptions : public SweepOptions {
 public:
  explicit SliceOptions(CLI::App& app)
      : SweepOptions(app),
        over_(app, "--over", "the axis; the one of them that varies where left out", kOver) {}

  // All of these points. Throws: UsageError if they differ in more than the axis.
  [[nodiscard]] Slice slice(const Points& points) const {
    const std::vector<Differing> all = differing(points);
    const std::vector<std::string> axes = axes_of(all);
    std::string varying, ways;
    for (const auto& [name, values] : all) {
      varying += fmt::format("{}{} ({})", varying.empty() ? "" : ", ", name, some_of(values));
    }
    for (const std::string& axis : axes) {
      const std::vector<Slice> found = slices(points, axis);
      if (found.size() <= 1) {
        return found.empty() ? Slice{.over = axis, .common = {}, .points = {}} : found.front();
      }
      // The example names a slice with the most points.
      const Slice& most = *std::ranges::max_element(
          found, {}, [](const Slice& slice) { return slice.points.size(); });
      std::string fixed;
      for (const auto& [name, values] : all) {
        const Arguments& arguments = most.points.front()->point.arguments;
        if (name != axis && arguments.contains(name)) {
          fixed += fmt::format("{}{}={}", fixed.empty() ? "" : ",", name,
                               to_string(arguments.value(name)));
        }
      }
      ways +=
          fmt::format("{}{} {} draws over {}", ways.empty() ? "" : ", ", where_flag(), fixed, axis);
    }
    throw UsageError(fmt::format("{} varies in {}: {}", directory(), varying, ways));
  }

 private:
  // The axes over which points that differ so can be drawn: at least one.
  [[nodiscard]] std::vector<std::string> axes_of(const std::vector<Differing>& all) const {
    if (const auto over = over_.get()) {
      if (std::ranges::find(kAxes, over->text) == kAxes.end()) {
        throw UsageError(fmt::format("{} '{}': expected {}", over->from, over->text, kOver));
      }
      return {over->text};
    }
    std::vector<std::string> axes;
    for (const std::string_view axis : kAxes) {
      if (std::ranges::find(all, axis, &Differing::name) != all.end()) {
        axes.emplace_back(axis);
      }
    }
    return axes.empty() ? std::vector{std::string(kAxes.front())} : axes;
  }

  static constexpr const char* kOver = "M|n|d";
  TextOption over_;
};

// Draws the picture that `picture` makes of the options and the sweep.
template <class Options, class Make>
Action drawn(CLI::App& app, Make picture) {
  const auto options = std::make_shared<Options>(app);
  return [options, picture, &app] {
    const Sweep sweep = options->sweep();
    PictureFile file(options->picture());
    file.draw(picture(*options, sweep), app);
    return 0;
  };
}

Action figure1(CLI::App& app) {
  return drawn<SliceOptions>(app, [](const SliceOptions& options, const Sweep& sweep) {
    const Points points = options.points(sweep);
    const Points backward = backward_of(points);
    if (backward.empty() && std::ranges::any_of(points, [](const Swept* swept) {
          return swept->point.subject.starts_with("backward/") && has_sparse_operands(swept->point);
        })) {
      throw InputError(
          "figure1 is of dense operands: of others the bound is of their entries, which a sweep "
          "does not keep; `redblue plot phases` draws these points");
    }
    return figure1_picture(options.slice(backward));
  });
}

// The subject of --kernel, or the only one. Throws: UsageError.
Points of_one_kernel(const Points& points, const TextOption& kernel) {
  if (const auto asked = kernel.get()) {
    Points found = only(points, asked->text);
    if (found.empty()) {
      throw UsageError(fmt::format("{} '{}': the sweep has {}", asked->from, asked->text,
                                   fmt::join(subjects_of(points), ", ")));
    }
    return found;
  }
  if (subjects_of(points).size() > 1) {
    throw UsageError(fmt::format("{} is missing: the sweep has {}", kernel.flag(),
                                 fmt::join(subjects_of(points), ", ")));
  }
  return points;
}

Action phases(CLI::App& app) {
  struct Options : SliceOptions {
    explicit Options(CLI::App& command)
        : SliceOptions(command), kernel(command, "--kernel", "whose phases", "KERNEL") {}
    TextOption kernel;
  };
  return drawn<Options>(app, [](const Options& options, const Sweep& sweep) {
    return phases_picture(options.slice(of_one_kernel(options.points(sweep), options.kernel)));
  });
}

Action levels(CLI::App& app) {
  struct Options : SweepOptions {
    explicit Options(CLI::App& command)
        : SweepOptions(command), kernel(command, "--kernel", "whose words", "KERNEL") {}
    // Throws: UsageError where points differ in more than M and the levels below it.
    [[nodiscard]] Slice slice(const Sweep& sweep) const {
      const std::vector<Slice> found = level_slices(of_one_kernel(points(sweep), kernel));
      if (found.empty()) {
        throw UsageError(directory() +
                         " has no such points of several levels: a suite with \"M\": "
                         "\"8K,256K\" makes them");
      }
      if (found.size() > 1) {
        std::string varying;
        for (const auto& [name, values] : differing(points(sweep))) {
          if (name != "M" && name != kInner) {
            varying += fmt::format("{}{} ({})", varying.empty() ? "" : ", ", name, some_of(values));
          }
        }
        throw UsageError(
            fmt::format("{} varies in {}: name one with {}", directory(), varying, where_flag()));
      }
      return found.front();
    }
    TextOption kernel;
  };
  return drawn<Options>(app, [](const Options& options, const Sweep& sweep) {
    return levels_picture(options.slice(sweep));
  });
}

Action roofline(CLI::App& app) {
  return drawn<SweepOptions>(app, [](const SweepOptions& options, const Sweep& sweep) {
    return roofline_picture(options.points(sweep));
  });
}

struct DividingAsked {
  explicit DividingAsked(CLI::App& command) : shape(command), inputs(command) {}
  ShapeOptions shape;
  PatternOptions inputs;
};

Dividing dividing_of(const DividingAsked& asked) {
  Request request;
  request.kernel = kDividingRows;
  asked.shape.fill(request);
  asked.inputs.fill(request);
  const KernelName kernel = requested_kernel(request);
  const Problem problem = requested_problem(request, kernel, open_inputs(request, kernel)).problem;
  return report_dividing(problem, sparse_sources(request, *kernel.kernel));
}

Action dividing(CLI::App& app) {
  return tabled(app, dividing_of, dividing_picture);
}

struct ReplayAsked {
  explicit ReplayAsked(CLI::App& command) : problem(command), inputs(command), unit(command) {}
  ProblemOptions problem;
  InputOptions inputs;
  UnitOption unit;
};

ReplayReport replay_of(const ReplayAsked& asked) {
  const ReplayUnit unit = asked.unit.get();
  Request request;
  asked.problem.fill(request);
  asked.inputs.fill(request);
  ReplayReport report{.replayed = {}, .at = {}, .kernel = accesses_of(request, unit), .unit = unit};
  report.replayed = replay(report.kernel->accesses);
  report.at = sizes_shown(report);
  return report;
}

Action replayed(CLI::App& app) {
  return tabled(app, replay_of, replay_picture);
}

struct ScalingAsked {
  explicit ScalingAsked(CLI::App& command)
      : kernel(command, "kernel", "that runs on ranks"),
        task(command),
        ranks(command, "for 2, 4, 8, ... ranks, up to so many; 4096"),
        runs(command, "--runs",
             "reports of `redblue run --format json` on ranks, as points; several with commas "
             "between",
             "FILES") {}
  Argument kernel;
  TaskOptions task;
  RanksOption ranks;
  TextOption runs;
};

Scaling scaling_of(const ScalingAsked& asked) {
  const std::string& kernel = asked.kernel.get();
  check_kernel(kernel, false);
  const KernelName name = *parse_kernel_name(kernel);
  check_runs_on_ranks(name, "plot ranks");
  Request request;
  const Problem problem = asked.task.problem_of(kernel, "is drawn on ranks", name, request);
  std::vector<std::string> runs;
  for (const Given& run : asked.runs.items()) {
    runs.push_back(run.text);
  }
  constexpr Index kMost = 4096;
  const Index most = asked.ranks.get().value_or(kMost);
  if (most < 2) {
    throw UsageError(asked.ranks.option().said() +
                     " 1: one rank has no links; expected at least 2");
  }
  return report_scaling(*name.kernel, problem, request.M, most, runs);
}

Action scaling(CLI::App& app) {
  return tabled(app, scaling_of, scaling_picture);
}

}  // namespace

Action add_plot(CLI::App& app) {
  const auto chosen = std::make_shared<Action>();
  app.require_subcommand(1);
  const auto add = [&](const char* name, const char* help, Action (*kind)(CLI::App&)) {
    CLI::App& command = add_subcommand(app, name, help);
    command.final_callback([chosen, action = kind(command)] { *chosen = action; });
  };
  add("figure1", "the paper's Figure 1 by measurement: words against M, n or d, and over the bound",
      figure1);
  add("phases", "where the words of a kernel go, by phase, over M, n or d", phases);
  add("levels",
      "words of a kernel at each of several levels of fast memory, against M of the level", levels);
  add("roofline", "GF/s against words a flop, below what the machine reached meanwhile", roofline);
  add("dividing",
      "words of sparse operands against M where tiles stay, and where rows do; where they cross",
      dividing);
  add("replay", "words of a kernel against those of caches of every size: LRU, Belady's, OPT",
      replayed);
  add("ranks", "words of one of many ranks against their number: best grid, ring, lower bound",
      scaling);
  add("occupancy", "what is in fast memory in the course of a run, by tile", occupancy);
  return [chosen] { return (*chosen)(); };
}

}  // namespace redblue
