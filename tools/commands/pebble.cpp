// redblue pebble: computations as graphs, and the red-blue pebble game on them.

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/pebble/attention_dags.hpp"
#include "runtime/pebble/dag_files.hpp"
#include "runtime/pebble/game.hpp"
#include "runtime/report/context.hpp"
#include "runtime/run/mask_spec.hpp"
#include "runtime/run/resolve.hpp"
#include "runtime/run/sparse_operands.hpp"
#include "runtime/system/input_error.hpp"
#include "runtime/system/read_text.hpp"
#include "runtime/system/whole_file.hpp"
#include "runtime/text/json.hpp"
#include "runtime/text/table.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/print.hpp"
#include "tools/cli/sizes.hpp"
#include "tools/options/problem.hpp"

namespace redblue {
namespace {

// One of several values, by its name. Throws: UsageError.
template <class Value, std::size_t count>
Value named(const std::string& text, const std::string& from,
            const std::array<std::pair<std::string_view, Value>, count>& values) {
  for (const auto& [name, value] : values) {
    if (text == name) {
      return value;
    }
  }
  std::vector<std::string_view> names;
  for (const auto& [name, value] : values) {
    names.push_back(name);
  }
  throw UsageError(fmt::format("{} '{}': expected {} or {}", from, text,
                               fmt::join(names.begin(), names.end() - 1, ", "), names.back()));
}

using PassName = std::pair<std::string_view, Pass>;
constexpr std::array kPasses = {
    PassName{"product", Pass::product}, PassName{"forward", Pass::forward},
    PassName{"backward", Pass::backward}, PassName{"attention", Pass::attention},
    PassName{"gradients", Pass::gradients}};
using SumsName = std::pair<std::string_view, Sums>;
constexpr std::array kSums = {SumsName{"chain", Sums::chain}, SumsName{"tree", Sums::tree},
                              SumsName{"any", Sums::any}};
using FormatName = std::pair<std::string_view, DagFormat>;
constexpr std::array kFormats = {
    FormatName{"text", DagFormat::text}, FormatName{"hdag", DagFormat::hdag},
    FormatName{"dot", DagFormat::dot}, FormatName{"mtx", DagFormat::mtx}};
using GameName = std::pair<std::string_view, Game>;
constexpr std::array kGames = {GameName{"strict", Game::strict}, GameName{"sliding", Game::sliding},
                               GameName{"once", Game::once}, GameName{"fma", Game::fma}};

// The shape, mask and sparse operands of a problem that is no kernel's.
class GraphOptions {
 public:
  explicit GraphOptions(CLI::App& app)
      : shape_(app),
        dv_(app),
        mask_(app),
        patterns_(app),
        sums_(app, "--sums",
              "how a sum is made: chain (term by term), tree or any (at once); chain", "HOW") {}

  // Of a problem of that name, or in a file.
  [[nodiscard]] Dag dag(const std::string& name) const {
    Request request;
    const auto pass = std::ranges::find(kPasses, name, &PassName::first);
    if (pass == kPasses.end()) {
      if (name.find_first_of("./-") == std::string::npos && !std::filesystem::exists(name)) {
        throw UsageError(fmt::format(
            "'{}': expected product, forward, backward, attention, gradients or a file", name));
      }
      return parse_dag(read_text(name), input_name(name), format_of(name));
    }
    const auto sums = sums_.get();
    const Problem asked = problem(pass->second, request);
    try {
      return dag_of(pass->second, asked, sums ? named(sums->text, sums->from, kSums) : Sums::chain);
    } catch (const std::length_error& many) {
      throw UsageError(fmt::format("{}: {}: take smaller ones", request.said("--n"), many.what()));
    }
  }

 private:
  Problem problem(Pass pass, Request& request) const {
    shape_.fill(request);
    patterns_.fill(request);
    mask_.fill(request);
    dv_.fill(request);
    if (asks_for_sparse(request)) {
      if (pass != Pass::forward && pass != Pass::backward) {
        throw UsageError(fmt::format("{}: the graphs of forward and backward take sparse operands",
                                     request.said(request.in.empty() ? "--make" : "--in")));
      }
      request.kernel = std::string(to_string(pass)) + "/sparse-rows";
      const KernelName kernel = requested_kernel(request);
      return requested_problem(request, kernel, open_inputs(request, kernel)).problem;
    }
    if (!request.in.empty()) {
      throw UsageError(fmt::format(
          "{}: a graph depends on operands where A1, X or A2 have entries of a file (.npz, .mtx, "
          ".smtx): leave it out",
          request.said("--in")));
    }
    if (!request.n || !request.d) {
      throw UsageError(fmt::format("{} is missing", request.n ? "--d" : "--n"));
    }
    Problem problem;
    problem.inputs = inputs_of(pass);
    problem.shape = {
        *request.n, request.m.value_or(*request.n), *request.d,
        requested_dv(request, pass, Sharing::none, *request.d, std::string(to_string(pass)))};
    if (!request.mask.empty()) {
      const std::string said = fmt::format("{} '{}'", request.said("--mask"), request.mask);
      if (pass == Pass::product) {
        throw UsageError(said + ": a product has no mask");
      }
      problem.mask = parse_mask(request.mask, problem.shape, said);
    }
    return problem;
  }

  ShapeOptions shape_;
  ValueWidthOption dv_;
  MaskOption mask_;
  PatternOptions patterns_;
  TextOption sums_;
};

Action dag(CLI::App& app) {
  struct Options {
    explicit Options(CLI::App& command)
        : problem(
              command, "PROBLEM",
              "product, forward, backward, attention or gradients; or a graph in a file: .hdag, "
              ".dot or .gv, .mtx, or text"),
          graph(command),
          to(command, "--to",
             "text, hdag (hyperDAG, v1), dot or mtx; by the name of --out, or text", "FORMAT"),
          out(command, "-o,--out", "-: standard output; -", "FILE", Twin::of_command) {}
    Argument problem;
    GraphOptions graph;
    TextOption to, out;
  };
  const auto options = std::make_shared<Options>(app);
  return [options] {
    const auto to = options->to.get();
    const auto out = options->out.get();
    const std::string target = out ? out->text : "-";
    const DagFormat format =
        to ? named(to->text, to->from, kFormats) : format_of(std::filesystem::path(target));
    const Dag graph = options->graph.dag(options->problem.get());
    WholeFile file(target);
    file.append(to_text(graph, format));
    file.finish();
    file.commit();
    Index inputs = 0;
    for (Index v = 0; v < graph.size(); ++v) {
      inputs += graph.input(v) ? 1 : 0;
    }
    if (!is_standard_output(target)) {
      print(fmt::format("{}: {} vertices, {} of them inputs; {} edges\n", file.target().string(),
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
  if (const Index least = rules.least_M(); M < least) {
    throw UsageError(fmt::format("{} {}: some vertex takes {} red pebbles in the game {}",
                                 given->from, M, least, to_string(rules.game())));
  }
  return M;
}

Action check(CLI::App& app) {
  struct Options {
    explicit Options(CLI::App& command)
        : graph(command, "GRAPH", "text, .hdag, .dot or .gv, or .mtx"),
          moves(
              command, "MOVES",
              "a line each: read v, write v, compute v, compute v slides u, delete v; -: standard "
              "input"),
          M(command, "--M", "red pebbles", "NUMBER"),
          game(command, "--game", "strict, sliding, once or fma; strict", "GAME"),
          format(command, "--format", "table or json; table", "FORMAT") {}
    Argument graph, moves;
    TextOption M, game, format;
  };
  const auto options = std::make_shared<Options>(app);
  return [options] {
    const auto game = options->game.get();
    const Format format = parse_format(options->format);
    if (format == Format::csv) {
      throw UsageError(fmt::format("{} csv: expected table or json", options->format.said()));
    }
    const std::string& file = options->graph.get();
    const Dag graph = parse_dag(read_text(file), input_name(file), format_of(file));
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
    if (format == Format::json) {
      const Json json = {
          {"schema", kSchema},          {"game", to_string(rules.game())}, {"M", M},
          {"vertices", graph.size()},   {"moves", std::ssize(moves)},      {"reads", played.reads},
          {"writes", played.writes},    {"words", played.words()},         {"red", played.red},
          {"computed", played.computed}};
      print(json.document());
    } else {
      print(fmt::format(
          "legal: {} words ({} read, {} written) in {} moves, at most {} of M = {} "
          "red, {} vertices computed\n",
          grouped(played.words()), grouped(played.reads), grouped(played.writes),
          grouped(std::ssize(moves)), grouped(played.red), grouped(M), grouped(played.computed)));
    }
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
  add("dag", "the graph of a problem, word by word", dag);
  add("check", "whether moves on a graph keep the rules of a game, and how many words they move",
      check);
  return [chosen] { return (*chosen)(); };
}

}  // namespace redblue
