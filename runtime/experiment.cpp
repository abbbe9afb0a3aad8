#include "runtime/experiment.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "runtime/fma_peak.hpp"
#include "runtime/inputs.hpp"
#include "runtime/memory.hpp"
#include "runtime/npy.hpp"
#include "runtime/reference.hpp"

namespace redblue {
namespace {

using Buffers = std::map<std::string, std::vector<float>, std::less<>>;

template <class Names>
std::string list(const Names& operands) {
  std::string names;
  for (const Signature& operand : operands) {
    names += (names.empty() ? "" : ", ") + std::string(operand.name);
  }
  return names;
}

const Signature* find(const std::vector<Signature>& operands, std::string_view name) {
  const auto found = std::ranges::find(operands, name, &Signature::name);
  return found == operands.end() ? nullptr : &*found;
}

bool takes_forward(const Kernel& kernel) {
  return find(kernel.given, "O") != nullptr;
}

// The extents of a problem as they become known, with whoever said so first.
class Extents {
 public:
  void set(Index Shape::*which, Index value, const std::string& who) {
    const auto [entry, fresh] = known_.try_emplace(letter(which), value, who);
    const auto& [known, first] = entry->second;
    if (known != value) {
      throw InputError(fmt::format("{} makes {} = {}, but {} makes it {}", who, letter(which),
                                   value, first, known));
    }
  }
  Shape shape() {
    if (!known_.contains("m") && known_.contains("n")) {
      known_["m"] = known_["n"];
    }
    Shape shape;
    for (const auto& [member, name] : kLetters) {
      if (!known_.contains(name)) {
        throw RequestError(fmt::format("--{} is missing", name));
      }
      shape.*member = known_.at(name).first;
    }
    return shape;
  }

 private:
  static constexpr std::pair<Index Shape::*, const char*> kLetters[] = {
      {&Shape::n, "n"}, {&Shape::m, "m"}, {&Shape::d, "d"}};
  static const char* letter(Index Shape::*which) {
    return std::ranges::find(kLetters, which, &std::pair<Index Shape::*, const char*>::first)
        ->second;
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
    if (find(kernel.given, name) == nullptr) {
      throw RequestError(fmt::format("{} {}={}: {} is given {}", request.said("--in"), name,
                                     path.string(), kernel.name, list(kernel.given)));
    }
    readers.try_emplace(name, path);
  }
  if (readers.contains("O") != readers.contains("L")) {
    throw RequestError(request.said("--in") +
                       ": O without L, or L without O: give both, or neither");
  }
  return readers;
}

Shape shape_of(const Request& request, const Kernel& kernel, const Readers& readers) {
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
  for (const auto& [name, reader] : readers) {
    const Signature& operand = *find(kernel.given, name);
    const std::string who = name + " of " + reader.path().string();
    const std::size_t rank = operand.cols == nullptr ? 1 : 2;
    const std::size_t found = reader.shape().size();
    if (found != rank) {
      throw InputError(fmt::format("{} has {} dimension{}, expected {}", who, found,
                                   found == 1 ? "" : "s", rank));
    }
    extents.set(operand.rows, reader.rows(), who);
    if (operand.cols != nullptr) {
      extents.set(operand.cols, reader.cols(), who);
    }
  }
  return extents.shape();
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

Team team_of(const Request& request, const Kernel& kernel) {
  if (request.threads > 1 && !kernel.split) {
    std::string names;
    for (const Kernel& other : kernels()) {
      if (other.split) {
        names += (names.empty() ? "" : ", ") + std::string(other.name);
      }
    }
    throw RequestError(fmt::format("{} {}: {} runs on one thread; {} split by rows",
                                   request.said("--threads"), request.threads, kernel.name, names));
  }
  return {.workers = request.threads, .heads = 1};
}

// Who makes O and L: forward/flash, or forward/small where that does not fit.
Plan forward_plan(const Shape& shape, Index M) {
  const Kernel& flash = find_kernel("forward/flash");
  return M >= flash.least_M(shape) ? flash.plan(shape, M)
                                   : find_kernel("forward/small").plan(shape, M);
}

Report planned(const Request& request, const Kernel& kernel, const Shape& shape) {
  Report report;
  const Team team = team_of(request, kernel);
  report.kernel = Part(plan_of(request, kernel, shape), team);
  for (const Signature& operand : kernel.given) {
    report.given.emplace_back(operand.name);
  }
  report.M_from = request.M_from;
  report.from_nothing = !request.in.contains("O");
  if (takes_forward(kernel) && report.from_nothing) {
    report.forward = Part(forward_plan(shape, request.M), {});  // which runs on one thread
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

// Matrices, intermediates and the arena, in bytes; with --verify also the reference.
Words memory_needed(const Report& report, const Kernel& kernel, bool verify) {
  const Shape& shape = report.kernel.plan.shape;
  Words peak = total(report.kernel.plan.phases).peak * report.kernel.team.workers;
  Words intermediates =
      kernel.intermediates(shape) + partials_of(kernel, report.kernel.plan, report.kernel.team);
  if (report.forward) {
    peak = std::max(peak, total(report.forward->plan.phases).peak);
    intermediates =
        std::max(intermediates, find_kernel(report.forward->plan.kernel).intermediates(shape));
  }
  const Words results = words(kernel.returns, shape);
  const Words bytes = 4 * (words(kernel.given, shape) + results + intermediates + peak);
  // A product's reference is as large as its result: a value and two bounds, twice over.
  return verify ? bytes + evaluation_bytes(shape) + 48 * results : bytes;
}

void refuse_if_too_large(const Report& report, const Kernel& kernel, bool verify) {
  const Words needed = memory_needed(report, kernel, verify);
  const std::uint64_t available = memory_available();
  if (needed.overflowed() || static_cast<std::uint64_t>(needed.value()) > available) {
    throw std::runtime_error(fmt::format(
        "{} would need {} of memory, but {} are available: take smaller n, m or d, or use count",
        kernel.name,
        needed.overflowed() ? "more than 8 EiB"
                            : format_bytes(static_cast<std::uint64_t>(needed.value())),
        format_bytes(available)));
  }
}

std::vector<float> buffer_for(const Signature& operand, const Shape& shape) {
  return std::vector<float>(
      static_cast<std::size_t>(operand.rows_of(shape) * operand.cols_of(shape)));
}

void count_run(const Kernel& kernel, Part& part, const Buffers& inputs, Buffers& outputs,
               const Topology& topology, const Around& around) {
  const Shape& shape = part.plan.shape;
  std::vector<SlowMatrix> matrices;  // never reallocated: `io` points into it
  matrices.reserve(kernel.given.size() + kernel.returns.size());
  Operands io;
  for (const Signature& operand : kernel.given) {
    const float* words = inputs.find(operand.name)->second.data();
    const Index cols = operand.cols_of(shape);
    matrices.emplace_back(std::string(operand.name), operand.rows_of(shape), cols,
                          std::make_unique<BorrowedBacking>(words, cols));
    io.give(matrices.back());
  }
  for (const Signature& operand : kernel.returns) {
    std::vector<float>& words = outputs[std::string(operand.name)];
    words = buffer_for(operand, shape);
    matrices.push_back(borrow(std::string(operand.name), words.data(), operand.rows_of(shape),
                              operand.cols_of(shape)));
    io.take(matrices.back());
  }
  part.counted = run_on_team(kernel, part.plan, part.team, {io}, topology, around);
  // A measured run has no speed of its own: the measuring costs what it costs.
  if (!around) {
    part.peak_gflops = fma_peak(part.team.workers, topology);
  }
}

void check_finite(const Kernel& kernel, const Plan& plan, const Buffers& results) {
  for (const Signature& operand : kernel.returns) {
    const std::vector<float>& words = results.find(operand.name)->second;
    const auto bad = std::ranges::find_if(words, [](float x) { return !std::isfinite(x); });
    if (bad != words.end()) {
      const Index at = bad - words.begin();
      const Index cols = operand.cols_of(plan.shape);
      throw std::runtime_error(
          fmt::format("{} of {} is {} at ({}, {}): the inputs are too large for float32",
                      operand.name, kernel.name, *bad, at / cols, at % cols));
    }
  }
}

// What the derivation of the bounds has to know of a kernel.
Chains chains_of(const Kernel& kernel, const Plan& plan) {
  const auto number = [&](auto function) {
    return function == nullptr ? 0.0
                               : static_cast<double>(function(plan.shape, plan.blocks).value());
  };
  return {.g = number(kernel.chain),
          .rescales = number(kernel.rescales),
          .Y_meets_rows = kernel.Y_meets_rows,
          .recentred_blocks = number(kernel.recentred_blocks)};
}

void widen(Bounded& to, const Bounded& by) {
  std::ranges::transform(to.bound, by.bound, to.bound.begin(), std::plus());
  std::ranges::transform(to.expected, by.expected, to.expected.begin(), std::plus());
}

Verdict verify(const Kernel& kernel, const Report& report, bool forward_is_data,
               const Buffers& inputs, const Buffers& results) {
  const Plan& plan = report.kernel.plan;
  const Shape& shape = plan.shape;
  const auto input = [&](std::string_view name) {
    const auto found = inputs.find(name);
    return found == inputs.end() ? std::span<const float>() : std::span(found->second);
  };
  Verdict verdict;
  std::map<std::string_view, Bounded> exact;
  if (kernel.name.starts_with("matmul/")) {
    exact["C"] = evaluate_product(shape.n, shape.m, shape.d, input("A"), input("B"));
  } else {
    AttentionInput problem;
    problem.shape = shape;
    problem.A1 = input("A1");
    problem.A2 = input("A2");
    problem.A3 = input("A3");
    problem.X = input("X");
    problem.Y = input("Y");
    problem.dO = input("dO");
    if (forward_is_data) {
      AttentionInput from_nothing = problem;
      from_nothing.dO = {};
      const Reference forward = evaluate(from_nothing, {});
      verdict.given_off = std::max(compare(input("O"), forward.O).relative,
                                   compare(input("L"), forward.L).relative);
      problem.O = input("O");
      problem.L = input("L");
    }
    Chains chains = chains_of(kernel, plan);
    if (report.forward) {
      const Plan& forward = report.forward->plan;
      chains.rescales = chains_of(find_kernel(forward.kernel), forward).rescales;
    }
    Reference reference = evaluate(problem, chains);
    if (report.forward && chains.Y_meets_rows) {
      // O was made with h, and q is not: the roundings of either way together.
      chains.Y_meets_rows = false;
      widen(reference.g, evaluate(problem, chains).g);
    }
    exact["O"] = std::move(reference.O);
    exact["L"] = std::move(reference.L);
    exact["g"] = std::move(reference.g);
    exact["dQ"] = std::move(reference.dQ);
    exact["dK"] = std::move(reference.dK);
    exact["dV"] = std::move(reference.dV);
  }
  double nearest = -1;
  for (const Signature& operand : kernel.returns) {
    const Comparison found = compare(results.find(operand.name)->second, exact.at(operand.name));
    verdict.ok = verdict.ok && found.ok;
    verdict.explained = verdict.explained && found.explained;
    verdict.relative = std::max(verdict.relative, found.relative);
    // A bound of 0 is met by an error of 0 alone; an infinite one by none.
    const double share = std::isinf(found.bound) ? found.bound
                         : found.error == 0      ? 0
                                                 : found.error / found.bound;
    if (share > nearest) {
      nearest = share;
      const Index cols = operand.cols_of(shape);
      verdict.error = found.error;
      verdict.bound = found.bound;
      verdict.expected = found.expected;
      verdict.output = operand.name;
      verdict.row = found.index / cols;
      verdict.col = found.index % cols;
    }
  }
  return verdict;
}

}  // namespace

std::string Request::said(const std::string& flag) const {
  const auto found = said_as.find(flag);
  return found == said_as.end() ? flag : found->second;
}

Report count(const Request& request) {
  const Kernel& kernel = find_kernel(request.kernel);
  return planned(request, kernel, shape_of(request, kernel, {}));
}

Report run(const Request& request, const Topology& topology, const Around& around) {
  const Kernel& kernel = find_kernel(request.kernel);
  if (around && request.threads > 1) {
    throw RequestError(fmt::format("{} {}: a run is measured on one thread",
                                   request.said("--threads"), request.threads));
  }
  if (request.printed_blocks) {
    throw RequestError(request.said("--blocks") + " printed: these may not fit in M: count only");
  }
  const Readers readers = open_inputs(request, kernel);
  std::set<std::filesystem::path> targets;
  for (const auto& [name, path] : request.out) {
    const std::string option = fmt::format("{} {}={}", request.said("--out"), name, path.string());
    if (find(kernel.returns, name) == nullptr) {
      throw RequestError(
          fmt::format("{}: {} returns {}", option, kernel.name, list(kernel.returns)));
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
  const Shape shape = shape_of(request, kernel, readers);
  Report report = planned(request, kernel, shape);
  refuse_if_too_large(report, kernel, request.verify);

  // An output that cannot be written is known before the work is done.
  std::map<std::string, NpyWriter, std::less<>> writers;
  for (const auto& [name, path] : request.out) {
    const Signature& operand = *find(kernel.returns, name);
    std::vector<Index> extents = {operand.rows_of(shape)};
    if (operand.cols != nullptr) {
      extents.push_back(operand.cols_of(shape));
    }
    writers.try_emplace(name, path, extents);
  }

  Buffers inputs;
  for (const Signature& operand : kernel.given) {
    const auto reader = readers.find(operand.name);
    if (reader == readers.end() && (operand.name == "O" || operand.name == "L")) {
      continue;  // the forward kernel makes them
    }
    std::vector<float>& words = inputs[std::string(operand.name)];
    words = buffer_for(operand, shape);
    const Index rows = operand.rows_of(shape);
    if (reader != readers.end()) {
      try {
        reader->second.read_rows({0, rows}, words);
      } catch (const InputError& error) {
        throw InputError(fmt::format("{} of {}", operand.name, error.what()));
      }
    } else {
      report.seed = request.seed;
      try {
        fill_input(operand.name, shape, request.seed, request.scale, 0, rows, words);
      } catch (const std::invalid_argument& error) {
        throw RequestError(request.said("--scale") + ": " + error.what());
      }
    }
  }
  if (report.forward) {
    const Kernel& forward = find_kernel(report.forward->plan.kernel);
    Buffers made;
    count_run(forward, *report.forward, inputs, made, topology, around);
    check_finite(forward, report.forward->plan, made);
    inputs.merge(made);
  }
  Buffers results;
  count_run(kernel, report.kernel, inputs, results, topology, around);
  check_finite(kernel, report.kernel.plan, results);
  if (request.verify) {
    report.error = verify(kernel, report, readers.contains("O"), inputs, results);
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
