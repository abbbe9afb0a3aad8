#pragma once
// Computes attention, or its gradients, on your own buffers in one call. A kernel moves words
// between a fast memory of M words and these buffers, and the call returns the number of words
// moved.
//
//   const AttentionProblem problem{.shape = {n, m, d}, .heads = 8, .mask = "causal"};
//   const AttentionOptions options{.M = cache_words(CacheLevel::L2, 0.25)};
//   const AttentionRun run =
//       attention(problem, {.Q = q, .K = k, .V = v}, {.O = o, .L = l}, options);
//
//   run.kernel.words();      // words moved; run.kernel.plan.kernel is the kernel's name
//   run.lower_bound->words;  // no algorithm of the kernel's class moves fewer
//
// Buffers are float32, row-major, heads first, and are used in place. Several threads may call at
// once, each with its own results. The plans of the latest calls are kept: the next call for the
// same problem and options starts in microseconds.
//
// Both calls throw before writing a result: std::invalid_argument for an invalid problem, options
// or buffer size. If M is too small, this is a FastMemoryTooSmall that names the least M.
// CountOverflow for counts beyond 63 bits. std::runtime_error for an operand that is not finite,
// and for too little memory.
//
// They throw after writing results: std::runtime_error if a result is not finite. The results must
// not be used then.

#include <functional>
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
  Shape shape;  // of one head: n queries, m keys, width d, value width dv (default: d)
  Index heads = 1;
  // Number of key/value heads. Each serves heads / kv_heads query heads. 0: as many as `heads`.
  Index kv_heads = 0;
  Sharing sharing = Sharing::none;  // kv: V is K, which is read once; leave V empty
  // The mask of each head: a Mask, or a text as for --mask, such as "causal|prefix:16". Default:
  // all pairs live.
  std::variant<Mask, std::string> mask = Mask();
  std::optional<float> softmax_scale = std::nullopt;  // default: 1 / sqrt(d)
  // The function f applied to each score. For functions other than softmax leave O and L of the
  // gradients, and L of attention, empty.
  Activation activation = Activation::softmax;

  friend bool operator==(const AttentionProblem&, const AttentionProblem&) = default;
};

struct AttentionOptions {
  // Words of fast memory of each thread. The default is M of the nearest problem that `redblue
  // tune` has timed on this machine. If there is none, it is half of a thread's part of L2. For
  // gradients it is a quarter of its part of L3, but at most 4M words. If the caches are unknown,
  // it is 64K.
  std::optional<Index> M = std::nullopt;
  // Number of threads, which are not pinned to cores. With one kernel, results have the same bits
  // for any number of threads.
  Index threads = 1;
  // The kernel's name, such as attention/rows. Empty: without M the kernel that `redblue tune`
  // found, else the planner chooses among the kernels that the threads can share.
  std::string kernel = {};
  Objective objective = Objective::time;  // uses the rates that redblue comes with
  // Called before each move, on any thread. What it throws ends the call; results are then partial.
  std::function<void()> stop = nullptr;
};

// Returns the number of words in a share of this machine's cache, for each of `threads` threads
// that use the cache at once. Reads the machine's topology, which takes milliseconds, so call it
// once. Throws: std::invalid_argument for an unknown cache.
Index cache_words(CacheLevel level, double share = 1, Index threads = 1);

// Reads the machine for later calls without M, unless that is done. hwloc reads the environment of
// the process. If other threads may change it, call this while none does; the first call without M
// would read it otherwise.
void read_machine();

// Shapes: Q (heads x n x d), K (kv_heads x m x d), V (kv_heads x m x dv).
struct AttentionOperands {
  std::span<const float> Q, K, V = {};
};
// Shapes: O (heads x n x dv), L (heads x n). L is the logarithm of the sum of exp(scores). A query
// without a live key has O = 0 and L = -infinity.
struct AttentionResults {
  std::span<float> O, L;
};

// O and L come from a call of attention(). Give both or neither. If they are missing and the kernel
// needs them, a forward kernel computes them first.
struct GradientOperands {
  std::span<const float> Q, K, V, dO, O = {}, L = {};
};
// Shapes as Q, K and V. dK and dV are sums over the query heads that share a key/value head. If V
// is K, dK holds dK + dV and dV is left empty.
struct GradientResults {
  std::span<float> dQ, dK, dV;
};

// The plan and the counts of one kernel.
struct KernelRun {
  Plan plan;                       // for one head of keys on one thread
  std::vector<PhaseCost> formula;  // predicted counts by phase, of all heads and threads
  RunCounts counted;               // counted in the same order; with seconds

  [[nodiscard]] Index words() const { return counted.total.io.io(); }
};

struct AttentionRun {
  KernelRun kernel;
  // The run of the kernel that computed O and L for the gradients.
  std::optional<KernelRun> forward = std::nullopt;
  // Proven minimum of words moved by any algorithm of the kernel's class. Known only for one
  // thread.
  struct LowerBound {
    std::string_view name;  // as in docs/theory/bounds.md
    Index words = 0;
  };
  std::optional<LowerBound> lower_bound = std::nullopt;
};

AttentionRun attention(const AttentionProblem& problem, const AttentionOperands& given,
                       const AttentionResults& results, const AttentionOptions& options);
AttentionRun gradients(const AttentionProblem& problem, const GradientOperands& given,
                       const GradientResults& results, const AttentionOptions& options);

}  // namespace redblue
