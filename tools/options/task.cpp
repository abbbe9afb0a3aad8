#include "tools/options/task.hpp"

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "runtime/run/mask_spec.hpp"
#include "runtime/run/resolve.hpp"
#include "runtime/run/sparse_operands.hpp"
#include "tools/cli/sizes.hpp"

namespace redblue {
namespace {

// The value of that name; `otherwise` if nothing is given.
template <class Value>
Value choose(const TextOption& option, std::initializer_list<Value> values, Value otherwise) {
  const auto given = option.get();
  if (!given) {
    return otherwise;
  }
  std::string names;
  for (const Value value : values) {
    if (given->text == to_string(value)) {
      return value;
    }
    const bool last = value == *(values.end() - 1);
    names += fmt::format("{}{}", names.empty() ? "" : last ? " or " : ", ", to_string(value));
  }
  throw UsageError(fmt::format("{} '{}': expected {}", given->from, given->text, names));
}

// Refuses an option that has no meaning for this problem.
void refuse(const TextOption& option, std::string_view why) {
  if (const auto given = option.get()) {
    throw UsageError(fmt::format("{} '{}': {}", given->from, given->text, why));
  }
}

Index required(const std::optional<Index>& size, std::string_view flag) {
  return size ? *size : throw UsageError(fmt::format("{} is missing", flag));
}

// A file of a dense operand says nothing of words.
void refuse_dense_files(const Request& request) {
  if (!request.in.empty()) {
    throw UsageError(fmt::format(
        "{}: words depend on operands where A1, X or A2, or A or B, have entries of a file (.npz, "
        ".mtx, .smtx): leave it out",
        request.said("--in")));
  }
}

// Nor does a rule, as which `count` takes it.
void check_dense_rules(const Request& request, const KernelName& kernel, const Shape& shape) {
  const std::vector<Signature> given = kernel.given();
  check_made(request, given, request.who());
  check_rules(request, given, kernel.kernel->pass, shape);
}

// Requires: the task has its shape.
void check_lengths(const Task& task, const Request& request) {
  if (task.problem.sharing == Sharing::self && task.problem.shape.m != task.problem.shape.n) {
    throw UsageError(fmt::format(
        "{} {} is not {} {}: with --sharing self, queries and keys are one", request.said("--m"),
        task.problem.shape.m, request.said("--n"), task.problem.shape.n));
  }
}

}  // namespace

TaskOptions::TaskOptions(CLI::App& app)
    : shape_(app),
      heads_(app),
      word_(app),
      M_(app),
      word_costs_(app),
      problem_(
          app, "--problem",
          "product, logsumexp, forward, backward, attention, gradients, layer, linear or "
          "linear-gradient; backward",
          "product|logsumexp|forward|backward|attention|gradients|layer|linear|linear-gradient"),
      sharing_(app, "--sharing",
               "sources that are one matrix: none; kv: A2 = A3, or K = V; self: queries, too; none",
               "none|kv|self"),
      given_(app, "--given",
             "what backward, gradients and layer start from: nothing; OL: O and L; OL",
             "nothing|OL"),
      activation_(app),
      dv_(app),
      mask_(app),
      wanted_(app),
      inputs_(app) {}

Task TaskOptions::kind() const {
  Task task;
  task.pass =
      choose(problem_,
             {Pass::product, Pass::logsumexp, Pass::forward, Pass::backward, Pass::attention,
              Pass::gradients, Pass::layer, Pass::linear, Pass::linear_gradient},
             Pass::backward);
  task.problem.sharing =
      choose(sharing_, {Sharing::none, Sharing::kv, Sharing::self}, Sharing::none);
  task.known = choose(given_, {Known::nothing, Known::O_and_L}, Known::O_and_L);
  if (!is_backward(task.pass)) {
    if (task.known != Known::nothing) {
      refuse(given_, "only --problem backward, gradients and layer start from O and L");
    }
    task.known = Known::O_and_L;  // as without the option: reports do not mention it
  }
  if (is_linear(task.pass)) {
    refuse(sharing_, "linear attention reads queries, keys and values apart");
  }
  if (task.pass == Pass::product) {
    refuse(sharing_, "a product has no sources to share");
    refuse(mask_.option(), "a product has no mask");
    refuse(wanted_.option(), "a product has one result");
  }
  return task;
}

Activation TaskOptions::activation(const Kernel& kernel, Request& request) const {
  activation_.fill(request);
  return requested_activation(request, kernel);
}

Mask TaskOptions::mask(const Shape& shape, Request& request) const {
  mask_.fill(request);
  return request.mask.empty()
             ? Mask()
             : parse_mask(request.mask, shape,
                          fmt::format("{} '{}'", request.said("--mask"), request.mask));
}

Index TaskOptions::dv(Pass pass, Sharing sharing, Request& request, const std::string& who) const {
  dv_.fill(request);
  return requested_dv(request, pass, sharing, required(request.d, "--d"), who);
}

void TaskOptions::fill_heads(Task& task, Request& request) const {
  heads_.fill(request);
  const Index stacked =
      stacked_heads(request, task.pass, fmt::format("--problem {}", to_string(task.pass)));
  if (stacked > 1 && task.problem.sharing == Sharing::self) {
    throw UsageError(fmt::format("{} {}: with --sharing self, queries and keys are one",
                                 request.said("--kv-heads"), *request.kv_heads));
  }
  task.problem = task.problem.with_stacked(stacked);
  task.heads = request.heads.value_or(1) / stacked;
}

void TaskOptions::forget_sums(Task& task) const {
  if (!task.problem.normalised()) {
    if (task.known == Known::O_and_L) {
      refuse(given_,
             fmt::format("{} has no L, and needs no O", to_string(task.problem.activation)));
    }
    task.known = Known::nothing;
  }
}

void TaskOptions::fill_memory(Request& request, const Sizes& sizes) const {
  if (!sizes.M) {
    M_.fill(request);
    word_costs_.fill(request);
    return;
  }
  for (const TextOption* other : M_.options()) {
    refuse(*other, sizes.why);
  }
  refuse(word_costs_.option(), sizes.why);
  request.M = *sizes.M;
}

Task TaskOptions::task_at(const Sizes& sizes, Request& request) const {
  shape_.fill(request);
  word_.fill(request);
  const auto set = [&](const char* flag, std::optional<Index>& size,
                       const std::optional<Index>& to) {
    if (to && size) {
      throw UsageError(fmt::format("{} {}: {}", request.said(flag), *size, sizes.why));
    }
    if (to) {
      size = to;
      request.said_as[flag] = sizes.said;
    }
  };
  set("--n", request.n, sizes.n);
  set("--d", request.d, sizes.d);
  Task task = kind();
  inputs_.fill(request);
  if (task.pass == Pass::logsumexp || asks_for_sparse(request)) {
    refuse(sharing_, "sparse operands are read apart");
    request.asked_as = fmt::format("--problem {}", to_string(task.pass));
    request.kernel = task.pass == Pass::product ? "matmul/sparse-stay"
                                                : fmt::format("{}/auto", to_string(task.pass));
    activation_.fill(request);
    task.problem = sparse_problem(task.pass, request.kernel, request, &task.heads);
    forget_sums(task);
    fill_memory(request, sizes);
    if (!request.inner.empty()) {
      throw UsageError(
          fmt::format("{}: kernels of sparse operands have one level of fast memory: give one size",
                      request.said("--M")));
    }
    task.memory = request.M;
    return task;
  }
  refuse_dense_files(request);
  const Index n = required(request.n, "--n");
  const Index d = required(request.d, "--d");
  task.problem.shape = {n, request.m.value_or(n), d,
                        dv(task.pass, task.problem.sharing, request,
                           fmt::format("--problem {}", to_string(task.pass)))};
  check_lengths(task, request);
  request.asked_as = fmt::format("--problem {}", to_string(task.pass));
  request.kernel =
      task.pass == Pass::product ? "matmul/blocked" : fmt::format("{}/auto", to_string(task.pass));
  request.sharing = task.problem.sharing;
  check_dense_rules(request, requested_kernel(request), task.problem.shape);
  task.problem.mask = mask(task.problem.shape, request);
  check_linear_mask(task.pass, task.problem.mask,
                    fmt::format("{} '{}'", request.said("--mask"), request.mask));
  wanted_.fill(request);
  if (task.pass != Pass::product) {
    task.problem.activation = activation(*requested_kernel(request).kernel, request);
    forget_sums(task);
  } else {
    refuse(activation_.option(), "a product has no activation");
  }
  if (!request.wanted.empty()) {
    task.problem.wanted = requested_results(request, requested_kernel(request));
  }
  fill_heads(task, request);
  fill_memory(request, sizes);
  set_widths(request, task.problem);
  task.memory = request.memory_of_plan();
  return task;
}

Problem TaskOptions::sparse_problem(Pass pass, const std::string& kernel, Request& request,
                                    Index* heads) const {
  request.kernel = kernel;
  mask_.fill(request);
  wanted_.fill(request);
  heads_.fill(request);
  dv_.fill(request);
  const KernelName asked = requested_kernel(request);
  if (asked.kernel->pass != pass || !asked.kernel->takes_sparse) {
    check_made(request, asked.given(), request.who());
    throw UsageError(
        fmt::format("--problem {}: no kernel of it takes sparse operands", to_string(pass)));
  }
  const RequestedProblem found = requested_problem(request, asked, open_inputs(request, asked));
  *heads = found.kv_heads();
  return found.problem;
}

Problem TaskOptions::problem_of(const std::string& said, const char* shows,
                                const KernelName& kernel, Request& request) const {
  for (const TextOption* other : {&problem_, &given_}) {
    refuse(*other, said + " names the kernel");
  }
  const Sharing sharing = choose(sharing_, {Sharing::none, Sharing::kv}, kernel.sharing);
  if (kernel.sharing != sharing && sharing == Sharing::none) {
    refuse(sharing_, kernel.text() + " shares keys");
  }
  if (sharing != Sharing::none && !kernel.kernel->shares_keys) {
    refuse(sharing_, kernel.text() + " does not share keys");
  }
  shape_.fill(request);
  word_.fill(request);
  fill_memory(request);
  inputs_.fill(request);
  if (kernel.kernel->takes_sparse) {
    Index heads = 1;
    Problem problem = sparse_problem(kernel.kernel->pass, kernel.text(), request, &heads);
    if (heads > 1) {
      throw UsageError(
          fmt::format("{} {}: {} {} of one head", request.said("--heads"), heads, said, shows));
    }
    return problem;
  }
  const Index n = required(request.n, "--n");
  refuse_dense_files(request);
  Problem problem(n, request.m.value_or(n), required(request.d, "--d"), sharing);
  problem.shape.dv = dv(kernel.kernel->pass, sharing, request, kernel.text());
  request.kernel = kernel.text();
  check_dense_rules(request, kernel, problem.shape);
  mask_.fill(request);
  if (!request.mask.empty()) {
    problem.mask = requested_mask(request, *kernel.kernel, problem.shape);
  }
  wanted_.fill(request);
  request.sharing = sharing;
  problem.activation = activation(*kernel.kernel, request);
  if (!request.wanted.empty()) {
    problem.wanted = requested_results(request, requested_kernel(request));
  }
  set_widths(request, problem);
  heads_.fill(request);
  const Index stacked = stacked_heads(request, kernel.kernel->pass, kernel.text());
  if (request.heads.value_or(1) > stacked) {
    throw UsageError(fmt::format("{} {}: {} {} of one head of keys: --heads {}{}",
                                 request.said("--heads"), *request.heads, said, shows, stacked,
                                 stacked > 1 ? " --kv-heads 1" : ""));
  }
  return problem.with_stacked(stacked);
}

std::vector<Task> TaskOptions::tasks_of_widths(Index n, const TextOption& caches) const {
  Request request;
  shape_.fill_lengths(request);
  heads_.fill(request);
  for (const auto& [flag, heads] :
       {std::pair("--heads", request.heads), std::pair("--kv-heads", request.kv_heads)}) {
    if (heads) {
      throw UsageError(
          fmt::format("{} {}: {} asks about one head", request.said(flag), *heads, caches.said()));
    }
  }
  dv_.fill(request);
  if (request.dv) {
    throw UsageError(fmt::format("{} {}: {} asks for backward algorithms, which have one width",
                                 request.said("--dv"), *request.dv, caches.said()));
  }
  Task task = kind();
  word_.fill(request);
  set_widths(request, task.problem);
  if (task.pass != Pass::backward) {
    refuse(problem_, caches.said() + " asks for backward algorithms");
  }
  refuse(activation_.option(), caches.said() + " asks about softmax");
  refuse(mask_.option(), caches.said() + " asks about all pairs");
  refuse(wanted_.option(), caches.said() + " asks for all of g");
  refuse(word_costs_.option(), caches.said() + " asks about one level of fast memory");
  for (const TextOption* other : M_.options()) {
    refuse(*other, caches.said() + " says how much there is; give one of the two");
  }
  std::vector<Task> tasks;
  for (const Index d : shape_.widths()) {
    task.problem.shape = {request.n.value_or(n), request.m.value_or(request.n.value_or(n)), d};
    tasks.push_back(task);
  }
  if (tasks.empty()) {
    throw UsageError("--d is missing: a width, or several as 64,128,256");
  }
  check_lengths(task, request);
  return tasks;
}

}  // namespace redblue
