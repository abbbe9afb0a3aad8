#include "runtime/run/verification.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "kernels/attention.hpp"
#include "runtime/run/sparse_operands.hpp"
#include "runtime/theory/reference.hpp"

namespace redblue {
namespace {

// Returns the words of given O or L. No kernel reads the words of a query without a key, so they
// are replaced by the exact words.
std::vector<float> live_words(std::span<const float> given, const Expected& exact,
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

// Returns the stored words of C, a product of sparse matrices.
Expected stored_of(const Expected& product, const BlockPattern& stored) {
  Expected found;
  for (Index row = 0; row < stored.rows; ++row) {
    for (const Index column : stored.row(row)) {
      const auto at = static_cast<std::size_t>(row * stored.cols + column);
      found.value.push_back(product.value[at]);
      found.allowed.push_back(product.allowed[at]);
    }
  }
  return found;
}

constexpr std::array<float, 1> kNoEntries = {0};

// Checks one head, with dense copies of the operands.
class HeadCheck {
 public:
  // `meant` is the problem of dense operands with the same results as the kernel's problem.
  HeadCheck(const Report& report, const Problem& meant, const Views& inputs, Index head,
            std::function<void(double)> step)
      : report_(report),
        plan_(report.kernel.plan),
        kernel_(find_kernel(plan_.kernel)),
        meant_(meant),
        inputs_(inputs),
        head_(head),
        step_(std::move(step)) {}

  // Compares the results and sets `given_off`.
  Verdict verify(const Views& results);

 private:
  std::span<const float> input(std::string_view name);
  [[nodiscard]] AttentionInput attention();
  [[nodiscard]] ExpectedResults expected();
  [[nodiscard]] std::optional<double> given_off(const AttentionInput& problem);

  const Report& report_;
  const Plan& plan_;
  const Kernel& kernel_;
  const Problem& meant_;
  const Views& inputs_;
  Index head_;
  std::function<void(double)> step_;
  std::map<std::string_view, std::vector<float>> dense_;
  std::optional<double> given_off_;
};

std::span<const float> HeadCheck::input(std::string_view name) {
  const Signature* operand = find_operand(kernel_.operands, name);
  if (operand == nullptr) {
    return {};
  }
  const std::span<const float> words = head_of(inputs_, *operand, plan_.problem.shape, head_);
  return is_sparse(*operand) ? dense_[operand->name] =
                                   densified(pattern_of(plan_.problem.sparsity, *operand), words)
                             : words;
}

AttentionInput HeadCheck::attention() {
  const InputNames names = input_names(plan_.problem);
  AttentionInput problem;
  problem.shape = plan_.problem.shape;
  problem.A1 = input(names.queries);
  problem.A2 = input(names.keys);
  problem.A3 = input(names.values);
  problem.X = input("X");
  problem.Y = input("Y");
  problem.dO = input("dO");
  problem.scale = plan_.problem.scale();
  problem.mask = meant_.mask;
  problem.activation = plan_.problem.activation;
  problem.sharing = plan_.problem.sharing;
  problem.step = step_;
  if (kernel_.numerics.chain != nullptr) {
    problem.g_terms =
        static_cast<double>(kernel_.numerics.chain(plan_.problem, plan_.blocks).value());
  }
  for (const Signature& operand : kernel_.returned(plan_.problem)) {
    problem.results.push_back(operand.name);
  }
  return problem;
}

// Returns the distance between the given O and L and the O and L of the other operands.
std::optional<double> HeadCheck::given_off(const AttentionInput& problem) {
  AttentionInput from_nothing = problem;
  from_nothing.dO = {};
  from_nothing.results = {"O", "L"};
  const ExpectedResults forward = evaluate(from_nothing);
  double off = 0;
  for (const auto& [name, exact] : forward) {
    off = std::max(off, compare(live_words(input(name), exact, meant_), exact).relative);
  }
  return off;
}

ExpectedResults HeadCheck::expected() {
  const Shape& shape = plan_.problem.shape;
  ExpectedResults exact;
  if (kernel_.pass == Pass::product) {
    exact["C"] = evaluate_product(shape.n, shape.m, shape.d, input("A"), input("B"));
    if (kernel_.takes_sparse) {
      exact["C"] = stored_of(exact["C"], plan_.problem.sparsity.S());
    }
    return exact;
  }
  AttentionInput problem = attention();
  if (is_linear(kernel_.pass)) {
    exact[std::string(kernel_.returns.front().name)] = evaluate_linear(problem);
    return exact;
  }
  if (!report_.from_nothing) {
    given_off_ = given_off(problem);
    problem.O = input("O");
    problem.L = input("L");
  }
  return evaluate(problem);
}

Verdict HeadCheck::verify(const Views& results) {
  Verdict verdict;
  ExpectedResults exact = expected();
  verdict.given_off = given_off_;
  double most = -1;
  for (const Signature& operand : kernel_.returned(plan_.problem)) {
    std::span<const float> computed = head_of(results, operand, plan_.problem.shape, head_);
    Expected& expected = exact.find(operand.name)->second;
    if (is_sparse(operand) && expected.value.empty()) {  // an unused word: C has no stored entries
      expected = {{0}, {0}};
      computed = kNoEntries;
    }
    const Deviation found = compare(computed, expected);
    verdict.ok = verdict.ok && found.ok;
    verdict.relative = std::max(verdict.relative, found.relative);
    if (found.part() > most) {
      most = found.part();
      verdict.error = found.error;
      verdict.allowed = found.allowed;
      verdict.output = operand.name;
      const bool none = computed.data() == kNoEntries.data();
      const auto [row, col] = none ? Place{0, 0} : place_in(operand, plan_.problem, found.index);
      // `row` counts over all stacked heads, `rows` is the number of rows of one head.
      const Index rows =
          whole_matrix(operand, kernel_.pass).rows_of(plan_.problem.one_head().shape);
      if (report_.kernel.heads() > 1) {
        // Heads that belong to earlier key heads.
        const Index before = heads_of(operand, plan_.problem, head_);
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
    return;  // an unused word: C has no stored entries
  }
  const auto is_bad = [&](const float& x) {
    const Index row = first_row + (&x - words.data());  // the row of L
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
               const std::function<void(double)>& step) {
  const Problem meant = report.kernel.plan.problem.densified();
  const Index heads = report.kernel.team.heads;
  Verdict all;
  for (Index head = 0; head < heads; ++head) {
    const auto of_all = [&](double done) {
      if (step) {
        step((static_cast<double>(head) + done) / static_cast<double>(heads));
      }
    };
    const Verdict own = HeadCheck(report, meant, inputs, head, of_all).verify(results);
    Verdict both = head == 0 || own.part() > all.part() ? own : all;
    if (head > 0) {
      both.ok = all.ok && own.ok;
      both.relative = std::max(all.relative, own.relative);
      both.given_off = std::max(all.given_off, own.given_off);
    }
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
  Words sparse;  // bytes of dense operands, a mask of single pairs, a dense product
  if (kernel.takes_sparse) {
    const bool product = kernel.pass == Pass::product;
    constexpr Index kBytesOfAPair = 64;
    sparse = 4 * (Words(shape.n) * shape.d + Words(shape.d) * shape.d + Words(shape.m) * shape.d) +
             (product ? 16 * (Words(shape.n) * shape.m)
                      : kBytesOfAPair * (problem.sparsity.pairs() + shape.n));
  }
  // Each word of a result has a value and an allowed error, in double precision.
  return evaluation_bytes(shape) + 16 * results + sparse;
}

}  // namespace redblue
