#include "runtime/run/resolve.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <numeric>
#include <set>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kernels/attention.hpp"
#include "kernels/masked.hpp"
#include "runtime/patterns/pattern_files.hpp"
#include "runtime/ranks/plan_on_grid.hpp"
#include "runtime/run/buffers.hpp"
#include "runtime/run/mask_spec.hpp"
#include "runtime/run/sparse_operands.hpp"
#include "runtime/system/tensor_path.hpp"
#include "runtime/system/whole_file.hpp"
#include "runtime/text/printable.hpp"
#include "runtime/text/table.hpp"
#include "runtime/theory/planner.hpp"

namespace redblue {
namespace {

using namespace std::string_literals;

template <class Names>
std::string list(const Names& operands) {
  std::string names;
  for (const Signature& operand : operands) {
    names += (names.empty() ? "" : ", ") + std::string(operand.name);
  }
  return names;
}

bool is_auto(const Request& request) {
  return find_auto(request.kernel) != nullptr;
}

// Returns the names of the kernels for which `holds` is true, for messages.
std::string names_of(const std::function<bool(const Kernel&)>& holds,
                     const KernelList& among = kernels()) {
  std::string names;
  for (const Kernel& kernel : among) {
    if (holds(kernel)) {
      names += (names.empty() ? "" : ", ") + std::string(kernel.name);
    }
  }
  return names;
}

// Returns the kernel as the user asked for it, for messages about operands and results.
std::string as_asked(const Request& request) {
  std::string text = request.who();
  if (request.activation != Activation::softmax) {
    text += fmt::format(" with {} {}", request.said("activation"), to_string(request.activation));
  }
  if (request.sharing != Sharing::none) {
    text += fmt::format(" with {} {}", request.said("sharing"), to_string(request.sharing));
  }
  return text;
}

bool splits(const Kernel& kernel) {
  return kernel.schedule.split.has_value();
}

bool has_sparse_kernels(Pass pass) {
  return std::ranges::any_of(sparse_kernels(),
                             [&](const Kernel& kernel) { return kernel.pass == pass; });
}

bool resumes(const Request& request) {
  return request.store && request.store->resume;
}

// Collects the extents of a problem. Keeps for each the first option or file that gave it.
class Extents {
 public:
  void set(Index Shape::*which, Index value, const std::string& who) {
    set(letter(which), value, who);
  }
  void set_heads(const char* which, std::optional<Index> heads, const std::string& who) {
    set(which, heads.value_or(kNoHeads), who);
  }
  [[nodiscard]] bool know_heads() const { return known_.contains(kHeads); }
  // Returns the problem of one head.
  RequestedProblem problem(const Request& request) {
    if (!known_.contains("m") && known_.contains("n")) {
      known_["m"] = known_["n"];
    }
    RequestedProblem asked;
    for (const auto& [member, name] : kLetters) {
      if (!known_.contains(name)) {
        throw UsageError(request.said(name) + " is missing");
      }
      asked.problem.shape.*member = known_.at(name).first;
    }
    asked.problem.shape.dv = known_.insert({"dv", known_.at("d")}).first->second.first;
    known_.insert({kHeads, known_.contains(kKvHeads) ? known_[kKvHeads]
                                                     : std::pair(kNoHeads, std::string())});
    if (known_[kHeads].first != kNoHeads) {
      asked.heads = known_[kHeads].first;
    }
    return asked;
  }
  // Returns the number of query heads for each key head. Requires: problem() was called.
  Index stacked() {
    const auto& [heads, who] = known_[kHeads];
    const auto& [kv_heads, who_kv] = known_.try_emplace(kKvHeads, known_[kHeads]).first->second;
    if ((heads == kNoHeads) != (kv_heads == kNoHeads)) {
      throw InputError(heads == kNoHeads
                           ? fmt::format("{} {}, but {} {}", who, says(kHeads, heads), who_kv,
                                         says(kKvHeads, kv_heads))
                           : fmt::format("{} {}, but {} {}", who_kv, says(kKvHeads, kv_heads), who,
                                         says(kHeads, heads)));
    }
    if (heads == kNoHeads) {
      return 1;
    }
    if (heads % kv_heads != 0) {
      throw InputError(fmt::format("{} {}, which does not divide heads = {} of {}", who_kv,
                                   says(kKvHeads, kv_heads), heads, who));
    }
    return heads / kv_heads;
  }

  static constexpr const char* kHeads = "heads";
  static constexpr const char* kKvHeads = "kv_heads";

 private:
  static constexpr Index kNoHeads = 0;
  static constexpr std::pair<Index Shape::*, const char*> kLetters[] = {
      {&Shape::n, "n"}, {&Shape::m, "m"}, {&Shape::d, "d"}};
  static const char* letter(Index Shape::*which) {
    if (which == &Shape::dv) {
      return "dv";
    }
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

bool is_square(const Signature& operand) {
  return operand.rows == operand.cols;
}

}  // namespace

Index requested_dv(const Request& request, Pass pass, Sharing sharing, Index d,
                   std::string_view who) {
  const Index dv = request.dv.value_or(d);
  if (request.dv && inputs_of(pass) == Inputs::weighted) {
    throw UsageError(fmt::format("{0} {1}: {2} has one width; {0} is of attention and gradients",
                                 request.said("dv"), dv, who));
  }
  if (sharing != Sharing::none && dv != d) {
    throw UsageError(fmt::format("{} {}: with {} {}, values are keys of width d = {}",
                                 request.said("dv"), dv, request.said("sharing"),
                                 to_string(sharing), d));
  }
  return dv;
}

Index stacked_heads(const Request& request, Pass pass, std::string_view who) {
  if (!request.kv_heads) {
    return 1;
  }
  const std::string said = fmt::format("{} {}", request.said("kv_heads"), *request.kv_heads);
  if (inputs_of(pass) == Inputs::weighted) {
    throw UsageError(fmt::format(
        "{}: {} has as many heads of keys as of queries; attention and gradients may have fewer",
        said, who));
  }
  if (!request.heads) {
    throw UsageError(
        fmt::format("{}: {} is missing: the number of query heads", said, request.said("heads")));
  }
  if (*request.heads % *request.kv_heads != 0) {
    throw UsageError(
        fmt::format("{} does not divide {} {}: as many heads of queries share each head of keys",
                    said, request.said("heads"), *request.heads));
  }
  return *request.heads / *request.kv_heads;
}

Index words_of_width(Index floats, const std::optional<Index>& word_bytes) {
  return (Words(floats) * kFloatBytes).value() / word_bytes.value_or(kFloatBytes);
}

CacheWords cache_words_of(const Request& request, const Topology& topology, const CachePart& part,
                          const std::string& text, const std::string& said,
                          std::optional<std::string> file) {
  const auto found = fast_memory(topology, part, static_cast<std::size_t>(request.threads));
  if (!found) {
    throw UsageError(
        fmt::format("{} {}: the size of {} is not known ({}): give words, for example {} 8192",
                    said, text, to_string(part.level),
                    topology.unavailable.empty() ? topology.source : topology.unavailable, said));
  }
  if (found->words == 0) {
    throw UsageError(fmt::format("{} {}: that is less than a word: {} has {} bytes", said, text,
                                 to_string(part.level), found->bytes));
  }
  return {words_of_width(found->words, request.word_bytes),
          {text, part, found->bytes, found->sharers, topology.source, std::move(file)}};
}

namespace {

// Returns "--M 8192,262144" or "--device mine".
std::string levels_text(const Request& request) {
  const std::string said = request.said(request.device ? "device" : "M");
  return request.device ? fmt::format("{} {}", said, request.device->name)
                        : fmt::format("{} {},{}", said, fmt::join(request.inner, ","), request.M);
}

}  // namespace

void set_widths(const Request& request, Problem& problem) {
  constexpr Index kIndexBytes = 4;
  const Index word = request.word_bytes.value_or(kFloatBytes);
  if (word != kIndexBytes && !problem.sparsity.dense()) {
    throw UsageError(
        fmt::format("{} {}: indices of sparse operands have {} bytes, which are more than a word: "
                    "leave it out",
                    request.said("word"), word, kIndexBytes));
  }
  problem.word_bytes = request.word_bytes;
  problem.sum_words = request.sum_words();
  problem.mask = problem.mask.with_index_words(kIndexBytes / word);
  check_sum_width(request);
}

void check_sum_width(const Request& request) {
  if (request.sum_words() == 1) {
    return;
  }
  const auto refuse = [&](const std::string& said, const char* why) {
    throw UsageError(fmt::format("{}: {}: leave {} out", said, why, request.said("sums")));
  };
  if (!request.inner.empty()) {
    refuse(levels_text(request), "words of several levels weigh one each");
  }
  if (request.on_ranks) {
    refuse(request.on_ranks->said, "words of links weigh one each");
  }
  if (request.store) {
    refuse(request.said("store"), "it does not work with a store");
  }
}

void check_linear_mask(Pass pass, const Mask& mask, const std::string& said) {
  if (is_linear(pass) && !find_kernel(fmt::format("{}/rows", to_string(pass))).takes(mask)) {
    throw UsageError(fmt::format(
        "{}: {} takes causal alone: under other masks what a query meets is no running sum of keys",
        said, to_string(pass)));
  }
}

namespace {

Mask callers_mask(const Mask& mask, const Shape& shape) {
  if (mask.full()) {
    return mask;
  }
  if (mask.queries() != shape.n || mask.keys() != shape.m) {
    throw InputError(fmt::format("mask of an array is of {} queries and {} keys, and n is {}, m {}",
                                 mask.queries(), mask.keys(), shape.n, shape.m));
  }
  return mask;
}

}  // namespace

Mask requested_mask(const Request& request, const Kernel& kernel, const Shape& shape) {
  const std::string said = fmt::format("{} '{}'", request.said("mask"), printable(request.mask));
  if (kernel.pass == Pass::product) {
    throw UsageError(fmt::format("{}: {} is a product, which has no mask", said, request.who()));
  }
  Mask mask = request.mask_of_caller ? callers_mask(*request.mask_of_caller, shape)
                                     : parse_mask(request.mask, shape, said, request.mask_files);
  if (kernel.takes_sparse && !mask.full()) {
    throw UsageError(
        fmt::format("{}: {} takes no mask: which pairs are live follows from the entries of its "
                    "sparse operands; kernels of dense operands take masks",
                    said, request.who()));
  }
  check_linear_mask(kernel.pass, mask, said);
  if (!kernel.takes(mask) && !is_auto(request)) {
    throw UsageError(fmt::format("{}: {} takes no mask; {} do", said, request.who(),
                                 names_of([&](const Kernel& other) {
                                   return other.pass == kernel.pass && other.takes_masks;
                                 })));
  }
  return mask;
}

Activation requested_activation(const Request& request, const Kernel& kernel) {
  const Activation activation = request.activation;
  if (activation == Activation::softmax) {
    return activation;
  }
  const std::string said = fmt::format("{} {}", request.said("activation"), to_string(activation));
  if (kernel.pass == Pass::product || is_linear(kernel.pass)) {
    throw UsageError(fmt::format("{}: {} has no activation: {}", said, request.who(),
                                 kernel.pass == Pass::product
                                     ? "it is a product"
                                     : "linear attention takes the scores as they are"));
  }
  if (kernel.pass == Pass::logsumexp) {
    throw UsageError(
        fmt::format("{}: {} knows softmax alone: with others there is no L", said, request.who()));
  }
  const std::string takers = names_of(
      [&](const Kernel& other) { return other.pass == kernel.pass && other.takes(activation); },
      kernel.takes_sparse ? sparse_kernels() : kernels());
  if (!kernel.takes(activation) && (!is_auto(request) || takers.empty())) {
    throw UsageError(fmt::format("{}: {} knows softmax alone{}", said, request.who(),
                                 takers.empty() ? "" : "; " + takers + " take it"));
  }
  return activation;
}

void check_made(const Request& request, const std::vector<Signature>& operands,
                const std::string& who) {
  for (const auto& [name, rule] : request.make) {
    const std::string option = fmt::format("{} {}={}", request.said("make"), name, to_string(rule));
    const Signature* operand = find_operand(operands, name);
    if (operand == nullptr) {
      throw UsageError(fmt::format("{}: {} is given {}", option, who, list(operands)));
    }
    if (made_by_forward(name)) {
      throw UsageError(
          fmt::format("{}: O and L are of the other operands: leave them out", option));
    }
    if (rule.kind == Rule::Kind::identity && !is_square(*operand) && !is_sparse(*operand)) {
      std::vector<Signature> square;
      std::ranges::copy_if(operands, std::back_inserter(square), is_square);
      throw UsageError(fmt::format("{}: {} is for square operands: {} has {}", option,
                                   to_string(rule), who, square.empty() ? "none" : list(square)));
    }
    if (const auto file = request.in.find(name); file != request.in.end()) {
      throw UsageError(fmt::format("{}: {} comes from {}, too: {} or {}, not both", option, name,
                                   file->second.string(), request.said("in"),
                                   request.said("make")));
    }
    if (request.arrays != nullptr && request.arrays->in.contains(name)) {
      throw UsageError(fmt::format("{}: {} is an array, too: give one of them", option, name));
    }
  }
}

namespace {

void refuse_sharing_of_entries(const Request& request) {
  if (request.sharing != Sharing::none) {
    throw UsageError(fmt::format(
        "{} {}: sparse operands are read apart: A2 has entries, and A3 is a whole matrix",
        request.said("sharing"), to_string(request.sharing)));
  }
}

}  // namespace

KernelName requested_kernel(const Request& request) {
  if (const AutoName* name = find_auto(request.kernel)) {
    const std::string problem(to_string(name->pass));
    if (has_sparse_kernels(name->pass) &&
        (name->pass == Pass::logsumexp || asks_for_sparse(request))) {
      refuse_sharing_of_entries(request);
      return {&find_kernel(problem + "/sparse-rows")};
    }
    return {&find_kernel(problem + (name->pass == Pass::gradients || name->pass == Pass::layer
                                        ? "/flash"
                                        : "/rows")),
            request.sharing, request.activation};
  }
  auto name = parse_kernel_name(request.kernel);
  if (!name) {
    throw UsageError(fmt::format("no kernel is called {}", request.kernel));
  }
  if (request.sharing != Sharing::none) {
    if (name->kernel->takes_sparse) {
      refuse_sharing_of_entries(request);
    }
    if (!name->kernel->shares_keys) {
      throw UsageError(
          fmt::format("{} {}: {} does not share keys; {} do", request.said("sharing"),
                      to_string(request.sharing), request.who(),
                      names_of([](const Kernel& other) { return other.shares_keys; })));
    }
    name->sharing = request.sharing;
  }
  name->activation = request.activation;
  return *name;
}

Readers open_inputs(const Request& request, const KernelName& kernel) {
  const std::vector<Signature> given = kernel.given();
  Readers readers;
  for (const auto& [name, path] : request.in) {
    if (find_operand(given, name) == nullptr) {
      throw UsageError(fmt::format("{} {}={}: {} is given {}", request.said("in"), name,
                                   path.string(), as_asked(request), list(given)));
    }
    if (is_sparse_file(path) && !is_sparse(*find_operand(given, name))) {
      throw UsageError(fmt::format("{} {}={}: {} takes a dense {}: give it as .npy{}",
                                   request.said("in"), name, path.string(), request.who(), name,
                                   kernel.kernel->takes_sparse
                                       ? ""
                                       : ", or take a kernel of sparse operands (redblue list)"));
    }
    try {
      readers.try_emplace(name, path);
    } catch (const InputError& error) {
      if (is_sparse_file(path)) {
        throw InputError(fmt::format("{} of {}", name, error.what()));
      }
      if (path.extension() == ".npy" || tensor_path(path) ||
          !is_sparse(*find_operand(given, name))) {
        throw;
      }
      throw InputError(fmt::format("{}; {} is sparse, and may also be in an .npz, .mtx or .smtx",
                                   error.what(), name));
    }
  }
  if (request.arrays != nullptr) {
    for (const auto& [name, array] : request.arrays->in) {
      if (find_operand(given, name) == nullptr) {
        throw UsageError(
            fmt::format("{} is an array: {} is given {}", name, as_asked(request), list(given)));
      }
      try {
        if (!readers.try_emplace(name, array).second) {
          throw UsageError(fmt::format("{} is an array, and comes from {}, too: give one of them",
                                       name, request.in.at(name).string()));
        }
      } catch (const InputError& error) {
        throw InputError(fmt::format("{} of {}", name, error.what()));
      }
    }
  }
  if (const auto L = readers.find("L"); L != readers.end() && has_mask(request)) {
    L->second.accept_minus_infinity();
  }
  if (readers.contains("O") != readers.contains("L")) {
    throw UsageError(request.said("in") + ": O without L, or L without O: give both, or neither");
  }
  check_made(request, given, request.who());
  return readers;
}

namespace {

// Refuses options of operands from a seed if all operands are given by arrays: a caller may take
// them for options of its own operands.
void refuse_of_seeded(const Request& request, const Plan& plan, const std::string& givers) {
  if (request.scale) {
    throw UsageError(fmt::format(
        "{} {}: {}, and it is the standard deviation of the scores of operands from a seed: leave "
        "it out{}",
        request.said("scale"), *request.scale, givers,
        inputs_of(plan.pass) == Inputs::plain
            ? fmt::format(", or give {} for the factor of the scores",
                          request.said("softmax_scale"))
            : ""));
  }
  if (request.seed) {
    throw UsageError(fmt::format("{} {}: {}, and no operand comes from a seed: leave it out",
                                 request.said("seed"), *request.seed, givers));
  }
}

}  // namespace

void set_origins(Report& report, const Request& request, const Readers& readers,
                 const std::vector<FoundOperand>& found) {
  std::map<Origin, std::string> names;
  std::string square;  // first square operand that comes from the seed
  const Plan& plan = report.kernel.plan;
  for (const Signature& operand : find_kernel(plan.kernel).given(plan.problem)) {
    const std::string name(operand.name);
    const bool stored = std::ranges::find(found, name, &FoundOperand::name) != found.end();
    if (made_by_forward(name) && !readers.contains(name) && !stored) {
      continue;  // the forward kernel computes them
    }
    const auto reader = readers.find(name);
    const Origin origin = reader != readers.end()
                              ? (reader->second.lent() ? Origin::array : Origin::file)
                          : request.make.contains(name) ? Origin::made
                          : stored                      ? Origin::store
                                                        : Origin::seed;
    report.operands[name] = origin;
    names[origin] += (names[origin].empty() ? "" : ", ") + name;
    if (origin == Origin::file) {
      if (const ElementType type = readers.at(name).type(); type != ElementType::float32) {
        report.converted[name] = to_string(type);
      }
    }
    if (origin == Origin::seed && square.empty() && is_square(operand)) {
      square = name;
    }
  }
  std::string givers;
  for (const auto& [origin, giver] :
       {std::pair(Origin::file, request.said("in")), std::pair(Origin::array, "an array"s),
        std::pair(Origin::store, request.said("store"))}) {
    if (names.contains(origin)) {
      givers += fmt::format("{}{} gives {}", givers.empty() ? "" : ", ", giver, names[origin]);
    }
  }
  if (!names.contains(Origin::seed)) {
    if (names.contains(Origin::array) && !names.contains(Origin::made) &&
        !names.contains(Origin::store)) {
      refuse_of_seeded(request, plan, givers);
    }
    return;
  }
  if (!request.seed && !givers.empty()) {
    const std::string& missing = names[Origin::seed];
    throw UsageError(fmt::format(
        "{}, but nothing gives {}: give {} {}=FILE, or {} S for the rest{}", givers, missing,
        request.said("in"), missing.substr(0, missing.find(',')), request.said("seed"),
        square.empty() ? "" : fmt::format(", or {} {}=identity", request.said("make"), square)));
  }
  report.seed = request.seed.value_or(kDefaultSeed);
}

namespace {

// Collects a range of stored entries, in the order of rows.
void gather(const BlockPattern& pattern, Range entries,
            const std::function<void(Index row, std::span<float> words)>& row_words,
            std::span<float> out) {
  std::vector<float> words(static_cast<std::size_t>(pattern.cols));
  const auto after = std::ranges::upper_bound(pattern.offsets, entries.begin);
  Index row = after - pattern.offsets.begin() - 1;
  for (Index at = entries.begin; at < entries.end; ++row) {
    const Index end = std::min(entries.end, pattern.offsets[static_cast<std::size_t>(row) + 1]);
    if (at < end) {
      row_words(row, words);
    }
    for (; at < end; ++at) {
      out[static_cast<std::size_t>(at - entries.begin)] =
          words[static_cast<std::size_t>(pattern.columns[static_cast<std::size_t>(at)])];
    }
  }
}

}  // namespace

void fill_made(const Request& request, const Signature& operand, const Problem& problem, Index head,
               Index first_row, Index rows, std::span<float> out) {
  const auto made = request.make.find(std::string(operand.name));
  const bool identity = made != request.make.end() && made->second.kind == Rule::Kind::identity;
  const std::uint64_t seed = request.seed.value_or(kDefaultSeed);
  const Index cols = operand.cols_of(problem.shape);
  try {
    if (is_sparse(operand)) {
      const BlockPattern& pattern = pattern_of(problem.sparsity, operand);
      std::ranges::fill(out, identity ? 1.0F : 0.0F);
      if (!identity) {
        const InputMaker maker(operand.name, problem, seed + static_cast<std::uint64_t>(head),
                               request.scale.value_or(1));
        gather(
            pattern, {first_row, std::min(first_row + rows, pattern.stored())},
            [&](Index row, std::span<float> words) { maker.fill(row, 1, words); }, out);
      }
      return;
    }
    if (!identity) {
      fill_input(operand.name, problem, seed + static_cast<std::uint64_t>(head),
                 request.scale.value_or(1), first_row, rows, out);
    }
    if (made == request.make.end()) {
      return;
    }
    for (Index row = first_row; row < first_row + rows; ++row) {
      const auto words = out.subspan(static_cast<std::size_t>((row - first_row) * cols),
                                     static_cast<std::size_t>(cols));
      const std::vector<float> all =
          identity ? std::vector<float>(words.size(), 1) : std::vector(words.begin(), words.end());
      std::ranges::fill(words, 0.0F);
      for (const Index column : row_by_rule(made->second, operand.name, seed, row,
                                            operand.rows_of(problem.shape), cols)) {
        words[static_cast<std::size_t>(column)] = all[static_cast<std::size_t>(column)];
      }
    }
  } catch (const std::invalid_argument& error) {
    throw UsageError(request.said("scale") + ": " + error.what());
  }
}

Wanted requested_results(const Request& request, const KernelName& kernel) {
  const std::vector<Signature> all = kernel.results();
  if (const Wanted own = kernel.kernel->own_results(); request.wanted.empty() && !own.all()) {
    return own;
  }
  Wanted wanted;
  for (const std::string& name : request.wanted) {
    if (find_operand(all, name) == nullptr) {
      throw UsageError(fmt::format("{} {}: {} returns {}", request.said("wanted"), name,
                                   as_asked(request), list(all)));
    }
    wanted.add(name);
  }
  if (request.wanted.empty() || std::ranges::all_of(all, [&](const Signature& result) {
        return wanted.contains(result.name);
      })) {
    return {};
  }
  Problem of_wanted;
  of_wanted.wanted = wanted;
  of_wanted.activation = kernel.activation;
  of_wanted.sharing = kernel.sharing;
  const auto returns_it = [&](const Kernel& other) {
    return other.pass == kernel.kernel->pass && other.takes(kernel.activation) &&
           (kernel.sharing == Sharing::none || other.shares_keys) && other.can_return(of_wanted);
  };
  const bool none = std::ranges::none_of(
      all_kernel_names(), [&](const KernelName& other) { return returns_it(*other.kernel); });
  if (none || (!is_auto(request) && !kernel.kernel->can_return(of_wanted))) {
    const std::string others = names_of(returns_it);
    throw UsageError(fmt::format("{} {}: {} cannot leave out other results; {}",
                                 request.said("wanted"), wanted.text(), request.who(),
                                 others.empty() ? "no kernel can" : others + " can"));
  }
  return wanted;
}

void check_one_source(const Request& request, const Problem& problem) {
  if (problem.sharing != Sharing::self) {
    return;
  }
  const std::string why = request.sharing == Sharing::self
                              ? fmt::format("with {} self", request.said("sharing"))
                              : fmt::format("in {}", request.who());
  if (problem.stacked > 1) {
    throw UsageError(fmt::format("{} {}: {}, queries and keys are one", request.said("kv_heads"),
                                 *request.kv_heads, why));
  }
  if (problem.shape.m != problem.shape.n) {
    throw UsageError(fmt::format("{} {} is not {} {}: {}, queries and keys are one",
                                 request.said("m"), problem.shape.m, request.said("n"),
                                 problem.shape.n, why));
  }
}

RequestedProblem requested_problem(const Request& request, const KernelName& kernel,
                                   const Readers& readers, const std::vector<FoundOperand>& found) {
  const std::vector<Signature> given = kernel.given();
  Extents extents;
  if (request.n) {
    extents.set(&Shape::n, *request.n, request.said("n"));
  }
  if (request.m) {
    extents.set(&Shape::m, *request.m, request.said("m"));
  }
  if (request.d) {
    extents.set(&Shape::d, *request.d, request.said("d"));
  }
  const Inputs inputs = inputs_of(kernel.kernel->pass);
  if (request.dv && inputs == Inputs::plain) {
    extents.set(&Shape::dv, *request.dv, request.said("dv"));
  }
  // With weights, or if values are keys, all matrices have width d.
  const auto width = [&](const Signature& operand) {
    const bool one = inputs == Inputs::weighted || kernel.sharing != Sharing::none;
    return one && operand.cols == &Shape::dv ? &Shape::d : operand.cols;
  };
  if (request.heads) {
    extents.set_heads(Extents::kHeads, request.heads, request.said("heads"));
  }
  if (request.kv_heads) {
    extents.set_heads(Extents::kKvHeads, request.kv_heads, request.said("kv_heads"));
  }
  for (const auto& [name, reader] : readers) {
    const Signature operand = whole_matrix(*find_operand(given, name), kernel.kernel->pass);
    std::string who = name + " of " + reader.path().string();
    std::span<const Index> shape = reader.shape();
    const std::size_t rank = operand.cols == nullptr ? 1 : 2;
    const bool heads = shape.size() == rank + 1;
    if (shape.size() != rank && !heads) {
      throw InputError(fmt::format("{} has {} dimension{}, expected {}, or {} with heads first",
                                   who, shape.size(), shape.size() == 1 ? "" : "s", rank,
                                   rank + 1));
    }
    const bool of_keys = inputs == Inputs::plain && operand.rows == &Shape::m;
    if (reader.pattern() != nullptr) {  // every head has these entries
      extents.set(operand.rows, shape.front(), who);
      extents.set(operand.cols, shape.back(), who);
      continue;
    }
    extents.set_heads(of_keys ? Extents::kKvHeads : Extents::kHeads,
                      heads ? std::optional(shape.front()) : std::nullopt, who);
    if (heads) {
      who += ", heads first,";
      shape = shape.last(rank);
    }
    extents.set(operand.rows, shape.front(), who);
    if (operand.cols != nullptr) {
      extents.set(width(operand), shape.back(), who);
    }
  }
  for (const auto& [name, file, rows, cols] : found) {
    const Signature& operand = *find_operand(given, name);
    const std::string who = name + " of " + file;
    extents.set(operand.rows, rows, who);
    if (operand.cols != nullptr) {
      extents.set(width(operand), cols, who);
    } else if (cols != 1) {
      throw InputError(fmt::format("{} has {} columns, expected 1", who, cols));
    }
  }
  const Pass pass = kernel.kernel->pass;
  if (request.heads || inputs_of(pass) == Inputs::weighted || !extents.know_heads()) {
    static_cast<void>(stacked_heads(request, pass, request.who()));
  }
  RequestedProblem asked = extents.problem(request);
  static_cast<void>(
      requested_dv(request, pass, kernel.sharing, asked.problem.shape.d, request.who()));
  asked.problem.sharing = kernel.sharing;
  asked.problem.activation = requested_activation(request, *kernel.kernel);
  asked.problem = kernel.kernel->with_inputs(asked.problem);
  asked.problem.wanted = requested_results(request, kernel);
  if (request.softmax_scale && asked.problem.inputs == Inputs::weighted) {
    throw UsageError(
        fmt::format("{} {}: {} has no softmax scale (X scales the scores of forward, "
                    "backward and layer); attention/* and gradients/* have",
                    request.said("softmax_scale"), *request.softmax_scale, request.who()));
  }
  asked.problem.softmax_scale = request.softmax_scale;
  if (!request.mask.empty() || request.mask_of_caller) {
    asked.problem.mask = requested_mask(request, *kernel.kernel, asked.problem.shape);
  }
  check_rules(request, given, pass, asked.problem.shape);
  if (kernel.kernel->takes_sparse) {
    asked.problem = asked.problem.with_sparsity(
        requested_sparsity(request, *kernel.kernel, readers, asked.problem.shape));
  }
  set_widths(request, asked.problem);
  asked.problem = asked.problem.with_stacked(extents.stacked());
  check_one_source(request, asked.problem);
  if (kernel.kernel->of_all_heads) {
    asked.problem.kv_heads = asked.kv_heads();
    asked.heads = asked.problem.stacked;
  }
  return asked;
}

namespace {

// Checks a number of resident queries. At least one query that meets a key must stream.
void check_staying(const Request& request, const Problem& problem, Index queries) {
  const Problem live = problem.live_part();
  if (live.mask.full()) {
    throw UsageError(
        fmt::format("{} {}: the rows that meet most keys stay, and all meet all: give {} {}",
                    request.said("blocks"), kStaying, problem.mask.full() ? "a" : "another",
                    request.said("mask")));
  }
  if (queries >= live.shape.n) {
    throw UsageError(fmt::format("{} {}={}: of these {} rows at most {} may stay",
                                 request.said("blocks"), kStaying, queries, live.shape.n,
                                 live.shape.n - 1));
  }
}

// The grid for a kernel, and its number of key groups.
struct OnGrid {
  Grid grid;
  Index groups;
};
OnGrid grid_of(const Request& request, const Kernel& kernel, const Problem& problem) {
  const OnRanks& on = *request.on_ranks;
  const Memory memory = request.memory_of_plan();
  const Grid grid = on.grid
                        ? *on.grid
                        : best_grid(kernel, problem, memory, request.objective, on.ranks / on.sets);
  return {grid, on.groups > 0 ? on.groups : usual_groups(problem, grid)};
}

// Divides heads among sets of ranks first, because heads exchange no words. Makes as many sets as
// ranks and heads allow, or as many grids of the request as fit in the ranks. Throws: UsageError.
Request in_sets(const Request& request, Index heads) {
  Request same = request;
  OnRanks& on = *same.on_ranks;
  on.sets = on.grid ? on.ranks / on.grid->ranks() : std::gcd(on.ranks, heads);
  if (heads % on.sets != 0) {
    throw UsageError(
        fmt::format("{} {}: {} ranks are {} such grids, which do not share out {}: take a grid of "
                    "all ranks, or "
                    "{} that {} divides",
                    request.said("grid"), to_string(*on.grid), on.ranks, on.sets,
                    counted(heads, "head"), request.said("heads"), on.sets));
  }
  return same;
}

// Throws: UsageError for requests that ranks do not support.
void check_ranks(const Request& request, const Kernel& kernel, const RequestedProblem& asked) {
  const OnRanks& on = *request.on_ranks;
  const std::string said = on.said;
  if (!runs_on_grid(kernel)) {
    throw UsageError(fmt::format("{}: {} does not run on ranks; {} do", said, request.who(),
                                 names_of(runs_on_grid)));
  }
  if (asked.problem.live_queries().empty()) {
    throw UsageError(fmt::format("{}: no query meets a key: ranks have nothing to share under {}",
                                 said, request.said("mask")));
  }
  if (request.threads > 1) {
    throw UsageError(
        fmt::format("{}: each rank is one worker: leave {} out", said, request.said("threads")));
  }
  if (request.store && request.store->keep) {
    throw UsageError(fmt::format("{}: ranks leave nothing in a store: leave {} out", said,
                                 request.said("keep")));
  }
  if (resumes(request) && (request.store->options.engine || !request.store->options.direct ||
                           request.store->options.granule_bytes != StoreOptions().granule_bytes)) {
    throw UsageError(fmt::format(
        "{}: ranks that resume have checkpoints in a store, and no matrices: leave {}, {} and {} "
        "out, or {}",
        said, request.said("engine"), request.said("direct"), request.said("granule"),
        request.said("resume")));
  }
  if (request.multiple > 1) {
    throw UsageError(fmt::format("{} {}: blocks of ranks are of any size: leave it out",
                                 request.said("multiple"), request.multiple));
  }
  if (asked.problem.stacked > 1) {
    throw UsageError(fmt::format("{}: heads of ranks share no keys: leave {} out", said,
                                 request.said("kv_heads")));
  }
  if (resumes(request) && asked.kv_heads() > 1) {
    throw UsageError(fmt::format("{}: ranks keep checkpoints of one head: leave {} out", said,
                                 request.said("resume")));
  }
  if (!on.grid) {
    return;
  }
  if (on.grid->ring && request.store) {
    throw UsageError(fmt::format("{}: rows of a ring pass through homes in memory: leave {} out",
                                 said, request.said("store")));
  }
  if (on.grid->ring && request.prefetch > 1) {
    throw UsageError(fmt::format("{}: rows of a ring come as they pass: leave {} out", said,
                                 request.said("prefetch")));
  }
  const std::string grid =
      said + " " + to_string(*on.grid) + (on.groups > 0 ? fmt::format(":{}", on.groups) : "");
  const Index groups = std::max(on.grid->columns, on.groups);
  if (const Index keys = size_of(asked.problem.live_keys()); groups > keys) {
    throw UsageError(fmt::format("{}: {} groups of keys, but there are {}{}: take at most {}", grid,
                                 groups, counted(keys, "key"),
                                 asked.problem.mask.full() ? "" : " that live",
                                 counted(keys, on.groups > 0 ? "group" : "column")));
  }
  if (on.groups > 0 && on.groups < on.grid->columns) {
    throw UsageError(grid + ": at least as many groups of keys as columns");
  }
}

// Throws: UsageError if the plan has too few row blocks or groups for this grid. The message names
// the option to change.
void check_plan_on(const Request& request, const Kernel& kernel, const Plan& plan,
                   const Grid& grid) {
  const std::string said =
      !request.blocks.empty() ? request.said("blocks") : request.on_ranks->said;
  try {
    check_grid(kernel, plan, grid);
  } catch (const ShapeMismatch& error) {
    throw UsageError(said + ": " + error.what());
  }
}

// Returns the planner's blocks, before the request replaces some of them.
Blocks fitted_blocks(const Request& request, const Kernel& kernel, const Problem& problem) {
  const Memory memory = request.memory_of_plan();
  if (!request.on_ranks) {
    return kernel.blocks(problem, memory, request.objective);
  }
  const auto [grid, groups] = grid_of(request, kernel, problem);
  const Blocks blocks = blocks_on_grid(kernel, problem, memory, request.objective, grid, groups);
  const Index peak = total(kernel.plan(problem, request.M, blocks).phases).peak.value();
  if (request.blocks.empty() && peak > request.M) {
    throw FastMemoryTooSmall(
        fmt::format("{} on a grid of {} does not fit in M = {} words: it "
                    "needs M of at least {}",
                    spelled(kernel.name, problem.sharing), to_string(grid), request.M, peak),
        peak);
  }
  return blocks;
}

// Replaces the blocks that the request names. Throws: UsageError if the kernel does not have a
// block, or does not allow the size.
Blocks with_named_blocks(const Request& request, const Kernel& kernel, const Problem& problem,
                         Blocks blocks) {
  const Fitting& fitting = kernel.fitting;
  for (const auto& [name, size] : request.blocks) {
    const bool clusters = name == kClustered && kernel.takes_masks && has_row_block(blocks);
    if (clusters && problem.mask.full()) {
      throw UsageError(fmt::format(
          "{} {}: rows are clustered by the keys that they meet, and all meet all: give a {}",
          request.said("blocks"), name, request.said("mask")));
    }
    if (clusters && request.on_ranks) {
      throw UsageError(fmt::format("{} {}: rows of ranks are in their own order: leave it out",
                                   request.said("blocks"), name));
    }
    const bool stay = name == kStaying && fitting.rows_stay;
    if (stay) {
      check_staying(request, problem, size);
      if (size == 0) {
        blocks.drop(name);
        continue;
      }
    }
    const auto optional = std::ranges::find(fitting.optional_blocks, name, &OptionalBlock::name);
    const bool is_optional = optional != fitting.optional_blocks.end();
    const bool is_apart = std::ranges::count(fitting.apart_blocks, name) > 0;
    if (is_apart) {
      if (request.inner.empty()) {
        throw UsageError(fmt::format("{} {}: it is of several levels: give a {} as 8K,256K",
                                     request.said("blocks"), name, request.said("M")));
      }
      if (size > 1) {
        throw UsageError(fmt::format("{} {}={}: it is 1 or 0", request.said("blocks"), name, size));
      }
      if (size == 0) {
        blocks.drop(name);
        continue;
      }
    }
    if (is_optional && optional->limit != nullptr &&
        size > std::min(problem.shape.*optional->limit, optional->most)) {
      throw UsageError(fmt::format("{} {}={}: this problem takes at most {}",
                                   request.said("blocks"), name, size,
                                   std::min(problem.shape.*optional->limit, optional->most)));
    }
    if ((clusters || stay || is_optional || is_apart) && !blocks.contains(name)) {
      blocks.add(name, size);
    }
    if (!blocks.contains(name)) {
      std::string names;
      for (const auto& [known, _] : blocks) {
        names += (names.empty() ? "" : ", ") + known;
      }
      for (const std::string_view other : fitting.apart_blocks) {
        if (!request.inner.empty() && !blocks.contains(other)) {
          names += ", " + std::string(other);
        }
      }
      throw UsageError(fmt::format("{} {}: {} has {}", request.said("blocks"), name,
                                   spelled(kernel.name, problem.sharing),
                                   names.empty() ? "no blocks to choose" : names));
    }
    blocks.set(name, size);
  }
  return blocks;
}

// Throws: UsageError if the plan does not fit.
void check_fits(const Request& request, const Plan& plan) {
  const auto check = [&](const std::vector<PhaseCost>& phases, Index M, const std::string& where) {
    const PhaseCost& largest = *std::ranges::max_element(
        phases, {}, [](const PhaseCost& phase) { return phase.peak.value(); });
    if (const Index missing = largest.peak.value() - M; missing > 0) {
      throw UsageError(
          fmt::format("{}: these take {} words more than M = {}{}, in the phase {}: take smaller "
                      "ones, or a larger {}",
                      request.said("blocks"), missing, M, where, largest.path, request.said("M")));
    }
  };
  for (std::size_t level = 0; level < plan.inner.size(); ++level) {
    check(plan.inner[level].phases, plan.inner[level].M, fmt::format(" of level {}", level + 1));
  }
  check(plan.phases, request.M, "");
}

Plan plan_of(const Request& request, const Kernel& kernel, const Problem& problem) {
  if (request.prefetch > 1 && !kernel.streams_keys()) {
    throw UsageError(
        fmt::format("{} {}: {} streams no keys; {} do", request.said("prefetch"), request.prefetch,
                    spelled(kernel.name, problem.sharing),
                    names_of([](const Kernel& other) { return other.streams_keys(); })));
  }
  if (request.whole_blocks) {
    return kernel.plan(problem, request.M, *request.whole_blocks);
  }
  if (request.printed_blocks) {
    if (request.multiple > 1) {
      throw UsageError(fmt::format("{} printed: the paper's blocks are no multiples: leave {} out",
                                   request.said("blocks"), request.said("multiple")));
    }
    if (kernel.fitting.printed == nullptr) {
      throw UsageError(fmt::format(
          "{} printed: only {} has blocks as printed in the paper", request.said("blocks"),
          names_of([](const Kernel& other) { return other.fitting.printed != nullptr; })));
    }
    return kernel.plan(problem, request.M, kernel.fitting.printed(problem, request.M));
  }
  if (request.blocks.empty() && !request.on_ranks) {
    return kernel.plan(problem, request.memory_of_plan(), request.objective);
  }
  const Blocks blocks =
      with_named_blocks(request, kernel, problem, fitted_blocks(request, kernel, problem));
  Plan plan = [&] {
    try {
      return kernel.plan(problem, request.memory_of_plan(), blocks);
    } catch (const ShapeMismatch& error) {
      throw UsageError(fmt::format("{} {}", request.said("blocks"), error.what()));
    }
  }();
  check_fits(request, plan);
  return plan;
}

Team team_of(const Request& request, const Plan& plan, Index heads) {
  if (request.threads > 1 && heads == 1 && !splits(find_kernel(plan.kernel))) {
    throw UsageError(fmt::format("{} {}: {} runs one head on one thread; {} split by rows",
                                 request.said("threads"), request.threads, spelled(plan),
                                 names_of([&](const Kernel& other) {
                                   return splits(other) && other.takes(plan.problem.mask);
                                 })));
  }
  return {.workers = request.threads, .heads = heads};
}

// The task of computing O and L for a kernel, by forward kernels that take the same operands.
struct ForwardPass {
  ForwardPass(const Request& request, const Kernel& kernel, const Problem& problem)
      : task(forward_task(task_of(kernel, problem, request.M))),
        goal{.objective = request.objective,
             .rates = request.rates_if_timed(),
             .shared_only = true,
             .densified = false} {
    task.memory.multiple = request.multiple;
  }
  Task task;
  Goal goal;
};

Plan forward_plan(const Request& request, const Kernel& kernel, const Problem& problem, Index M) {
  ForwardPass pass(request, kernel, problem);
  pass.task.memory.M = M;
  const std::vector<Choice> makers = choices(pass.task, pass.goal);
  if (makers.empty()) {
    const LeastMemory least = least_memory(pass.task, pass.goal);
    throw FastMemoryTooSmall(
        fmt::format("{} takes O and L, and {} makes them in no less than M = {} words: give them, "
                    "or more M",
                    spelled(kernel.name, problem.sharing), least.kernel, least.M),
        least.M);
  }
  return makers.front().plan;
}

// Returns the plan of the forward pass in the M that the request allows. Empty if the kernel does
// not need one.
std::optional<Plan> forward_before(const Request& request, const Kernel& kernel,
                                   const Problem& problem) {
  if (!kernel.needs_forward(problem.activation)) {
    return std::nullopt;
  }
  if (!request.inner.empty() && !request.forward_in_more_M) {
    const Kernel& forward =
        find_kernel(inputs_of(kernel.pass) == Inputs::plain ? "attention/rows" : "forward/rows");
    return forward.plan(problem.wanting_all(), request.memory_of_plan(), request.objective);
  }
  if (request.on_ranks) {
    const Kernel& forward =
        find_kernel(inputs_of(kernel.pass) == Inputs::plain ? "attention/rows" : "forward/rows");
    Request same = request;
    same.blocks.clear();
    same.on_ranks->grid = grid_of(request, kernel, problem).grid;
    // Uses the same row blocks, so that O and L stay where they were computed.
    if (same.on_ranks->grid->ring) {
      const Blocks blocks = plan_of(request, kernel, problem).blocks;
      same.blocks = {{"Br", blocks[row_block_of(blocks)]}};
    }
    return plan_of(same, forward, problem.wanting_all());
  }
  const Index least = request.forward_in_more_M ? least_M_of_forward(request, kernel, problem) : 0;
  return forward_plan(request, kernel, problem, std::max(request.M, least));
}

// A kernel's plan, and the plan of the forward kernel that computes O and L for it.
struct Plans {
  Plan plan;
  std::optional<Plan> forward;
  bool densified = false;  // the request's sparse operands become dense
  double share = kBalancedShare;
  std::optional<Plan> narrow = {};
};

// Throws: UsageError if no kernel of the pass supports the request. `shared`: threads share a head.
void refuse_what_none_does(const Request& request, const Task& task, bool densified, bool shared) {
  const auto refuse_unless = [&](const char* key, const auto& holds) {
    if (std::ranges::none_of(all_kernel_names_of(task.pass), [&](const KernelName& name) {
          const bool takes_operands =
              name.kernel->takes_sparse != task.problem.sparsity.dense() || densified;
          return takes_operands && holds(*name.kernel);
        })) {
      throw UsageError(fmt::format("{}: no kernel of {} does that; {} do", request.said(key),
                                   to_string(task.pass), names_of(holds)));
    }
  };
  if (task.problem.sharing != Sharing::none) {
    refuse_unless("sharing", [](const Kernel& kernel) { return kernel.shares_keys; });
  }
  if (shared) {
    refuse_unless("threads", splits);
  } else if (resumes(request)) {
    refuse_unless("resume", splits);
  }
  if (request.prefetch > 1) {
    refuse_unless("prefetch", [](const Kernel& kernel) { return kernel.streams_keys(); });
  }
  if (request.on_ranks) {
    refuse_unless("ranks", runs_on_grid);
  }
}

// Returns the planner's first choice among the kernels that support the request. Threads and
// checkpoints need a kernel that splits. Prefetch needs a kernel that streams keys.
Plans choose(const Request& request, const RequestedProblem& asked, bool has_forward) {
  if (!request.blocks.empty() || request.printed_blocks) {
    throw UsageError(fmt::format("{}: {} chooses its own; name a kernel", request.said("blocks"),
                                 request.who()));
  }
  Task task = task_of(*requested_kernel(request).kernel, asked.problem, request.M);
  task.memory = request.memory_of_plan();
  task.known = has_forward || request.forward_in_more_M ? Known::O_and_L : Known::nothing;
  const Index heads = asked.kv_heads();
  const bool shared = request.threads > 1 && heads == 1;
  const bool must_split = shared || resumes(request);
  const Goal goal{
      .objective = request.objective,
      .rates = request.rates_if_timed(),
      .workers = shared ? request.threads : std::min(request.threads, heads),
      .shared_only = true,
      // A store has one form of each operand. No kernel of sparse operands takes shared keys.
      .densified = request.densify && !request.store && task.problem.sharing == Sharing::none &&
                   densifies(task),
      // Ranks and a prefetch get other blocks.
      .widens = !request.on_ranks && request.prefetch == 1,
      .densified_in_any_case = must_split || request.prefetch > 1,
      .admits = [&](const Kernel& kernel) {
        return (!must_split || splits(kernel)) &&
               (request.prefetch == 1 || kernel.streams_keys()) &&
               (!request.on_ranks || runs_on_grid(kernel));
      }};
  refuse_what_none_does(request, task, goal.densified, shared);
  const auto ahead = [&](Plan plan) {
    const Kernel& kernel = find_kernel(plan.kernel);
    return request.prefetch > 1 && kernel.streams_keys() &&
                   kernel.least_M(plan.problem, request.prefetch, request.multiple) <= request.M
               ? kernel.plan(plan.problem, request.memory_of_plan(), request.objective)
               : std::move(plan);
  };
  std::vector<Choice> found = choices(task, goal);
  if (request.objective == Objective::time) {
    // clang 14 cannot compile the std::ranges version.
    std::stable_partition(found.begin(), found.end(), [&](const Choice& choice) {
      return spelled(choice.plan) == request.tuned_kernel;
    });
  }
  for (Choice& choice : found) {
    Plan plan = ahead(std::move(choice.plan));
    const Kernel& kernel = find_kernel(plan.kernel);
    if (request.prefetch > 1 && !plan.blocks.contains(kPrefetch)) {
      continue;
    }
    if (request.on_ranks) {
      Plan on_grid = plan_of(request, kernel, plan.problem);
      return {std::move(on_grid),
              has_forward ? std::nullopt : forward_before(request, kernel, plan.problem)};
    }
    std::optional<Plan> forward;
    if (choice.forward) {
      forward = ahead(std::move(*choice.forward));
    } else if (!has_forward) {
      forward = forward_before(request, kernel, plan.problem);
    }
    return {std::move(plan), std::move(forward), choice.densified, choice.share,
            std::move(choice.narrow)};
  }
  const LeastMemory least = least_memory(task, goal);
  throw FastMemoryTooSmall(
      fmt::format(
          "{} does not fit in M = {} words: no kernel {}{}does; {} needs the least, M of at least "
          "{}",
          request.who(), request.M,
          std::string(asked.problem.mask.full() ? "" : "that takes masks ") +
              (must_split ? "that splits by rows " : ""),
          request.prefetch > 1 ? "that prefetches " : "", least.kernel, least.M),
      least.M);
}

// The same for several levels.
Plans choose_in_levels(const Request& request, const RequestedProblem& asked, bool has_forward) {
  const Kernel& named = *requested_kernel(request).kernel;
  if (!asked.problem.sparsity.dense()) {
    throw UsageError(fmt::format("{}: kernels of sparse operands have one level of fast memory",
                                 levels_text(request)));
  }
  check_pass_has_levels(request, named.pass);
  Task task = task_of(named, asked.problem, request.M);
  task.memory = request.memory_of_plan();
  task.known = has_forward || request.forward_in_more_M ? Known::O_and_L : Known::nothing;
  const Index heads = asked.kv_heads();
  const bool shared = request.threads > 1 && heads == 1;
  const Goal goal{.objective = request.objective,
                  .rates = request.rates_if_timed(),
                  .workers = shared ? request.threads : std::min(request.threads, heads),
                  .shared_only = true,
                  .admits = [must_split = shared || resumes(request)](const Kernel& kernel) {
                    return !must_split || splits(kernel);
                  }};
  std::vector<Choice> found = choices(task, goal);
  if (found.empty()) {
    throw no_levels_fit(task, goal);
  }
  Choice& choice = found.front();
  const Kernel& kernel = find_kernel(choice.plan.kernel);
  check_levels(request, kernel);
  std::optional<Plan> forward = std::move(choice.forward);
  if (!forward && !has_forward) {
    forward = forward_before(request, kernel, choice.plan.problem);
  }
  return {std::move(choice.plan), std::move(forward)};
}

Plans plans_of(const Request& request, const RequestedProblem& asked, bool has_forward) {
  if (is_auto(request) && !request.inner.empty() && request.blocks.empty()) {
    return choose_in_levels(request, asked, has_forward);
  }
  if (is_auto(request)) {
    return choose(request, asked, has_forward);
  }
  const Kernel& kernel = *requested_kernel(request).kernel;
  check_levels(request, kernel);
  if (resumes(request) && !splits(kernel)) {
    throw UsageError(fmt::format("{}: {} does not work row block by row block; {} do",
                                 request.said("resume"), request.who(), names_of(splits)));
  }
  if (request.on_ranks) {
    check_ranks(request, kernel, asked);
  }
  Plans plans{plan_of(request, kernel, asked.problem), std::nullopt};
  if (!has_forward) {
    plans.forward = forward_before(request, kernel, asked.problem);
  }
  return plans;
}

}  // namespace

void check_levels(const Request& request, const Kernel& kernel) {
  if (request.inner.empty()) {
    return;
  }
  check_pass_has_levels(request, kernel.pass);
  const std::string said = levels_text(request);
  if (!kernel.has_levels()) {
    const std::string one =
        request.device ? fmt::format("; give one level of it, as --M {}", request.M) : "";
    const std::string others = names_of(
        [&](const Kernel& other) { return other.pass == kernel.pass && other.has_levels(); });
    throw UsageError(fmt::format("{}: {} has one level of fast memory; {}{}", said, request.who(),
                                 others.empty() ? "give one size" : others + " have several", one));
  }
  if (request.prefetch > 1) {
    throw UsageError(fmt::format("{} {}: with several levels, {}, keys come one block at a time",
                                 request.said("prefetch"), request.prefetch, said));
  }
  if (request.on_ranks) {
    throw UsageError(
        fmt::format("{}: ranks have one level of fast memory each: give one size", said));
  }
  if (request.printed_blocks) {
    throw UsageError(fmt::format("{} printed: of one level of fast memory: give {} one size",
                                 request.said("blocks"), said));
  }
}

void check_pass_has_levels(const Request& request, Pass pass) {
  if (!request.inner.empty() && request.multiple > 1) {
    throw UsageError(
        fmt::format("{} {}: only with one level of fast memory: {} has several: give one",
                    request.said("multiple"), request.multiple, levels_text(request)));
  }
  const auto has = [](const Kernel& kernel) { return kernel.has_levels(); };
  if (!request.inner.empty() && std::ranges::none_of(kernels(), [&](const Kernel& kernel) {
        return kernel.pass == pass && has(kernel);
      })) {
    throw UsageError(fmt::format("{}: no kernel of {} has several levels of fast memory; {} have",
                                 levels_text(request), to_string(pass), names_of(has)));
  }
}

Index least_M_of_forward(const Request& request, const Kernel& kernel, const Problem& problem) {
  const ForwardPass pass(request, kernel, problem);
  return least_memory(pass.task, pass.goal).M;
}

Report resolve(const Request& as_asked, const RequestedProblem& asked, bool has_forward) {
  const Request request = as_asked.on_ranks ? in_sets(as_asked, asked.kv_heads()) : as_asked;
  Report report;
  Plans plans = plans_of(request, asked, has_forward);
  const Kernel& kernel = find_kernel(plans.plan.kernel);
  if (request.on_ranks) {
    check_ranks(request, kernel, asked);
  }
  const Team team = team_of(request, plans.plan, asked.kv_heads());
  const bool fits = total(plans.plan.phases).peak <= Words(request.M);
  if (team.workers == 1 && fits) {
    Task task = task_of(kernel, plans.densified ? plans.plan.problem : asked.problem, request.M);
    task.heads = team.heads;
    report.bound = largest(lower_bounds(task), schedule_of(plans.plan));
    const PhaseCost all = total(plans.plan.phases);
    refuse_below(*report.bound, plans.plan, (all.reads + all.writes) * team.heads);
    for (const Index M : request.inner) {
      task.memory.M = M;
      report.level_bounds.push_back(largest(lower_bounds(task), schedule_of(plans.plan)));
    }
  }
  report.asked = request.kernel;
  report.objective = request.objective;
  report.balanced_share = plans.share;
  report.narrow = std::move(plans.narrow);
  report.multiple = request.multiple;
  for (const auto& [name, size] : plans.plan.blocks) {
    if (request.whole_blocks || request.printed_blocks || request.blocks.contains(name)) {
      report.given_blocks.emplace_back(name);
    }
  }
  const Plan* const forward = plans.forward ? &*plans.forward : nullptr;
  std::optional<Grid> grid;
  if (request.on_ranks) {
    grid = grid_of(request, kernel, plans.plan.problem).grid;
    check_plan_on(request, kernel, plans.plan, *grid);
    report.bound.reset();  // the bound is for one machine
  }
  report.kernel =
      grid ? Part(std::move(plans.plan), *grid, forward, asked.kv_heads(), request.on_ranks->sets)
           : Part(std::move(plans.plan), team);
  report.densified = plans.densified ? asked.problem.sparsity : Sparsity();
  report.sparse_sources =
      sparse_sources(request, plans.densified ? *requested_kernel(request).kernel : kernel);
  for (const Signature& operand : kernel.given(asked.problem)) {
    report.given.emplace_back(operand.name);
  }
  report.M_from = request.M_from;
  report.inner_from = request.inner_from;
  report.device = request.device;
  report.equal_levels = request.equal_levels;
  report.word_costs = request.word_costs;
  report.word_costs_from = request.word_costs_from;
  report.from_nothing = !(kernel.needs_forward(asked.problem.activation) && has_forward);
  if (plans.forward) {
    const Team team_of_forward =
        team_for(find_kernel(plans.forward->kernel), request.threads, team.heads);
    report.forward = grid ? Part(std::move(*plans.forward), *grid, nullptr, asked.kv_heads(),
                                 request.on_ranks->sets)
                          : Part(std::move(*plans.forward), team_of_forward);
  }
  static_cast<void>(report.kernel.io());  // throws if the count exceeds 63 bits
  return report;
}

void check_outputs(const Request& request, const KernelName& kernel, const Wanted& wanted) {
  const std::vector<Signature> returns = kernel.results();
  const auto check = [&](const std::string& name, const std::string& option) {
    if (find_operand(returns, name) == nullptr) {
      throw UsageError(fmt::format("{}: {} returns {}", option, as_asked(request), list(returns)));
    }
    if (!wanted.contains(name)) {
      throw UsageError(fmt::format("{}: {} leaves {} out", option, request.said("wanted"), name));
    }
  };
  if (request.arrays != nullptr) {
    for (const auto& [name, array] : request.arrays->out) {
      const std::string option = fmt::format("{} {} is an array", request.said("out"), name);
      check(name, option);
      if (is_sparse(*find_operand(returns, name))) {
        throw UsageError(fmt::format("{}: {} of {} is sparse, and goes to an .npz of SciPy", option,
                                     name, request.who()));
      }
    }
  }
  std::set<std::filesystem::path> targets;
  for (const auto& [name, path] : request.out) {
    const std::string option = fmt::format("{} {}={}", request.said("out"), name, path.string());
    check(name, option);
    if (is_sparse(*find_operand(returns, name)) && path.extension() != ".npz") {
      throw UsageError(fmt::format("{}: {} of {} is sparse, and goes to an .npz of SciPy", option,
                                   name, request.who()));
    }
    if (!is_sparse(*find_operand(returns, name)) && path.extension() == ".npz") {
      throw UsageError(
          fmt::format("{}: {} of {} is dense, and goes to an .npy", option, name, request.who()));
    }
    if (!targets.insert(place_of(path)).second) {
      throw UsageError(option + ": two results to one file");
    }
    for (const auto& [operand, source] : request.in) {
      const auto tensor = tensor_path(source);
      if (place_of(tensor ? tensor->file : source) == place_of(path)) {
        throw UsageError(fmt::format("{}: {} is read from this file", option, operand));
      }
    }
    for (const std::string& file : files_of_mask(request.mask)) {
      if (place_of(file) == place_of(path)) {
        throw UsageError(
            fmt::format("{}: {} is read from this file", option, request.said("mask")));
      }
    }
  }
}

namespace {

std::vector<Index> shape_of(const Signature& result, const RequestedProblem& asked) {
  std::vector<Index> shape;
  if (asked.heads) {
    shape.push_back(heads_of(result, asked.problem, asked.kv_heads()));
  }
  shape.push_back(result.rows_of(asked.problem.one_head().shape));
  if (result.cols != nullptr) {
    shape.push_back(result.cols_of(asked.problem.shape));
  }
  return shape;
}

// Makes room for results in the caller's memory: all requested results, or all dense results if
// operands and results are not on disk.
void make_room(const Request& request, const Kernel& kernel, const RequestedProblem& asked,
               Writers& writers) {
  Arrays& arrays = *request.arrays;
  arrays.results.clear();
  for (const Signature& result : kernel.returned(asked.problem)) {
    const std::string name(result.name);
    const std::vector<Index> shape = shape_of(result, asked);
    if (const auto lent = arrays.out.find(name); lent != arrays.out.end()) {
      if (lent->second.shape != shape) {
        throw InputError(fmt::format("{} {} is an array of shape ({}); expected ({})",
                                     request.said("out"), name, fmt::join(lent->second.shape, ", "),
                                     fmt::join(shape, ", ")));
      }
      const auto refuse_shared = [&](const std::string& other, std::span<const float> theirs) {
        if (overlap(lent->second.words, theirs)) {
          throw InputError(fmt::format("{} {} is an array that overlaps {} in memory",
                                       request.said("out"), name, other));
        }
      };
      for (const auto& [other, array] : arrays.in) {
        refuse_shared(other, array.words);
      }
      for (const auto& [other, array] : arrays.out) {
        if (other != name) {
          refuse_shared(other, array.words);
        }
      }
      writers.emplace(name, ArrayWriter(lent->second.words));
    } else if (!request.store && !is_sparse(result)) {
      Words words = 1;
      for (const Index extent : shape) {
        words *= extent;
      }
      Arrays::Taken& taken = arrays.results[name];
      taken = {shape, std::vector<float>(static_cast<std::size_t>(words.value()))};
      writers.emplace(name, ArrayWriter(taken.words));
    }
  }
}

}  // namespace

Writers open_outputs(const Request& request, const Kernel& kernel, const RequestedProblem& asked) {
  Writers writers;
  for (const auto& [name, path] : request.out) {
    const Signature& operand = *find_operand(kernel.returns, name);
    if (is_sparse(operand)) {
      if (asked.heads) {
        throw UsageError(fmt::format("{} {}={}: {} of several heads is no one sparse matrix",
                                     request.said("out"), name, path.string(), name));
      }
      writers.emplace(name, NpzWriter(path, pattern_of(asked.problem.sparsity, operand)));
      continue;
    }
    writers.emplace(name, NpyWriter(path, shape_of(operand, asked)));
  }
  if (request.arrays != nullptr) {
    make_room(request, kernel, asked, writers);
  }
  return writers;
}

}  // namespace redblue
