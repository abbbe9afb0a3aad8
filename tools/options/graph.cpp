#include "tools/options/graph.hpp"

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <utility>

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

const CoreName* core_named(const std::string& name) {
  const auto core = std::ranges::find(kCores, name, &CoreName::first);
  return core == kCores.end() ? nullptr : &*core;
}

std::string names_of(const std::vector<Signature>& matrices) {
  std::string names;
  for (const Signature& matrix : matrices) {
    names += (names.empty() ? "" : ", ") + std::string(matrix.name);
  }
  return names;
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
    : table_(app,
             {"n", "m", "d", "dv", "mask", "given", "sharing", "wanted", "in", "make", "seed"}),
      sums_(app, "--sums", "shape of a sum: term by term, a tree, or all at once (default: chain)",
            "chain|tree|any") {}

Dag GraphOptions::dag(const std::string& name, std::optional<Sums> sums) const {
  const Settings settings = table_.settings();
  const auto given_sums = sums_.get();
  if (!is_problem(name)) {
    if (name.find_first_of("./-") == std::string::npos && !std::filesystem::exists(name)) {
      throw UsageError(fmt::format(
          "'{}': expected product, forward, backward, attention, gradients, a core or a file",
          name));
    }
    auto given = settings.first_of(
        {"n", "m", "d", "dv", "mask", "given", "sharing", "wanted", "in", "make", "seed"});
    if (given || given_sums) {
      throw UsageError(fmt::format("{}: the graph is in {}, and no problem's: leave it out",
                                   given ? given->from : given_sums->from, name));
    }
    const DagFormat format = format_of(name);
    return parse_dag(read_text(name), input_name(name), format);
  }
  if (given_sums) {
    if (sums) {
      throw UsageError(
          fmt::format("{}: in this game sums are made term by term, in any order: leave it out",
                      given_sums->from));
    }
    sums = named(given_sums->text, given_sums->from, kSums);
  }
  Request request;
  table_.fill(request);
  try {
    const CoreName* core = core_named(name);
    return core == nullptr
               ? dag_of(task_of_problem(name, settings, request), sums.value_or(Sums::chain))
               : dag_of_core(*core, settings, request, sums.value_or(Sums::chain));
  } catch (const std::length_error& many) {
    throw UsageError(fmt::format("--n: {}: take smaller ones", many.what()));
  }
}

Dag GraphOptions::dag_of_core(const CoreName& core, const Settings& settings,
                              const Request& request, Sums sums) {
  if (const auto given = settings.first_of({"wanted", "given"})) {
    throw UsageError(fmt::format("{}: {} has inputs and results of its own: leave it out",
                                 given->from, core.first));
  }
  if (settings.first_of({"mask", "make", "in", "dv"})) {
    throw UsageError(
        fmt::format("{}: a core is dense, and of one width: leave out --mask, --make, "
                    "--in and --dv",
                    core.first));
  }
  if (request.sharing == Sharing::self) {
    throw UsageError("--sharing 'self': expected none or kv");
  }
  require_sizes(request);
  const Index n = *request.n, d = *request.d;
  return core_dag(core.second, {n, request.m.value_or(n), d, d}, request.sharing == Sharing::kv,
                  sums);
}

Task GraphOptions::task(const std::string& name, const std::string& flag) const {
  if (!is_problem(name) || core_named(name) != nullptr) {
    throw UsageError(fmt::format(
        "{}: bounds and kernels are of product, forward, backward, attention or gradients, not {}",
        flag, name));
  }
  const Settings settings = table_.settings();
  auto given = settings.first_of({"sharing"});
  if (!given) {
    given = sums_.get();
  }
  if (given) {
    throw UsageError(
        fmt::format("{}: {} says it of every graph of a problem: leave it out", given->from, flag));
  }
  Request request;
  table_.fill(request);
  if (asks_for_sparse(request)) {
    throw UsageError(fmt::format("{}: {} is for dense operands: leave it out",
                                 request.said(request.in.empty() ? "make" : "in"), flag));
  }
  return task_of_problem(name, settings, request);
}

Task GraphOptions::task_of_problem(const std::string& name, const Settings& settings,
                                   Request& request) {
  const Pass pass = pass_named(name);
  if (const auto sharing = settings.first_of({"sharing"})) {
    throw UsageError(fmt::format("{}: {} is no core: leave it out", sharing->from, name));
  }
  if (const auto given = settings.first_of({"given"}); given && !is_backward(pass)) {
    throw UsageError(fmt::format("{} '{}': only backward and gradients start from O and L",
                                 given->from, given->text));
  }
  if (const auto mask = settings.first_of({"mask"}); mask && pass == Pass::product) {
    throw UsageError(fmt::format("{} '{}': a product has no mask", mask->from, mask->text));
  }
  const bool sparse = asks_for_sparse(request);
  if (sparse && pass != Pass::forward && pass != Pass::backward) {
    throw UsageError(fmt::format("{}: the graphs of forward and backward take sparse operands",
                                 request.said(request.in.empty() ? "make" : "in")));
  }
  if (!sparse && !request.in.empty()) {
    throw UsageError(
        "--in: a graph depends on operands where A1, X or A2 have entries of a file (.npz, .mtx, "
        ".smtx): leave it out");
  }
  Task task{.pass = pass};
  task.known = request.known.value_or(task.known);
  request.asked_as = name;
  request.kernel = sparse                  ? name + "/sparse-rows"
                   : pass == Pass::product ? "matmul/blocked"
                                           : name + "/auto";
  const KernelName kernel = requested_kernel(request);
  // The graph may ask for any subset of results, even if no kernel returns it, so the check below
  // replaces the kernel's.
  const std::vector<std::string> wanted = std::exchange(request.wanted, {});
  task.problem =
      requested_problem(request, kernel, sparse ? open_inputs(request, kernel) : Readers()).problem;
  const std::vector<Signature> results = kernel.results();
  for (const std::string& result : wanted) {
    if (find_operand(results, result) == nullptr) {
      throw UsageError(fmt::format("--wanted {}: {} returns {}", result, name, names_of(results)));
    }
    if (wanted.size() < results.size()) {
      task.problem.wanted.add(result);
    }
  }
  return task;
}

void GraphOptions::require_sizes(const Request& request) {
  if (!request.n || !request.d) {
    throw UsageError(fmt::format("{} is missing", request.n ? "--d" : "--n"));
  }
}

}  // namespace redblue
