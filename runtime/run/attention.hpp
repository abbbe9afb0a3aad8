#pragma once
// Attention, or its gradients, of your own buffers in one call: a kernel runs that moves words
// between a fast memory of M words and these buffers, and says how many it moved.
//
//   const AttentionProblem problem{.shape = {n, m, d}, .heads = 8, .mask = "causal"};
//   const AttentionOptions options{.M = cache_words(CacheLevel::L2, 0.25)};
//   const AttentionRun run =
//       attention(problem, {.Q = q, .K = k, .V = v}, {.O = o, .L = l}, options);
//
//   run.kernel.words();      // that moved; run.kernel.plan.kernel is the name of what moved them
//   run.lower_bound->words;  // no such algorithm moves fewer
//
// Buffers are float32, row-major, heads first, and are used where they are. The calls keep no
// state: any number of threads may make them at once, each with results of its own.
//
// Throws (both calls), before a result is touched: std::invalid_argument for a problem, options or
// a size that do not fit, of which FastMemoryTooSmall says the least M; CountOverflow;
// std::runtime_error for an operand that is not finite, and for too little memory. And with results
// that are not to be used: std::runtime_error where one of them is not finite.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kernels/kernel.hpp"
#include "memsim/phase.hpp"
#include "runtime/system/cache_part.hpp"

namespace redblue {

struct AttentionProblem {
  Shape shape;  // of each head: n queries, m keys, width d, and dv of values (d if left out)
  Index heads = 1;
  // Heads of keys and values, each for as many heads of queries; 0: one for each.
  Index kv_heads = 0;
  Sharing sharing = Sharing::none;  // kv: V is K, is read once, and is left empty
  // Of each head: a Mask, or the text of --mask, such as "causal|prefix:16". All pairs live.
  std::variant<Mask, std::string> mask = Mask();
  std::optional<float> softmax_scale = std::nullopt;  // 1 / sqrt(d)
  // f of a score. Of another than softmax there is no L, and gradients start from no O: these
  // buffers are left empty.
  Activation activation = Activation::softmax;
};

struct AttentionOptions {
  Index M = 0;        // words of fast memory of each thread; always to be given
  Index threads = 1;  // no bit of a result depends on it, for one kernel; not pinned to cores
  // Its name, as attention/rows. Empty: the planner's choice, of those that the threads can share.
  std::string kernel = {};
  Objective objective = Objective::time;  // by the rates that redblue comes with
};

// The words of a share of this machine's cache, if each of so many threads has its own M in it.
// Reads the machine's topology, which takes milliseconds: call it once. Throws:
// std::invalid_argument for a cache that is not known.
Index cache_words(CacheLevel level, double share = 1, Index threads = 1);

// Q (heads x n x d), K (kv_heads x m x d), V (kv_heads x m x dv).
struct AttentionOperands {
  std::span<const float> Q, K, V = {};
};
// O (heads x n x dv), L (heads x n), the logarithms of the sums of exp(scores). A query without a
// live key has O = 0 and L = -infinity.
struct AttentionResults {
  std::span<float> O, L;
};

// Both O and L of a call of attention(), or neither: a kernel makes them first if it needs them.
struct GradientOperands {
  std::span<const float> Q, K, V, dO, O = {}, L = {};
};
// As Q, K and V; dK and dV are sums over the heads of queries that share them. Where V is K, dK is
// dK + dV, and dV is left empty.
struct GradientResults {
  std::span<float> dQ, dK, dV;
};

// What one kernel did.
struct KernelRun {
  Plan plan;                       // for one head of keys on one thread: kernel, blocks, M
  std::vector<PhaseCost> formula;  // what all heads and threads must move, phase by phase
  RunCounts counted;               // what they did move, in the same order, and seconds

  [[nodiscard]] Index words() const { return counted.total.io.io(); }
};

struct AttentionRun {
  KernelRun kernel;
  std::optional<KernelRun> forward = std::nullopt;  // that made O and L for the gradients
  // Proven for all algorithms of the kernel's kind; known for one thread.
  struct LowerBound {
    std::string_view name;  // as docs/theory/bounds.md has it
    Index words = 0;
  };
  std::optional<LowerBound> lower_bound = std::nullopt;
};

AttentionRun attention(const AttentionProblem& problem, const AttentionOperands& given,
                       const AttentionResults& results, const AttentionOptions& options);
AttentionRun gradients(const AttentionProblem& problem, const GradientOperands& given,
                       const GradientResults& results, const AttentionOptions& options);

}  // namespace redblue
