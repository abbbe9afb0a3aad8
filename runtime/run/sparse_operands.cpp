#include "runtime/run/sparse_operands.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

#include <fmt/format.h>

#include "runtime/patterns/pattern_files.hpp"
#include "runtime/system/memory.hpp"

namespace redblue {
namespace {

// Operands that are sparse for some kernel.
constexpr std::array<std::string_view, 5> kOperands = {"A1", "X", "A2", "A", "B"};

bool is_one(std::string_view name) {
  return std::ranges::find(kOperands, name) != kOperands.end();
}

}  // namespace

bool is_sparse(const Signature& operand) {
  return operand.rows == &Shape::A1_stored || operand.rows == &Shape::X_stored ||
         operand.rows == &Shape::A2_stored || operand.rows == &Shape::S_stored;
}

Signature whole_matrix(const Signature& operand, Pass pass) {
  if (!is_sparse(operand)) {
    return operand;
  }
  const bool product = pass == Pass::product;
  return {operand.name,
          operand.rows == &Shape::X_stored    ? &Shape::d
          : operand.rows == &Shape::A2_stored ? &Shape::m
                                              : &Shape::n,
          product && operand.rows != &Shape::A1_stored ? &Shape::m : &Shape::d};
}

const BlockPattern& pattern_of(const Sparsity& sparsity, const Signature& operand) {
  return operand.rows == &Shape::A1_stored   ? sparsity.A1()
         : operand.rows == &Shape::X_stored  ? sparsity.X()
         : operand.rows == &Shape::A2_stored ? sparsity.A2()
                                             : sparsity.S();
}

Place place_in(const Signature& operand, const Problem& problem, Index at) {
  if (!is_sparse(operand)) {
    const Index cols = operand.cols_of(problem.shape);
    return {at / cols, at % cols};
  }
  const BlockPattern& pattern = pattern_of(problem.sparsity, operand);
  const auto after = std::ranges::upper_bound(pattern.offsets, at);
  return {after - pattern.offsets.begin() - 1, pattern.columns[static_cast<std::size_t>(at)]};
}

bool asks_for_sparse(const Request& request) {
  return std::ranges::any_of(request.make,
                             [](const auto& made) {
                               return is_one(made.first) &&
                                      made.second.kind != Rule::Kind::identity;
                             }) ||
         std::ranges::any_of(request.in, [](const auto& file) {
           return is_one(file.first) && is_sparse_file(file.second);
         });
}

void check_rules(const Request& request, const std::vector<Signature>& operands, Pass pass,
                 const Shape& shape) {
  for (const auto& [name, rule] : request.make) {
    const Signature operand = whole_matrix(*find_operand(operands, name), pass);
    try {
      check_extents(rule, operand.rows_of(shape), operand.cols_of(shape));
    } catch (const std::invalid_argument& error) {
      throw UsageError(fmt::format("{} {}={}: {} {}", request.said("make"), name, to_string(rule),
                                   name, error.what()));
    }
  }
}

Sparsity Sparsities::get(const std::string& key, const std::function<Sparsity()>& make) {
  constexpr std::size_t kMostKept = 8;
  const std::lock_guard lock(mutex_);
  const auto known = std::ranges::find(kept_, key, &std::pair<std::string, Sparsity>::first);
  if (known != kept_.end()) {
    return known->second;
  }
  if (kept_.size() == kMostKept) {
    kept_.pop_front();
  }
  return kept_.emplace_back(key, make()).second;
}

namespace {

// Returns the least bytes that the entries of a rule take, or all entries if `rule` is null.
Words pattern_bytes(const Rule* rule, Index rows, Index cols) {
  Words entries = Words(rows) * cols;
  if (rule != nullptr && rule->kind == Rule::Kind::identity) {
    entries = rows;
  } else if (rule != nullptr && rule->entries > 0) {
    const Index most = rule->clusters > 0 ? cols / static_cast<Index>(rule->clusters) : cols;
    entries = Words(rows) * std::min(static_cast<Index>(rule->entries), most);
  } else if (rule != nullptr) {
    entries = Words(rows) * (cols / static_cast<Index>(rule->whole / rule->parts + 1));
  }
  return sizeof(Index) * (entries + rows);
}

}  // namespace

Sparsity requested_sparsity(const Request& request, const Kernel& kernel, const Readers& readers,
                            const Shape& shape) {
  const auto entries = [&](const char* name) {
    const Signature operand = whole_matrix(*find_operand(kernel.operands, name), kernel.pass);
    const Index rows = operand.rows_of(shape);
    const Index cols = operand.cols_of(shape);
    const auto require_memory = [&](const Rule* rule) {
      static_cast<void>(MemoryClaim(nullptr, pattern_bytes(rule, rows, cols),
                                    fmt::format("where {} has entries", name),
                                    "fewer entries, or smaller n, m or d"));
    };
    if (const auto made = request.make.find(name); made != request.make.end()) {
      require_memory(&made->second);
      return pattern_by_rule(made->second, name, request.seed.value_or(kDefaultSeed), rows, cols);
    }
    const auto file = readers.find(name);
    if (file != readers.end() && file->second.pattern() != nullptr) {
      return *file->second.pattern();
    }
    require_memory(nullptr);
    return full_pattern(rows, cols);
  };
  const bool product = kernel.pass == Pass::product;
  const auto make = [&] {
    return product ? Sparsity(entries("A"), entries("B"))
                   : Sparsity(entries("A1"), entries("X"), entries("A2"));
  };
  if (request.sparsities == nullptr) {
    return make();
  }
  std::string key = fmt::format("{} {} {} {} {}", product, shape.n, shape.m, shape.d,
                                request.seed.value_or(kDefaultSeed));
  for (const auto& [name, rule] : request.make) {
    key += fmt::format(" {}={}", name, to_string(rule));
  }
  // The key has the file's content, because the file may change.
  for (const auto& [name, file] : readers) {
    if (file.pattern() != nullptr) {
      key += fmt::format(" {}:{}", name, fingerprint_of(*file.pattern()));
    }
  }
  return request.sparsities->get(key, make);
}

std::string fingerprint_of(const BlockPattern& pattern) {
  return fmt::format("{:016x}", Mask::pattern(pattern).fingerprint());
}

bool meets_a_key(const Problem& problem, Index query) {
  return problem.sparsity.dense() ? !problem.keys({query, query + 1}).empty()
                                  : size_of(problem.sparsity.keys_met({query, query + 1})) > 0;
}

std::vector<float> densified(const BlockPattern& pattern, std::span<const float> values) {
  std::vector<float> words(static_cast<std::size_t>(pattern.rows * pattern.cols));
  auto value = values.begin();
  for (Index row = 0; row < pattern.rows; ++row) {
    for (const Index column : pattern.row(row)) {
      words[static_cast<std::size_t>(row * pattern.cols + column)] = *value++;
    }
  }
  return words;
}

const Signature* densified_operand(const Report& report, std::string_view name) {
  if (report.densified.dense()) {
    return nullptr;
  }
  const auto kernel = std::ranges::find(sparse_kernels(), report.kernel.plan.pass, &Kernel::pass);
  const Signature* operand = find_operand(kernel->operands, name);
  return operand != nullptr && is_sparse(*operand) ? operand : nullptr;
}

std::map<std::string, std::string> sparse_sources(const Request& request, const Kernel& kernel) {
  std::map<std::string, std::string> sources;
  for (const Signature& operand : kernel.operands) {
    const std::string name(operand.name);
    if (!is_sparse(operand)) {
      continue;
    }
    if (const auto made = request.make.find(name); made != request.make.end()) {
      sources[name] = to_string(made->second);
    } else if (const auto file = request.in.find(name); file != request.in.end()) {
      sources[name] = file->second.string();
    }
  }
  return sources;
}

}  // namespace redblue
