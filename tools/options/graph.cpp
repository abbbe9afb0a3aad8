#include "tools/options/graph.hpp"

#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "runtime/pebble/core_dags.hpp"
#include "runtime/pebble/dag_files.hpp"
#include "runtime/run/mask_spec.hpp"
#include "runtime/run/resolve.hpp"
#include "runtime/run/sparse_operands.hpp"
#include "runtime/system/read_text.hpp"

namespace redblue {
namespace {

using PassName = std::pair<std::string_view, Pass>;
constexpr std::array kPasses = {
    PassName{"product", Pass::product}, PassName{"forward", Pass::forward},
    PassName{"backward", Pass::backward}, PassName{"attention", Pass::attention},
    PassName{"gradients", Pass::gradients}};
using CoreName = std::pair<std::string_view, Core>;
constexpr std::array kCores = {
    CoreName{"forward-core", Core::forward}, CoreName{"backward-core", Core::backward},
    CoreName{"g-core", Core::g}, CoreName{"gradients-core", Core::gradients}};
using SumsName = std::pair<std::string_view, Sums>;
constexpr std::array kSums = {SumsName{"chain", Sums::chain}, SumsName{"tree", Sums::tree},
                              SumsName{"any", Sums::any}};

using KnownName = std::pair<std::string_view, Known>;
constexpr std::array kKnown = {KnownName{"nothing", Known::nothing},
                               KnownName{"OL", Known::O_and_L}};

const CoreName* core_named(const std::string& name) {
  const auto core = std::ranges::find(kCores, name, &CoreName::first);
  return core == kCores.end() ? nullptr : &*core;
}

Pass pass_named(const std::string& name) {
  return std::ranges::find(kPasses, name, &PassName::first)->second;
}

}  // namespace

bool is_problem(const std::string& name) {
  return core_named(name) != nullptr ||
         std::ranges::find(kPasses, name, &PassName::first) != kPasses.end();
}

std::vector<std::string> problem_names() {
  std::vector<std::string> names;
  for (const auto& [name, pass] : kPasses) {
    names.emplace_back(name);
  }
  for (const auto& [name, core] : kCores) {
    names.emplace_back(name);
  }
  return names;
}

void require_enough(Index M, const std::string& from, Index least, Game game) {
  if (M < least) {
    throw UsageError(fmt::format("{} {}: some vertex takes {} red pebbles in the game {}", from, M,
                                 least, to_string(game)));
  }
}

GraphOptions::GraphOptions(CLI::App& app)
    : shape_(app),
      dv_(app),
      mask_(app),
      patterns_(app),
      sharing_(app, "--sharing", "of a core: none; kv: keys are values; none", "none|kv"),
      given_(app, "--given",
             "what backward and gradients start from: nothing; OL: O and L (default: OL)",
             "nothing|OL"),
      wanted_(app, "--wanted", "results to compute, comma-separated (default: all)", "NAMES"),
      sums_(app, "--sums", "how a sum is made: chain (term by term), tree or any (at once); chain",
            "chain|tree|any", Twin::of_command) {}

Dag GraphOptions::dag(const std::string& name, std::optional<Sums> sums) const {
  if (!is_problem(name)) {
    if (name.find_first_of("./-") == std::string::npos && !std::filesystem::exists(name)) {
      throw UsageError(fmt::format(
          "'{}': expected product, forward, backward, attention, gradients, a core or a file",
          name));
    }
    refuse_options_of_problems(name);
    const DagFormat format = format_of(name);
    return parse_dag(read_text(name), input_name(name), format);
  }
  if (const auto given = sums_.get()) {
    if (sums) {
      throw UsageError(fmt::format(
          "{}: in this game sums are made term by term, in any order: leave it out", given->from));
    }
    sums = named(given->text, given->from, kSums);
  }
  Request request;
  try {
    return dag_of_problem(name, sums.value_or(Sums::chain), request);
  } catch (const std::length_error& many) {
    throw UsageError(fmt::format("{}: {}: take smaller ones", request.said("--n"), many.what()));
  }
}

void GraphOptions::refuse_options_of_problems(const std::string& file) const {
  Request request;
  shape_.fill(request);
  dv_.fill(request);
  mask_.fill(request);
  patterns_.fill(request);
  std::string from = request.seed ? "--seed" : "";
  if (!request.said_as.empty()) {
    from = request.said_as.begin()->second;
  }
  for (const TextOption* option : {&sharing_, &given_, &sums_}) {
    if (const auto given = option->get()) {
      from = given->from;
    }
  }
  for (const Given& given : wanted_.items()) {
    from = given.from;
  }
  if (!from.empty()) {
    throw UsageError(
        fmt::format("{}: the graph is in {}, and no problem's: leave it out", from, file));
  }
}

Dag GraphOptions::dag_of_problem(const std::string& name, Sums sums, Request& request) const {
  const CoreName* core = core_named(name);
  const bool sharing = shared(name, core != nullptr);
  if (core == nullptr) {
    Task task = kind(pass_named(name));
    const Wanted wanted = task.problem.wanted;
    task.problem = problem(task.pass, request);
    task.problem.wanted = wanted;
    return dag_of(task, sums);
  }
  refuse_on_core(name);
  shape_.fill(request);
  patterns_.fill(request);
  mask_.fill(request);
  dv_.fill(request);
  if (!request.mask.empty() || asks_for_sparse(request) || !request.in.empty() || request.dv) {
    throw UsageError(
        fmt::format("{}: a core is dense, and of one width: leave out --mask, --make, "
                    "--in and --dv",
                    name));
  }
  require_sizes(request);
  const Index n = *request.n, d = *request.d;
  return core_dag(core->second, {n, request.m.value_or(n), d, d}, sharing, sums);
}

void GraphOptions::refuse_on_core(const std::string& name) const {
  std::vector<Given> told = wanted_.items();
  if (const auto given = given_.get()) {
    told.push_back(*given);
  }
  if (!told.empty()) {
    throw UsageError(fmt::format("{}: {} has inputs and results of its own: leave it out",
                                 told.front().from, name));
  }
}

Task GraphOptions::task(const std::string& name, const std::string& flag) const {
  if (!is_problem(name) || core_named(name) != nullptr) {
    throw UsageError(fmt::format(
        "{}: bounds and kernels are of product, forward, backward, attention or gradients, not {}",
        flag, name));
  }
  for (const TextOption* option : {&sharing_, &sums_}) {
    if (const auto given = option->get()) {
      throw UsageError(fmt::format("{}: {} says it of every graph of a problem: leave it out",
                                   given->from, flag));
    }
  }
  Request request;
  patterns_.fill(request);
  if (asks_for_sparse(request)) {
    throw UsageError(fmt::format("{}: {} is for dense operands: leave it out",
                                 request.said(request.in.empty() ? "--make" : "--in"), flag));
  }
  Task task = kind(pass_named(name));
  const Wanted wanted = task.problem.wanted;
  Request of_problem;
  task.problem = problem(task.pass, of_problem);
  task.problem.wanted = wanted;
  return task;
}

Task GraphOptions::kind(Pass pass) const {
  Task task{.pass = pass};
  if (const auto given = given_.get()) {
    if (!is_backward(pass)) {
      throw UsageError(fmt::format("{} '{}': only backward and gradients start from O and L",
                                   given->from, given->text));
    }
    task.known = named(given->text, given->from, kKnown);
  }
  const std::vector<Signature>& results = results_of(pass);
  std::size_t count = 0;
  for (const Given& given : wanted_.items()) {
    if (find_operand(results, given.text) == nullptr) {
      std::vector<std::string_view> names;
      for (const Signature& result : results) {
        names.push_back(result.name);
      }
      throw UsageError(fmt::format("{} '{}': {} returns {}", given.from, given.text,
                                   to_string(pass), fmt::join(names, ", ")));
    }
    count += task.problem.wanted.all() || !task.problem.wants(given.text) ? 1 : 0;
    task.problem.wanted.add(given.text);
  }
  if (count == results.size()) {
    task.problem.wanted = {};
  }
  return task;
}

bool GraphOptions::shared(const std::string& name, bool core) const {
  const auto sharing = sharing_.get();
  if (!sharing) {
    return false;
  }
  if (!core) {
    throw UsageError(fmt::format("{}: {} is no core: leave it out", sharing->from, name));
  }
  constexpr std::array kSharing = {std::pair{std::string_view("none"), false},
                                   std::pair{std::string_view("kv"), true}};
  return named(sharing->text, sharing->from, kSharing);
}

void GraphOptions::require_sizes(const Request& request) {
  if (!request.n || !request.d) {
    throw UsageError(fmt::format("{} is missing", request.n ? "--d" : "--n"));
  }
}

Problem GraphOptions::problem(Pass pass, Request& request) const {
  shape_.fill(request);
  patterns_.fill(request);
  mask_.fill(request);
  dv_.fill(request);
  if (asks_for_sparse(request)) {
    if (pass != Pass::forward && pass != Pass::backward) {
      throw UsageError(fmt::format("{}: the graphs of forward and backward take sparse operands",
                                   request.said(request.in.empty() ? "--make" : "--in")));
    }
    request.asked_as = to_string(pass);
    request.kernel = request.asked_as + "/sparse-rows";
    const KernelName kernel = requested_kernel(request);
    return requested_problem(request, kernel, open_inputs(request, kernel)).problem;
  }
  if (!request.in.empty()) {
    throw UsageError(fmt::format(
        "{}: a graph depends on operands where A1, X or A2 have entries of a file (.npz, .mtx, "
        ".smtx): leave it out",
        request.said("--in")));
  }
  require_sizes(request);
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

}  // namespace redblue
