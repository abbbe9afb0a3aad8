// redblue trace: writes the moves of a kernel's run for other programs.

#include "tools/gate/trace.hpp"

#include <memory>

#include "runtime/report/followed_plan.hpp"
#include "runtime/run/run.hpp"
#include "runtime/text/sizes.hpp"
#include "tools/options/problem.hpp"

namespace redblue {

Action add_trace(CLI::App& app) {
  struct Options {
    explicit Options(CLI::App& command)
        : problem(command, kOperandKeys), trace(command, "this kernel") {}
    ProblemOptions problem;
    TraceOptions trace;
  };
  const auto options = std::make_shared<Options>(app);
  return [options] {
    Request request;
    options->problem.fill(request);
    if (request.threads > 1) {
      throw UsageError(request.said("threads") + ": a trace has one");
    }
    for (const Given& out : options->trace.targets()) {
      refuse_inputs(out, request);
    }
    TraceFiles files(options->trace);
    const RunHook traced = [&](Machine& machine, const Plan& plan, const auto& work) {
      files.follow(machine, followed_of(plan), work);
    };
    run(request, Topology(), {.kernel = traced, .peak_gflops = false});
    files.commit();
    return 0;
  };
}

}  // namespace redblue
