#pragma once
// One run of one kernel from the outside: the sources of its inputs, the targets of its outputs,
// and the verification of its results.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>

#include "kernels/kernel.hpp"
#include "memsim/store/store.hpp"
#include "runtime/run/inputs.hpp"
#include "runtime/run/outcome.hpp"
#include "runtime/run/progress.hpp"
#include "runtime/run/workers.hpp"
#include "runtime/system/memory.hpp"
#include "runtime/theory/rates.hpp"

namespace redblue {

// A request that cannot be met. The message is one line with the culprit and the remedy.
class RequestError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

struct Request {
  std::string kernel;               // as spelled: backward/rows-shared shares keys
  Sharing sharing = Sharing::none;  // none or kv; kv where the spelling says so, too
  // What is left out comes from the files in `in`; without any, m is n.
  std::optional<Index> n, m, d;
  // Independent problems of this shape. Said so, files hold the heads first; left out, it is what
  // the files say, or one.
  std::optional<Index> heads;
  Index M = 0;
  std::optional<FastMemoryOrigin> M_from;  // where M is a part of a cache
  Objective objective = Objective::words;
  Rates rates = default_rates();  // by which auto chooses for least time
  Index threads = 1;              // each with M words of its own
  Index prefetch = 1;             // blocks of keys in fast memory at a time
  // Block sizes that replace those of the plan; or the paper's own.
  std::map<std::string, Index> blocks;
  bool printed_blocks = false;

  // How the person said it, for messages: "--n" -> "REDBLUE_N". What is not here was a flag.
  std::map<std::string, std::string> said_as;
  [[nodiscard]] std::string said(const std::string& flag) const;

  // For run() alone.
  std::map<std::string, std::filesystem::path> in, out;  // operand -> .npy
  std::map<std::string, Pattern> make;                   // operand -> the rule that makes it
  // Of head 0; head h has seed + h, beyond 64 bits from 0 on. It may be left out where no operand
  // comes from a file or a store, or where all do that are not made.
  std::optional<std::uint64_t> seed;
  double scale = 1;
  bool verify = false;
  // Operands, intermediates and results on disk, not in memory.
  struct OnDisk {
    std::filesystem::path directory;
    StoreOptions options;
    bool keep = false;    // intermediates
    bool resume = false;  // from a checkpoint, where there is one; and leave them
  };
  std::optional<OnDisk> store;
  // O and L that nobody gives are no part of the work: where M is too small to make them, more.
  bool forward_in_more_M = false;
  MemoryBudget* memory = nullptr;  // of those who run at the same time; null: this one is alone
};

// From the formulas alone. Throws: RequestError, FastMemoryTooSmall, CountOverflow.
Report count(const Request& request);

// What a caller attaches to a run. Hooks are for one thread and one head.
struct Observers {
  RunHook kernel = nullptr;            // around the kernel that is asked for
  RunHook forward = nullptr;           // around the forward pass that makes O and L for it
  const Progress* progress = nullptr;  // Requires: no hook
  // Whether the speed of multiply-adds is measured beside each part. Seconds within a hook that
  // takes time of its own are not to be held against it.
  bool peak_gflops = true;
};

// Runs the kernel. Outputs are written only when everything else went well, each whole.
// Throws: as count(), InputError for what the files hold, StoreError for what a store holds,
// std::system_error for the files themselves, std::runtime_error when the memory is too small or a
// result is not finite. A failed verification is not thrown: see Report::error.
Report run(const Request& request, const Topology& topology = {}, const Observers& observers = {});

}  // namespace redblue
