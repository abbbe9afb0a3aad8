#include "runtime/experiment.hpp"

#include <algorithm>
#include <set>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "runtime/buffers.hpp"
#include "runtime/fma_peak.hpp"
#include "runtime/inputs.hpp"
#include "runtime/memory.hpp"
#include "runtime/npy.hpp"
#include "runtime/planner.hpp"
#include "runtime/verification.hpp"

namespace redblue {
namespace {

template <class Names>
std::string list(const Names& operands) {
  std::string names;
  for (const Signature& operand : operands) {
    names += (names.empty() ? "" : ", ") + std::string(operand.name);
  }
  return names;
}

bool is_auto(const Request& request) {
  return std::ranges::find(kAuto, request.kernel) != std::end(kAuto);
}

// The kernel that is asked for. In place of auto, until the size is known, one with all the
// operands that its choices may have.
const Kernel& kernel_of(const Request& request) {
  return find_kernel(!is_auto(request)                        ? request.kernel
                     : request.kernel.starts_with("forward/") ? "forward/rows"
                                                              : "backward/rows");
}

bool takes_forward(const Kernel& kernel) {
  return find_operand(kernel.given, "O") != nullptr;
}

struct Size {
  Shape shape;
  std::optional<Index> heads;  // nothing: one, and files without a dimension of heads
};

// The extents of a problem as they become known, with whoever said so first.
class Extents {
 public:
  void set(Index Shape::*which, Index value, const std::string& who) {
    set(letter(which), value, who);
  }
  void set_heads(std::optional<Index> heads, const std::string& who) {
    set("heads", heads.value_or(kNoHeads), who);
  }
  Size size() {
    if (!known_.contains("m") && known_.contains("n")) {
      known_["m"] = known_["n"];
    }
    Size size;
    for (const auto& [member, name] : kLetters) {
      if (!known_.contains(name)) {
        throw RequestError(fmt::format("--{} is missing", name));
      }
      size.shape.*member = known_.at(name).first;
    }
    if (known_.contains("heads") && known_.at("heads").first != kNoHeads) {
      size.heads = known_.at("heads").first;
    }
    return size;
  }

 private:
  static constexpr Index kNoHeads = 0;
  static constexpr std::pair<Index Shape::*, const char*> kLetters[] = {
      {&Shape::n, "n"}, {&Shape::m, "m"}, {&Shape::d, "d"}};
  static const char* letter(Index Shape::*which) {
    return std::ranges::find(kLetters, which, &std::pair<Index Shape::*, const char*>::first)
        ->second;
  }
  static std::string says(const std::string& name, Index value) {
    return value == kNoHeads ? "has no dimension of heads"
                             : fmt::format("makes {} = {}", name, value);
  }
  void set(const std::string& name, Index value, const std::string& who) {
    const auto [entry, fresh] = known_.try_emplace(name, value, who);
    const auto& [known, first] = entry->second;
    if (known != value) {
      throw InputError(
          fmt::format("{} {}, but {} {}", who, says(name, value), first, says(name, known)));
    }
  }
  std::map<std::string, std::pair<Index, std::string>> known_;
};

// As far as there is such a path: what is wrong with it shows when it is opened.
std::filesystem::path resolved(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path found = std::filesystem::weakly_canonical(path, error);
  return error ? path : found;
}

using Readers = std::map<std::string, NpyReader, std::less<>>;

Readers open_inputs(const Request& request, const Kernel& kernel) {
  Readers readers;
  for (const auto& [name, path] : request.in) {
    if (find_operand(kernel.given, name) == nullptr) {
      throw RequestError(fmt::format("{} {}={}: {} is given {}", request.said("--in"), name,
                                     path.string(), request.kernel, list(kernel.given)));
    }
    readers.try_emplace(name, path);
  }
  if (readers.contains("O") != readers.contains("L")) {
    throw RequestError(request.said("--in") +
                       ": O without L, or L without O: give both, or neither");
  }
  return readers;
}

Size size_of(const Request& request, const Kernel& kernel, const Readers& readers) {
  Extents extents;
  if (request.n) {
    extents.set(&Shape::n, *request.n, request.said("--n"));
  }
  if (request.m) {
    extents.set(&Shape::m, *request.m, request.said("--m"));
  }
  if (request.d) {
    extents.set(&Shape::d, *request.d, request.said("--d"));
  }
  if (request.heads) {
    extents.set_heads(request.heads, request.said("--heads"));
  }
  for (const auto& [name, reader] : readers) {
    const Signature& operand = *find_operand(kernel.given, name);
    std::string who = name + " of " + reader.path().string();
    std::span<const Index> shape = reader.shape();
    const std::size_t rank = operand.cols == nullptr ? 1 : 2;
    const bool heads = shape.size() == rank + 1;
    if (shape.size() != rank && !heads) {
      throw InputError(fmt::format("{} has {} dimension{}, expected {}, or {} with heads first",
                                   who, shape.size(), shape.size() == 1 ? "" : "s", rank,
                                   rank + 1));
    }
    extents.set_heads(heads ? std::optional(shape.front()) : std::nullopt, who);
    if (heads) {
      who += ", heads first,";
      shape = shape.last(rank);
    }
    extents.set(operand.rows, shape.front(), who);
    if (operand.cols != nullptr) {
      extents.set(operand.cols, shape.back(), who);
    }
  }
  return extents.size();
}

Plan plan_of(const Request& request, const Kernel& kernel, const Shape& shape) {
  if (request.printed_blocks) {
    if (kernel.printed == nullptr) {
      std::string names;
      for (const Kernel& other : kernels()) {
        if (other.printed != nullptr) {
          names += " " + std::string(other.name);
        }
      }
      throw RequestError(fmt::format("{} printed: only{} has blocks as printed in the paper",
                                     request.said("--blocks"), names));
    }
    return kernel.plan(shape, request.M, kernel.printed(shape, request.M));
  }
  if (request.blocks.empty()) {
    return kernel.plan(shape, request.M, request.objective);
  }
  Blocks blocks = kernel.blocks(shape, request.M, request.objective);
  for (const auto& [name, size] : request.blocks) {
    if (!blocks.contains(name)) {
      std::string names;
      for (const auto& [known, _] : blocks) {
        names += (names.empty() ? "" : ", ") + known;
      }
      throw RequestError(fmt::format("{} {}: {} has {}", request.said("--blocks"), name,
                                     kernel.name, names.empty() ? "no blocks to choose" : names));
    }
    blocks.set(name, size);
  }
  Plan plan = kernel.plan(shape, request.M, blocks);
  const Index missing = total(plan.phases).peak.value() - request.M;
  if (missing > 0) {
    throw RequestError(fmt::format("{}: these take {} words more than M = {}",
                                   request.said("--blocks"), missing, request.M));
  }
  return plan;
}

Team team_of(const Request& request, const Kernel& kernel, Index heads) {
  if (request.threads > 1 && heads == 1 && !kernel.split) {
    std::string names;
    for (const Kernel& other : kernels()) {
      if (other.split) {
        names += (names.empty() ? "" : ", ") + std::string(other.name);
      }
    }
    throw RequestError(fmt::format("{} {}: {} runs one head on one thread; {} split by rows",
                                   request.said("--threads"), request.threads, kernel.name, names));
  }
  return {.workers = request.threads, .heads = heads};
}

// Who makes O and L: the first of these that fits; for a kernel that has A2 for A3, of those that
// have, too.
Plan forward_plan(const Kernel& kernel, const Shape& shape, Index M) {
  using Names = std::vector<std::string_view>;
  const Names names = has_one_source(kernel)
                          ? Names{"forward/rows-shared", "forward/tiles-shared"}
                          : Names{"forward/flash", "forward/small", "forward/tiles"};
  const auto fitting = std::ranges::find_if(
      names, [&](std::string_view name) { return M >= find_kernel(name).least_M(shape); });
  if (fitting == names.end()) {
    throw FastMemoryTooSmall(fmt::format(
        "{} takes O and L, and {} makes them in no less than M = {} words: give them, or more M",
        kernel.name, names.back(), find_kernel(names.back()).least_M(shape)));
  }
  return find_kernel(*fitting).plan(shape, M);
}

// A kernel's plan, and that of who makes O and L for it.
struct Plans {
  Plan plan;
  std::optional<Plan> forward;
};

// The planner's first choice, of kernels that split where there are threads for it.
Plans choose(const Request& request, const Size& size) {
  if (!request.blocks.empty() || request.printed_blocks) {
    throw RequestError(fmt::format("{}: {} chooses its own; name a kernel",
                                   request.said("--blocks"), request.kernel));
  }
  Task task = task_of(kernel_of(request), size.shape, request.M);
  task.known = request.in.contains("O") ? Known::O_and_L : Known::nothing;
  const Index heads = size.heads.value_or(1);
  const bool must_split = request.threads > 1 && heads == 1;
  const Goal goal{.rates = request.objective == Objective::time ? &request.rates : nullptr,
                  .workers = must_split ? request.threads : std::min(request.threads, heads)};
  for (Choice& choice : choices(task, goal)) {
    if (!must_split || find_kernel(choice.plan.kernel).split) {
      return {std::move(choice.plan), std::move(choice.forward)};
    }
  }
  throw FastMemoryTooSmall(fmt::format(
      "{} does not fit in M = {} words: no kernel {}does (redblue list --n {} --m {} --d "
      "{} has the least M of each)",
      request.kernel, request.M, must_split ? "that splits among threads " : "", size.shape.n,
      size.shape.m, size.shape.d));
}

Plans plans_of(const Request& request, const Size& size) {
  if (is_auto(request)) {
    return choose(request, size);
  }
  const Kernel& kernel = kernel_of(request);
  Plans plans{plan_of(request, kernel, size.shape), std::nullopt};
  if (takes_forward(kernel) && !request.in.contains("O")) {
    plans.forward = forward_plan(kernel, size.shape, request.M);
  }
  return plans;
}

Report planned(const Request& request, const Size& size) {
  Report report;
  Plans plans = plans_of(request, size);
  const Kernel& kernel = find_kernel(plans.plan.kernel);
  const Team team = team_of(request, kernel, size.heads.value_or(1));
  const bool fits = total(plans.plan.phases).peak <= Words(request.M);
  if (team.workers == 1 && team.heads == 1 && fits) {
    const Task task = task_of(kernel, size.shape, request.M);
    report.bound = largest(lower_bounds(task), schedule_of(kernel, task.sharing));
  }
  report.asked = request.kernel;
  report.kernel = Part(std::move(plans.plan), team);
  for (const Signature& operand : kernel.given) {
    report.given.emplace_back(operand.name);
  }
  report.M_from = request.M_from;
  report.from_nothing = !(takes_forward(kernel) && request.in.contains("O"));
  if (plans.forward) {
    // On one thread.
    report.forward = Part(std::move(*plans.forward), {.workers = 1, .heads = team.heads});
  }
  static_cast<void>(report.kernel.io());  // refuses counts beyond 63 bits now
  return report;
}

Words words(const std::vector<Signature>& operands, const Shape& shape) {
  Words sum;
  for (const Signature& operand : operands) {
    sum += Words(operand.rows_of(shape)) * operand.cols_of(shape);
  }
  return sum;
}

// Matrices of all heads, each worker's intermediates and arena, in bytes; with --verify also the
// reference.
Words memory_needed(const Report& report, const Kernel& kernel, bool verify) {
  const auto& [workers, heads] = report.kernel.team;
  const Plan& plan = report.kernel.plan;
  const Index with_a_head = std::min(workers, heads);
  const Index machines = heads == 1 ? workers : with_a_head;
  Words peak = total(plan.phases).peak * machines;
  Words intermediates = kernel.intermediates(plan.shape, plan.blocks) * with_a_head +
                        partials_of(kernel, plan, report.kernel.team);
  if (report.forward) {
    const Plan& forward = report.forward->plan;
    peak = std::max(peak, total(forward.phases).peak);
    intermediates = std::max(intermediates,
                             find_kernel(forward.kernel).intermediates(plan.shape, forward.blocks));
  }
  const Words matrices = words(kernel.given, plan.shape) + words(kernel.returns, plan.shape);
  const Words bytes =
      4 * (matrices * heads + intermediates + peak) +
      Words(KernelMatrices::bytes(kernel)) * heads;  // not little where heads are small
  return verify ? bytes + verification_bytes(kernel, plan.shape) : bytes;
}

void refuse_if_too_large(const Report& report, const Kernel& kernel, bool verify) {
  const Words needed = memory_needed(report, kernel, verify);
  const std::uint64_t available = memory_available();
  if (needed.overflowed() || static_cast<std::uint64_t>(needed.value()) > available) {
    throw std::runtime_error(
        fmt::format("{} would need {} of memory, but {} are available: take smaller n, m or d, "
                    "fewer heads, or use count",
                    kernel.name,
                    needed.overflowed() ? "more than 8 EiB"
                                        : format_bytes(static_cast<std::uint64_t>(needed.value())),
                    format_bytes(available)));
  }
}

void count_run(Part& part, const Buffers& inputs, Buffers& outputs, const Topology& topology,
               const Around& around, const Progress* progress) {
  const Kernel& kernel = find_kernel(part.plan.kernel);
  const KernelMatrices bound(kernel, part.plan.shape, part.team.heads, inputs, outputs);
  const auto work = [&](const Around& on_each) {
    part.counted = run_on_team(kernel, part.plan, part.team, bound.heads(), topology, on_each);
  };
  if (progress != nullptr) {
    progress->during(part, work);
  } else {
    work(around);
  }
  // A measured run has no speed of its own: the measuring costs what it costs.
  if (!around) {
    part.peak_gflops = fma_peak(part.team.workers, topology);
  }
  check_finite(part, outputs);
}

void check_outputs(const Request& request, const Kernel& kernel) {
  std::set<std::filesystem::path> targets;
  for (const auto& [name, path] : request.out) {
    const std::string option = fmt::format("{} {}={}", request.said("--out"), name, path.string());
    if (find_operand(kernel.returns, name) == nullptr) {
      throw RequestError(
          fmt::format("{}: {} returns {}", option, request.kernel, list(kernel.returns)));
    }
    if (!targets.insert(resolved(path)).second) {
      throw RequestError(option + ": two results to one file");
    }
    for (const auto& [operand, source] : request.in) {
      if (resolved(source) == resolved(path)) {
        throw RequestError(fmt::format("{}: {} is read from this file", option, operand));
      }
    }
  }
}

using Writers = std::map<std::string, NpyWriter, std::less<>>;

Writers open_outputs(const Request& request, const Kernel& kernel, const Size& size) {
  Writers writers;
  for (const auto& [name, path] : request.out) {
    const Signature& operand = *find_operand(kernel.returns, name);
    std::vector<Index> shape;
    if (size.heads) {
      shape.push_back(*size.heads);
    }
    shape.push_back(operand.rows_of(size.shape));
    if (operand.cols != nullptr) {
      shape.push_back(operand.cols_of(size.shape));
    }
    writers.try_emplace(name, path, shape);
  }
  return writers;
}

// From files and, head h, from seed + h.
Buffers make_inputs(const Request& request, const Kernel& kernel, const Readers& readers,
                    const Size& size) {
  Buffers inputs;
  const Index heads = size.heads.value_or(1);
  for (const Signature& operand : kernel.given) {
    const auto reader = readers.find(operand.name);
    if (reader == readers.end() && (operand.name == "O" || operand.name == "L")) {
      continue;  // the forward kernel makes them
    }
    std::vector<float>& buffer = inputs[std::string(operand.name)];
    buffer = buffer_for(operand, size.shape, heads);
    if (reader != readers.end()) {
      try {
        reader->second.read_rows({0, reader->second.rows()}, buffer);
      } catch (const InputError& error) {
        throw InputError(fmt::format("{} of {}", operand.name, error.what()));
      }
      continue;
    }
    const std::size_t words = words_of(operand, size.shape);
    for (Index head = 0; head < heads; ++head) {
      const auto own = std::span(buffer).subspan(static_cast<std::size_t>(head) * words, words);
      try {
        fill_input(operand.name, size.shape, request.seed + static_cast<std::uint64_t>(head),
                   request.scale, 0, operand.rows_of(size.shape), own);
      } catch (const std::invalid_argument& error) {
        throw RequestError(request.said("--scale") + ": " + error.what());
      }
    }
  }
  return inputs;
}

}  // namespace

std::string Request::said(const std::string& flag) const {
  const auto found = said_as.find(flag);
  return found == said_as.end() ? flag : found->second;
}

Report count(const Request& request) {
  return planned(request, size_of(request, kernel_of(request), {}));
}

Report run(const Request& request, const Topology& topology, const Around& around,
           const Progress* progress) {
  const Kernel& asked = kernel_of(request);
  if (around && request.threads > 1) {
    throw RequestError(fmt::format("{} {}: a run is measured on one thread",
                                   request.said("--threads"), request.threads));
  }
  if (request.printed_blocks) {
    throw RequestError(request.said("--blocks") + " printed: these may not fit in M: count only");
  }
  const Readers readers = open_inputs(request, asked);
  check_outputs(request, asked);
  const Size size = size_of(request, asked, readers);
  if (around && size.heads.value_or(1) > 1) {
    throw InputError(fmt::format("{}: {} heads, but a run is measured on one", request.said("--in"),
                                 *size.heads));
  }
  Report report = planned(request, size);
  const Kernel& kernel = find_kernel(report.kernel.plan.kernel);
  refuse_if_too_large(report, kernel, request.verify);
  // An output that cannot be written is known before the work is done.
  Writers writers = open_outputs(request, kernel, size);

  Buffers inputs = make_inputs(request, kernel, readers, size);
  if (std::ranges::any_of(inputs, [&](const auto& input) {  // some came from no file
        return !readers.contains(input.first);
      })) {
    report.seed = request.seed;
  }
  if (report.forward) {
    Buffers made;
    count_run(*report.forward, inputs, made, topology, around, progress);
    inputs.merge(made);
  }
  Buffers results;
  count_run(report.kernel, inputs, results, topology, around, progress);
  if (request.verify) {
    report.error = verify(report, inputs, results);
    if (!report.error->ok) {
      return report;
    }
  }
  for (auto& [name, writer] : writers) {
    writer.append(results.find(name)->second);
  }
  for (auto& [name, writer] : writers) {
    writer.commit();
  }
  return report;
}

}  // namespace redblue
