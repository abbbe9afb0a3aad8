// redblue pebble run: plays the run of a kernel as a pebble game on the graph of its operations.

#include "tools/commands/pebble_run.hpp"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "kernels/registry.hpp"
#include "runtime/pebble/dag_files.hpp"
#include "runtime/pebble/kind.hpp"
#include "runtime/pebble/pebbler.hpp"
#include "runtime/pebble/pieces.hpp"
#include "runtime/report/context.hpp"
#include "runtime/run/run.hpp"
#include "runtime/system/whole_file.hpp"
#include "runtime/text/table.hpp"
#include "runtime/trace/referee.hpp"
#include "tools/cli/print.hpp"
#include "tools/options/graph.hpp"
#include "tools/options/problem.hpp"

namespace redblue {
namespace {

class RunOptions {
 public:
  explicit RunOptions(CLI::App& app)
      : problem_(app, kOperandKeys),
        game_(app, "--game",
              "rules of the game; strict and once have M + 1 pebbles (default: sliding)",
              "strict|sliding|once|fma"),
        products_(app, "--products", "make each product a vertex, too (default: only for fma)"),
        T_(app, "--T", "words in a piece of the run (default: the number of red pebbles)",
           "NUMBER"),
        dag_(app, "--dag", "write the graph of the run", "FILE"),
        moves_(app, "--moves", "write the moves of the game (-: standard output)", "FILE"),
        format_(app, "--format", "output format (default: table)", "table|json|csv") {}

  [[nodiscard]] Request request() const {
    Request request;
    problem_.fill(request);
    if (request.threads > 1) {
      throw UsageError(request.said("threads") + ": a game is of one thread");
    }
    if (request.heads.value_or(1) > 1) {
      throw UsageError(request.said("heads") + ": a game is of one head");
    }
    for (const TextOption* out : {&dag_, &moves_}) {
      if (const auto given = out->get()) {
        refuse_inputs(*given, request);
      }
    }
    return request;
  }
  [[nodiscard]] Game game() const {
    const auto given = game_.get();
    const Game game = given ? named(given->text, given->from, kGames) : Game::sliding;
    if (game == Game::partial) {
      throw UsageError(fmt::format(
          "{} partial: a run is no such game; expected strict, sliding, once or fma", given->from));
    }
    return game;
  }
  [[nodiscard]] ProductPebbles products() const {
    return products_.get() || game() == Game::fma ? ProductPebbles::vertices
                                                  : ProductPebbles::fused;
  }
  [[nodiscard]] std::optional<Index> T() const {
    const auto given = T_.get();
    return given ? std::optional(parse_size(given->text, given->from)) : std::nullopt;
  }
  [[nodiscard]] Format format() const { return parse_format(format_); }
  [[nodiscard]] std::optional<std::string> dag() const { return file(dag_); }
  [[nodiscard]] std::optional<std::string> moves() const { return file(moves_); }

 private:
  static std::optional<std::string> file(const TextOption& option) {
    const auto given = option.get();
    return given ? std::optional(given->text) : std::nullopt;
  }

  ProblemOptions problem_;
  TextOption game_;
  Switch products_;
  TextOption T_, dag_, moves_, format_;
};

struct Followed {
  Pebbling pebbling;
  std::string kernel;
  PhaseCounts counted;
  Index untold = 0, flops = 0;
  bool backward = false;
};

Followed follow(const Request& request, ProductPebbles products) {
  Followed all;
  const RunHook followed = [&](Machine& machine, const Plan& plan, const auto& work) {
    Pebbler pebbler(machine, products);
    const Referee referee(machine);
    work();
    referee.check();
    all.pebbling = pebbler.take();
    all.kernel = plan.kernel;
    all.backward = find_kernel(plan.kernel).pass == Pass::backward;
    all.counted = total(machine.phases());
    all.flops = all.counted.operations.flops;
    all.untold = all.flops - referee.flops();
  };
  run(request, Topology(), {.kernel = followed, .peak_gflops = false});
  if (all.untold > 0 || all.pebbling.by_hand > 0) {
    throw UsageError(fmt::format(
        "{}: does not tell all of its arithmetic: a graph would lack {} of {} operations",
        all.kernel, grouped(all.untold), grouped(all.flops)));
  }
  return all;
}

std::vector<Cells> rows_of_pieces(const std::vector<Piece>& pieces) {
  Index number = 0;
  return rows_of(pieces, [&](const Piece& piece) -> Cells {
    return {{"piece", ++number},
            {"vertices", piece.vertices},
            {"products", piece.products},
            {"D", piece.dominator},
            {{"least D", "least_D"}, piece.least_dominator ? Json(*piece.least_dominator) : Json()},
            {"Min", piece.minimum},
            {"reads", piece.reads},
            {"writes", piece.writes}};
  });
}

// Checks the moves by the rules of the game. Returns the game with its least number of pebbles.
Played played(const Rules& rules, const std::vector<Move>& moves) {
  try {
    return referee(rules, rules.dag().size(), moves);
  } catch (const IllegalMove& illegal) {
    throw UsageError(fmt::format("{}: move {}: {}: the run is none of this game",
                                 to_string(rules.game()), illegal.at + 1, illegal.what()));
  }
}

int run(const RunOptions& options) {
  const Format format = options.format();
  const Game game = options.game();
  const Request request = options.request();
  const std::optional<Index> asked_T = options.T();
  const std::optional<std::string> dag_file = options.dag(), moves_file = options.moves();
  if (dag_file && is_standard_output(*dag_file)) {
    throw UsageError("--dag -: expected a file");
  }
  const DagFormat dag_format = dag_file ? format_of(*dag_file) : DagFormat::text;

  const Followed all = follow(request, options.products());
  const Pebbling& pebbling = all.pebbling;
  const Rules rules(pebbling.dag, game);
  const bool slides = game == Game::sliding || game == Game::fma;
  const std::vector<Move> moves =
      slides ? without_terms(rules, pebbling.moves) : without_slides(pebbling.moves);
  const Played of = played(rules, moves);

  const bool only_moves = moves_file && is_standard_output(*moves_file);
  const auto write_files = [&] {
    if (dag_file) {
      write_whole(*dag_file, to_text(pebbling.dag, dag_format));
    }
    if (moves_file) {
      print_to(*moves_file, to_text(pebbling.dag, moves));
    }
  };
  if (only_moves) {
    write_files();
    return 0;
  }
  const std::vector<Move> strict = without_useless(pebbling.dag, without_slides(pebbling.moves));
  const Index red = referee(Rules(pebbling.dag, Game::strict), pebbling.dag.size(), strict).red;
  const Index T = asked_T.value_or(red);
  const std::vector<Cells> pieces = rows_of_pieces(pieces_of(pebbling, strict, T));
  const Json two_step = all.backward ? Json(is_two_step(pebbling)) : Json();
  write_files();
  Description report;
  report.facts({{in_json("schema"), kSchema},
                {in_json("kernel"), all.kernel},
                {in_json("game"), to_string(game)},
                {in_json("words"), of.words()},
                {in_json("counted"), all.counted.io.io()},
                {in_json("peak"), all.counted.peak},
                {in_json("red"), of.red},
                {in_json("vertices"), pebbling.dag.size()},
                {in_json("by_hand"), pebbling.by_hand},
                {in_json("unused"), pebbling.unused},
                {in_json("kind.two_step"), two_step},
                {in_json("kind.made_twice"), pebbling.made_twice()},
                {in_json("T"), T}});
  report.say(
      "{} as a game ({}): {} words ({} read, {} written), at most {} red; the machine's peak is "
      "{}\n"
      "{} vertices, {} made twice{}\n"
      "{} by cuts after {} words\n",
      all.kernel, to_string(game), grouped(of.words()), grouped(of.reads), grouped(of.writes),
      grouped(of.red), grouped(all.counted.peak), grouped(pebbling.dag.size()),
      grouped(pebbling.made_twice()),
      !all.backward          ? ""
      : two_step.get<bool>() ? "; two-step"
                             : "; not two-step: sums over some keys or queries go into g",
      counted(std::ssize(pieces), "piece"), grouped(T));
  report.table("pieces", pieces);
  print(report, format);
  return 0;
}

}  // namespace

Action pebble_run(CLI::App& app) {
  const auto options = std::make_shared<RunOptions>(app);
  return [options] { return run(*options); };
}

}  // namespace redblue
