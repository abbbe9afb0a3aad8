#include "runtime/run/attention.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <initializer_list>
#include <list>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "kernels/attention.hpp"
#include "runtime/observe/machine_file.hpp"
#include "runtime/run/buffers.hpp"
#include "runtime/run/mask_spec.hpp"
#include "runtime/run/operand_home.hpp"
#include "runtime/run/options.hpp"
#include "runtime/run/resolve.hpp"
#include "runtime/run/tuned.hpp"
#include "runtime/run/verification.hpp"
#include "runtime/system/input_error.hpp"
#include "runtime/system/memory.hpp"
#include "runtime/theory/planner.hpp"

namespace redblue {
namespace {

// Returns the signature of an operand or result of either call. Requires: the name exists.
const Signature& signature_of(std::string_view name) {
  static constexpr Signature kAll[] = {kQ, kK, kV, kdO, kO, kL, kdQ, kdK, kdV};
  return *std::ranges::find(kAll, name, &Signature::name);
}

// The options of a call that has its M. `tuned_kernel` is the fastest kernel, if one is known.
struct CallOptions : AttentionOptions {
  std::string tuned_kernel = {};
};

// Answers what M and which kernel a call without M takes. Reads the topology once, and the file of
// `redblue tune` again when it changes.
class Automatic {
 public:
  // Sets M and the kernel. Requires: at least one thread.
  void fill(const AutoRequest& request, CallOptions& options) {
    constexpr Index kOfUnknown = 64 * 1024;
    const std::lock_guard lock(mutex_);
    read_once();
    read_again_if_changed();
    const auto memory = auto_memory(request, tuned_, *topology_);
    const auto part =
        memory ? fast_memory(*topology_, memory->part, static_cast<std::size_t>(options.threads))
               : std::nullopt;
    options.M = part ? std::max<Index>(part->words, 1) : kOfUnknown;
    options.tuned_kernel = memory ? memory->kernel : "";
  }
  void read() {
    const std::lock_guard lock(mutex_);
    read_once();
  }

 private:
  void read_once() {
    if (!topology_) {
      topology_ = read_topology();
    }
  }
  // A file that is not of this machine is as good as none: the caller did not ask for it.
  void read_again_if_changed() {
    const auto file = machine_file_path(kTunedFile);
    std::error_code error;
    const auto written = file ? std::filesystem::last_write_time(*file, error)
                              : std::filesystem::file_time_type::min();
    if (file == file_ && written == written_) {
      return;
    }
    file_ = file;
    written_ = written;
    tuned_.clear();
    if (file && !error) {
      try {
        tuned_ = read_tuned(read_machine_file(*file, kTune), file->string(), *topology_);
      } catch (const std::runtime_error&) {
      }
    }
  }

  std::mutex mutex_;
  std::optional<Topology> topology_;
  std::optional<std::filesystem::path> file_;
  std::filesystem::file_time_type written_;
  std::vector<TunedProblem> tuned_;
};

Automatic& automatic() {
  static Automatic of_this_machine;
  return of_this_machine;
}

// Chooses M if the caller gives none.
CallOptions with_memory(Pass pass, const AttentionProblem& problem, bool has_forward,
                        const AttentionOptions& options) {
  CallOptions all{options};
  if (!all.M && all.threads > 0) {
    const auto* const text = std::get_if<std::string>(&problem.mask);
    automatic().fill(
        {.pass = pass,
         .kernel = find_auto(options.kernel) != nullptr ? std::string() : options.kernel,
         .has_forward = has_forward,
         .mask = text != nullptr ? mask_class(*text) : mask_class(std::get<Mask>(problem.mask)),
         .n = problem.shape.n,
         .d = problem.shape.d,
         .threads = options.threads},
        all);
  }
  return all;
}

Request request_of(Pass pass, const AttentionProblem& problem, const CallOptions& options) {
  const std::string name(to_string(pass));
  Settings settings(Spelling::key);
  settings.add("kernel", options.kernel.empty() ? name + "/auto" : options.kernel);
  for (const auto& [key, size] :
       {std::pair("n", problem.shape.n), std::pair("m", problem.shape.m),
        std::pair("d", problem.shape.d), std::pair("dv", problem.shape.dv),
        std::pair("heads", problem.heads),
        std::pair("kv_heads", problem.kv_heads == 0 ? problem.heads : problem.kv_heads),
        std::pair("M", options.M.value_or(1)), std::pair("threads", options.threads)}) {
    settings.add(key, std::to_string(size));
  }
  settings.add("sharing", std::string(to_string(problem.sharing)));
  settings.add("activation", std::string(to_string(problem.activation)));
  settings.add("objective", std::string(to_string(options.objective)));
  if (const auto c = problem.softmax_scale) {
    settings.add("softmax_scale", fmt::format("{}", *c));
  }
  if (const auto* text = std::get_if<std::string>(&problem.mask); text && !text->empty()) {
    settings.add("mask", *text);
  }
  Request request;
  fill(settings, KnownMachine(), request);
  request.tuned_kernel = options.tuned_kernel;
  if (problem.sharing == Sharing::self) {
    throw UsageError("sharing self: expected none or kv");
  }
  if (requested_kernel(request).kernel->pass != pass) {
    throw UsageError(fmt::format("kernel {}: expected one of {}/*", request.kernel, name));
  }
  return request;
}

RequestedProblem sized(const Request& request, const AttentionProblem& problem) {
  RequestedProblem asked = requested_problem(request, requested_kernel(request), {});
  const auto* mask = std::get_if<Mask>(&problem.mask);
  if (mask == nullptr || mask->full()) {
    return asked;
  }
  const Shape& shape = problem.shape;
  if (mask->queries() != shape.n || mask->keys() != shape.m) {
    throw ShapeMismatch(
        fmt::format("mask is of {} queries and {} keys, but shape makes n = {} and m = {}",
                    mask->queries(), mask->keys(), shape.n, shape.m));
  }
  const Index stacked = asked.problem.stacked;
  asked.problem = asked.problem.one_head();
  asked.problem.mask = mask->called(mask->spec());
  asked.problem = asked.problem.with_stacked(stacked);
  return asked;
}

void check_size(const std::string& name, std::size_t has, const RequestedProblem& asked) {
  const Signature& operand = signature_of(name);
  const Shape shape = asked.problem.one_head().shape;
  const Index heads = heads_of(operand, asked.problem, asked.kv_heads());
  const Index rows = operand.rows_of(shape);
  const Index cols = operand.cols_of(shape);
  if (const Words needs = Words(heads) * rows * cols; Words(static_cast<Index>(has)) != needs) {
    throw ShapeMismatch(
        fmt::format("{} has {} words, expected {}: {} {} of {}{}", name, has, needs.value(), heads,
                    heads == 1 ? "head" : "heads", rows,
                    operand.cols == nullptr ? std::string() : fmt::format(" x {}", cols)));
  }
}

void check_buffers(const Views& given, const ViewedResults& results,
                   const RequestedProblem& asked) {
  for (const auto& [name, words] : given) {
    check_size(name, words.size(), asked);
  }
  for (const auto& [name, words] : results) {
    check_size(name, words.size(), asked);
    for (const Views& others : {given, views_of(results)}) {
      for (const auto& [other, theirs] : others) {
        if (other != name && overlap(words, theirs)) {
          throw ShapeMismatch(fmt::format("{} overlaps {} in memory", name, other));
        }
      }
    }
  }
}

// Checks values as for files: all must be finite, except L of queries without a key.
void check_values(const Views& given, const Plan& plan, Index kv_heads) {
  const Problem one = plan.problem.one_head();
  for (const Signature& operand : given_of(plan)) {
    const auto found = given.find(operand.name);
    if (found == given.end()) {
      continue;  // the forward kernel computes it
    }
    const bool sums = operand.name == kL.name && !one.mask.full();
    const std::span<const float> words = found->second;
    const auto bad = std::ranges::find_if(
        words, [&](float x) { return !std::isfinite(x) && !(sums && std::isinf(x) && x < 0); });
    const auto per_head = static_cast<std::ptrdiff_t>(words_of(operand, one.shape));
    if (bad != words.end()) {
      const std::ptrdiff_t at = bad - words.begin();
      const Index cols = operand.cols_of(one.shape);
      throw InputError(
          fmt::format("{}: {} at head {}, row {}, column {}; expected finite float32 numbers",
                      operand.name, *bad, at / per_head, at % per_head / cols, at % cols));
    }
    if (sums) {
      for (Index head = 0; head < heads_of(operand, plan.problem, kv_heads); ++head) {
        check_live_sums(one, 0, head_of(given, operand, one.shape, head),
                        fmt::format("L of head {}", head));
      }
    }
  }
}

KernelRun kernel_run(Part&& part) {
  return {std::move(part.plan), std::move(part.formula), std::move(*part.counted)};
}

// Does not pin threads, because they belong to the user's program.
void run_checked(Part& part, const Views& given, const ViewedResults& results,
                 const std::function<void()>& stop) {
  run_in_memory(part, given, results, Topology(), asking(nullptr, stop));
  check_finite(part, views_of(results));
}

// Removes buffers that exist only for softmax. The caller must leave them empty.
template <class Named>
void leave_out(Named& buffers, std::initializer_list<const char*> names, Activation activation) {
  for (const char* name : names) {
    if (const auto found = buffers.find(name); found != buffers.end()) {
      if (!found->second.empty()) {
        throw ShapeMismatch(fmt::format("{} is of a softmax, and activation is {}: leave it empty",
                                        name, to_string(activation)));
      }
      buffers.erase(found);
    }
  }
}

// The problem and the plans of a call, before it uses its buffers.
struct Decided {
  RequestedProblem asked;
  Report report;
};

Decided decide(Pass pass, const AttentionProblem& problem, const CallOptions& options,
               bool has_forward) {
  const Request request = request_of(pass, problem, options);
  RequestedProblem asked = sized(request, problem);
  Report report = resolve(request, asked, has_forward);
  return {std::move(asked), std::move(report)};
}

// Keeps the plans of the latest calls. A plan takes half a millisecond, and a small problem a
// hundredth of that.
class LatestCalls {
 public:
  std::shared_ptr<const Decided> operator()(Pass pass, const AttentionProblem& problem,
                                            const CallOptions& options, bool has_forward) {
    const auto decided = [&] {
      return std::make_shared<const Decided>(decide(pass, problem, options, has_forward));
    };
    // The files that a text names may have changed.
    if (const auto* const text = std::get_if<std::string>(&problem.mask);
        text != nullptr && !files_of_mask(*text).empty()) {
      return decided();
    }
    const Call call{pass,
                    problem,
                    options.M,
                    options.threads,
                    options.kernel,
                    options.tuned_kernel,
                    options.objective,
                    has_forward};
    if (std::shared_ptr<const Decided> known = find(call)) {
      return known;
    }
    std::shared_ptr<const Decided> made = decided();
    const std::lock_guard lock(mutex_);
    calls_.emplace_front(call, made);
    if (calls_.size() > kMost) {
      calls_.pop_back();
    }
    drop_large_masks();
    return made;
  }

 private:
  static constexpr std::size_t kMost = 16;
  static constexpr double kMostBytes = 100 << 20;  // of all masks together, about
  struct Call {
    Pass pass;
    AttentionProblem problem;
    std::optional<Index> M;
    Index threads;
    std::string kernel, tuned_kernel;
    Objective objective;
    bool has_forward;
    // The caller's mask; null: a text.
    [[nodiscard]] const Mask* mask() const { return std::get_if<Mask>(&problem.mask); }
    // Equal masks may have other names, and be stored in another way.
    friend bool operator==(const Call& a, const Call& b) {
      return a.M == b.M && a.threads == b.threads && a.objective == b.objective &&
             a.pass == b.pass && a.has_forward == b.has_forward && a.kernel == b.kernel &&
             a.tuned_kernel == b.tuned_kernel && a.problem == b.problem &&
             (a.mask() == nullptr ||
              (a.mask()->spec() == b.mask()->spec() && a.mask()->index() == b.mask()->index()));
    }
  };

  // Returns about how much memory a mask takes with its transpose.
  static double bytes_of(const Mask& mask) {
    const double of_bits = mask.bits() == nullptr ? 0
                                                  : static_cast<double>(mask.queries()) *
                                                        static_cast<double>(mask.keys()) / 8;
    return 2 * static_cast<double>(mask.most_ranges()) * sizeof(MaskSegment) + 3 * of_bits;
  }
  // Keeps the latest masks, as far as they are small enough together.
  void drop_large_masks() {
    double kept = 0;
    calls_.remove_if([&](const auto& known) {
      const Mask* const mask = known.first.mask();
      const double bytes = mask == nullptr || mask->full() ? 0 : bytes_of(*mask);
      if (kept + bytes > kMostBytes) {
        return true;
      }
      kept += bytes;
      return false;
    });
  }

  std::shared_ptr<const Decided> find(const Call& call) {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(calls_, call, &decltype(calls_)::value_type::first);
    if (found == calls_.end()) {
      return nullptr;
    }
    calls_.splice(calls_.begin(), calls_, found);
    return found->second;
  }

  std::mutex mutex_;
  std::list<std::pair<Call, std::shared_ptr<const Decided>>> calls_;  // the latest first
};

AttentionRun run_on(Pass pass, const AttentionProblem& problem, Views given, ViewedResults results,
                    const AttentionOptions& asked_options) {
  if (problem.activation != Activation::softmax) {
    leave_out(given, {"O", "L"}, problem.activation);
    leave_out(results, {"L"}, problem.activation);
  }
  const bool has_forward = given.contains("O");
  const CallOptions options = with_memory(pass, problem, has_forward, asked_options);
  static LatestCalls latest;
  const std::shared_ptr<const Decided> decided = latest(pass, problem, options, has_forward);
  const RequestedProblem& asked = decided->asked;
  if (asked.problem.sharing != Sharing::none) {
    if (!given["V"].empty()) {
      throw ShapeMismatch("V is given, but keys are shared, so that V is K: leave it empty");
    }
    given.erase("V");
    if (const auto dV = results.find("dV"); dV != results.end()) {
      if (!dV->second.empty()) {
        throw ShapeMismatch(
            "dV is given, but keys are shared, so that dK is dK + dV: leave it empty");
      }
      results.erase(dV);
    }
  }
  check_buffers(given, results, asked);
  Report report = decided->report;
  check_values(given, report.kernel.plan, asked.kv_heads());

  Buffers made;
  Words bytes = working_bytes(report);
  if (report.forward) {
    const Plan& forward = report.forward->plan;
    for (const Signature& operand : find_kernel(forward.kernel).returns) {
      bytes += 4 * Words(operand.rows_of(forward.problem.shape)) *
               operand.cols_of(forward.problem.shape) * report.forward->team.heads;
    }
  }
  const MemoryClaim memory(nullptr, bytes, spelled(report.kernel.plan),
                           "take smaller n, m or d, or fewer heads");
  AttentionRun run;
  if (report.forward) {
    const Plan& forward = report.forward->plan;
    made = result_buffers(find_kernel(forward.kernel), forward.problem, report.forward->team.heads);
    run_checked(*report.forward, given, viewed_results(made), options.stop);
    given.merge(views_of(made));
    run.forward = kernel_run(std::move(*report.forward));
  }
  run_checked(report.kernel, given, results, options.stop);
  run.kernel = kernel_run(std::move(report.kernel));
  if (report.bound) {
    run.lower_bound = {report.bound->name, report.bound->words};
  }
  return run;
}

}  // namespace

void read_machine() {
  automatic().read();
}

Index cache_words(CacheLevel level, double share, Index threads) {
  Settings settings(Spelling::key);
  settings.add("threads", std::to_string(threads));
  Request request;
  fill(settings, KnownMachine(), request);
  const std::string text = fmt::format("{}*{}", to_string(level), share);
  if (!(share > 0 && share <= 1)) {
    throw UsageError(fmt::format("M {}: expected a share above 0 and up to 1", text));
  }
  return cache_words_of(request, read_topology(), {level, share}, text, "M").words;
}

AttentionRun attention(const AttentionProblem& problem, const AttentionOperands& given,
                       const AttentionResults& results, const AttentionOptions& options) {
  return run_on(Pass::attention, problem, {{"Q", given.Q}, {"K", given.K}, {"V", given.V}},
                {{"O", results.O}, {"L", results.L}}, options);
}

AttentionRun gradients(const AttentionProblem& problem, const GradientOperands& given,
                       const GradientResults& results, const AttentionOptions& options) {
  Views views = {{"Q", given.Q}, {"K", given.K}, {"V", given.V}, {"dO", given.dO}};
  if (given.O.empty() != given.L.empty() && problem.activation == Activation::softmax) {
    throw ShapeMismatch("O without L, or L without O: give both, or neither");
  }
  for (const auto& [name, words] : {std::pair("O", given.O), std::pair("L", given.L)}) {
    if (!words.empty()) {
      views.emplace(name, words);
    }
  }
  return run_on(Pass::gradients, problem, std::move(views),
                {{"dQ", results.dQ}, {"dK", results.dK}, {"dV", results.dV}}, options);
}

}  // namespace redblue
