// redblue pebble solve: the fewest words of a game on a graph, for each M.

#include "tools/commands/pebble_solve.hpp"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "runtime/pebble/dag_files.hpp"
#include "runtime/pebble/optimum.hpp"
#include "runtime/pebble/solve.hpp"
#include "runtime/pebble/terms.hpp"
#include "runtime/report/context.hpp"
#include "runtime/system/whole_file.hpp"
#include "runtime/text/table.hpp"
#include "tools/cli/inputs.hpp"
#include "tools/cli/interruption.hpp"
#include "tools/cli/print.hpp"
#include "tools/commands/pebble_compare.hpp"
#include "tools/options/graph.hpp"

namespace redblue {
namespace {

constexpr double kSeconds = 10;
constexpr Index kBytes = Index{1} << 30;
constexpr Index kMostM = 64;  // most values of M in one call

class SolveOptions {
 public:
  explicit SolveOptions(CLI::App& app)
      : problem(app, "PROBLEM", kGraphHelp),
        graph(app),
        M_(app, "--M", "number of red pebbles: 5, or a range: 3..8", "NUMBERS"),
        game_(app, "--game", "rules of the game; fma: sums in any order (default: strict)",
              "strict|sliding|once|fma|partial"),
        seconds_(app, "--seconds", "limit of the search for each graph and M (default: 10)",
                 "NUMBER"),
        memory_(app, "--memory", "memory of the search (default: 1GiB)", "BYTES"),
        moves_(app, "--moves", "write the moves of the best game (-: standard output)", "FILE"),
        dag_(app, "--dag", "write the graph that --moves refers to", "FILE"),
        compare_(app, "--compare",
                 "compare the proven bound, the optimum of the game fma, and the best kernel"),
        format_(app, "--format", "output format (default: table)", "table|json") {}

  [[nodiscard]] Game game() const {
    const auto given = game_.get();
    return given ? named(given->text, given->from, kGames) : Game::strict;
  }
  [[nodiscard]] SolveLimits limits() const {
    const auto seconds = seconds_.get(), memory = memory_.get();
    return {seconds ? parse_scale(seconds->text, seconds->from) : kSeconds,
            static_cast<std::size_t>(memory ? parse_bytes(memory->text, memory->from) : kBytes),
            stop_if_caller_asks()};
  }
  [[nodiscard]] Format format() const {
    const Format format = parse_format(format_);
    if (format == Format::csv) {
      throw UsageError(fmt::format("{} csv: expected table or json", format_.flag()));
    }
    return format;
  }
  // Returns the first and the last M. Throws: UsageError if --M is missing or below `least`.
  [[nodiscard]] std::pair<Index, Index> range(Index least) const {
    const auto range = range_if_given(least, game());
    return range ? *range : throw UsageError(fmt::format("{} is missing", M_.flag()));
  }
  [[nodiscard]] std::optional<std::pair<Index, Index>> range_if_given(Index least,
                                                                      Game game) const {
    const auto given = M_.get();
    if (!given) {
      return std::nullopt;
    }
    const std::size_t dots = given->text.find("..");
    const Index from = parse_size(given->text.substr(0, dots), given->from);
    const Index to =
        dots == std::string::npos ? from : parse_size(given->text.substr(dots + 2), given->from);
    if (to < from || to - from >= kMostM) {
      throw UsageError(fmt::format("{} '{}': expected 3..8, from less to more, at most {} numbers",
                                   given->from, given->text, kMostM));
    }
    require_enough(from, given->from, least, game);
    return std::pair(from, to);
  }
  // Returns the flag --compare if it is given. Throws: UsageError for options that apply to one
  // graph only.
  [[nodiscard]] std::optional<std::string> compare() const {
    const auto from = compare_.from();
    for (const TextOption* option : {&game_, &moves_, &dag_}) {
      if (const auto given = option->get(); from && given) {
        throw UsageError(
            fmt::format("{}: {} plays fma on several graphs: leave it out", given->from, *from));
      }
    }
    return from;
  }
  // The files for moves and for their graph, if any.
  struct Targets {
    std::optional<std::string> moves, dag;
  };
  [[nodiscard]] Targets targets(bool one_M, bool own_graph) const {
    const auto moves = moves_.get(), dag = dag_.get();
    if (moves && !one_M) {
      throw UsageError(fmt::format("{}: moves are of one M: say --M 5", moves->from));
    }
    if (moves && own_graph && !dag) {
      throw UsageError(fmt::format(
          "{}: in the game fma sums are made in the order of the moves: {} writes their graph",
          moves->from, dag_.flag()));
    }
    if (dag && !moves) {
      throw UsageError(
          fmt::format("{}: the graph is that of {}, which is missing", dag->from, moves_.flag()));
    }
    if (dag && is_standard_output(dag->text)) {
      throw UsageError(fmt::format("{} -: expected a file", dag->from));
    }
    for (const std::optional<Given>& out : {moves, dag}) {
      if (out) {
        refuse_input(*out, problem.get());
      }
    }
    const auto text = [](const std::optional<Given>& given) {
      return given ? std::optional(given->text) : std::nullopt;
    };
    return {text(moves), text(dag)};
  }

  Argument problem;
  GraphOptions graph;

 private:
  TextOption M_, game_, seconds_, memory_, moves_, dag_;
  Switch compare_;
  TextOption format_;
};

Index least_M(const std::string& name, const Rules& rules) {
  try {
    return terms_of(rules).least_M();
  } catch (const TooManyWords& many) {
    throw UsageError(fmt::format("{}: {}: take a smaller one", name, many.what()));
  }
}

Description describe(const Rules& rules, const std::vector<Solution>& solutions) {
  Description of;
  of.facts({{in_json("schema"), kSchema},
            {in_json("game"), to_string(rules.game())},
            {in_json("vertices"), rules.dag().size()}});
  of.table("solutions", rows_of(solutions, [](const Solution& solution) -> Cells {
             const auto& [lower, upper] = std::pair(solution.lower, solution.upper);
             const bool exact = solution.exact();
             return {
                 {{"M", "M", ""}, solution.M},
                 {in_json("lower"), lower},
                 {in_json("upper"), upper},
                 {in_json("exact"), exact},
                 {in_table("words"),
                  exact ? grouped(upper) : fmt::format("{} to {}", grouped(lower), grouped(upper))},
                 {{"states", "states", ""}, solution.states}};
           }));
  return of;
}

int compare(const SolveOptions& options, const std::string& flag) {
  const Task task = options.graph.task(options.problem.get(), flag);
  const auto range = options.range_if_given(least_M(task).value_or(1), Game::fma);
  print(comparison_of(task, range, options.limits()), options.format());
  return 0;
}

int run(const SolveOptions& options) {
  const Format format = options.format();
  if (const auto flag = options.compare()) {
    return compare(options, *flag);
  }
  const Game game = options.game();
  const SolveLimits limits = options.limits();
  const std::string& name = options.problem.get();
  const bool own_graph = game == Game::fma && is_problem(name);
  const bool any_order = own_graph || (game == Game::partial && is_problem(name));
  const Dag graph = options.graph.dag(name, any_order ? std::optional(Sums::any) : std::nullopt);
  const Rules rules(graph, game);
  const auto M = options.range(least_M(name, rules));
  const auto targets = options.targets(M.first == M.second, own_graph);
  const std::vector<Solution> solutions = solve(rules, M.first, M.second, limits);
  if (const Solution& only = solutions.front(); targets.moves) {
    const Dag& moved = only.graph ? *only.graph : graph;
    print_to(*targets.moves, to_text(moved, only.moves));
    if (targets.dag) {
      write_whole(*targets.dag, to_text(moved, format_of(*targets.dag)));
    }
  }
  if (targets.moves && is_standard_output(*targets.moves)) {
    return 0;
  }
  print(describe(rules, solutions), format);
  return 0;
}

}  // namespace

Action pebble_solve(CLI::App& app) {
  const auto options = std::make_shared<SolveOptions>(app);
  return [options] { return run(*options); };
}

}  // namespace redblue
