// redblue replay: replays a trace, or the accesses of a kernel's run, in caches of every size.

#include "tools/gate/replay.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "runtime/replay/replay_report.hpp"
#include "runtime/report/kernel_replay.hpp"
#include "runtime/system/read_text.hpp"
#include "runtime/text/sizes.hpp"
#include "tools/cli/command.hpp"
#include "tools/options/problem.hpp"
#include "tools/options/unit.hpp"

namespace redblue {
namespace {

// Throws: UsageError for options of a kernel's run, because a trace is replayed.
void refuse_beside_trace(const CLI::App& app, const std::string& from) {
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    if (option->count() > 0 && name != "--from" && name != "--at" && name != "--format") {
      throw UsageError(fmt::format("{} beside {}: a trace is of no kernel", name, from));
    }
  }
}

class ReplayOptions {
 public:
  explicit ReplayOptions(CLI::App& app)
      : app_(app),
        problem_(app, kOperandKeys),
        from_(app, "--from",
              "replay a trace in Dinero's format instead of a kernel (-: standard input)", "FILE"),
        outputs_(app),
        unit_(app) {
    app.get_option("kernel")->required(false);
  }

  void take() const {
    outputs_.check();
    outputs_.take(replayed());
  }

 private:
  [[nodiscard]] ReplayReport replayed() const {
    if (const auto from = from_.get()) {
      refuse_beside_trace(app_, from->from);
      return {.replayed = replay(parse_dinero(read_text(from->text), input_name(from->text)))};
    }
    if (app_.get_option("kernel")->count() == 0) {
      throw UsageError(
          "name a kernel of `redblue list`, or --from FILE, a trace such as redblue trace --din "
          "writes");
    }
    const ReplayUnit unit = unit_.get();
    if (const auto cachesim = outputs_.cachesim(); cachesim && unit == ReplayUnit::row) {
      throw UsageError(fmt::format("{} beside {} row: the format has no sizes; take words",
                                   cachesim->from, unit_.flag()));
    }
    Request request;
    problem_.fill(request);
    ReplayReport report{.replayed = {}, .kernel = accesses_of(request, unit), .unit = unit};
    report.replayed = replay(report.kernel->accesses);
    return report;
  }

  CLI::App& app_;
  ProblemOptions problem_;
  TextOption from_;
  ReplayOutputs outputs_;
  UnitOption unit_;
};

}  // namespace

Action add_replay(CLI::App& app) {
  const auto options = std::make_shared<ReplayOptions>(app);
  return [options] {
    options->take();
    return 0;
  };
}

}  // namespace redblue
