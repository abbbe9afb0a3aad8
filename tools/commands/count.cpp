// redblue count: the words that a kernel will move, from its formulas, at once.

#include <memory>

#include <fmt/format.h>

#include "runtime/report/run_report.hpp"
#include "runtime/run/run.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/print.hpp"
#include "tools/options/problem.hpp"
#include "tools/options/ranks.hpp"

namespace redblue {

Action add_count(CLI::App& app) {
  struct Options {
    explicit Options(CLI::App& command)
        : problem(command),
          word_costs(command),
          heads(command),
          inputs(command),
          ranks(command),
          format(command, "--format", "table, json or csv", "FORMAT") {}
    ProblemOptions problem;
    WordCostsOption word_costs;
    HeadsOption heads;
    PatternOptions inputs;
    RanksOptions ranks;
    TextOption format;
  };
  const auto options = std::make_shared<Options>(app);
  return [options] {
    Request request;
    options->problem.fill(request);
    options->word_costs.fill(request);
    options->heads.fill(request);
    options->inputs.fill(request);
    options->ranks.fill(request);
    const Format format = parse_format(options->format);
    print(count(request), format);
    return 0;
  };
}

}  // namespace redblue
