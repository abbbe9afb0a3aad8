#include "tools/options/task.hpp"

#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "runtime/run/nest_file.hpp"
#include "runtime/run/resolve.hpp"
#include "runtime/run/sparse_operands.hpp"
#include "tools/options/machine.hpp"

namespace redblue {
namespace {

// Throws: UsageError if an option in `keys` is given, with the reason.
void refuse(const Settings& settings, const std::vector<std::string_view>& keys,
            std::string_view why) {
  if (const auto given = settings.first_of(keys)) {
    throw UsageError(fmt::format("{} '{}': {}", given->from, given->text, why));
  }
}

// Refuses options that have no meaning for the problem.
void refuse_of_others(const Settings& settings, Task& task) {
  if (!is_backward(task.pass)) {
    if (task.known != Known::nothing) {
      refuse(settings, {"given"},
             "only --problem backward, gradients and layer start from O and L");
    }
    task.known = Known::O_and_L;  // the default value, which reports do not mention
  }
  if (is_linear(task.pass)) {
    refuse(settings, {"sharing"}, "linear attention reads queries, keys and values apart");
  }
  if (task.pass == Pass::product) {
    refuse(settings, {"sharing"}, "a product has no sources to share");
    refuse(settings, {"mask"}, "a product has no mask");
    refuse(settings, {"wanted"}, "a product has one result");
    refuse(settings, {"activation"}, "a product has no activation");
  }
}

// Returns the problem of a request that has its kernel. Refuses dense operand files, because they
// do not affect the counts.
RequestedProblem problem_in(const Request& request) {
  const KernelName kernel = requested_kernel(request);
  const bool sparse = kernel.kernel->takes_sparse;
  if (!sparse && !request.in.empty()) {
    throw UsageError(
        "--in: words depend on operands where A1, X or A2, or A or B, have entries of a file "
        "(.npz, .mtx, .smtx): leave it out");
  }
  if (!sparse) {
    check_made(request, kernel.given(), request.who());
  }
  return requested_problem(request, kernel, sparse ? open_inputs(request, kernel) : Readers());
}

// Adds the nests in files. Throws: UsageError if one is of another problem.
void add_nests(const TextOption& files, Task& task) {
  for (const Given& given : files.all()) {
    const Kernel& nest = find_kernel(load_nest_named(named_nest(given.text)));
    if (nest.pass != task.pass) {
      const std::string_view its = to_string(nest.pass), asked = to_string(task.pass);
      throw UsageError(
          nest.pass == Pass::own
              ? fmt::format("{} {}: it names no problem: write 'problem {}' in its head",
                            given.from, given.text, asked)
              : fmt::format(
                    "{0} {1}: its problem is {2}, and this one is {3}: give --problem '{2}'",
                    given.from, given.text, its, asked));
    }
    task.nests.push_back(&nest);
  }
}

// Plans and bounds also know problems with queries that are the keys. A run names its kernel, which
// says so.
Option sharing_of_tasks() {
  Option sharing = option("sharing");
  sharing.type = "none|kv|self";
  sharing.text =
      "kv: keys and values are the same matrix, read once; self: queries, too (default: none)";
  return sharing;
}

Keys keys_of_tasks(const Keys& more) {
  Keys keys = {"problem",  "given",  "n",          "m",       "d",      "dv",   "heads",
               "kv_heads", "mask",   "activation", "sharing", "wanted", "word", "sums",
               "M",        "device", "word_costs", "in",      "make",   "seed"};
  keys.insert(keys.end(), more.begin(), more.end());
  return keys;
}

// Plans and bounds use only the entries of sparse operands.
std::vector<Option> changed_in_tasks() {
  Option in = option("in"), seed = option("seed");
  in.text = "take the stored entries of an operand from FILE: .npz, .mtx, .smtx or .npy";
  seed.text = "random seed of --make (default: 1)";
  return {sharing_of_tasks(), in, seed};
}

}  // namespace

TaskOptions::TaskOptions(CLI::App& app, const Keys& more)
    : table_(app, keys_of_tasks(more), changed_in_tasks()),
      nests_(app, "--nest", "also plan the loop nest written in FILE", "FILE", "", true) {}

Task TaskOptions::task_at(const Sizes& sizes, Request& request) const {
  Settings settings = table_.settings();
  if (sizes.M) {
    refuse(settings, {"M", "device", "word_costs"}, sizes.why);
    request.M = *sizes.M;
  }
  for (const auto& [key, size] : {std::pair("n", sizes.n), std::pair("d", sizes.d)}) {
    if (size) {
      refuse(settings, {key}, sizes.why);
      settings.add(key, std::to_string(*size));
    }
  }
  table_.fill(settings, request);
  Task task{.pass = request.pass.value_or(Pass::backward)};
  task.known = request.known.value_or(Known::O_and_L);
  refuse_of_others(settings, task);
  request.asked_as = fmt::format("--problem {}", to_string(task.pass));
  const bool sparse = task.pass == Pass::logsumexp || asks_for_sparse(request);
  if (sparse) {
    refuse(settings, {"sharing"}, "sparse operands are read apart");
  }
  request.kernel = task.pass == Pass::product ? sparse ? "matmul/sparse-stay" : "matmul/blocked"
                                              : fmt::format("{}/auto", to_string(task.pass));
  const KernelName kernel = requested_kernel(request);
  if (sparse && (kernel.kernel->pass != task.pass || !kernel.kernel->takes_sparse)) {
    check_made(request, kernel.given(), request.who());
    throw UsageError(fmt::format("{}: no kernel of it takes sparse operands", request.asked_as));
  }
  const RequestedProblem found = problem_in(request);
  task.problem = found.problem;
  task.heads = found.kv_heads();
  if (task.pass != Pass::product && !task.problem.normalised()) {
    if (is_backward(task.pass) && task.known == Known::O_and_L) {
      refuse(settings, {"given"},
             fmt::format("{} has no L, and needs no O", to_string(task.problem.activation)));
    }
    task.known = Known::nothing;
  }
  if (sparse && !request.inner.empty()) {
    throw UsageError(
        "--M: kernels of sparse operands have one level of fast memory: give one size");
  }
  task.memory = request.memory_of_plan();
  add_nests(nests_, task);
  return task;
}

Problem TaskOptions::problem_of(const std::string& said, const char* shows,
                                const KernelName& kernel, Request& request) const {
  const Settings settings = table_.settings();
  refuse(settings, {"problem", "given"}, said + " names the kernel");
  refuse(settings, {"threads"}, said + " is planned for one thread");
  request.kernel = kernel.text();
  table_.fill(request);
  if (request.sharing == Sharing::self) {
    throw UsageError("--sharing 'self': expected none or kv");
  }
  const RequestedProblem found = problem_in(request);
  const Index stacked = found.problem.stacked;
  if (request.heads.value_or(found.heads.value_or(1)) > stacked) {
    throw UsageError(fmt::format("--heads {}: {} {} of one head of keys: --heads {}{}",
                                 found.heads.value_or(1), said, shows, stacked,
                                 stacked > 1 ? " --kv-heads 1" : ""));
  }
  return found.problem;
}

std::vector<Task> TaskOptions::tasks_of_widths(Index n, const TextOption& caches) const {
  Settings settings = table_.settings();
  const std::string said = caches.flag();
  refuse(settings, {"heads", "kv_heads"}, said + " asks about one head");
  refuse(settings, {"dv"}, said + " asks for backward algorithms, which have one width");
  refuse(settings, {"activation"}, said + " asks about softmax");
  refuse(settings, {"mask"}, said + " asks about all pairs");
  refuse(settings, {"wanted"}, said + " asks for all of g");
  refuse(settings, {"word_costs"}, said + " asks about one level of fast memory");
  refuse(settings, {"threads"}, said + " asks about one thread");
  refuse(settings, {"M", "device"}, said + " says how much there is; give one of the two");
  const std::vector<Given> widths = settings.items("d");
  if (widths.empty()) {
    throw UsageError("--d is missing: a width, or several as 64,128,256");
  }
  settings.drop("d");
  Request request;
  fill(settings, machine_at_hand(), request);
  if (request.pass.value_or(Pass::backward) != Pass::backward) {
    refuse(settings, {"problem"}, said + " asks for backward algorithms");
  }
  Task task{.pass = Pass::backward};
  task.known = request.known.value_or(Known::O_and_L);
  task.problem.sharing = request.sharing;
  set_widths(request, task.problem);
  std::vector<Task> tasks;
  for (const Given& width : widths) {
    task.problem.shape = {request.n.value_or(n), request.m.value_or(request.n.value_or(n)),
                          parse_size(width.text, width.from)};
    tasks.push_back(task);
  }
  check_one_source(request, task.problem);
  return tasks;
}

}  // namespace redblue
