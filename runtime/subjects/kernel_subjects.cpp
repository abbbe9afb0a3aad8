#include "runtime/subjects/kernel_subjects.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/run/mask_spec.hpp"
#include "runtime/run/nest_file.hpp"
#include "runtime/run/options.hpp"
#include "runtime/run/resolve.hpp"
#include "runtime/run/sparse_operands.hpp"
#include "runtime/system/subprocess.hpp"
#include "runtime/text/printable.hpp"
#include "runtime/theory/planner.hpp"

namespace redblue {
namespace {

constexpr std::string_view kGiven = "given";
constexpr std::string_view kOL = "OL";
constexpr std::string_view kDisk = "disk";
constexpr std::string_view kSharing = "sharing";
constexpr std::string_view kMask = "mask";
constexpr std::string_view kFull = "full";
constexpr std::string_view kKvHeads = "kv_heads";
constexpr std::string_view kDv = "dv";
constexpr std::string_view kActivation = "activation";
constexpr std::string_view kMake = "make";
constexpr std::string_view kIn = "in";
constexpr std::string_view kSeed = "seed";

// Returns 1 for a kernel without this parameter.
Index prefetch_of(const Arguments& arguments) {
  return arguments.contains(kPrefetch) ? arguments[kPrefetch] : 1;
}

// Returns the mask. Empty if all pairs live.
std::string mask_text(const Arguments& arguments) {
  const std::string mask =
      arguments.contains(kMask) ? to_string(arguments.value(kMask)) : std::string(kFull);
  return mask == kFull ? "" : mask;
}

// Returns the number of key heads, if the kernel allows fewer than query heads.
std::optional<Index> kv_heads_of(const Arguments& arguments) {
  return arguments.contains(kKvHeads) ? std::optional(arguments[kKvHeads]) : std::nullopt;
}

// Returns the width of values, if the kernel allows a width other than d.
std::optional<Index> dv_of(const Arguments& arguments) {
  return arguments.contains(kDv) ? std::optional(arguments[kDv]) : std::nullopt;
}

// Returns the texts of argument `key`, by operand.
NamedTexts named_in(const Arguments& arguments, std::string_view key) {
  try {
    return arguments.contains(key) ? parse_named_texts(to_string(arguments.value(key)))
                                   : NamedTexts();
  } catch (const std::invalid_argument& error) {
    throw UsageError(fmt::format("{}: {}", key, error.what()));
  }
}

// Returns the arguments as a suite would spell them, without the usual values of heads and mask.
Settings settings_of(const std::string& kernel, const Arguments& arguments) {
  Settings settings(Spelling::key);
  settings.add("kernel", kernel);
  settings.add("M", fmt::format("{}", fmt::join(levels_of(arguments), ",")));
  for (const Option& option : options()) {
    const std::string_view key = option.key;
    const bool single = (key == "heads" || key == kKvHeads) && arguments["heads"] == 1;
    if (!arguments.contains(key) || key == "M" || key == "store" || single ||
        (key == kMask && mask_text(arguments).empty())) {
      continue;
    }
    if (key == kMake || key == kIn) {
      for (const auto& [name, text] : named_in(arguments, key)) {
        settings.add(key, name + "=" + text);
      }
    } else {
      settings.add(key, to_string(arguments.value(key)));
    }
  }
  return settings;
}

Request request_of(const std::string& kernel, const Arguments& arguments, Sparsities* sparsities) {
  Request request;
  fill(settings_of(kernel, arguments), KnownMachine(), request);
  for (auto& [name, file] : request.in) {
    file = arguments.directory() / file;
  }
  request.mask_files = arguments.directory();
  request.forward_in_more_M = request.known == Known::O_and_L;
  request.densify = !on_disk(arguments);
  request.sparsities = sparsities;
  return request;
}

// Returns the size by which keys differ from queries, if the kernel's queries are its keys.
std::string_view apart_in(const Kernel& kernel, const Arguments& arguments) {
  return !kernel.of_one_source                                                       ? ""
         : arguments["m"] != arguments["n"]                                          ? "m"
         : kv_heads_of(arguments).value_or(arguments["heads"]) != arguments["heads"] ? kKvHeads
                                                                                     : "";
}

// Returns the problem of one head of keys.
Problem problem_of(const KernelName& name, const Request& request) {
  return requested_problem(request, name, open_inputs(request, name)).problem;
}

Report resolved(const Request& request, const Arguments& arguments) {
  return resolve(request, {problem_of(requested_kernel(request), request), request.heads},
                 given_forward(arguments));
}

const Part* forward_of(const Report& report, const Arguments& arguments) {
  return report.forward && !given_forward(arguments) ? &*report.forward : nullptr;
}

// Adds the phases of the forward pass to the kernel's phases, as forward/PHASE.
template <class Phase>
void add_forward(std::vector<Phase> forward, std::vector<Phase>& phases) {
  for (Phase& phase : forward) {
    phase.path = "forward/" + phase.path;
    phases.push_back(std::move(phase));
  }
}

// Returns the kernel's counts. Includes the forward pass if the kernel computes O and L first.
RunCounts counts_of(const Report& report, const Arguments& arguments) {
  const auto both = [&](const auto& level_of) {
    RunCounts::Level level = level_of(*report.kernel.counted);
    if (const Part* forward = forward_of(report, arguments)) {
      const RunCounts::Level before = level_of(*forward->counted);
      add_forward(before.phases, level.phases);
      level.total += before.total;
    }
    return level;
  };
  const RunCounts::Level own = both([](const RunCounts& counts) {
    return RunCounts::Level{counts.phases, counts.total};
  });
  RunCounts counts{.phases = own.phases, .total = own.total};
  counts.inner.assign(report.equal_levels - 1, own);
  for (std::size_t level = 0; level < report.kernel.levels.size(); ++level) {
    counts.inner.push_back(both([&](const RunCounts& of) { return of.inner[level]; }));
  }
  return counts;
}

std::vector<PhaseCost> formula_of(const Report& report, const Arguments& arguments) {
  std::vector<PhaseCost> phases = report.kernel.formula;
  if (const Part* forward = forward_of(report, arguments)) {
    add_forward(forward->formula, phases);
  }
  return phases;
}

std::vector<std::vector<PhaseCost>> inner_formulas_of(const Report& report,
                                                      const Arguments& arguments) {
  std::vector<std::vector<PhaseCost>> inner(report.equal_levels - 1, formula_of(report, arguments));
  for (std::size_t level = 0; level < report.kernel.levels.size(); ++level) {
    inner.push_back(report.kernel.levels[level].phases);
    if (const Part* forward = forward_of(report, arguments)) {
      add_forward(forward->levels[level].phases, inner.back());
    }
  }
  return inner;
}

// The properties of a kernel that decide which parameters its subject has.
struct Takes {
  Pass pass;
  bool shares;  // takes `sharing`
  bool dense;   // takes dense operands, masks and prefetch
  bool sparse;
  bool levels;  // takes several levels of fast memory
};

// Adds the parameters for operands from files and rules.
void add_operands(const Takes& takes, Subject& subject) {
  std::vector<std::string> operands;
  for (const KernelName& name : all_kernel_names()) {
    if (name.kernel->pass == takes.pass && (takes.dense || name.kernel->takes_sparse)) {
      for (const Signature& operand : name.kernel->given()) {
        operands.emplace_back(operand.name);
      }
    }
  }
  for (const auto& [name, help] : {std::pair(kMake, "operands that are made, as --make has them"),
                                   std::pair(kIn, "operands that files have: NAME=FILE")}) {
    subject.parameters.push_back({.name = std::string(name),
                                  .help = help,
                                  .otherwise = std::string(kNone),
                                  .is_text = true,
                                  .is_named = true,
                                  .names = operands});
  }
  subject.parameters.push_back({.name = std::string(kSeed),
                                .help = "of the entries that rules choose",
                                .otherwise = static_cast<Index>(kDefaultSeed)});
}

// Returns fingerprints of the mask and of each sparse operand from a file.
std::map<std::string, std::string> fingerprints(const Arguments& arguments) {
  std::map<std::string, std::string> found;
  if (!mask_text(arguments).empty()) {
    const Shape shape{arguments["n"], arguments["m"], arguments["d"]};
    found[std::string(kMask)] = fingerprint_of(mask_of(arguments, shape), shape);
  }
  for (const auto& [name, file] : named_in(arguments, kIn)) {
    const InputFile read(arguments.directory() / file);
    if (read.pattern() != nullptr) {
      found[name] = fingerprint_of(*read.pattern());
    }
  }
  return found;
}

// The levels of a device that has the same name on every machine.
std::vector<Index> device_levels(const std::string& name, const Arguments& arguments) {
  const std::vector<Device>& known = devices();
  const auto device = std::ranges::find(known, name, &Device::name);
  if (device == known.end()) {
    throw UsageError(
        fmt::format("no device is called '{}': `redblue list --devices` has their names", name));
  }
  const bool half = arguments.contains("word") && to_string(arguments.value("word")) == "2";
  return device_words(*device, arguments.contains("threads") ? arguments["threads"] : 1,
                      half ? std::optional<Index>(2) : std::nullopt, {name, std::string(kDevice)});
}

std::vector<std::string> activation_names() {
  std::vector<std::string> names;
  for (const Activation activation : kActivations) {
    names.emplace_back(to_string(activation));
  }
  return names;
}

Subject subject(const std::string& name, const std::string& summary, const Takes& takes,
                MemoryBudget* memory, Sparsities* sparsities, const std::function<void()>& stop) {
  const Pass pass = takes.pass;
  Subject made{.name = name, .summary = summary, .parameters = {}, .run = {}};
  made.parameters = {{.name = "n", .help = "queries"},
                     {.name = "m", .help = "keys", .same_as = "n"},
                     {.name = "d", .help = "width"},
                     {.name = "M", .help = "words of fast memory of each worker"},
                     {.name = "threads", .help = "workers", .otherwise = Index{1}},
                     {.name = "heads", .help = "problems of this shape", .otherwise = Index{1}},
                     {.name = "store",
                      .help = "where slow words are",
                      .otherwise = "memory",
                      .words = {"memory", std::string(kDisk)}}};
  if (takes.levels) {
    const auto M = std::ranges::find(made.parameters, "M", &Parameter::name);
    made.parameters.insert(M + 1, {.name = std::string(kInner),
                                   .help = "words of the levels below M, the innermost first",
                                   .is_text = true,
                                   .is_optional = true});
  }
  if (takes.dense) {  // kernels of sparse operands do not stream keys
    const auto store = std::ranges::find(made.parameters, "store", &Parameter::name);
    made.parameters.insert(store, {.name = std::string(kPrefetch),
                                   .help = "blocks of keys in fast memory at a time",
                                   .otherwise = Index{1}});
  }
  if (is_backward(pass)) {
    made.parameters.push_back({.name = std::string(kGiven),
                               .help = "what a backward pass starts from",
                               .otherwise = std::string(kOL),
                               .words = {std::string(kOL), "nothing"}});
  }
  if (inputs_of(pass) == Inputs::plain) {
    const auto heads = std::ranges::find(made.parameters, "heads", &Parameter::name);
    made.parameters.insert(
        heads + 1,
        {.name = std::string(kKvHeads), .help = "heads of keys and values", .same_as = "heads"});
    made.parameters.push_back(
        {.name = std::string(kDv), .help = "width of values", .same_as = "d"});
  }
  if (takes.shares) {
    made.parameters.push_back({.name = std::string(kSharing),
                               .help = "kv: values are keys",
                               .otherwise = "none",
                               .words = {"none", "kv"}});
  }
  if (pass != Pass::product && pass != Pass::logsumexp && !is_linear(pass)) {
    made.parameters.push_back({.name = std::string(kActivation),
                               .help = "f of a score",
                               .otherwise = "softmax",
                               .words = activation_names()});
  }
  const bool masked = takes.dense && pass != Pass::product;
  if (masked) {
    made.parameters.push_back({.name = std::string(kMask),
                               .help = "the live pairs",
                               .otherwise = std::string(kFull),
                               .is_text = true});
    made.peaks_are_bounds = [](const Arguments& arguments) {
      return !mask_text(arguments).empty();
    };
  }
  std::vector<std::string_view> optional = {"softmax_scale", "wanted",   "word",  "sums",
                                            "objective",     "multiple", "blocks"};
  if (takes.levels) {
    optional.emplace_back("word_costs");
  }
  for (const std::string_view key : optional) {
    made.parameters.push_back({.name = std::string(key),
                               .help = std::string(option(key).text),
                               .is_text = true,
                               .is_optional = true});
  }
  if (takes.sparse) {
    add_operands(takes, made);
    if (!takes.dense) {
      made.meant_with = {std::string(kMake), std::string(kIn)};
    }
  }
  if (masked || takes.sparse || takes.levels) {
    made.check = [name, sparsities](const Arguments& arguments) {
      if (arguments.contains(kMask) && to_string(arguments.value(kMask)).empty()) {
        throw std::invalid_argument(fmt::format("mask is empty: expected {}", kMaskSyntax));
      }
      const Request request = request_of(name, arguments, sparsities);
      const KernelName kernel = requested_kernel(request);
      if (apart_in(*kernel.kernel, arguments).empty()) {  // else it is declined
        static_cast<void>(problem_of(kernel, request));
      }
    };
    if (masked || takes.sparse) {
      made.fingerprints = fingerprints;
    }
  }
  made.run = [name, memory, stop, sparsities](const Arguments& arguments) {
    return counts_of(run_subject(name, arguments, false, memory, stop, sparsities), arguments);
  };
  made.formula = [name, sparsities](const Arguments& arguments) {
    return formula_of(count_subject(name, arguments, sparsities), arguments);
  };
  made.bound = [name, sparsities](const Arguments& arguments) -> std::optional<Index> {
    const Report report = count_subject(name, arguments, sparsities);
    return report.bound ? std::optional(report.bound->words) : std::nullopt;
  };
  made.device_levels = device_levels;
  if (takes.levels) {
    made.inner_formulas = [name, sparsities](const Arguments& arguments) {
      return arguments.contains(kInner)
                 ? inner_formulas_of(count_subject(name, arguments, sparsities), arguments)
                 : std::vector<std::vector<PhaseCost>>();
    };
  }
  return made;
}

// Returns a kernel as a subject.
Subject subject_of(const KernelName& name, MemoryBudget* memory, Sparsities* sparsities,
                   const std::function<void()>& stop) {
  const Kernel& kernel = *name.kernel;
  Subject made = subject(name.text(), name.summary(),
                         {.pass = kernel.pass,
                          .shares = kernel.shares_keys && name.sharing == Sharing::none,
                          .dense = !kernel.takes_sparse,
                          .sparse = kernel.takes_sparse,
                          .levels = kernel.has_levels()},
                         memory, sparsities, stop);
  made.least_M = [&kernel, name, sparsities](const Arguments& arguments) {
    const Request request = request_of(name.text(), arguments, sparsities);
    const Problem problem = problem_of(requested_kernel(request), request);
    const Index least = kernel.least_M(problem, request.prefetch, request.multiple);
    return kernel.needs_forward(problem.activation) && !given_forward(arguments)
               ? std::max(least, least_M_of_forward(request, kernel, problem))
               : least;
  };
  made.declined = [&kernel, name](const Arguments& arguments) -> std::string {
    if ((name.sharing != Sharing::none || shares_keys(arguments)) &&
        dv_of(arguments).value_or(arguments["d"]) != arguments["d"]) {
      return "dv";
    }
    if (const std::string_view size = apart_in(kernel, arguments); !size.empty()) {
      return std::string(size);
    }
    if (arguments["threads"] > 1 && kv_heads_of(arguments).value_or(arguments["heads"]) == 1 &&
        !kernel.schedule.split) {
      return "threads";
    }
    if (!kernel.takes(activation_of(arguments))) {
      return std::string(kActivation);
    }
    const Shape shape{arguments["n"], arguments["m"], arguments["d"]};
    const bool leaves_forward =
        find_operand(kernel.results(Sharing::none, activation_of(arguments)), "L") != nullptr;
    if (!mask_text(arguments).empty() &&
        (!kernel.takes(mask_of(arguments, shape)) || (on_disk(arguments) && leaves_forward))) {
      return "mask";
    }
    const bool one_block = !kernel.streams_keys() || arguments.contains(kInner);
    return prefetch_of(arguments) > 1 && one_block ? std::string(kPrefetch) : "";
  };
  return made;
}

}  // namespace

std::vector<Index> inner_levels(const Value& inner) {
  std::vector<Index> levels;
  const std::string all = to_string(inner) + ",";
  for (std::string_view rest = all; !rest.empty();) {
    const std::string_view size = rest.substr(0, rest.find(','));
    const char* const end = size.data() + size.size();
    Index words = 0;
    if (const auto [stop, error] = std::from_chars(size.data(), end, words);
        error != std::errc() || stop != end || words < 1) {
      throw UsageError(fmt::format(
          "{} is '{}': expected the words of each level below M, such as 8192 or 8192,65536",
          kInner, shortened(to_string(inner))));
    }
    levels.push_back(words);
    rest.remove_prefix(size.size() + 1);
  }
  return levels;
}

std::vector<Index> levels_of(const Arguments& arguments) {
  std::vector<Index> levels;
  if (arguments.contains(kInner)) {
    levels = inner_levels(arguments.value(kInner));
  }
  levels.push_back(arguments["M"]);
  const bool equal = std::ranges::count(levels, levels.back()) == std::ssize(levels);
  const auto falls = std::ranges::adjacent_find(levels, std::greater_equal<>());
  if (!equal && falls != levels.end()) {
    throw UsageError(fmt::format(
        "M {}: level {} has {} words, and the next {}: give the inner level first, each smaller "
        "than the next, or all equal",
        shortened(fmt::format("{}", fmt::join(levels, ","))), falls - levels.begin() + 1, falls[0],
        falls[1]));
  }
  return levels;
}

bool given_forward(const Arguments& arguments) {
  return arguments.contains(kGiven) && arguments.value(kGiven) == Value(std::string(kOL));
}

Mask mask_of(const Arguments& arguments, const Shape& shape) {
  const std::string mask = mask_text(arguments);
  return mask.empty() ? Mask()
                      : parse_mask(mask, shape, "mask '" + mask + "'", arguments.directory());
}

bool has_files(const Arguments& arguments) {
  return !files_of_mask(mask_text(arguments)).empty() || !named_in(arguments, kIn).empty();
}

Activation activation_of(const Arguments& arguments) {
  for (const Activation activation : kActivations) {
    if (arguments.contains(kActivation) &&
        arguments.value(kActivation) == Value(std::string(to_string(activation)))) {
      return activation;
    }
  }
  return Activation::softmax;
}

bool has_sparse_operands(const Point& point) {
  const auto name = parse_kernel_name(point.subject);
  return (name && name->kernel->takes_sparse) || !named_in(point.arguments, kMake).empty() ||
         !named_in(point.arguments, kIn).empty();
}

bool shares_keys(const Arguments& arguments) {
  return arguments.contains(kSharing) && arguments.value(kSharing) == Value("kv");
}

Report count_subject(const std::string& kernel, const Arguments& arguments,
                     Sparsities* sparsities) {
  return resolved(request_of(kernel, arguments, sparsities), arguments);
}

bool on_disk(const Arguments& arguments) {
  return arguments.value("store") == Value(std::string(kDisk));
}

Report run_subject(const std::string& kernel, const Arguments& arguments, bool timed,
                   MemoryBudget* memory, const std::function<void()>& stop,
                   Sparsities* sparsities) {
  Request request = request_of(kernel, arguments, sparsities);
  request.memory = memory;
  request.stop = stop;
  std::optional<ScratchDirectory> scratch;
  if (on_disk(arguments)) {
    scratch.emplace(temporary_directory());
    request.store = Request::OnDisk{};
    request.store->directory = scratch->path();
    request.store->options.before_each = stop;
  }
  return run(request, {}, {.peak_gflops = timed});
}

const Subject* nest_subject(const std::string& name, const std::filesystem::path& directory,
                            MemoryBudget* memory, Sparsities* sparsities,
                            const std::function<void()>& stop) {
  static std::mutex mutex;
  // By the name from the working directory, and by the name that reports have.
  static std::map<std::pair<std::string, std::string>, Subject> subjects;
  if (!names_nest(name)) {
    return nullptr;
  }
  const std::string from_here = nest_in(directory, name);
  const std::pair key(from_here, named_nest(name));
  const std::scoped_lock lock(mutex);
  const auto found = subjects.find(key);
  if (found != subjects.end()) {
    return &found->second;  // the file is read once
  }
  const KernelName kernel{&find_kernel(load_nest_named(from_here))};
  Subject made = subject_of(kernel, memory, sparsities, stop);
  made.name = key.second;
  return &subjects.emplace(key, std::move(made)).first->second;
}

std::vector<Subject> kernel_subjects(MemoryBudget* memory, Sparsities* sparsities,
                                     const std::function<void()>& stop) {
  std::vector<Subject> subjects;
  for (const KernelName& name : all_kernel_names()) {
    subjects.push_back(subject_of(name, memory, sparsities, stop));
  }
  for (const auto& [name, pass] : kAuto) {
    const auto any_of = [of = pass](const KernelList& known, const auto& holds) {
      return std::ranges::any_of(
          known, [&](const Kernel& kernel) { return kernel.pass == of && holds(kernel); });
    };
    const auto any = [](const Kernel&) { return true; };
    subjects.push_back(subject(
        std::string(name), "the kernel of fewest words, as `plan` has it",
        {.pass = pass,
         .shares = any_of(kernels(), [](const Kernel& kernel) { return kernel.shares_keys; }),
         .dense = any_of(kernels(), any),
         .sparse = any_of(sparse_kernels(), any),
         .levels = any_of(kernels(), [](const Kernel& kernel) { return kernel.has_levels(); })},
        memory, sparsities, stop));
  }
  return subjects;
}

}  // namespace redblue
