#include "runtime/run/verification.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <stdexcept>

#include <fmt/format.h>

#include "kernels/attention.hpp"
#include "runtime/run/sparse_operands.hpp"
#include "runtime/theory/linear_reference.hpp"
#include "runtime/theory/reference.hpp"

namespace redblue {
namespace {

// The properties of a kernel from which the bounds are derived.
Chains chains_of(const Kernel& kernel, const Plan& plan) {
  const auto number = [&](auto function) {
    return function == nullptr ? 0.0
                               : static_cast<double>(function(plan.problem, plan.blocks).value());
  };
  return {
      .g = number(kernel.numerics.chain),
      .rescales = number(kernel.numerics.rescales),
      .key_groups = number(kernel.numerics.key_groups),
      .X_meets_keys = kernel.numerics.X_meets_keys,
      .Y_meets_rows = kernel.Y_meets_rows(plan.problem),
      .recentred_blocks = number(kernel.numerics.recentred_blocks),
      .joins_dK_and_dV = kernel.pass == Pass::gradients && plan.problem.sharing != Sharing::none};
}

void widen(Bounded& to, const Bounded& by) {
  std::ranges::transform(to.bound, by.bound, to.bound.begin(), std::plus());
  std::ranges::transform(to.expected, by.expected, to.expected.begin(), std::plus());
}

// An error as a share of its bound. Only an error of 0 is within a bound of 0, and none is within
// an infinite bound.
double share_of_bound(double error, double bound) {
  return std::isinf(bound) ? bound : error == 0 ? 0 : error / bound;
}

// The words of given O or L; of a query without a key, which no kernel reads, the exact ones.
std::vector<float> live_words(std::span<const float> given, const Bounded& exact,
                              const Problem& problem) {
  std::vector<float> words(given.begin(), given.end());
  const Index cols = std::ssize(words) / problem.shape.n;
  for (const Range rows : without({{0, problem.shape.n}}, problem.live_queries())) {
    for (auto k = static_cast<std::size_t>(rows.begin * cols);
         k < static_cast<std::size_t>(rows.end * cols); ++k) {
      words[k] = static_cast<float>(exact.value[k]);
    }
  }
  return words;
}

// A product of sparse matrices: the words of C that are stored.
Bounded stored_of(const Bounded& product, const BlockPattern& stored) {
  Bounded found;
  for (Index row = 0; row < stored.rows; ++row) {
    for (const Index column : stored.row(row)) {
      const auto at = static_cast<std::size_t>(row * stored.cols + column);
      found.value.push_back(product.value[at]);
      found.bound.push_back(product.bound[at]);
      found.expected.push_back(product.expected[at]);
    }
  }
  return found;
}

constexpr std::array<float, 1> kNoEntries = {0};

// `meant` is the problem of dense operands that the kernel's has the results of.
Verdict verify_head(const Report& report, const Problem& meant, const Views& inputs,
                    const Views& results, Index head, const std::function<void()>& stop) {
  const Plan& plan = report.kernel.plan;
  const Kernel& kernel = find_kernel(plan.kernel);
  const Shape& shape = plan.problem.shape;
  std::map<std::string_view, std::vector<float>> dense;
  const auto input = [&](std::string_view name) -> std::span<const float> {
    const Signature* operand = find_operand(kernel.operands, name);
    if (operand == nullptr) {
      return {};
    }
    const std::span<const float> words = head_of(inputs, *operand, shape, head);
    return is_sparse(*operand) ? dense[operand->name] =
                                     densified(pattern_of(plan.problem.sparsity, *operand), words)
                               : words;
  };
  Verdict verdict;
  std::map<std::string_view, Bounded> exact;
  if (kernel.pass == Pass::product) {
    exact["C"] = evaluate_product(shape.n, shape.m, shape.d, input("A"), input("B"));
    if (kernel.takes_sparse) {
      exact["C"] = stored_of(exact["C"], plan.problem.sparsity.S());
    }
  } else if (is_linear(kernel.pass)) {
    exact[kernel.returns.front().name] = evaluate_linear({.shape = shape,
                                                          .A1 = input("A1"),
                                                          .A2 = input("A2"),
                                                          .A3 = input("A3"),
                                                          .X = input("X"),
                                                          .Y = input("Y"),
                                                          .dO = input("dO"),
                                                          .O = {},
                                                          .L = {},
                                                          .mask = plan.problem.mask},
                                                         chains_of(kernel, plan).g);
  } else {
    AttentionInput problem;
    problem.shape = shape;
    const InputNames names = input_names(plan.problem);
    problem.A1 = input(names.queries);
    problem.A2 = input(names.keys);
    problem.A3 = input(names.values);
    problem.X = input("X");
    problem.Y = input("Y");
    problem.scale = plan.problem.scale();
    problem.mask = meant.mask;
    problem.activation = plan.problem.activation;
    problem.stop = stop;
    if (kernel.pass == Pass::logsumexp) {  // L is not of values, which the evaluation takes, too
      problem.A3 = dense["A3"] = std::vector<float>(static_cast<std::size_t>(shape.m * shape.d));
      problem.Y = dense["Y"] = std::vector<float>(static_cast<std::size_t>(shape.d * shape.d));
    }
    problem.dO = input("dO");
    if (!report.from_nothing) {
      AttentionInput from_nothing = problem;
      from_nothing.dO = {};
      const Reference forward = evaluate(from_nothing, {});
      verdict.given_off =
          std::max(compare(live_words(input("O"), forward.O, meant), forward.O).relative,
                   compare(live_words(input("L"), forward.L, meant), forward.L).relative);
      problem.O = input("O");
      problem.L = input("L");
    }
    Chains chains = chains_of(kernel, plan);
    if (report.forward) {
      const Plan& forward = report.forward->plan;
      const Chains of_forward = chains_of(find_kernel(forward.kernel), forward);
      chains.rescales = of_forward.rescales;
      chains.key_groups = of_forward.key_groups;
    }
    Reference reference = evaluate(problem, chains);
    if (report.forward) {
      const Kernel& maker = find_kernel(report.forward->plan.kernel);
      if (chains.X_meets_keys != maker.numerics.X_meets_keys ||
          chains.Y_meets_rows != maker.Y_meets_rows(report.forward->plan.problem)) {
        // O and L are summed in another order than p: the bound is the sum of both bounds.
        chains.X_meets_keys = maker.numerics.X_meets_keys;
        chains.Y_meets_rows = maker.Y_meets_rows(report.forward->plan.problem);
        const Reference other = evaluate(problem, chains);
        widen(reference.g, other.g);
        widen(reference.dQ, other.dQ);
        widen(reference.dK, other.dK);
        widen(reference.dV, other.dV);
      }
    }
    if (kernel.pass == Pass::layer) {
      const Sharing sharing = plan.problem.sharing;
      LayerReference layer = evaluate_layer(problem, reference, sharing);
      exact["dX"] = reference.g;
      exact["dA2"] = sharing == Sharing::none ? reference.dK : std::move(layer.dA2);
      exact["dA1"] = std::move(layer.dA1);
      exact["dA3"] = std::move(layer.dA3);
      exact["dY"] = std::move(layer.dY);
    }
    exact["O"] = std::move(reference.O);
    exact["L"] = std::move(reference.L);
    exact["g"] = std::move(reference.g);
    exact["dQ"] = std::move(reference.dQ);
    exact["dK"] = std::move(reference.dK);
    exact["dV"] = std::move(reference.dV);
  }
  double nearest = -1;
  for (const Signature& operand : kernel.returned(plan.problem)) {
    std::span<const float> computed = head_of(results, operand, shape, head);
    if (is_sparse(operand) && exact.at(operand.name).value.empty()) {  // a word that nobody writes
      exact.at(operand.name) = {{0}, {0}, {0}};
      computed = kNoEntries;
    }
    const Deviation found = compare(computed, exact.at(operand.name));
    verdict.ok = verdict.ok && found.ok;
    verdict.explained = verdict.explained && found.explained;
    verdict.relative = std::max(verdict.relative, found.relative);
    const double share = share_of_bound(found.error, found.bound);
    if (share > nearest) {
      nearest = share;
      verdict.error = found.error;
      verdict.bound = found.bound;
      verdict.expected = found.expected;
      verdict.output = operand.name;
      const bool none = computed.data() == kNoEntries.data();
      const auto [row, col] = none ? Place{0, 0} : place_in(operand, plan.problem, found.index);
      // Rows are those of all stacked heads.
      const Index rows = whole_matrix(operand, kernel.pass).rows_of(plan.problem.one_head().shape);
      if (report.kernel.heads() > 1) {
        const Index before = heads_of(operand, plan.problem, head);  // of other heads of keys
        verdict.head = before + row / rows;
      }
      verdict.row = row % rows;
      verdict.col = col;
    }
  }
  return verdict;
}

}  // namespace

void check_finite(const Part& part, const Views& results) {
  const Kernel& kernel = find_kernel(part.plan.kernel);
  const Problem problem = part.plan.problem.one_head();
  for (const Signature& operand : kernel.returned(problem)) {
    const Index heads = heads_of(operand, part.plan.problem, part.team.heads);
    for (Index head = 0; head < heads; ++head) {
      check_finite(kernel, operand, problem, 0, head_of(results, operand, problem.shape, head),
                   heads > 1 ? fmt::format("head {}, ", head) : "");
    }
  }
}

void check_finite(const Kernel& kernel, const Signature& operand, const Problem& problem,
                  Index first_row, std::span<const float> words, const std::string& where) {
  if (is_sparse(operand) && pattern_of(problem.sparsity, operand).stored() == 0) {
    return;  // a word that nobody writes
  }
  const auto is_bad = [&](const float& x) {
    const Index row = first_row + (&x - words.data());  // of L
    return !std::isfinite(x) &&
           !(operand.name == kL.name && std::isinf(x) && x < 0 && !meets_a_key(problem, row));
  };
  const auto bad = std::ranges::find_if(words, is_bad);
  if (bad != words.end()) {
    const Index at = first_row * operand.cols_of(problem.shape) + (bad - words.begin());
    const auto [row, col] = place_in(operand, problem, at);
    throw std::runtime_error(
        fmt::format("{} of {} is {} at {}({}, {}): the inputs are too large for float32",
                    operand.name, kernel.name, *bad, where, row, col));
  }
}

Verdict verify(const Report& report, const Views& inputs, const Views& results,
               const std::function<void()>& stop) {
  const Plan& plan = report.kernel.plan;
  const Problem meant = plan.problem.densified();
  Verdict all = verify_head(report, meant, inputs, results, 0, stop);
  for (Index head = 1; head < report.kernel.team.heads; ++head) {
    const Verdict own = verify_head(report, meant, inputs, results, head, stop);
    const bool nearer = share_of_bound(own.error, own.bound) > share_of_bound(all.error, all.bound);
    Verdict both = nearer ? own : all;
    both.ok = all.ok && own.ok;
    both.explained = all.explained && own.explained;
    both.relative = std::max(all.relative, own.relative);
    both.given_off = std::max(all.given_off, own.given_off);
    all = both;
  }
  return all;
}

Words verification_bytes(const Kernel& kernel, const Problem& problem) {
  const Shape& shape = problem.shape;
  Words results;
  for (const Signature& operand : kernel.returns) {
    results += Words(operand.rows_of(shape)) * operand.cols_of(shape);
  }
  Words sparse;  // dense operands, a mask of single pairs, a dense product
  if (kernel.takes_sparse) {
    const bool product = kernel.pass == Pass::product;
    constexpr Index kBytesOfAPair = 64;
    sparse = 4 * (Words(shape.n) * shape.d + Words(shape.d) * shape.d + Words(shape.m) * shape.d) +
             (product ? 48 * (Words(shape.n) * shape.m)
                      : kBytesOfAPair * (problem.sparsity.pairs() + shape.n));
  }
  // For each word of a result: a value and two bounds in double precision, twice over.
  return evaluation_bytes(shape) + 48 * results + sparse;
}

}  // namespace redblue
