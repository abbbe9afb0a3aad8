#pragma once
// Runs one kernel: takes its inputs from their sources, writes its outputs, and verifies the
// results.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>

#include "kernels/kernel.hpp"
#include "memsim/ranks/transport.hpp"
#include "memsim/store/store.hpp"
#include "runtime/observe/devices.hpp"
#include "runtime/ranks/grid.hpp"
#include "runtime/run/arrays.hpp"
#include "runtime/run/inputs.hpp"
#include "runtime/run/outcome.hpp"
#include "runtime/run/progress.hpp"
#include "runtime/run/rules.hpp"
#include "runtime/run/workers.hpp"
#include "runtime/system/memory.hpp"
#include "runtime/text/sizes.hpp"
#include "runtime/theory/rates.hpp"

namespace redblue {

// How messages spell the key of an option: --kv-heads (flag) or kv_heads (key).
enum class Spelling { flag, key };
std::string spelled(std::string_view key, Spelling spelling);

class Sparsities;  // runtime/run/sparse_operands.hpp

// The request to run on ranks. Each rank has a home for its rows and a fast memory of M words.
// `grid` fixes the arrangement. Without it, the planner chooses the best grid for the ranks.
// `groups` is the number of groups of keys; 0: usual_groups() chooses it.
struct OnRanks {
  std::string said = {};  // the option or program that asked for ranks
  std::optional<Grid> grid = {};
  Index groups = 0;
  Index ranks = 1;
  Index sets = 1;  // sets of ranks; each set is a grid, and the sets divide the heads
  Transport* transport = nullptr;  // links to the other ranks; null: all ranks are threads here
  std::chrono::milliseconds patience = std::chrono::minutes(10);
  bool collect = false;                    // send all results to the first rank
  std::function<void()> stored = nullptr;  // called when a rank has its folder to itself
};

struct Request {
  std::string kernel;    // as the user spells it: backward/rows-shared shares keys
  std::string asked_as;  // name in messages if the request names no kernel
  // If no kernel is named: the pass to compute, and whether O and L are known at the start.
  std::optional<Pass> pass;
  std::optional<Known> known;
  [[nodiscard]] const std::string& who() const { return asked_as.empty() ? kernel : asked_as; }
  Sharing sharing = Sharing::none;  // none or kv; a kernel spelled -shared also means kv
  // An extent without a value comes from the files in `in`. If no file gives m, it equals n.
  std::optional<Index> n, m, d;
  // Number of heads, which are independent problems of this shape. With a value, files have a first
  // dimension of heads. Without a value, that dimension of the files decides, or there is one head.
  std::optional<Index> heads;
  // For attention and gradients: number of key/value heads, each shared by equally many query
  // heads. Default: the first dimension of the files of keys and values, or `heads`.
  std::optional<Index> kv_heads;
  std::optional<Index> dv;             // for attention and gradients; default: d
  std::vector<std::string> wanted;     // results to compute; empty: all
  std::optional<float> softmax_scale;  // for attention and gradients; default: 1 / sqrt(d)
  Activation activation = Activation::softmax;
  std::string mask;  // a text for parse_mask(); empty: all pairs live
  // A mask that the calling program made, in place of a text; `mask` is then its name in reports.
  std::optional<Mask> mask_of_caller;
  std::filesystem::path mask_files;  // directory of relative file names in `mask`
  // For dense operands. Default: 4, and reports do not mention it.
  std::optional<Index> word_bytes;
  std::optional<Index> sum_bytes;  // bytes of a sum, at least those of a word; default: as many
  [[nodiscard]] Index sum_words() const {
    const Index word = word_bytes.value_or(kFloatBytes);
    return sum_bytes.value_or(word) / word;
  }
  Index M = 0;
  std::optional<FastMemoryOrigin> M_from;  // the cache that M is a share of
  // The kernel that auto takes for the least time if it takes the request. Empty: the planner's.
  std::string tuned_kernel;
  // Words of the inner levels of fast memory, innermost first, each fewer than the next, and the
  // caches that they are shares of. If all levels have M words, `inner` is empty and `equal_levels`
  // is their number: the machine then treats them as one level.
  std::vector<Index> inner;
  std::vector<FastMemoryOrigin> inner_from;
  std::size_t equal_levels = 1;
  std::optional<Device> device;  // the device with these levels
  // Cost of a word at each level, M last, for plans. Empty: a word costs as much as its level has
  // words. `word_costs_from` is the calibration that gave the costs, if any.
  std::vector<double> word_costs;
  std::string word_costs_from;
  [[nodiscard]] Memory memory_of_plan() const {
    Memory of{M, prefetch};
    of.inner = inner;
    of.word_costs = inner.empty() ? std::vector<double>() : word_costs;
    of.multiple = multiple;
    of.given.assign(blocks.begin(), blocks.end());
    return of;
  }
  Objective objective = Objective::words;
  // The rates by which auto compares times. The balanced objective always uses these defaults, so
  // its choice is the same on every machine.
  Rates rates = default_rates();
  [[nodiscard]] const Rates* rates_if_timed() const {
    return objective == Objective::words ? nullptr : &rates;
  }
  Index multiple = 1;  // block sizes are multiples of this, if the extent is as large
  Index threads = 1;   // number of threads, each with M words
  Index prefetch = 1;  // blocks of keys in fast memory at once
  // Block sizes that replace the plan's block sizes. Or, with `printed_blocks`, the block sizes
  // printed in the paper.
  std::map<std::string, Index> blocks;
  bool printed_blocks = false;
  // For a count: all blocks of the plan, which need not fit in M.
  std::optional<Blocks> whole_blocks;

  Spelling spelling = Spelling::flag;
  [[nodiscard]] std::string said(std::string_view key) const { return spelled(key, spelling); }

  // Files by operand: .npy; for sparse operands also .npz, .mtx, .smtx.
  std::map<std::string, std::filesystem::path> in, out;
  Arrays* arrays = nullptr;          // arrays used instead of files, or with files; null: none
  std::map<std::string, Rule> make;  // operand -> the rule that makes it
  // The seed of head 0. Head h has seed + h modulo 2^64. A request must give a seed if some
  // operands come from files or a store and others from a seed.
  std::optional<std::uint64_t> seed;
  // The members below are only for run().
  std::optional<double> scale;  // of operands from a seed; default: 1
  bool verify = false;
  // The store of operands, intermediates and results. On ranks it is the directory of the ranks'
  // stores, or of their checkpoints if the run resumes. Without a store all words are in main
  // memory.
  struct OnDisk {
    std::filesystem::path directory;
    StoreOptions options;
    bool keep = false;    // intermediates stay in the store after the run
    bool resume = false;  // write checkpoints, and start from an earlier run's checkpoint
  };
  std::optional<OnDisk> store;
  // If true, the work starts from O and L. If the request does not give them, a forward pass
  // computes them first, in more than M words if it needs more. auto chooses as if O and L were
  // given.
  bool forward_in_more_M = false;
  std::optional<OnRanks> on_ranks;
  // If true, auto may choose a kernel of dense operands for sparse operands; never in a store.
  bool densify = true;
  MemoryBudget* memory = nullptr;    // shared by concurrent runs; null: this is the only run
  Sparsities* sparsities = nullptr;  // cache shared by several requests; null: no cache
  // Called regularly, from any working thread. An exception from it ends the run.
  std::function<void()> stop = nullptr;
};

// Counts by the formulas, without running. Throws: UsageError, FastMemoryTooSmall, CountOverflow.
Report count(const Request& request);

// Observers of a run. Hooks work only with one thread and one head.
struct Observers {
  RunHook kernel = nullptr;            // wraps the requested kernel
  RunHook forward = nullptr;           // wraps the forward pass that computes O and L
  const Progress* progress = nullptr;  // Requires: no hook
  // Whether to measure Part::peak_gflops after each part. Set this to false if a hook slows the
  // kernel down, because the seconds then do not measure the kernel.
  bool peak_gflops = true;
};

// Runs the kernel. Writes outputs only after everything else has succeeded, and each output
// completely. A failed verification is not an exception: see Report::error.
// Throws: as count(). InputError for the content of files. StoreError for the content of a store.
// std::system_error for the files themselves. std::runtime_error if memory is too small or a result
// is not finite.
Report run(const Request& request, const Topology& topology = {}, const Observers& observers = {});

}  // namespace redblue
