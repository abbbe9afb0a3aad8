// The check of results finds faults. At n = m = 4096, d = 64, correct results of a kernel are
// changed in double precision, as a fault in one row or in some rows would change them. Or the
// kernel gets another scale. Other activations than softmax have 4096 rows only if REDBLUE_CASES
// asks for more cases than usual. Each fault must be refused:
//
//   left out   one key is left out of one row, a key with the median weight of the row's keys
//              (in g of relu, it is left out of more rows: see below)
//   rescaled   before one block of keys, sums of one row are not rescaled to the new maximum
//   scale      scores are 1 + 10^-4 times as large
//   swapped    in 16 rows two keys are swapped, but their values are not
//
// There is no rescaling if scores do not meet a sum of the row. Swapped keys do not change L. p of
// relu does not depend on the size of scores.
//
// REDBLUE_FAULT_TABLE=1 prints each fault's size as a multiple of the bound.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "memsim/sanitized.hpp"
#include "tests/support/cases.hpp"
#include "tests/support/print.hpp"
#include "tests/support/run_kernel.hpp"

namespace redblue {
namespace {

using Words64 = std::vector<double>;

double phi(Activation activation, double s) {
  const double sigmoid = 1 / (1 + std::exp(-s));
  return activation == Activation::relu      ? std::max(s, 0.0)
         : activation == Activation::sigmoid ? sigmoid
                                             : s * sigmoid;
}
double slope(Activation activation, double s) {
  const double sigmoid = 1 / (1 + std::exp(-s));
  return activation == Activation::relu      ? (s > 0 ? 1 : 0)
         : activation == Activation::sigmoid ? sigmoid * (1 - sigmoid)
                                             : sigmoid * (1 + s * (1 - sigmoid));
}

// A fault in one row. In gradients, L and v are computed from all keys, as in a pass with given O
// and L.
struct Fault {
  Index left_out = -1;
  Index swapped = -1, with = -1;
  Index rescaled_before = 0;  // the keys before it weigh `times` as much
  double times = 1;
};

// One row of attention, or of linear attention, from the definitions: its contribution to each
// result.
class OneRow {
 public:
  OneRow(const TestProblem& problem, bool linear)
      : problem_(problem), linear_(linear), weighted_(problem.given.contains("A1")) {
    const bool shares = !weighted_ && !problem.given.contains("V");
    K_ = weighted_ ? "A2" : "K";
    V_ = weighted_ ? "A3" : shares ? "K" : "V";
  }

  // Returns row i of an operand, or row i of its product with the matrix `by` or the transpose of
  // `by`.
  Words64 row_of(std::string_view operand, Index i, const char* by, bool transposed) const {
    const Index d = problem_.shape.d;
    Words64 row(static_cast<std::size_t>(d));
    const Buffer& words = problem_.given.find(operand)->second;
    for (Index k = 0; k < d; ++k) {
      const auto word = static_cast<double>(words[static_cast<std::size_t>(i * d + k)]);
      for (Index c = 0; by != nullptr && c < d; ++c) {
        row[static_cast<std::size_t>(c)] +=
            word * static_cast<double>(
                       problem_.given.find(std::string_view(by))
                           ->second[static_cast<std::size_t>(transposed ? c * d + k : k * d + c)]);
      }
      if (by == nullptr) {
        row[static_cast<std::size_t>(k)] = word;
      }
    }
    return row;
  }
  double dot(const Words64& row, const std::string& operand, Index j) const {
    const auto d = row.size();
    const float* const key =
        problem_.given.find(operand)->second.data() + j * static_cast<Index>(d);
    double sum = 0;
    for (std::size_t k = 0; k < d; ++k) {
      sum += row[k] * static_cast<double>(key[k]);
    }
    return sum;
  }
  [[nodiscard]] bool live(Index i, Index j) const {
    return problem_.mask.full() || problem_.mask.pairs({i, i + 1}, {j, j + 1}) > 0;
  }

  // Returns the scores of the row, minus infinity for dead pairs.
  Words64 scores(Index i) const {
    Words64 S = weighted_ && problem_.given.contains("X") ? row_of("A1", i, "X", false)
                : weighted_                               ? row_of("A1", i, nullptr, false)
                                                          : row_of("Q", i, nullptr, false);
    const double scale = weighted_ ? 1 : 1 / std::sqrt(static_cast<double>(problem_.shape.d));
    Words64 s;
    for (Index j = 0; j < problem_.shape.m; ++j) {
      s.push_back(live(i, j) ? scale * dot(S, K_, j) : -std::numeric_limits<double>::infinity());
    }
    return s;
  }

  // Adds `sign` times the contribution of row i to the results.
  void add(Index i, const Fault& fault, double sign, std::map<std::string, Words64>& to) const;

 private:
  const TestProblem& problem_;
  bool linear_, weighted_;
  std::string K_, V_;
};

void OneRow::add(Index i, const Fault& fault, double sign,
                 std::map<std::string, Words64>& to) const {
  const auto& [n, m, d] = problem_.shape;
  const auto width = static_cast<std::size_t>(d);
  const bool softmax = !linear_ && problem_.activation == Activation::softmax;
  const bool backward = problem_.given.contains("dO");
  Words64 s = scores(i);
  double most = -std::numeric_limits<double>::infinity(), sum = 0, faulty = 0;
  const auto weight = [&](Index j) {
    const double e = std::exp(s[static_cast<std::size_t>(j)] - most);
    return j < fault.rescaled_before ? fault.times * e : e;
  };
  for (const double x : s) {
    most = std::max(most, x);
  }
  for (Index j = 0; j < m; ++j) {
    sum += std::exp(s[static_cast<std::size_t>(j)] - most);
    faulty += j == fault.left_out ? 0 : weight(j);
  }
  if (fault.swapped >= 0) {
    std::swap(s[static_cast<std::size_t>(fault.swapped)], s[static_cast<std::size_t>(fault.with)]);
  }
  const Words64 G = !backward   ? Words64()
                    : weighted_ ? row_of("dO", i, "Y", true)
                                : row_of("dO", i, nullptr, false);
  const Words64 dO = backward ? row_of("dO", i, nullptr, false) : Words64();
  const Words64 A1 = row_of(weighted_ ? "A1" : "Q", i, nullptr, false);
  const Words64 S = weighted_ && problem_.given.contains("X") ? row_of("A1", i, "X", false) : A1;
  const double scale = weighted_ ? 1 : 1 / std::sqrt(static_cast<double>(d));
  Words64 f, q, B(width), B_of_dV(width), W(width);
  double v = 0;
  for (Index j = 0; j < m; ++j) {
    const double x = s[static_cast<std::size_t>(j)];
    const bool dead = std::isinf(x);
    q.push_back(backward ? dot(G, V_, j) : 0);
    f.push_back(dead      ? 0
                : softmax ? std::exp(x - most) / sum
                : linear_ ? x
                          : phi(problem_.activation, x));
    v += softmax ? f.back() * q.back() : 0;
  }
  if (fault.rescaled_before > 0) {  // from scratch, v uses these weights too
    v = 0;
    for (Index j = 0; j < m; ++j) {
      f[static_cast<std::size_t>(j)] = weight(j) / faulty;
      v += f[static_cast<std::size_t>(j)] * q[static_cast<std::size_t>(j)];
    }
  }
  const auto add_to = [&](const char* name, Index row, const Words64& words, double by) {
    const auto found = to.find(name);
    for (std::size_t k = 0; found != to.end() && k < words.size(); ++k) {
      found->second[static_cast<std::size_t>(row) * words.size() + k] += sign * by * words[k];
    }
  };
  const auto other = [&](Index j) {
    return j == fault.swapped ? fault.with : j == fault.with ? fault.swapped : j;
  };
  for (Index j = 0; j < m; ++j) {
    const auto at = static_cast<std::size_t>(j);
    if (j == fault.left_out || std::isinf(s[at])) {
      continue;
    }
    const double in_O = softmax ? f[at] * (fault.left_out >= 0 ? sum / faulty : 1) : f[at];
    const double p = softmax   ? f[at] * (q[at] - v)
                     : linear_ ? q[at]
                               : slope(problem_.activation, s[at]) * q[at];
    const Words64 value = row_of(V_, j, nullptr, false);
    const Words64 key = row_of(K_, other(j), nullptr, false);
    for (std::size_t k = 0; k < width; ++k) {
      B[k] += in_O * value[k];
      B_of_dV[k] += f[at] * value[k];
      W[k] += p * key[k];
    }
    if (backward) {
      add_to("dK", j, S, p * scale);
      add_to("dA2", j, S, p);
      add_to("dV", j, dO, f[at]);
      add_to("dA3", j, G, f[at]);
    }
  }
  add_to("L", i, {most + std::log(faulty)}, 1);
  add_to("dQ", i, W, scale);
  const auto times = [&](const Words64& row, const char* by, bool transposed) {
    Words64 result(width);
    const Buffer& words = problem_.given.at(by);
    for (std::size_t k = 0; k < width; ++k) {
      for (std::size_t c = 0; c < width; ++c) {
        result[c] +=
            row[k] * static_cast<double>(words[transposed ? c * width + k : k * width + c]);
      }
    }
    return result;
  };
  add_to("O", i, weighted_ && !backward ? times(B, "Y", false) : B, 1);
  if (weighted_ && problem_.given.contains("X") && backward) {
    add_to("dA1", i, times(W, "X", true), 1);
  }
  for (std::size_t a = 0; a < width && backward; ++a) {
    for (const char* name : {"g", "dX"}) {
      add_to(name, static_cast<Index>(a), W, A1[a]);
    }
    add_to("dY", static_cast<Index>(a), dO, B_of_dV[a]);
  }
}

// Returns the largest part of the bound, for the results with `added` added to them.
double largest_part(const Buffers& right, const std::map<std::string, Words64>& added,
                    const ExpectedResults& expected) {
  double most = 0;
  for (const auto& [name, words] : right) {
    Buffer faulty = words;
    const auto found = added.find(name);
    for (std::size_t k = 0; found != added.end() && k < faulty.size(); ++k) {
      faulty[k] = static_cast<float>(static_cast<double>(faulty[k]) + found->second[k]);
    }
    most = std::max(most, compare(faulty, expected.at(name)).part());
  }
  return most;
}

struct PlantedCase {
  std::string kernel;
  Shape shape;
  Activation activation = Activation::softmax;
  Mask mask = {};
};

TestedKernel with_activation(const PlantedCase& of) {
  KernelName name = *parse_kernel_name(of.kernel);
  name.activation = of.activation;
  return name;
}

class Planted {
 public:
  explicit Planted(const PlantedCase& of) : kernel_(with_activation(of)) {
    kernel_.mask = of.mask;
    problem_ = make_problem(kernel_, of.shape, 1);
    meant_ = problem_;
    meant_.given.erase("O");
    meant_.given.erase("L");
    right_ = result(problem_);
    expected_ = expected_results(kernel_, plan_of(problem_), meant_);
  }

  double nothing() { return largest_part(right_, {}, expected_); }
  // In g of relu, float32 may put a score on the other side of 0, and p becomes q or 0. At n = 4096
  // this happens to some dozen pairs, which hide the effect of one row. So 256 rows miss the key.
  double left_out() {
    const bool jumps =
        kernel_.activation == Activation::relu && kernel_.kernel->pass == Pass::backward;
    std::vector<Index> some;
    for (Index i = row(); i < row() + (jumps ? problem_.shape.n / 16 : 1); ++i) {
      some.push_back(i);
    }
    return rows(some, {.left_out = key_of_median_weight()});
  }
  double swapped() {
    std::vector<Index> some;
    for (Index i = row(); i < row() + 16; ++i) {
      some.push_back(i);
    }
    return rows(some, {.swapped = live_key(0), .with = live_key(1)});
  }
  // Uses the first row in which a later block of keys has a larger score.
  double rescaled() {
    constexpr Index kBlock = 128;
    const OneRow one(meant_, false);
    for (Index i = row();; ++i) {
      const Words64 s = one.scores(i);
      double most = -std::numeric_limits<double>::infinity();
      Index live = std::ssize(s);  // the first live key
      for (Index j = 0; j < std::ssize(s); ++j) {
        const double x = s[static_cast<std::size_t>(j)];
        live = std::isinf(x) ? live : std::min(live, j);
        if (x > most && j / kBlock * kBlock > live) {
          double block = x;
          const Index first = j / kBlock * kBlock;
          for (Index k = first; k < std::min(first + kBlock, std::ssize(s)); ++k) {
            block = std::max(block, s[static_cast<std::size_t>(k)]);
          }
          return rows({i}, {.rescaled_before = first, .times = std::exp(block - most)});
        }
        most = std::max(most, x);
      }
    }
  }
  // Enlarges Q in plain problems, A in a product, Y in linear-gradient, and X in others. Results
  // that are linear in it are then 1 + 10^-4 times as large.
  double scaled() {
    TestProblem other = problem_;
    for (const char* operand : {"Q", "X", "Y", "A"}) {
      const auto found = other.given.find(operand);
      if (found != other.given.end()) {
        std::ranges::for_each(found->second, [](float& word) { word *= 1.0001F; });
        break;
      }
    }
    return largest_part(result(other), {}, expected_);
  }

 private:
  [[nodiscard]] bool linear() const { return is_linear(kernel_.kernel->pass); }
  [[nodiscard]] Index row() const { return problem_.shape.n / 2 + 7; }
  [[nodiscard]] Plan plan_of(const TestProblem& problem) const {
    return kernel_.plan(problem.shape, 1 << 18, Objective::time);
  }
  [[nodiscard]] Buffers result(const TestProblem& problem) const {
    return run_kernel(kernel_, plan_of(problem), problem).returned;
  }
  [[nodiscard]] Index live_key(Index skipped) const {
    const OneRow one(meant_, linear());
    for (Index j = problem_.shape.m / 2 - 40;; ++j) {
      bool all = true;
      for (Index i = row(); i < row() + 16; ++i) {
        all = all && one.live(i, j);
      }
      if (all && skipped-- == 0) {
        return j;
      }
    }
  }
  // For activations other than softmax, the median of the |f| that are not 0.
  [[nodiscard]] Index key_of_median_weight() const {
    const Words64 s = OneRow(meant_, linear()).scores(row());
    std::vector<std::pair<double, Index>> weights;
    for (Index j = 0; j < std::ssize(s); ++j) {
      const double x = s[static_cast<std::size_t>(j)];
      if (std::isinf(x)) {
        continue;
      }
      const double weight = linear() ? std::abs(x)
                            : kernel_.activation == Activation::softmax
                                ? x
                                : std::abs(phi(kernel_.activation, x));
      if (weight != 0) {
        weights.emplace_back(weight, j);
      }
    }
    std::ranges::sort(weights);
    return weights[weights.size() / 2].second;
  }
  double rows(const std::vector<Index>& some, const Fault& fault) const {
    std::map<std::string, Words64> change;
    for (const auto& [name, words] : right_) {
      change[name].resize(words.size());
    }
    const OneRow one(meant_, linear());
    for (const Index i : some) {
      one.add(i, {}, -1, change);
      one.add(i, fault, 1, change);
    }
    return largest_part(right_, change, expected_);
  }

  TestedKernel kernel_;
  TestProblem problem_, meant_;
  Buffers right_;
  ExpectedResults expected_;
};

std::vector<PlantedCase> planted_cases() {
  const Index n = kSanitized ? 256 : 4096;
  const Index fewer = kSanitized ? n : n / 4;  // at least two blocks of keys in rescaled()
  const Shape large{n, n, 64}, small{fewer, fewer, 64};
  std::vector<PlantedCase> all;
  const bool all_large = cases(kUsualCases) > kUsualCases;  // as tools/nightly asks
  for (const Activation activation : kActivations) {
    const bool softmax = activation == Activation::softmax;
    for (const char* kernel : {"attention/rows", "gradients/flash", "gradients/score-rows",
                               "backward/rows", "backward/score-rows"}) {
      if (tested_kernel(kernel).kernel->takes(activation)) {
        all.push_back({kernel, softmax || all_large ? large : small, activation});
      }
    }
    for (const char* kernel : {"forward/rows", "layer/score-rows"}) {
      all.push_back({kernel, softmax ? large : small, activation});
    }
    const Index m = small.m;
    for (const Mask& mask : {Mask::causal(m, m), Mask::window(m, m, 300, 5),
                             Mask::window(m, m, 40, 0) | Mask::prefix(m, m, 600),
                             Mask::documents({0, m / 8, m / 3, m}, {0, m / 8, m / 3, m}),
                             Mask::global(m, m, {0, 3}) | Mask::window(m, m, 200, 200)}) {
      for (const char* kernel : {"attention/rows", "gradients/flash", "backward/rows"}) {
        all.push_back({kernel, small, activation, mask});
      }
    }
  }
  all.push_back({"linear/rows", large});
  all.push_back({"linear-gradient/rows", large});
  all.push_back({"linear/rows", small, Activation::softmax, Mask::causal(small.m, small.m)});
  all.push_back(
      {"linear-gradient/rows", small, Activation::softmax, Mask::causal(small.m, small.m)});
  all.push_back({"matmul/blocked", small});
  return all;
}

TEST(PlantedFaults, AreRefused) {
  const bool shows = std::getenv("REDBLUE_FAULT_TABLE") != nullptr;
  if (shows) {
    std::cout << fmt::format("{:<24}{:<10}{:<6}{:>10}{:>10}{:>10}{:>10}{:>10}\n", "times allowed",
                             "", "n", "right", "left out", "rescaled", "scale", "swapped");
  }
  for (const PlantedCase& each : planted_cases()) {
    SCOPED_TRACE(each.kernel + " " + std::string(to_string(each.activation)));
    Planted planted(each);
    const Pass pass = tested_kernel(each.kernel).kernel->pass;
    const bool product = pass == Pass::product;
    const bool softmax = each.activation == Activation::softmax && !is_linear(pass) && !product;
    const bool gradient = is_backward(pass);
    std::string line =
        fmt::format("{:<24}{:<10}{:<6}", each.kernel,
                    is_linear(pass) || product ? "" : to_string(each.activation), each.shape.n);
    const auto expect = [&](bool applies, auto fault) {
      if (!applies) {
        line += fmt::format("{:>10}", "-");
        return;
      }
      const double part = fault();
      line += fmt::format("{:>10.3g}", part);
      EXPECT_GT(part, 1) << line;
    };
    const double right = planted.nothing();
    line += fmt::format("{:>10.2g}", right);
    EXPECT_LE(right, 1);
    expect(!product, [&] { return planted.left_out(); });
    expect(softmax, [&] { return planted.rescaled(); });
    expect(!(gradient && each.activation == Activation::relu && pass == Pass::backward),
           [&] { return planted.scaled(); });
    expect(!product, [&] { return planted.swapped(); });
    if (shows) {
      std::cout << line << (each.mask.full() ? "" : "  mask") << std::endl;
    }
  }
}

}  // namespace
}  // namespace redblue
