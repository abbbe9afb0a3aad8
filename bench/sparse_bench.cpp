// Compares kernels of sparse operands with two programs that keep the live scores in main memory:
// plain loops over CSR, and SuiteSparse:GraphBLAS. X is the identity, scaled. A1 and A2 have
// `stored` entries in each row. An iteration times the kernel and both peers, one after the other.
// Counters hold medians, and the fewest bytes that a peer needs for its live scores.
//
//   redblue_bench --benchmark_filter=peer/.*/sparse --benchmark_counters_tabular=true

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "bench/sparse_peers.hpp"
#include "kernels/attention.hpp"
#include "kernels/kernel.hpp"
#include "memsim/slow_matrix.hpp"
#include "runtime/observe/topology.hpp"
#include "runtime/run/inputs.hpp"
#include "runtime/run/rules.hpp"
#include "runtime/run/workers.hpp"

namespace redblue {
namespace {

struct Size {
  Index n, d;
  std::uint64_t stored;
  int iterations;
};
constexpr Size kSizes[] = {{256, 64, 8, 3}, {4096, 512, 16, 3}, {16384, 512, 16, 1}};
constexpr Index kM = 1 << 18;

Sparsity entries_of(const Size& size) {
  const auto made = [&](Rule::Kind kind, const char* operand, Index rows) {
    return pattern_by_rule({.kind = kind, .entries = size.stored}, operand, 1, rows, size.d);
  };
  return {made(Rule::Kind::random, "A1", size.n), made(Rule::Kind::identity, "X", size.d),
          made(Rule::Kind::random, "A2", size.n)};
}

// Operands and results in buffers. Scores have standard deviation 1.
class SparseBench {
 public:
  explicit SparseBench(const Size& size)
      : problem_(Problem(size.n, size.n, size.d).with_sparsity(entries_of(size))) {
    const Shape& shape = problem_.shape;
    fill(kSparseA1, Problem(shape.A1_stored, 1, 1));
    fill(kSparseA2, Problem(1, shape.A2_stored, 1));
    for (const Signature& operand : {kA3, kY, kdO}) {
      fill(operand, problem_);
    }
    // Values of A1 and A2 have variance 1/3.
    const float of_score =
        3 * std::sqrt(static_cast<float>(size.d)) / static_cast<float>(size.stored);
    buffers_["X"].assign(words_of(kSparseX), of_score);
  }

  [[nodiscard]] const Problem& problem() const { return problem_; }
  // Returns the operands and results of a kernel.
  [[nodiscard]] Operands io_of(const Kernel& kernel) {
    Operands io;
    for (const Signature& operand : kernel.operands) {
      io.give(matrix(operand));
    }
    for (const Signature& result : kernel.returns) {
      buffers_[result.name].resize(words_of(result));
      io.take(matrix(result));
    }
    return io;
  }
  [[nodiscard]] float* words(std::string_view name) { return buffers_.at(name).data(); }
  [[nodiscard]] SparseOperands of_peer() {
    return {problem_.sparsity, words("A1"), words("X"), words("A2"),
            words("A3"),       words("Y"),  words("dO")};
  }

 private:
  [[nodiscard]] std::size_t words_of(const Signature& operand) const {
    return static_cast<std::size_t>(operand.rows_of(problem_.shape) *
                                    operand.cols_of(problem_.shape));
  }
  SlowMatrix& matrix(const Signature& operand) {
    return matrices_
        .try_emplace(operand.name,
                     borrow(std::string(operand.name), words(operand.name),
                            operand.rows_of(problem_.shape), operand.cols_of(problem_.shape)))
        .first->second;
  }
  // Fills an operand with the values of an input with the shape of `as`.
  void fill(const Signature& operand, const Problem& as) {
    std::vector<float>& words = buffers_[operand.name];
    words.resize(words_of(operand));
    fill_input(operand.name, as, 1, 1, 0, std::ssize(words) / operand.cols_of(problem_.shape),
               words);
  }

  Problem problem_;
  std::map<std::string_view, std::vector<float>> buffers_;
  std::map<std::string_view, SlowMatrix> matrices_;
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

template <class Work>
double seconds(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// True if the largest difference is small compared with the largest value.
bool agree(const float* a, const std::vector<float>& b) {
  double off = 0;
  double largest = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    off = std::max(off, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
    largest = std::max(largest, std::abs(static_cast<double>(b[i])));
  }
  return off < 1e-4 * largest;
}

void beside(benchmark::State& state, const std::string& name, const Size& size, Index threads) {
  static const Topology topology = read_topology();
  const Kernel& kernel = find_kernel(name);
  const bool forward = kernel.pass == Pass::forward;
  SparseBench bench(size);
  const SparseOperands of = bench.of_peer();
  const std::unique_ptr<SparsePeer> peers[] = {sparse_loops(), graphblas()};
  RunCounts counts;
  std::vector<double> ours, theirs[2];
  const auto run = [&](const Kernel& what) {
    counts = run_on_team(what, what.plan(bench.problem(), kM, Objective::time),
                         {.workers = threads}, {bench.io_of(what)}, topology)
                 .counts;
  };
  for ([[maybe_unused]] auto _ : state) {
    // The peers start from scratch. So a kernel that needs O and L is timed with a forward pass.
    ours.push_back(seconds([&] {
      if (!forward) {
        run(find_kernel("forward/sparse-rows"));
      }
      run(kernel);
    }));
    for (std::size_t k = 0; k < std::size(peers); ++k) {
      theirs[k].push_back(seconds([&] {
        forward ? peers[k]->forward(of, static_cast<int>(threads))
                : peers[k]->gradient(of, static_cast<int>(threads));
      }));
      if (!(forward ? agree(bench.words("O"), peers[k]->O)
                    : agree(bench.words("g"), peers[k]->g))) {
        state.SkipWithError("the two do not agree");
        return;
      }
    }
    state.SetIterationTime(ours.back());
  }
  const double pairs = static_cast<double>(bench.problem().sparsity.pairs().value());
  state.counters["s"] = median(ours);
  state.counters["loops_s"] = median(theirs[0]);
  state.counters["graphblas_s"] = median(theirs[1]);
  state.counters["pairs"] = pairs;
  state.counters["peer_bytes"] = 8 * pairs;
  state.counters["words"] = static_cast<double>(counts.total.io.io());
  state.counters["M"] = static_cast<double>(kM);
}

bool register_all() {
  for (const char* kernel : {"forward/sparse-rows", "backward/sparse-rows"}) {
    for (const Size& size : kSizes) {
      for (const Index threads : {Index{1}, Index{2}}) {
        const std::string name = "peer/" + std::string(kernel) + "/n:" + std::to_string(size.n) +
                                 "/d:" + std::to_string(size.d) +
                                 "/threads:" + std::to_string(threads);
        benchmark::RegisterBenchmark(
            name.c_str(), [=](benchmark::State& state) { beside(state, kernel, size, threads); })
            ->UseManualTime()
            ->Iterations(size.iterations)
            ->Unit(benchmark::kSecond);
      }
    }
  }
  return true;
}

[[maybe_unused]] const bool kRegistered = register_all();

}  // namespace
}  // namespace redblue
