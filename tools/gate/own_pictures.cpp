#include "tools/gate/own_pictures.hpp"

#include <fstream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "kernels/arithmetic/simd.hpp"
#include "kernels/kernel.hpp"
#include "memsim/errors.hpp"
#include "runtime/replay/move_accesses.hpp"
#include "runtime/replay/replay_report.hpp"
#include "runtime/sweep/figures.hpp"
#include "runtime/sweep/kept_points.hpp"
#include "runtime/text/build_context.hpp"
#include "runtime/text/printable.hpp"
#include "runtime/text/table.hpp"
#include "runtime/trace/occupancy_picture.hpp"
#include "tools/gate/merge.hpp"
#include "tools/gate/own_point.hpp"
#include "tools/gate/picture.hpp"
#include "tools/gate/plot_sweep.hpp"
#include "tools/gate/replay.hpp"
#include "tools/gate/report.hpp"
#include "tools/gate/sweep.hpp"
#include "tools/gate/trace.hpp"

namespace redblue {
namespace {

// Returns the fastest of three runs, or the first if it takes over two seconds.
RunCounts fastest(const Point& point) {
  constexpr int kTimes = 3;
  constexpr double kLong = 2;
  RunCounts best = timed(point);
  for (int k = 1; k < kTimes && best.seconds->total < kLong; ++k) {
    RunCounts next = timed(point);
    if (next.seconds->total < best.seconds->total) {
      best = std::move(next);
    }
  }
  return best;
}

// Returns the counts of a run, of the formula, or both. Checks the formula's peak against M,
// because a user's formula may ignore M.
Swept sweep_point(const Subject& subject, const Arguments& arguments, const std::string& how) {
  const Point point{subject.name, arguments};
  try {
    std::optional<std::vector<PhaseCost>> formula;
    if (subject.formula) {
      formula = subject.formula(arguments);
    }
    if (how == "run") {
      return swept_of(point, subject.run(arguments), formula);
    }
    if (how == kTimed) {
      return swept_of(point, fastest(point), formula);
    }
    if (!formula) {
      throw std::invalid_argument("it has no formula: run it");
    }
    const Swept swept = swept_of(point, std::nullopt, formula);
    const Index peak = swept.total.counts.peak;
    return peak <= arguments["M"]
               ? swept
               : nothing_swept(point, false,
                               fmt::format("by its formula it holds {} words", grouped(peak)));
  } catch (const FastMemoryTooSmall& error) {
    return nothing_swept(point, false, error.what());
  } catch (const FastMemoryOverflow& error) {
    return nothing_swept(point, false, error.what());
  }
}

// Returns the processor's model name in /proc/cpuinfo, if it is there.
std::optional<std::string> processor() {
  constexpr std::string_view kModel = "model name";
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with(kModel) && colon != std::string::npos) {
      return printable(line.substr(colon + 2));
    }
  }
  return std::nullopt;
}

// Returns the context of a sweep: the build, the program and the processor.
std::string context_of(const std::string& program) {
  Json context = build_json();
  context[kProgram] = program;
  context.update({{"simd", simd_target()},
                  {"processor", processor()},
                  {"cores", nullptr},
                  {"caches", Json::array()}});
  return context.dump();
}

Action add_own_sweep(CLI::App& app, const std::string& program) {
  return add_sweep_of(
      app, {.subjects = own_kernels,
            .hows = {"run", "count", kTimed},
            .context = [program] { return context_of(program); },
            .sweep_point =
                [](const Subject& subject, const Arguments& arguments, const std::string& how,
                   const std::function<void()>& /* stop */) {
                  return sweep_point(subject, arguments, how);
                },
            .on_disk = [](const Arguments&) { return false; }});
}

Action add_own_trace(CLI::App& app) {
  struct Options {
    explicit Options(CLI::App& command) : point(command), trace(command, "this kernel") {}
    PointOptions point;
    TraceOptions trace;
  };
  const auto options = std::make_shared<Options>(app);
  return [options] {
    const auto asked = options->point.get();
    TraceFiles files(options->trace);
    follow(asked, [&](Machine& machine, const FollowedRun& run, const auto& work) {
      files.follow(machine, run, work);
      files.commit();
    });
    return 0;
  };
}

// Replays the run in caches of every size.
ReplayReport replayed(Machine& machine, const FollowedRun& run,
                      const std::function<RunCounts()>& work) {
  MoveAccesses accesses(machine);
  const RunCounts counts = work();
  if (counts.total.io.io() == 0) {
    throw std::runtime_error("it moves no words: there is nothing to replay");
  }
  ReplayReport report{
      .kernel = TouchedRun{.run = run,
                           .moved = counts.total,
                           .phases = counts.phases,
                           .accesses = accesses.take(),
                           .note = "accesses are its moves: a word of slow memory that it reads "
                                   "is needed, one that it writes is overwritten\n"}};
  report.kernel->run.more["touched"] = "moves";
  report.replayed = replay(report.kernel->accesses);
  return report;
}

Action add_own_replay(CLI::App& app) {
  struct Options {
    explicit Options(CLI::App& command) : point(command), outputs(command) {}
    PointOptions point;
    ReplayOutputs outputs;
  };
  const auto options = std::make_shared<Options>(app);
  return [options] {
    const auto asked = options->point.get();
    options->outputs.check();
    follow(asked, [&](Machine& machine, const FollowedRun& run, const auto& work) {
      options->outputs.take(replayed(machine, run, work));
    });
    return 0;
  };
}

// Returns an action that runs a kernel and draws it by `picture`.
template <class Make>
Action run_drawn(CLI::App& app, Make picture) {
  struct Options {
    explicit Options(CLI::App& command) : point(command), picture(command) {}
    PointOptions point;
    PictureOptions picture;
  };
  const auto options = std::make_shared<Options>(app);
  return [options, picture, &app] {
    const auto asked = options->point.get();
    PictureFile file(options->picture);
    follow(asked, [&](Machine& machine, const FollowedRun& run, const auto& work) {
      file.draw(picture(machine, run, work), app);
    });
    return 0;
  };
}

Action plot_occupancy(CLI::App& app) {
  return run_drawn(app, [](Machine& machine, const FollowedRun& run, const auto& work) {
    const Occupancy occupancy(machine, kOccupancyColumns);
    work();
    occupancy.check();
    if (occupancy.moved() == 0) {
      throw std::runtime_error("it moves no words: there is nothing to draw");
    }
    return occupancy_picture(occupancy, run);
  });
}

Action plot_replay(CLI::App& app) {
  return run_drawn(app, [](Machine& machine, const FollowedRun& run, const auto& work) {
    return replay_picture(replayed(machine, run, work));
  });
}

Action add_own_plot(CLI::App& app, const SweepDrawn& of) {
  return add_pictures(
      app, {{"words", "words of kernels of a sweep, over M or another size",
             [of](CLI::App& command) { return plot_words(command, of); }},
            {"phases", "where the words of a kernel of a sweep go, by phase",
             [of](CLI::App& command) { return plot_phases(command, of); }},
            {"occupancy", "contents of fast memory over a run, by tile", plot_occupancy},
            {"replay", "words of a run against those of caches of every size: LRU, Belady's, OPT",
             plot_replay}});
}

}  // namespace

std::vector<Subcommand> own_pictures(const std::string& program) {
  const SweepTool tool{.name = program, .own = true};
  return {
      {"merge", "join the parts of a sweep or baseline that several machines made", add_merge},
      {"sweep", "run, count or time the points of a suite, for pictures and reports",
       [program](CLI::App& app) { return add_own_sweep(app, program); }},
      {"report", "make an HTML page of a sweep: figures and tables",
       [tool](CLI::App& app) { return add_report_of(app, tool, plain_figures); }},
      {"plot", "pictures of what kernels do, by gnuplot",
       [tool](CLI::App& app) {
         return add_own_plot(app, {tool, &plain_family()});
       }},
      {"trace", "run a kernel and write its reads and writes to a file, for other programs",
       add_own_trace},
      {"replay",
       "run a kernel, and replay its accesses in caches of every size: LRU, and the fewest reads",
       add_own_replay}};
}

}  // namespace redblue
