#pragma once
// Chooses the fast memory that `--M auto` stands for: the M that `redblue tune` found fastest for
// the nearest problem, or a share of a cache by a rule. The command, attention.hpp and Python ask
// the same function. Also reads and writes the file with the answers of `redblue tune`.
//
// Two problems are near if they have the same pass, the same class of mask and as many threads. The
// distance is the sum of |log(n / n')| and |log(d / d')|.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/kernel.hpp"
#include "runtime/observe/topology.hpp"

namespace redblue {

inline constexpr const char* kTune = "redblue tune";
inline constexpr const char* kTunedFile = "tuned.json";

// A kernel in an M that is a share of a cache, and its time.
struct TunedKernel {
  std::string kernel;
  CachePart part;
  double seconds = 0;  // median of the kernel alone
  // Median with the forward pass that the kernel needs. Equal to `seconds` if it needs none.
  double from_scratch = 0;

  friend bool operator==(const TunedKernel&, const TunedKernel&) = default;
};

// A problem that was tuned, and all kernels that were timed for it.
struct TunedProblem {
  Pass pass = Pass::attention;
  std::string mask;  // its class: mask_class()
  Index n = 0, m = 0, d = 0;
  Index heads = 1, kv_heads = 1;
  Index threads = 1;
  std::string date = {};  // "2026-01-31T12:00:00Z"
  std::vector<TunedKernel> kernels = {};

  friend bool operator==(const TunedProblem&, const TunedProblem&) = default;
};

// Returns the class of a mask by its text. The class of one term is its first word, without
// numbers: "causal", "window". No text is "full", and joined terms are "several".
std::string mask_class(std::string_view spec);
// The same for a mask. One that was made from an array has no text: its class is "array".
std::string mask_class(const Mask& mask);

// A request for an M. `kernel` is empty if the planner chooses the kernel. A size that is not known
// does not count in the distance.
struct AutoRequest {
  Pass pass = Pass::attention;
  std::string kernel = {};
  bool has_forward = false;  // O and L are given
  std::string mask = "full";
  std::optional<Index> n = {}, d = {};
  Index threads = 1;

  friend auto operator<=>(const AutoRequest&, const AutoRequest&) = default;
};

// The fast memory for a request. `kernel` is the fastest kernel, if one was timed.
struct AutoMemory {
  CachePart part;
  std::string kernel = {};
  bool tuned = false;  // false: by the rule
};

// The rule uses a quarter of L3, but at most 4M words, for gradients and layer, and for backward
// without O and L. In such an M a kernel keeps whole rows of scores, and computes fewer products.
// All other problems, and kernels that take O and L, use half of L2. Returns nullopt if the caches
// are unknown.
std::optional<AutoMemory> auto_memory(const AutoRequest& request,
                                      const std::vector<TunedProblem>& tuned,
                                      const Topology& topology);

// Reads the text of the file `name`. Throws: InputError with the remedy if the text is not such
// JSON, or if its machine has another processor or other caches than `topology`.
std::vector<TunedProblem> read_tuned(std::string_view text, const std::string& name,
                                     const Topology& topology);
// Returns the text of the file.
std::string tuned_text(const std::vector<TunedProblem>& tuned, const Topology& topology);
// Adds a problem, and removes older answers for the same problem.
void add_tuned(std::vector<TunedProblem>& tuned, TunedProblem problem);

}  // namespace redblue
