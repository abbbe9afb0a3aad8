#include "runtime/run/options.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kernels/masked.hpp"
#include "kernels/nearest.hpp"
#include "runtime/run/mask_spec.hpp"
#include "runtime/run/nest_file.hpp"
#include "runtime/run/resolve.hpp"
#include "runtime/text/table.hpp"
#include "runtime/theory/planner.hpp"

namespace redblue {
namespace {

// The option that is being applied, and the request that it changes.
struct Filling {
  const Settings& settings;
  const KnownMachine& machine;
  Request& request;
  std::string_view key;

  [[nodiscard]] Given one() const { return *settings.one(key); }
  [[nodiscard]] std::vector<Given> all() const { return settings.all(key); }
  [[nodiscard]] std::vector<Given> items() const { return settings.items(key); }
  [[nodiscard]] Index size() const { return parse_size(one().text, one().from); }
};

template <class Value>
using Named = std::pair<std::string_view, Value>;

// Returns the value with the given name.
template <class Value, std::size_t count>
Value choose(const Given& given, const std::array<Named<Value>, count>& values) {
  std::vector<std::string_view> names;
  for (const auto& [name, value] : values) {
    if (given.text == name) {
      return value;
    }
    names.push_back(name);
  }
  throw UsageError(fmt::format("{} '{}': expected {} or {}", given.from, given.text,
                               fmt::join(names.begin(), names.end() - 1, ", "), names.back()));
}

template <Index Request::*size>
void fill_size(const Filling& to) {
  to.request.*size = to.size();
}
template <std::optional<Index> Request::*size>
void fill_size(const Filling& to) {
  to.request.*size = to.size();
}

void fill_threads(const Filling& to) {
  to.request.threads = to.size();
  if (to.request.threads > kMostWorkers) {
    throw UsageError(fmt::format("{} {} is too many; expected at most {}", to.one().from,
                                 to.request.threads, kMostWorkers));
  }
}

template <std::optional<Index> Request::*bytes>
void fill_bytes(const Filling& to) {
  const Given given = to.one();
  if (given.text != "2" && given.text != "4") {
    throw UsageError(fmt::format("{} '{}': expected 2 or 4 bytes", given.from, given.text));
  }
  to.request.*bytes = given.text == "2" ? 2 : 4;
}

void fill_sums(const Filling& to) {
  fill_bytes<&Request::sum_bytes>(to);
  const Index word = to.request.word_bytes.value_or(kFloatBytes);
  if (*to.request.sum_bytes < word) {
    throw UsageError(fmt::format("{} {}: a word has {} bytes, and a sum no fewer: give {} 2",
                                 to.one().from, *to.request.sum_bytes, word,
                                 to.settings.said("word")));
  }
}

// The words of one level of fast memory.
struct LevelWords {
  Index words;
  std::optional<FastMemoryOrigin> from;
};

// Returns what is known of the problem when the fast memory is chosen.
AutoRequest auto_request(const Filling& to) {
  const Request& request = to.request;
  AutoRequest of{.pass = request.pass.value_or(Pass::backward),
                 .has_forward = request.known.value_or(Known::O_and_L) == Known::O_and_L,
                 .mask = mask_class(request.mask),
                 .n = request.n,
                 .d = request.d,
                 .threads = request.threads};
  if (request.kernel.empty()) {
    return of;
  }
  const AutoName* const name = find_auto(request.kernel);
  of.pass = name != nullptr ? name->pass : requested_kernel(request).kernel->pass;
  of.kernel = name != nullptr ? std::string() : request.kernel;
  of.has_forward = (request.arrays != nullptr && request.arrays->in.contains("O")) ||
                   std::ranges::any_of(to.settings.all("in"), [](const Given& file) {
                     return file.text.starts_with("O=");
                   });
  return of;
}

// M is the fastest known, so blocks and kernels are the fastest ones, too, unless the user says
// otherwise.
CachePart automatic_part(const Given& given, const Topology& topology, const Filling& to,
                         std::optional<std::string>& file) {
  const auto [memory, path] = to.machine.automatic(given, auto_request(to), topology);
  Request& request = to.request;
  request.tuned_kernel = memory.kernel;
  if (!to.settings.contains("objective")) {
    request.objective = Objective::time;
    request.rates = to.machine.rates();
  }
  if (!path.empty()) {
    file = path;
  }
  return memory.part;
}

LevelWords parse_level(const Given& given, const Filling& to, bool alone) {
  const FastMemory memory =
      parse_fast_memory(given.text, given.from, to.request.word_bytes.value_or(kFloatBytes));
  if (const Index* words = std::get_if<Index>(&memory)) {
    return {*words, std::nullopt};
  }
  const bool is_auto = std::holds_alternative<Auto>(memory);
  if (!alone && is_auto) {
    throw UsageError(
        fmt::format("{}: auto is one level: give sizes or caches, as L1*0.5,L2*0.5", given.from));
  }
  const Topology topology = to.machine.topology(given);
  std::optional<std::string> file;
  const CachePart part =
      is_auto ? automatic_part(given, topology, to, file) : std::get<CachePart>(memory);
  CacheWords words =
      cache_words_of(to.request, topology, part, given.text, given.from, std::move(file));
  return {words.words, std::move(words.from)};
}

// Sets the levels, innermost first, each with fewer words than the next. If all levels have the
// same size, they are treated as one level.
void fill_M(const Filling& to) {
  Request& request = to.request;
  static_cast<void>(to.one());
  std::vector<LevelWords> levels;
  const std::vector<Given> sizes = to.items();
  for (const Given& size : sizes) {
    levels.push_back(parse_level(size, to, sizes.size() == 1));
  }
  request.M = levels.back().words;
  request.M_from = levels.back().from;
  if (std::ranges::all_of(levels,
                          [&](const LevelWords& level) { return level.words == request.M; })) {
    request.equal_levels = levels.size();
    return;
  }
  for (std::size_t level = 0; level + 1 < levels.size(); ++level) {
    const Index words = levels[level].words, next = levels[level + 1].words;
    if (words >= next) {
      throw UsageError(fmt::format(
          "{} {}: level {} has {} words, and the next {}: give the inner level first, each smaller "
          "than the next, or all equal",
          to.one().from, to.one().text, level + 1, words, next));
    }
    request.inner.push_back(words);
    if (levels[level].from) {
      request.inner_from.push_back(*std::move(levels[level].from));
    }
  }
}

// Sets the levels of a device, as words for each worker.
void fill_device(const Filling& to) {
  const Given given = to.one();
  Request& request = to.request;
  if (const auto M = to.settings.first_of({"M"})) {
    throw UsageError(fmt::format("{} '{}': {} '{}' says how much there is; give one of the two",
                                 M->from, M->text, given.from, given.text));
  }
  std::optional<Device> device = find_device(given, to.machine);
  if (!device) {
    throw UsageError(fmt::format("{}: no device is called '{}': expected {}", given.from,
                                 given.text, expected_devices()));
  }
  request.inner = device_words(*device, request.threads, request.word_bytes, given);
  request.M = request.inner.back();
  request.inner.pop_back();
  request.device = std::move(device);
}

std::vector<double> calibrated_costs(const Given& given, const Filling& to) {
  const Rates rates = to.machine.rates();
  if (rates.words.empty()) {
    throw UsageError(fmt::format(
        "{} {}: what a word costs on this machine is not known: run `redblue calibrate`",
        given.from, given.text));
  }
  to.request.word_costs_from = rates.origin;
  Memory memory = to.request.memory_of_plan();
  if (memory.inner.empty()) {
    memory.inner.assign(to.request.equal_levels - 1, to.request.M);
  }
  return word_nanoseconds(rates, memory);
}

void fill_word_costs(const Filling& to) {
  Request& request = to.request;
  const Given given = to.one();
  const std::size_t levels = std::max(request.inner.size() + 1, request.equal_levels);
  if (levels == 1) {
    throw UsageError(fmt::format("{} {}: only with several levels of fast memory, as {} 8K,256K",
                                 given.from, given.text, request.said("M")));
  }
  if (given.text == "calibrated") {
    request.word_costs = calibrated_costs(given, to);
    return;
  }
  for (const Given& cost : to.items()) {
    request.word_costs.push_back(parse_scale(cost.text, cost.from));
  }
  if (request.word_costs.size() != levels) {
    throw UsageError(fmt::format(
        "{} {}: {} for {} levels of {}: give one for each, the innermost first", given.from,
        given.text, counted(std::ssize(request.word_costs), "number"), levels, request.said("M")));
  }
}

// Parses NAME=SIZE,... or the word "printed".
void fill_blocks(const Filling& to) {
  Request& request = to.request;
  for (const Given& given : to.all()) {
    if (given.text.empty() || given.text.ends_with(',')) {
      throw UsageError(fmt::format("{} '{}': a block size is missing", given.from, given.text));
    }
    std::istringstream list(given.text);
    for (std::string text; std::getline(list >> std::ws, text, ',');) {
      if (text == "printed") {
        request.printed_blocks = true;
        continue;
      }
      const std::size_t equals = text.find('=');
      if (equals == 0 || equals == std::string::npos) {
        throw UsageError(
            fmt::format("{} '{}': expected NAME=SIZE or printed", given.from, given.text));
      }
      const std::string name = text.substr(0, equals), number = text.substr(equals + 1);
      const bool none =
          (name == kStaying || name.ends_with(kApart) || names_nest(to.request.kernel)) &&
          number == "0";
      const Index size = none ? 0 : parse_size(number, given.from + " " + name);
      if (!request.blocks.emplace(name, size).second) {
        throw UsageError(fmt::format("{}: {} is named twice", given.from, name));
      }
    }
    if (request.printed_blocks && !request.blocks.empty()) {
      throw UsageError(fmt::format("{}: either printed or sizes, not both", given.from));
    }
  }
}

void fill_softmax_scale(const Filling& to) {
  const Given given = to.one();
  const double c = parse_scale(given.text, given.from);
  if (c < 0x1p-60 || c > 0x1p60) {
    throw UsageError(fmt::format("{} {}: expected 2^-60 to 2^60", given.from, given.text));
  }
  to.request.softmax_scale = static_cast<float>(c);
}

std::string activations(std::string_view between) {
  std::string all;
  for (const Activation activation : kActivations) {
    all += fmt::format("{}{}", all.empty() ? "" : between, to_string(activation));
  }
  return all;
}

void fill_activation(const Filling& to) {
  const Given given = to.one();
  const auto activation = parse_activation(given.text);
  if (!activation) {
    throw UsageError(
        fmt::format("{} '{}': expected one of {}", given.from, given.text, activations(", ")));
  }
  to.request.activation = *activation;
}

void fill_mask(const Filling& to) {
  to.request.mask = to.one().text;
  if (to.request.mask.empty()) {
    throw UsageError(fmt::format("{} '': expected {}", to.one().from, kMaskSyntax));
  }
}

void fill_wanted(const Filling& to) {
  std::vector<std::string>& wanted = to.request.wanted;
  for (const Given& given : to.items()) {
    if (given.text.empty()) {
      throw UsageError(fmt::format("{}: the name of a result is missing", given.from));
    }
    if (std::ranges::find(wanted, given.text) != wanted.end()) {
      throw UsageError(fmt::format("{}: {} is named twice", given.from, given.text));
    }
    wanted.push_back(given.text);
  }
}

void fill_sharing(const Filling& to) {
  constexpr std::array kSharing = {Named<Sharing>("none", Sharing::none),
                                   Named<Sharing>("kv", Sharing::kv),
                                   Named<Sharing>("self", Sharing::self)};
  const Given given = to.one();
  to.request.sharing = choose(given, kSharing);
  const auto name = parse_kernel_name(to.request.kernel);
  if (to.request.sharing == Sharing::none && name && name->sharing != Sharing::none) {
    throw UsageError(fmt::format("{} none: {} shares keys", given.from, to.request.kernel));
  }
}

void fill_objective(const Filling& to) {
  constexpr std::array kObjectives = {Named<Objective>("words", Objective::words),
                                      Named<Objective>("balanced", Objective::balanced),
                                      Named<Objective>("time", Objective::time)};
  to.request.objective = choose(to.one(), kObjectives);
  if (to.request.objective == Objective::time) {
    to.request.rates = to.machine.rates();
  }
}

// Adds a value. Refuses a name that was given before.
template <class Value>
void put(const Given& given, const std::string& name, const Value& value,
         std::map<std::string, Value>& values) {
  if (!values.emplace(name, value).second) {
    throw UsageError(fmt::format("{}: {} is named twice", given.from, name));
  }
}

template <std::map<std::string, std::filesystem::path> Request::*files>
void fill_files(const Filling& to) {
  for (const Given& given : to.all()) {
    const auto [name, file] = parse_named(given, "NAME=FILE, for example A1=a1.npy");
    put(given, name, std::filesystem::path(file), to.request.*files);
  }
}

void fill_make(const Filling& to) {
  for (const Given& given : to.all()) {
    const auto [name, text] = parse_named(given, "NAME=PATTERN, for example X=identity");
    try {
      put(given, name, parse_rule(text), to.request.make);
    } catch (const std::invalid_argument& error) {
      throw UsageError(fmt::format("{} {}={}: {}", given.from, name, text, error.what()));
    }
  }
}

void fill_seed(const Filling& to) {
  to.request.seed = parse_seed(to.one().text, to.one().from);
}

void fill_scale(const Filling& to) {
  to.request.scale = parse_scale(to.one().text, to.one().from);
}

void fill_verify(const Filling& to) {
  to.request.verify = true;
}

void fill_store(const Filling& to) {
  to.request.store = Request::OnDisk{};
  to.request.store->directory = store_directory(to.one());
}

// Returns the store that an option for stores changes.
Request::OnDisk& store_of(const Filling& to) {
  if (!to.request.store) {
    throw UsageError(fmt::format("{}: only with {} file:DIR", to.settings.said(to.key),
                                 to.settings.said("store")));
  }
  return *to.request.store;
}

void fill_engine(const Filling& to) {
  Request::OnDisk& store = store_of(to);
  constexpr std::array kEngines = {Named<Engine>("io_uring", Engine::uring),
                                   Named<Engine>("threads", Engine::threads)};
  const Given given = to.one();
  store.options.engine = choose(given, kEngines);
  if (const std::string why = unavailable(*store.options.engine); !why.empty()) {
    throw UsageError(fmt::format("{0} {1}: {2}: {0} threads", given.from, given.text, why));
  }
}

void fill_direct(const Filling& to) {
  Request::OnDisk& store = store_of(to);
  constexpr std::array kDirect = {Named<bool>("yes", true), Named<bool>("no", false)};
  store.options.direct = choose(to.one(), kDirect);
}

void fill_granule(const Filling& to) {
  store_of(to).options.granule_bytes = parse_granule(to.one());
}

void fill_keep(const Filling& to) {
  store_of(to).keep = true;
}

void fill_resume(const Filling& to) {
  store_of(to).resume = true;
}

// More than any job has. Larger numbers are typing errors.
constexpr Index kMostRanks = Index{1} << 14;

// Returns the ranks of the request. Adds them if they are missing.
OnRanks& ranks_of(const Filling& to) {
  std::optional<OnRanks>& on = to.request.on_ranks;
  if (!on) {
    on.emplace();
  }
  on->said = to.settings.said(to.key);
  return *on;
}

// Parses "RxC" or "RxC:G".
void fill_grid(const Filling& to) {
  const Given given = to.one();
  const std::size_t colon = given.text.find(':');
  const std::string sides = given.text.substr(0, colon);
  const std::size_t cross = sides.find('x');
  if (cross == 0 || cross == std::string::npos || cross + 1 == sides.size() ||
      colon == given.text.size() - 1) {
    throw UsageError(fmt::format(
        "{} '{}': expected ROWSxCOLUMNS, for example 4x2, or with more groups of keys 4x2:8",
        given.from, given.text));
  }
  const auto refuse_above_most = [&](Index ranks, std::string_view what) {
    if (ranks > kMostRanks) {
      throw UsageError(fmt::format("{} '{}': {}{} too many; expected at most {}", given.from,
                                   given.text, ranks, what, kMostRanks));
    }
  };
  const auto side = [&](const std::string& text) {
    const Index size = parse_size(text, given.from);
    refuse_above_most(size, " is");
    return size;
  };
  OnRanks& on = ranks_of(to);
  on.grid = Grid{side(sides.substr(0, cross)), side(sides.substr(cross + 1))};
  on.ranks = on.grid->ranks();
  refuse_above_most(on.ranks, " ranks are");
  if (colon != std::string::npos) {
    on.groups = parse_size(given.text.substr(colon + 1), given.from);
  }
}

void fill_ranks(const Filling& to) {
  const Index ranks = parse_ranks(to.one());
  if (to.request.on_ranks && to.request.on_ranks->grid) {
    to.request.on_ranks->ranks = ranks;
  } else {
    ranks_of(to).ranks = ranks;
  }
}

// Arranges all ranks in one ring.
void fill_ring(const Filling& to) {
  const std::string said = to.settings.said(to.key);
  if (!to.request.on_ranks) {
    throw UsageError(fmt::format("{}: how many ranks? Give {} Px1 or {} P, too", said,
                                 to.settings.said("grid"), to.settings.said("ranks")));
  }
  OnRanks& on = *to.request.on_ranks;
  if (on.grid && (on.grid->columns > 1 || on.groups > 0)) {
    throw UsageError(fmt::format(
        "{}: {} {}{}: a ring has one column and one group of keys: give {}x1", said, on.said,
        to_string(*on.grid), on.groups > 0 ? fmt::format(":{}", on.groups) : "", on.grid->rows));
  }
  if (!on.grid) {
    on.said = said;
    on.grid = Grid{on.transport == nullptr ? on.ranks : on.transport->size(), 1};
  }
  on.grid->ring = true;
}

void fill_patience(const Filling& to) {
  const Given given = to.one();
  if (!to.request.on_ranks) {
    throw UsageError(fmt::format("{}: only of runs on ranks: {} or {}", given.from,
                                 to.settings.said("grid"), to.settings.said("ranks")));
  }
  constexpr Index kMostSeconds = Index{1} << 30;
  const Index seconds = to.size();
  if (seconds > kMostSeconds) {
    throw UsageError(fmt::format("{} {} is too long; expected at most {}", given.from, given.text,
                                 kMostSeconds));
  }
  to.request.on_ranks->patience = std::chrono::seconds(seconds);
}

// Checks that the ranks fill whole grids, and that mpirun started as many.
void check_ranks_given(const Settings& settings, Request& request) {
  if (!request.on_ranks) {
    return;
  }
  OnRanks& on = *request.on_ranks;
  const auto ranks = settings.one("ranks");
  if (on.transport != nullptr) {
    if (ranks && on.ranks != on.transport->size()) {
      throw UsageError(fmt::format("{} {}: mpirun started {}: leave {} out, or start mpirun -n {}",
                                   ranks->from, ranks->text, counted(on.transport->size(), "rank"),
                                   ranks->from, on.ranks));
    }
    on.ranks = on.transport->size();
  }
  const auto grid = settings.one("grid");
  if (grid && on.ranks % on.grid->ranks() != 0) {
    throw UsageError(fmt::format(
        "{} {}: {}, but {} {}; as many, or several such grids, each of which has some of the heads",
        grid->from, grid->text, counted(on.grid->ranks(), "rank"),
        ranks ? ranks->from + " says" : "mpirun started", on.ranks));
  }
}

void fill_kernel(const Filling& to) {
  to.request.kernel = kernel_name(to.one().text, true);
}

void fill_problem(const Filling& to) {
  static const auto kPasses = [] {
    std::array<Named<Pass>, 9> named;
    for (std::size_t k = 0; k < named.size(); ++k) {
      named[k] = {to_string(static_cast<Pass>(k)), static_cast<Pass>(k)};
    }
    return named;
  }();
  to.request.pass = choose(to.one(), kPasses);
}

void fill_given(const Filling& to) {
  constexpr std::array kKnown = {Named<Known>("nothing", Known::nothing),
                                 Named<Known>("OL", Known::O_and_L)};
  to.request.known = choose(to.one(), kKnown);
}

struct TableRow {
  Option option;
  void (*fill)(const Filling&);
};

constexpr bool kRepeats = true;
using enum OptionGroup;

// fill() applies the options in this order. `word` comes first, because M in bytes and `sums`
// depend on it.
const TableRow kRows[] = {
    {{"kernel", "KERNEL", problem,
      "a kernel (see `redblue list`), or PROBLEM/auto: the one that the planner ranks first"},
     fill_kernel},
    {{"problem",
      "product|logsumexp|forward|backward|attention|gradients|layer|linear|linear-gradient",
      problem,
      "what to compute. attention: O; gradients: dQ, dK and dV; forward, backward and layer: the "
      "paper's problem; linear, linear-gradient: no softmax; product: C = A B; logsumexp: L of "
      "sparse scores (default: backward)"},
     fill_problem},
    {{"given", "nothing|OL", problem,
      "for backward, gradients and layer. OL: O and L of a forward pass are in slow memory; "
      "nothing: they are not, so add the words of a forward pass (default: OL)"},
     fill_given},
    {{"n", "SIZE", problem, "number of queries"}, fill_size<&Request::n>},
    {{"m", "SIZE", problem, "number of keys (default: --n)"}, fill_size<&Request::m>},
    {{"d", "SIZE", problem, "width of queries and keys"}, fill_size<&Request::d>},
    {{"dv", "SIZE", problem, "width of values, for attention and gradients (default: --d)"},
     fill_size<&Request::dv>},
    {{"heads", "NUMBER", problem, "number of query heads (default: 1)"},
     fill_size<&Request::heads>},
    {{"kv_heads", "NUMBER", problem,
      "number of key/value heads; must divide --heads (default: --heads)"},
     fill_size<&Request::kv_heads>},
    {{"mask", "MASK", problem,
      "pairs of query and key to compute: full, causal, window:L,R (from L keys before the query "
      "to R after it), prefix:P (the first P keys), global:A-B (queries A to B meet all keys, and "
      "keys A to B meet all queries), documents:FILE, blocks:FILE, pattern:FILE; joined by & "
      "(and), | (or), with brackets (default: full)"},
     fill_mask},
    {{"activation", "softmax|relu|sigmoid|silu", problem,
      "function applied to the scores (default: softmax)"},
     fill_activation},
    {{"softmax_scale", "C", problem,
      "the scores are C Q K^T, for attention and gradients (default: 1/sqrt(d))"},
     fill_softmax_scale},
    {{"sharing", "none|kv", problem,
      "kv: keys and values are the same matrix, read once (default: none)"},
     fill_sharing},
    {{"wanted", "NAMES", problem, "results to compute, such as dQ,dK (default: all)", kRepeats},
     fill_wanted},
    {{"word", "2|4", memory,
      "bytes of a word; with 2, an M in bytes, of a cache or of a device holds twice as many words "
      "(default: 4)"},
     fill_bytes<&Request::word_bytes>},
    {{"sums", "2|4", memory,
      "bytes of a word of running sums: with --word 2 --sums 4 it counts as two words (default: "
      "--word)"},
     fill_sums},
    {{"threads", "NUMBER", run, "number of threads, each with M words (default: 1)"}, fill_threads},
    {{"M", "SIZE", memory,
      "fast memory: words (8192, 8K), bytes (32KiB), a share of this machine's cache (L2*0.25), "
      "levels, the innermost first (8K,256K), or auto: the fastest that `redblue tune` found, else "
      "half of L2, and for gradients a quarter of L3"},
     fill_M},
    {{"device", "DEVICE", memory,
      "instead of --M: the fast memory of a device, with all its levels: a name (see `redblue list "
      "--devices`), this machine (this), or ./FILE.json"},
     fill_device},
    {{"prefetch", "NUMBER", plan,
      "number of key blocks in fast memory at once; 2: load a block while the one before it is in "
      "use (default: 1)"},
     fill_size<&Request::prefetch>},
    {{"word_costs", "COSTS", memory,
      "with several levels: cost of a word at each, the innermost first (1,30), or calibrated "
      "(measured by `redblue calibrate`); plans have the least sum of words times cost (default: "
      "the size of the level)"},
     fill_word_costs},
    {{"objective", "words|balanced|time", plan,
      "words: fewest words; balanced: least time with at most 5% more words than the fewest, or "
      "more if such blocks are narrow; time: "
      "least time (default: balanced for count and run, else words)"},
     fill_objective},
    {{"multiple", "NUMBER", plan, "make each block size a multiple of this (default: 1)"},
     fill_size<&Request::multiple>},
    {{"blocks", "SIZES", plan,
      "set block sizes, such as Br=64,Bc=32; the objective chooses the others (for backward/large "
      "also: printed, the sizes in the paper)",
      kRepeats},
     fill_blocks},
    {{"in", "NAME=FILE", operands,
      "read an operand from FILE: .npy, F.safetensors:NAME; if sparse also .npz, .mtx, .smtx",
      kRepeats},
     fill_files<&Request::in>},
    {{"make", "NAME=PATTERN", operands,
      "store only some entries of an operand: identity; random:S, banded:S or powerlaw:S (S in "
      "each row); clusters:S:C (rows and columns are cut into C clusters; S in each row, from its "
      "own cluster); density:P/Q (each with this probability)",
      kRepeats},
     fill_make},
    {{"seed", "NUMBER", operands,
      "random seed of all operands that --in does not give (default: 1)"},
     fill_seed},
    {{"scale", "NUMBER", operands,
      "standard deviation of the scores of random operands (default: 1)"},
     fill_scale},
    {{"out", "NAME=FILE", run,
      "write a result to FILE: .npy, or .npz if sparse (-: standard output)", kRepeats},
     fill_files<&Request::out>},
    {{"verify", "", run, "check the results against double precision"}, fill_verify},
    {{"store", "file:DIR", store, "slow memory is on disk: keep matrices in files of DIR"},
     fill_store},
    {{"engine", "io_uring|threads", store,
      "interface to the disk (default: io_uring if available)"},
     fill_engine},
    {{"direct", "yes|no", store, "bypass the page cache (default: yes if the file system can)"},
     fill_direct},
    {{"granule", "BYTES", store,
      "bytes that each request to the disk transfers, for new files (default: 64KiB)"},
     fill_granule},
    {{"keep", "", store, "keep the matrices that a kernel makes on the way (default: remove them)"},
     fill_keep},
    {{"resume", "", store,
      "write checkpoints to DIR, and continue an interrupted run from the last one"},
     fill_resume},
    {{"grid", "RxC[:G]", ranks,
      "R x C ranks: rows split the queries, columns split the keys in G groups (default: C)"},
     fill_grid},
    {{"ranks", "NUMBER", ranks,
      "number of ranks: split the heads first, then take the grid that sends the fewest words"},
     fill_ranks},
    {{"ring", "", ranks, "arrange the ranks as a ring: each sends keys to the next"}, fill_ring},
    {{"patience", "SECONDS", ranks,
      "fail if a rank waits longer than this for another (default: 600)"},
     fill_patience}};

}  // namespace

std::string_view to_string(OptionGroup group) {
  constexpr std::array kNames = {"Problem", "Fast memory",   "Plan", "Operands",
                                 "Run",     "Store on disk", "Ranks"};
  return kNames[static_cast<std::size_t>(group)];
}

std::vector<Option> options() {
  std::vector<Option> all;
  for (const TableRow& row : kRows) {
    all.push_back(row.option);
  }
  return all;
}

Option option(std::string_view key) {
  return std::ranges::find(kRows, key, [](const TableRow& row) { return row.option.key; })->option;
}

std::string spelled(std::string_view key, Spelling spelling) {
  if (spelling == Spelling::key) {
    return std::string(key);
  }
  std::string flag = "--" + std::string(key);
  std::ranges::replace(flag, '_', '-');
  return flag;
}

void Settings::drop(std::string_view key) {
  if (const auto found = texts_.find(key); found != texts_.end()) {
    texts_.erase(found);
  }
}

void Settings::add(std::string_view key, std::string text) {
  texts_[std::string(key)].push_back(std::move(text));
}

std::vector<Given> Settings::all(std::string_view key) const {
  std::vector<Given> given;
  if (const auto found = texts_.find(key); found != texts_.end()) {
    for (const std::string& text : found->second) {
      given.push_back({text, said(key)});
    }
  }
  return given;
}

std::optional<Given> Settings::one(std::string_view key) const {
  return at_most_one(all(key));
}

std::vector<Given> Settings::items(std::string_view key) const {
  return between_commas(all(key));
}

std::optional<Given> Settings::first_of(const std::vector<std::string_view>& keys) const {
  for (const std::string_view key : keys) {
    if (const std::vector<Given> given = all(key); !given.empty()) {
      return given.front();
    }
  }
  return std::nullopt;
}

Topology KnownMachine::topology(const Given& given) const {
  throw UsageError(
      fmt::format("{} '{}': it is to mean the same on every machine: give words, or bytes",
                  given.from, given.text));
}

KnownMachine::Automatic KnownMachine::automatic(const Given& given, const AutoRequest&,
                                                const Topology&) const {
  throw UsageError(given.from + ": auto is of one machine: give words, or bytes");
}

void fill(const Settings& settings, const KnownMachine& machine, Request& request) {
  request.spelling = settings.spelling();
  for (const auto& [option, fill] : kRows) {
    if (settings.contains(option.key)) {
      if (!option.repeats) {
        static_cast<void>(settings.one(option.key));
      }
      fill({settings, machine, request, option.key});
    }
  }
  check_ranks_given(settings, request);
}

KernelName kernel_named(const std::string& given) {
  return *parse_kernel_name(kernel_name(given, false));
}

std::string kernel_name(const std::string& name, bool auto_too) {
  if (names_nest(name)) {
    return load_nest_named(name);
  }
  if (parse_kernel_name(name) || (auto_too && find_auto(name) != nullptr)) {
    return name;
  }
  if (find_auto(name + "/auto") != nullptr) {
    throw UsageError(fmt::format("'{0}' is a problem, and no kernel: give {1}", name,
                                 (auto_too ? name + "/auto" : "--problem " + name)));
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

namespace {

constexpr std::string_view kThis = "this";

}  // namespace

std::string expected_devices() {
  std::string names;
  for (const Device& device : devices()) {
    names += device.name + ", ";
  }
  return fmt::format("{}{}, or a file as ./mine.json", names, kThis);
}

std::vector<Index> device_words(const Device& device, Index threads,
                                std::optional<Index> word_bytes, const Given& given) {
  std::vector<Index> words;
  for (const DeviceLevel& level : device.levels) {
    const Index inside = words.empty() ? 0 : words.back();
    words.push_back(words_of_width(level.words(threads), word_bytes));
    if (words.back() <= inside) {
      throw UsageError(fmt::format(
          "{} {}: each of {} workers has {} words of {}, and {} of the level inside it: give fewer "
          "threads, or M in words",
          given.from, given.text, threads, words.back(), level.name, inside));
    }
  }
  return words;
}

std::optional<Device> find_device(const Given& given, const KnownMachine& machine) {
  const std::string& text = given.text;
  try {
    if (text == kThis) {
      const Topology topology = machine.topology(given);
      Device device = device_of(topology);
      if (device.levels.empty()) {
        throw UsageError(fmt::format(
            "{} {}: the caches are not known ({}): give a file, or words as --M 8192", given.from,
            kThis, topology.unavailable.empty() ? topology.source : topology.unavailable));
      }
      return device;
    }
    if (const auto known = std::ranges::find(devices(), text, &Device::name);
        known != devices().end()) {
      return *known;
    }
    if (text.find('/') != std::string::npos || text.ends_with(".json")) {
      return read_device(text);
    }
  } catch (const InputError& error) {
    throw UsageError(fmt::format("{}: {}", given.from, error.what()));
  }
  return std::nullopt;
}

std::filesystem::path store_directory(const Given& given) {
  constexpr std::string_view kFile = "file:";
  if (!given.text.starts_with(kFile) || given.text.size() == kFile.size()) {
    throw UsageError(fmt::format("{} '{}': expected file:DIR", given.from, given.text));
  }
  return given.text.substr(kFile.size());
}

Index parse_granule(const Given& given) {
  const Index most = StoreOptions().buffer_bytes;  // every command can open such a store
  const Index bytes = parse_bytes(given.text, given.from);
  if (bytes % StoreLayout::kSector != 0 || bytes > most) {
    throw UsageError(fmt::format("{} '{}'{}: expected a multiple of 4KiB, at most 512KiB",
                                 given.from, given.text, bytes > most ? " is too large" : ""));
  }
  return bytes;
}

std::pair<std::string, std::string> parse_named(const Given& given, const char* expected) {
  const std::size_t equals = given.text.find('=');
  if (equals == 0 || equals == std::string::npos || equals + 1 == given.text.size()) {
    throw UsageError(fmt::format("{} '{}': expected {}", given.from, given.text, expected));
  }
  return {given.text.substr(0, equals), given.text.substr(equals + 1)};
}

Index parse_ranks(const Given& given) {
  const Index ranks = parse_size(given.text, given.from);
  if (ranks > kMostRanks) {
    throw UsageError(
        fmt::format("{} {} is too many; expected at most {}", given.from, ranks, kMostRanks));
  }
  return ranks;
}

}  // namespace redblue
