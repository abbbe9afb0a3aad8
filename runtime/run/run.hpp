#pragma once
// One run of one kernel from the outside: the sources of its inputs, the targets of its outputs,
// and the verification of its results.

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

// How a front end spells the key of an option, in messages: --kv-heads or kv_heads.
enum class Spelling { flag, key };
std::string spelled(std::string_view key, Spelling spelling);

class Sparsities;  // runtime/run/sparse_operands.hpp

// Ranks that each have a home of their rows, and a fast memory of M words: a grid that is asked
// for, with so many groups of keys (0: as many as columns); or the best of so many ranks.
struct OnRanks {
  std::string said = {};  // the option that asks for them, or what started them
  std::optional<Grid> grid = {};
  Index groups = 0;
  Index ranks = 1;
  Index sets = 1;                  // that share out heads, each on a grid
  Transport* transport = nullptr;  // of which this process is one; null: they are threads here
  std::chrono::milliseconds patience = std::chrono::minutes(10);
  bool collect = false;                    // results come to the first rank
  std::function<void()> stored = nullptr;  // called where the folder of a rank is its own
};

struct Request {
  std::string kernel;    // as spelled: backward/rows-shared shares keys
  std::string asked_as;  // what messages call it, where nobody spelled a kernel
  // Where no kernel is named: what is computed, and what that starts from.
  std::optional<Pass> pass;
  std::optional<Known> known;
  [[nodiscard]] const std::string& who() const { return asked_as.empty() ? kernel : asked_as; }
  Sharing sharing = Sharing::none;  // none or kv; kv where the spelling says so, too
  // An extent without a value comes from the files in `in`. An m that no file gives is n.
  std::optional<Index> n, m, d;
  // The number of heads, which are independent problems of this shape. With a value, files have a
  // first dimension of heads. Without one, it is that dimension of the files, or one.
  std::optional<Index> heads;
  // Of attention and gradients: the number of heads of keys and values, each shared by as many
  // heads of queries. Without a value it is the first dimension of these files, or `heads`.
  std::optional<Index> kv_heads;
  std::optional<Index> dv;             // of attention and gradients; without a value d
  std::vector<std::string> wanted;     // results; empty: all
  std::optional<float> softmax_scale;  // of attention and gradients; without a value 1 / sqrt(d)
  Activation activation = Activation::softmax;
  std::string mask;                  // as parse_mask() takes it; empty: all pairs live
  std::filesystem::path mask_files;  // the directory to which names of files in it are relative
  std::optional<Index> word_bytes;   // of dense operands; without a value 4, and none are said
  std::optional<Index> sum_bytes;    // at least those of a word; without a value as many
  [[nodiscard]] Index sum_words() const {
    const Index word = word_bytes.value_or(kFloatBytes);
    return sum_bytes.value_or(word) / word;
  }
  Index M = 0;
  std::optional<FastMemoryOrigin> M_from;  // the cache that M is a part of
  // The words of inner levels of fast memory, from the innermost out, each fewer than the next, and
  // the caches that they are parts of, if they are. Or so many levels of M words, which are one.
  std::vector<Index> inner;
  std::vector<FastMemoryOrigin> inner_from;
  std::size_t equal_levels = 1;
  std::optional<Device> device;  // of which these are the levels
  // What a word costs at each level, M's last, for plans; empty: as much as the level has words.
  // And the calibration that says so, if one does.
  std::vector<double> word_costs;
  std::string word_costs_from;
  [[nodiscard]] Memory memory_of_plan() const {
    Memory of{M, prefetch};
    of.inner = inner;
    of.word_costs = inner.empty() ? std::vector<double>() : word_costs;
    of.multiple = multiple;
    return of;
  }
  Objective objective = Objective::words;
  // By which auto chooses where time counts. Balanced, these always: then the choice is the same on
  // every machine.
  Rates rates = default_rates();
  [[nodiscard]] const Rates* rates_if_timed() const {
    return objective == Objective::words ? nullptr : &rates;
  }
  Index multiple = 1;  // that block sizes are, where an extent is as large
  Index threads = 1;   // each with M words
  Index prefetch = 1;  // blocks of keys in fast memory at a time
  // Block sizes that replace those of the plan; or the paper's block sizes.
  std::map<std::string, Index> blocks;
  bool printed_blocks = false;
  // All blocks of a plan, whether they fit in M or not: of a count.
  std::optional<Blocks> whole_blocks;

  Spelling spelling = Spelling::flag;
  [[nodiscard]] std::string said(std::string_view key) const { return spelled(key, spelling); }

  // operand -> .npy; of sparse operands also .npz, .mtx, .smtx
  std::map<std::string, std::filesystem::path> in, out;
  Arrays* arrays = nullptr;          // in place of files, too; null: none
  std::map<std::string, Rule> make;  // operand -> the rule that makes it
  // The seed of head 0. Head h has seed + h modulo 2^64. A request needs no seed where no operand
  // comes from a file or a store, or where all operands do that no rule makes.
  std::optional<std::uint64_t> seed;
  // The rest is for run() alone.
  double scale = 1;
  bool verify = false;
  // The store of operands, intermediates and results; of ranks, the directory of their stores, of
  // homes or, where the run resumes, of checkpoints. Without one all are in main memory.
  struct OnDisk {
    std::filesystem::path directory;
    StoreOptions options;
    bool keep = false;    // intermediates stay
    bool resume = false;  // leave checkpoints, and begin with the one that an earlier run left
  };
  std::optional<OnDisk> store;
  // The work begins with O and L, which the run makes before where nobody gives them: auto chooses
  // as if they were given, and the forward pass takes more than M words where it needs more.
  bool forward_in_more_M = false;
  std::optional<OnRanks> on_ranks;
  // Auto may choose a kernel of dense operands for sparse ones; never in a store.
  bool densify = true;
  MemoryBudget* memory = nullptr;    // of all runs at the same time; null: this is the only one
  Sparsities* sparsities = nullptr;  // made before, of several requests; null: none are kept
  // Called now and then, from any thread that works; what it throws ends the run.
  std::function<void()> stop = nullptr;
};

// Counts from the formulas alone. Throws: UsageError, FastMemoryTooSmall, CountOverflow.
Report count(const Request& request);

// What a caller attaches to a run. Hooks are for one thread and one head.
struct Observers {
  RunHook kernel = nullptr;            // around the kernel that is asked for
  RunHook forward = nullptr;           // around the forward pass that makes O and L for it
  const Progress* progress = nullptr;  // Requires: no hook
  // Measures Part::peak_gflops after each part. A caller whose hook slows the kernel down sets it
  // to false, because the seconds are not those of the kernel.
  bool peak_gflops = true;
};

// Runs the kernel. Outputs are written only when everything else went well, each whole.
// Throws: as count(), InputError for what the files hold, StoreError for what a store holds,
// std::system_error for the files themselves, std::runtime_error when the memory is too small or a
// result is not finite. A failed verification is not thrown: see Report::error.
Report run(const Request& request, const Topology& topology = {}, const Observers& observers = {});

}  // namespace redblue
