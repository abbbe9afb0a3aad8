// redblue pebble: computations as graphs, and the red-blue pebble game on the graphs.

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "runtime/pebble/dag_files.hpp"
#include "runtime/pebble/game.hpp"
#include "runtime/report/context.hpp"
#include "runtime/system/input_error.hpp"
#include "runtime/system/read_text.hpp"
#include "runtime/system/whole_file.hpp"
#include "runtime/text/table.hpp"
#include "tools/cli/inputs.hpp"
#include "tools/cli/print.hpp"
#include "tools/commands/pebble_run.hpp"
#include "tools/commands/pebble_solve.hpp"
#include "tools/options/graph.hpp"

namespace redblue {
namespace {

using FormatName = std::pair<std::string_view, DagFormat>;
constexpr std::array kFormats = {
    FormatName{"text", DagFormat::text}, FormatName{"hdag", DagFormat::hdag},
    FormatName{"dot", DagFormat::dot}, FormatName{"mtx", DagFormat::mtx}};

Action dag(CLI::App& app) {
  struct Options {
    explicit Options(CLI::App& command)
        : problem(command, "PROBLEM", kGraphHelp),
          graph(command),
          to(command, "--to", "file format (default: by the name of --out, or text)",
             "text|hdag|dot|mtx"),
          out(command, "-o,--out", "file to write (default: standard output)", "FILE") {}
    Argument problem;
    GraphOptions graph;
    TextOption to, out;
  };
  const auto options = std::make_shared<Options>(app);
  return [options] {
    const auto to = options->to.get();
    const auto out = options->out.get();
    const std::string target = out ? out->text : "-";
    if (out) {
      refuse_input(*out, options->problem.get());
    }
    const DagFormat format =
        to ? named(to->text, to->from, kFormats) : format_of(std::filesystem::path(target));
    const Dag graph = options->graph.dag(options->problem.get());
    print_to(target, to_text(graph, format));
    Index inputs = 0;
    for (Index v = 0; v < graph.size(); ++v) {
      inputs += graph.input(v) ? 1 : 0;
    }
    if (!is_standard_output(target)) {
      print(fmt::format("{}: {} vertices, {} of them inputs; {} edges\n", target,
                        grouped(graph.size()), grouped(inputs), grouped(graph.edges())));
    }
    return 0;
  };
}

Index required_M(const TextOption& option, const Rules& rules) {
  const auto given = option.get();
  if (!given) {
    throw UsageError(fmt::format("{} is missing", option.flag()));
  }
  const Index M = parse_size(given->text, given->from);
  require_enough(M, given->from, rules.least_M(), rules.game());
  return M;
}

Action check(CLI::App& app) {
  struct Options {
    explicit Options(CLI::App& command)
        : graph(command, "GRAPH", "text, .hdag, .dot or .gv, or .mtx"),
          moves(command, "MOVES",
                "file of moves, one on each line, such as `read v` (-: standard input)"),
          M(command, "--M", "number of red pebbles", "NUMBER"),
          game(command, "--game", "rules of the game (default: strict)",
               "strict|sliding|once|fma|partial"),
          format(command, "--format", "output format (default: table)", "table|json") {}
    Argument graph, moves;
    TextOption M, game, format;
  };
  const auto options = std::make_shared<Options>(app);
  return [options] {
    const auto game = options->game.get();
    const Format format = parse_format(options->format);
    if (format == Format::csv) {
      throw UsageError(fmt::format("{} csv: expected table or json", options->format.flag()));
    }
    const std::string& file = options->graph.get();
    const DagFormat kind = format_of(file);
    const Dag graph = parse_dag(read_text(file), input_name(file), kind);
    const Rules rules(graph, game ? named(game->text, game->from, kGames) : Game::strict);
    const Index M = required_M(options->M, rules);
    const std::filesystem::path moves_name = input_name(options->moves.get());
    std::vector<Index> lines;
    const std::vector<Move> moves =
        parse_moves(read_text(options->moves.get()), moves_name, graph, &lines);
    const Played played = [&] {
      try {
        return referee(rules, M, moves);
      } catch (const IllegalMove& illegal) {
        throw InputError(illegal.at < moves.size()
                             ? fmt::format("{}: line {}: {}", moves_name.string(),
                                           lines[illegal.at], illegal.what())
                             : fmt::format("{}: {}", moves_name.string(), illegal.what()));
      }
    }();
    Description of;
    of.facts({{in_json("schema"), kSchema},
              {in_json("game"), to_string(rules.game())},
              {in_json("M"), M},
              {in_json("vertices"), graph.size()},
              {in_json("moves"), std::ssize(moves)},
              {in_json("reads"), played.reads},
              {in_json("writes"), played.writes},
              {in_json("words"), played.words()},
              {in_json("red"), played.red},
              {in_json("computed"), played.computed}});
    of.say(
        "legal: {} words ({} read, {} written) in {} moves, at most {} of M = {} red, {} vertices "
        "computed",
        grouped(played.words()), grouped(played.reads), grouped(played.writes),
        grouped(std::ssize(moves)), grouped(played.red), grouped(M), grouped(played.computed));
    print(of, format);
    return 0;
  };
}

}  // namespace

Action add_pebble(CLI::App& app) {
  const auto chosen = std::make_shared<Action>();
  app.require_subcommand(1);
  const auto add = [&](const char* name, const char* help, Action (*kind)(CLI::App&)) {
    CLI::App& command = add_subcommand(app, name, help);
    command.final_callback([chosen, action = kind(command)] { *chosen = action; });
  };
  add("dag", "write the graph of a problem, word by word", dag);
  add("check", "check that moves keep the rules of a game, and count their words", check);
  add("solve", "find the fewest words that win a game on a graph", pebble_solve);
  add("run", "play a kernel's run as a game on its own graph", pebble_run);
  return [chosen] { return (*chosen)(); };
}

}  // namespace redblue
