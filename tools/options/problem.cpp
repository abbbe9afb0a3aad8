#include "tools/options/problem.hpp"

#include <algorithm>
#include <sstream>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kernels/kernel.hpp"
#include "kernels/masked.hpp"
#include "runtime/report/calibration.hpp"
#include "runtime/run/mask_spec.hpp"
#include "runtime/run/resolve.hpp"
#include "runtime/system/tensor_path.hpp"
#include "runtime/text/table.hpp"
#include "runtime/theory/planner.hpp"
#include "tools/cli/inputs.hpp"
#include "tools/cli/interruption.hpp"
#include "tools/cli/nearest.hpp"
#include "tools/cli/sizes.hpp"
#include "tools/options/machine.hpp"

namespace redblue {
namespace {

std::optional<Index> size_of(const TextOption& option, Request& request) {
  const auto given = option.get();
  if (!given) {
    return std::nullopt;
  }
  request.said_as[option.flag()] = given->from;
  return parse_size(given->text, given->from);
}

// The part of a cache that a calibration chose; `file` becomes the path of the calibration.
CachePart by_calibration(const Given& given, const Topology& topology,
                         std::optional<std::string>& file) {
  if (!topology.unavailable.empty()) {
    throw UsageError(
        fmt::format("{} {}: the caches are not known ({}): give words, for example {} 8192",
                    given.from, given.text, topology.unavailable, given.from));
  }
  const std::filesystem::path path = calibration_file();
  try {
    const CachePart part = calibrated_part(read_calibration(path), path.string(), topology);
    file = path.string();
    return part;
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::no_such_file_or_directory) {
      throw UsageError(fmt::format("{} {}: there is no {}: run `redblue calibrate` first",
                                   given.from, given.text, path.string()));
    }
    throw;
  }
}

// One size of --M.
struct LevelWords {
  Index words;
  std::optional<FastMemoryOrigin> from;
};

LevelWords parse_level(const Given& given, const Request& request, bool alone) {
  const FastMemory memory =
      parse_fast_memory(given.text, given.from, request.word_bytes.value_or(kFloatBytes));
  if (const Index* words = std::get_if<Index>(&memory)) {
    return {*words, std::nullopt};
  }
  if (!alone && std::holds_alternative<Auto>(memory)) {
    throw UsageError(
        fmt::format("{}: auto is one level: give sizes or caches, as L1*0.5,L2*0.5", given.from));
  }
  const Topology topology = machine_topology();
  std::optional<std::string> file;
  const auto part = std::holds_alternative<Auto>(memory) ? by_calibration(given, topology, file)
                                                         : std::get<CachePart>(memory);
  CacheWords words =
      cache_words_of(request, topology, part, given.text, given.from, std::move(file));
  return {words.words, std::move(words.from)};
}

// Levels from the innermost out, each of fewer words than the next; or equal ones, which are one.
void fill_fast_memory(const Given& given, const std::vector<Given>& sizes, Request& request) {
  std::vector<LevelWords> levels;
  for (const Given& size : sizes) {
    levels.push_back(parse_level(size, request, sizes.size() == 1));
  }
  request.said_as["--M"] = given.from;
  request.M = levels.back().words;
  request.M_from = levels.back().from;
  const bool equal = std::ranges::all_of(
      levels, [&](const LevelWords& level) { return level.words == request.M; });
  if (equal) {
    request.equal_levels = levels.size();
    return;
  }
  for (std::size_t level = 0; level + 1 < levels.size(); ++level) {
    const Index words = levels[level].words, next = levels[level + 1].words;
    if (words >= next) {
      throw UsageError(fmt::format(
          "{} {}: level {} has {} words, and the next {}: give the inner level first, each smaller "
          "than the next, or all equal",
          given.from, given.text, level + 1, words, next));
    }
    request.inner.push_back(words);
    if (levels[level].from) {
      request.inner_from.push_back(*std::move(levels[level].from));
    }
  }
}

// The levels of a device, in the words of each worker.
void fill_levels(const Given& given, const Device& device, Request& request) {
  request.said_as["--M"] = given.from;
  for (const DeviceLevel& level : device.levels) {
    const Index words = words_of_width(level.words(request.threads), request.word_bytes);
    if (words <= request.M) {
      throw UsageError(fmt::format(
          "{} {}: of {} workers each has {} words of {}, and {} of the level inside it: give fewer "
          "threads, or words as --M {}",
          given.from, given.text, request.threads, words, level.name, request.M,
          std::max<Index>(request.M, 1)));
    }
    if (request.M > 0) {
      request.inner.push_back(request.M);
    }
    request.M = words;
  }
  request.device = device;
}

// NAME=SIZE, several with commas between, or the one word "printed".
void fill_blocks(const Given& given, Request& request) {
  request.said_as["--blocks"] = given.from;
  if (given.text.empty() || given.text.ends_with(',')) {
    throw UsageError(fmt::format("{} '{}': a block size is missing", given.from, given.text));
  }
  std::istringstream list(given.text);
  for (std::string text; std::getline(list, text, ',');) {
    if (text == "printed") {
      request.printed_blocks = true;
      continue;
    }
    const std::size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos) {
      throw UsageError(
          fmt::format("{} '{}': expected NAME=SIZE or printed", given.from, given.text));
    }
    const std::string name = text.substr(0, equals);
    const std::string number = text.substr(equals + 1);
    const bool none = (name == kStaying || name.ends_with(kApart)) && number == "0";
    const Index size = none ? 0 : parse_size(number, given.from + " " + name);
    if (!request.blocks.emplace(name, size).second) {
      throw UsageError(fmt::format("{}: {} is named twice", given.from, name));
    }
  }
  if (request.printed_blocks && !request.blocks.empty()) {
    throw UsageError(fmt::format("{}: either printed or sizes, not both", given.from));
  }
}

}  // namespace

void check_kernel(const std::string& name, bool auto_too) {
  const auto is_called = [&](const AutoName& known) { return known.name == name; };
  if (parse_kernel_name(name) || (auto_too && std::ranges::any_of(kAuto, is_called))) {
    return;
  }
  std::vector<std::string> spellings;
  for (const KernelName& known : all_kernel_names()) {
    spellings.push_back(known.text());
  }
  std::vector<std::string_view> names(spellings.begin(), spellings.end());
  if (auto_too) {
    for (const AutoName& known : kAuto) {
      names.push_back(known.name);
    }
  }
  throw UsageError(fmt::format("no kernel is called '{}': did you mean {}? (redblue list)", name,
                               fmt::join(nearest(name, names), " or ")));
}

ShapeOptions::ShapeOptions(CLI::App& app)
    : n_(app, "--n", "queries", "SIZE"),
      m_(app, "--m", "keys; n where left out", "SIZE"),
      d_(app, "--d", "width", "SIZE") {}

void ShapeOptions::fill_lengths(Request& request) const {
  request.n = size_of(n_, request);
  request.m = size_of(m_, request);
}

std::vector<Index> ShapeOptions::widths() const {
  std::vector<Index> widths;
  for (const Given& given : d_.items()) {
    widths.push_back(parse_size(given.text, given.from));
  }
  return widths;
}

void ShapeOptions::fill(Request& request) const {
  fill_lengths(request);
  request.d = size_of(d_, request);
}

HeadsOption::HeadsOption(CLI::App& app)
    : heads_(app, "--heads", "problems of this shape, given to the workers whole; 1", "NUMBER"),
      kv_heads_(app, "--kv-heads",
                "of attention and gradients: heads of keys and values, each for as many heads of "
                "queries; as many as --heads",
                "NUMBER") {}

void HeadsOption::fill(Request& request) const {
  request.heads = size_of(heads_, request);
  request.kv_heads = size_of(kv_heads_, request);
}

void refuse_inputs(const Given& out, const Request& request) {
  for (const auto& [operand, file] : request.in) {
    const auto tensor = tensor_path(file);
    refuse_input(out, tensor ? tensor->file : file);
  }
  for (const std::string& file : files_of_mask(request.mask)) {
    refuse_input(out, file);
  }
}

ValueWidthOption::ValueWidthOption(CLI::App& app)
    : dv_(app, "--dv", "of attention and gradients: width of values; d", "SIZE") {}

void ValueWidthOption::fill(Request& request) const {
  request.dv = size_of(dv_, request);
}

FastMemoryOption::FastMemoryOption(CLI::App& app)
    : M_(app, "--M",
         "words of fast memory: 8192, 8K; bytes as 32KiB; a cache of this machine as L2 or "
         "L2*0.5; or auto: as `redblue calibrate` found; several levels, the inner first: "
         "8K,256K",
         "SIZE"),
      device_(app) {}

void FastMemoryOption::fill(Request& request) const {
  const auto M = M_.list();
  const auto device = device_.option().get();
  if (M && device) {
    throw UsageError(fmt::format("{} '{}': {} '{}' says how much there is; give one of the two",
                                 M->whole.from, M->whole.text, device->from, device->text));
  }
  if (device) {
    fill_levels(*device, *device_.get(), request);
  } else if (M) {
    fill_fast_memory(M->whole, M->items, request);
  } else if (request.M == 0) {
    throw UsageError(
        "--M is missing: the words of fast memory, for example --M 8192, or --device a100");
  }
}

WordOption::WordOption(CLI::App& app)
    : word_(app, "--word",
            "bytes of a word, 2 or 4, by which those of --M are divided, and which words are "
            "beside; 4",
            "2|4"),
      sums_(app, "--sums",
            "bytes of a running sum or maximum and of a partial result, 2 or 4: with --word 2 and "
            "--sums 4 each weighs two words; as many as a word",
            "2|4") {}

namespace {

// The bytes that an option says, where it is there.
std::optional<Index> bytes_of(const TextOption& option, Request& request) {
  const auto given = option.get();
  if (!given) {
    return std::nullopt;
  }
  request.said_as[option.flag()] = given->from;
  if (given->text != "2" && given->text != "4") {
    throw UsageError(fmt::format("{} '{}': expected 2 or 4 bytes", given->from, given->text));
  }
  return given->text == "2" ? 2 : 4;
}

}  // namespace

void WordOption::fill(Request& request) const {
  request.word_bytes = bytes_of(word_, request);
  request.sum_bytes = bytes_of(sums_, request);
  const Index word = request.word_bytes.value_or(kFloatBytes);
  if (request.sum_bytes.value_or(word) < word) {
    throw UsageError(fmt::format("{} {}: a word has {} bytes, and a sum no fewer: give --word 2",
                                 request.said("--sums"), *request.sum_bytes, word));
  }
}

WordCostsOption::WordCostsOption(CLI::App& app)
    : costs_(app, "--word-costs",
             "of several levels: what a word costs at each, the innermost first, as 1,4,100, of "
             "which plans make the sum least; or calibrated: nanoseconds, as `redblue calibrate` "
             "found; as much as the level has words",
             "COSTS") {}

namespace {

std::vector<double> calibrated_costs(const Given& given, Request& request) {
  const Rates rates = machine_rates();
  if (rates.words.empty()) {
    throw UsageError(fmt::format(
        "{} {}: what a word costs on this machine is not known: run `redblue calibrate`",
        given.from, given.text));
  }
  request.word_costs_from = rates.origin;
  Memory memory = request.memory_of_plan();
  if (memory.inner.empty()) {
    memory.inner.assign(request.equal_levels - 1, request.M);
  }
  return word_nanoseconds(rates, memory);
}

}  // namespace

void WordCostsOption::fill(Request& request) const {
  const auto costs = costs_.list();
  if (!costs) {
    return;
  }
  const Given& given = costs->whole;
  request.said_as[costs_.flag()] = given.from;
  const std::size_t levels = std::max(request.inner.size() + 1, request.equal_levels);
  if (levels == 1) {
    throw UsageError(fmt::format("{} {}: only with several levels of fast memory, as {} 8K,256K",
                                 given.from, given.text, request.said("--M")));
  }
  if (given.text == "calibrated") {
    request.word_costs = calibrated_costs(given, request);
    return;
  }
  for (const Given& cost : costs->items) {
    request.word_costs.push_back(parse_scale(cost.text, cost.from));
  }
  if (request.word_costs.size() != levels) {
    throw UsageError(
        fmt::format("{} {}: {} for {} levels of {}: give one for each, the innermost first",
                    given.from, given.text, counted(std::ssize(request.word_costs), "number"),
                    levels, request.said("--M")));
  }
}

namespace {

// Splits NAME=VALUE.
std::pair<std::string, std::string> named(const Given& given, const char* expected) {
  const std::size_t equals = given.text.find('=');
  if (equals == 0 || equals == std::string::npos || equals + 1 == given.text.size()) {
    throw UsageError(fmt::format("{} '{}': expected {}", given.from, given.text, expected));
  }
  return {given.text.substr(0, equals), given.text.substr(equals + 1)};
}

// Refuses a name that was given before.
template <class Value>
void put(const Given& given, const std::string& name, const Value& value,
         std::map<std::string, Value>& values) {
  if (!values.emplace(name, value).second) {
    throw UsageError(fmt::format("{}: {} is named twice", given.from, name));
  }
}

}  // namespace

MakeOption::MakeOption(CLI::App& app)
    : make_(app, "--make",
            fmt::format("an operand that is made: {}; what is not stored is 0 where a kernel takes "
                        "dense operands; may be repeated",
                        kRules),
            "NAME=PATTERN") {}

void MakeOption::fill(Request& request) const {
  for (const Given& given : make_.all()) {
    request.said_as[make_.flag()] = given.from;
    const auto [name, text] = named(given, "NAME=PATTERN, for example X=identity");
    Rule rule;
    try {
      rule = parse_rule(text);
    } catch (const std::invalid_argument& error) {
      throw UsageError(fmt::format("{} {}={}: {}", given.from, name, text, error.what()));
    }
    put(given, name, rule, request.make);
  }
}

PatternOptions::PatternOptions(CLI::App& app)
    : in_(app, "--in",
          "an operand's extents, and its entries where it is sparse: from .npy, a tensor "
          "F.safetensors:NAME, or .npz of SciPy, .mtx or .smtx; may be repeated",
          "NAME=FILE"),
      make_(app),
      seed_(app, "--seed", "of the entries that rules choose; 1", "NUMBER") {}

void PatternOptions::fill(Request& request) const {
  fill_files(in_, request, request.in);
  make_.fill(request);
  if (const auto seed = seed_.get()) {
    request.seed = parse_seed(seed->text, seed->from);
  }
}

InputOptions::InputOptions(CLI::App& app)
    : in_(app, "--in",
          "an operand from a .npy file, or a tensor F.safetensors:NAME; a sparse one also from "
          ".npz "
          "of SciPy, .mtx or .smtx; may be repeated",
          "NAME=FILE"),
      make_(app),
      seed_(app, "--seed",
            "of the operands that nothing else gives, of head 0; where no file or store gives any, "
            "1",
            "NUMBER"),
      scale_(app, "--scale", "their scores' standard deviation; 1", "NUMBER") {}

void InputOptions::fill(Request& request) const {
  fill_files(in_, request, request.in);
  make_.fill(request);
  if (const auto seed = seed_.get()) {
    request.seed = parse_seed(seed->text, seed->from);
  }
  if (const auto scale = scale_.get()) {
    request.said_as["--scale"] = scale->from;
    request.scale = parse_scale(scale->text, scale->from);
  }
}

void fill_files(const TextOption& option, Request& request,
                std::map<std::string, std::filesystem::path>& files) {
  for (const Given& given : option.all()) {
    request.said_as[option.flag()] = given.from;
    const auto [name, file] = named(given, "NAME=FILE, for example A1=a1.npy");
    put(given, name, std::filesystem::path(file), files);
  }
}

MaskOption::MaskOption(CLI::App& app)
    : mask_(app, "--mask",
            fmt::format("the live pairs of queries and keys, in quotes: {}; full", kMaskSyntax),
            "MASK") {}

void MaskOption::fill(Request& request) const {
  if (const auto mask = mask_.get()) {
    request.said_as[mask_.flag()] = mask->from;
    if (mask->text.empty()) {
      throw UsageError(fmt::format("{} '': expected {}", mask->from, kMaskSyntax));
    }
    request.mask = mask->text;
  }
}

namespace {

std::string activations(std::string_view between) {
  std::string all;
  for (const Activation activation : kActivations) {
    all += fmt::format("{}{}", all.empty() ? "" : between, to_string(activation));
  }
  return all;
}

}  // namespace

ActivationOption::ActivationOption(CLI::App& app)
    : activation_(app, "--activation",
                  fmt::format("f of a score: {} by rows, or another function of the score alone; "
                              "{} where left out",
                              to_string(Activation::softmax), to_string(Activation::softmax)),
                  activations("|")) {}

void ActivationOption::fill(Request& request) const {
  const auto given = activation_.get();
  if (!given) {
    return;
  }
  request.said_as[activation_.flag()] = given->from;
  const auto activation = parse_activation(given->text);
  if (!activation) {
    throw UsageError(
        fmt::format("{} '{}': expected one of {}", given->from, given->text, activations(", ")));
  }
  request.activation = *activation;
}

WantedOption::WantedOption(CLI::App& app)
    : wanted_(app, "--wanted", "the results that are computed, with commas between; all", "NAMES") {
}

void WantedOption::fill(Request& request) const {
  for (const Given& given : wanted_.items()) {
    request.said_as[wanted_.flag()] = given.from;
    if (given.text.empty()) {
      throw UsageError(fmt::format("{}: the name of a result is missing", given.from));
    }
    if (std::ranges::find(request.wanted, given.text) != request.wanted.end()) {
      throw UsageError(fmt::format("{}: {} is named twice", given.from, given.text));
    }
    request.wanted.push_back(given.text);
  }
}

ObjectiveOption::ObjectiveOption(CLI::App& app, const std::string& what)
    : objective_(app, "--objective", what + ": words; or time", "words|time") {}

Objective ObjectiveOption::get() const {
  const auto given = objective_.get();
  if (given && given->text != "words" && given->text != "time") {
    throw UsageError(fmt::format("{} '{}': expected words or time", given->from, given->text));
  }
  return given && given->text == "time" ? Objective::time : Objective::words;
}

ProblemOptions::ProblemOptions(CLI::App& app)
    : kernel_(
          app, "kernel",
          fmt::format("a kernel of `redblue list`, or {}: the first of `redblue plan`, of sparse "
                      "operands where --make or --in has some",
                      auto_names())),
      shape_(app),
      M_(app),
      blocks_(app, "--blocks",
              "block sizes in place of the plan's, as NAME=SIZE,...; or printed: the paper's own "
              "(count only)",
              "SIZES"),
      objective_(app, "blocks, and what auto chooses, for fewest words, or for least time"),
      threads_(app, "--threads", "workers, each with M words; 1", "NUMBER"),
      prefetch_(app, "--prefetch",
                "blocks of keys in fast memory at a time, so that a disk brings the next while one "
                "is computed with, of kernels of dense operands that stream keys; 1",
                "NUMBER"),
      sharing_(app, "--sharing", "none; kv: A3 is A2, or V is K, and is read once; none",
               "none|kv"),
      softmax_scale_(app, "--softmax-scale",
                     "of attention and gradients: scores are c Q K^T; 1 / sqrt(d)", "C"),
      activation_(app),
      dv_(app),
      mask_(app),
      wanted_(app) {}

void ProblemOptions::fill(Request& request) const {
  const std::optional<std::string> kernel = kernel_.get();
  if (!kernel) {
    throw UsageError("kernel is required");
  }
  check_kernel(*kernel, true);
  request.kernel = *kernel;
  fill_problem(request);
}

void ProblemOptions::fill_problem(Request& request) const {
  request.stop = stop_if_caller_asks();
  shape_.fill(request);
  if (const auto threads = size_of(threads_, request)) {
    if (*threads > kMostWorkers) {
      throw UsageError(fmt::format("{} {} is too many; expected at most {}",
                                   request.said("--threads"), *threads, kMostWorkers));
    }
    request.threads = *threads;
  }
  if (const auto prefetch = size_of(prefetch_, request)) {
    request.prefetch = *prefetch;
  }
  if (const auto scale = softmax_scale_.get()) {
    request.said_as[softmax_scale_.flag()] = scale->from;
    const double c = parse_scale(scale->text, scale->from);
    if (c < 0x1p-60 || c > 0x1p60) {
      throw UsageError(fmt::format("{} {}: expected 2^-60 to 2^60", scale->from, scale->text));
    }
    request.softmax_scale = static_cast<float>(c);
  }
  activation_.fill(request);
  dv_.fill(request);
  mask_.fill(request);
  wanted_.fill(request);
  M_.fill(request);
  request.objective = objective_.get();
  if (request.objective == Objective::time && find_auto(request.kernel) != nullptr) {
    request.rates = machine_rates();
  }
  for (const Given& given : blocks_.all()) {
    fill_blocks(given, request);
  }
  if (const auto sharing = sharing_.get()) {
    request.said_as[sharing_.flag()] = sharing->from;
    if (sharing->text != "none" && sharing->text != "kv") {
      throw UsageError(fmt::format("{} '{}': expected none or kv", sharing->from, sharing->text));
    }
    request.sharing = sharing->text == "kv" ? Sharing::kv : Sharing::none;
    const auto name = parse_kernel_name(request.kernel);
    if (request.sharing == Sharing::none && name && name->sharing != Sharing::none) {
      throw UsageError(fmt::format("{} none: {} shares keys", sharing->from, request.kernel));
    }
  }
}

std::filesystem::path store_directory(const Given& given) {
  constexpr std::string_view kFile = "file:";
  if (!given.text.starts_with(kFile) || given.text.size() == kFile.size()) {
    throw UsageError(fmt::format("{} '{}': expected file:DIR", given.from, given.text));
  }
  return given.text.substr(kFile.size());
}

Index parse_granule(const Given& given) {
  const Index most = StoreOptions().buffer_bytes;  // every command can open these
  const Index bytes = parse_bytes(given.text, given.from);
  if (bytes % StoreLayout::kSector != 0 || bytes > most) {
    throw UsageError(fmt::format("{} '{}'{}: expected a multiple of 4KiB, at most 512KiB",
                                 given.from, given.text, bytes > most ? " is too large" : ""));
  }
  return bytes;
}

StoreOptionGroup::StoreOptionGroup(CLI::App& app)
    : store_(app, "--store", "file:DIR: matrices in files of this directory, not in memory",
             "STORE"),
      engine_(app, "--engine", "requests to the disk by io_uring or threads; io_uring if it can",
              "io_uring|threads"),
      direct_(app, "--direct", "past the system's cache: yes, where files can; or no", "yes|no"),
      granule_(app, "--granule", "the least that moves, of the files this run makes; 64KiB",
               "BYTES"),
      keep_(app, "--keep", "leave intermediates in the store"),
      resume_(app, "--resume", "go on from the last checkpoint, if there is one, and leave them") {}

void StoreOptionGroup::fill(Request& request) const {
  const auto store = store_.get();
  if (!store) {
    for (const TextOption* option : {&engine_, &direct_, &granule_}) {
      if (const auto given = option->get()) {
        throw UsageError(given->from + ": only with --store file:DIR");
      }
    }
    for (const Switch* option : {&keep_, &resume_}) {
      if (const auto from = option->from()) {
        throw UsageError(*from + ": only with --store file:DIR");
      }
    }
    return;
  }
  Request::OnDisk& disk = request.store.emplace(Request::OnDisk{});
  request.said_as["--store"] = store->from;
  disk.directory = store_directory(*store);
  disk.keep = keep_.get();
  if (const auto from = resume_.from()) {
    disk.resume = true;
    request.said_as["--resume"] = *from;
  }
  if (const auto engine = engine_.get()) {
    if (engine->text != "io_uring" && engine->text != "threads") {
      throw UsageError(
          fmt::format("{} '{}': expected io_uring or threads", engine->from, engine->text));
    }
    disk.options.engine = engine->text == "threads" ? Engine::threads : Engine::uring;
    if (const std::string why = unavailable(*disk.options.engine); !why.empty()) {
      throw UsageError(fmt::format("{} {}: {}: --engine threads", engine->from, engine->text, why));
    }
  }
  if (const auto direct = direct_.get()) {
    if (direct->text != "yes" && direct->text != "no") {
      throw UsageError(fmt::format("{} '{}': expected yes or no", direct->from, direct->text));
    }
    disk.options.direct = direct->text == "yes";
  }
  if (const auto granule = granule_.get()) {
    disk.options.granule_bytes = parse_granule(*granule);
  }
}

}  // namespace redblue
