#pragma once
// Decides everything about a run before it starts: sources of operands, sizes, plans, and targets
// of results. Throws (all functions): UsageError, InputError for the content of files,
// std::system_error for the files themselves.

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/run/input_file.hpp"
#include "runtime/run/output_file.hpp"
#include "runtime/run/run.hpp"

namespace redblue {

using Readers = std::map<std::string, InputFile, std::less<>>;
// A result may go to a file and to an array.
using Writers = std::multimap<std::string, OutputFile, std::less<>>;

struct RequestedProblem {
  Problem problem;             // for one head of keys
  std::optional<Index> heads;  // no value: one head, and files have no dimension of heads

  [[nodiscard]] Index kv_heads() const { return heads.value_or(1) / problem.stacked; }
};

// An operand that is already in the store.
struct FoundOperand {
  std::string name, file;
  Index rows, cols;
};

// Returns the kernel that the request names. For a name such as backward/auto, returns a kernel
// with all operands that the planner's choices may take. The planner decides when the sizes are
// known.
KernelName requested_kernel(const Request& request);
RequestedProblem requested_problem(const Request& request, const KernelName& kernel,
                                   const Readers& readers,
                                   const std::vector<FoundOperand>& found = {});
// Checks the sizes of a problem in which queries are keys. Throws: UsageError.
void check_one_source(const Request& request, const Problem& problem);
// Returns the number of query heads for each key head; 1 if the request does not say. `who` names
// the kernel or the problem in messages. Throws: UsageError.
Index stacked_heads(const Request& request, Pass pass, std::string_view who);
// Returns the width of values; d is the width of keys. `who` names the kernel or the problem in
// messages. Throws: UsageError if the values must have width d and the request says otherwise.
Index requested_dv(const Request& request, Pass pass, Sharing sharing, Index d,
                   std::string_view who);
// The words in a share of a cache, for each of the request's threads, and the origin of this
// number. `text` is what the user typed and `said` is the option. `file` is the calibration that
// chose the share. Throws: UsageError for an unknown cache.
struct CacheWords {
  Index words;
  FastMemoryOrigin from;
};
CacheWords cache_words_of(const Request& request, const Topology& topology, const CachePart& part,
                          const std::string& text, const std::string& said,
                          std::optional<std::string> file = std::nullopt);
// Converts a number of float32 values to words of `word_bytes` bytes. Without `word_bytes`, a word
// is a float32.
Index words_of_width(Index floats, const std::optional<Index>& word_bytes);
// Throws: UsageError if sums are wider than words, and the request has several levels, ranks or a
// store. These count each word once, whatever its width.
void check_sum_width(const Request& request);
// Sets the widths of words, sums and indices of the mask. Throws: as check_sum_width(); UsageError
// if operands are sparse and words are not float32.
void set_widths(const Request& request, Problem& problem);
// Returns the results that the request asks for. Throws: UsageError for an unknown result, and if
// no suitable kernel can return only these results.
Wanted requested_results(const Request& request, const KernelName& kernel);
// Returns the request's activation. Throws: UsageError if the kernel, or its pass, takes only
// softmax.
Activation requested_activation(const Request& request, const Kernel& kernel);
// Throws: UsageError if the problem is linear attention with a mask that its kernels do not take.
void check_linear_mask(Pass pass, const Mask& mask, const std::string& said);
// Returns the request's mask, for one head. Throws: UsageError for an invalid text, and if the
// kernel takes no mask.
Mask requested_mask(const Request& request, const Kernel& kernel, const Shape& shape);
// Plans the kernel. If it needs O and L and the request does not give them (`has_forward` is
// false), also plans the forward kernel that computes them.
Report resolve(const Request& request, const RequestedProblem& asked, bool has_forward);
// Throws: UsageError if the kernel has no inner levels, or the request combines them with
// unsupported options.
void check_levels(const Request& request, const Kernel& kernel);
// Throws: UsageError if the request has several levels of fast memory and no kernel of this pass
// supports them.
void check_pass_has_levels(const Request& request, Pass pass);
// Returns the least M in which a forward pass for this kernel fits.
Index least_M_of_forward(const Request& request, const Kernel& kernel, const Problem& problem);

Readers open_inputs(const Request& request, const KernelName& kernel);
// Checks the operands that the request makes by a rule. Throws: UsageError if the operand is not in
// `operands` (of `who`) or also comes from a file, and for an identity that is not square.
void check_made(const Request& request, const std::vector<Signature>& operands,
                const std::string& who);
// Sets `operands` and `seed` of the report. Throws: UsageError if some operands come from files or
// a store, others come from a seed, and the request gives no seed.
void set_origins(Report& report, const Request& request, const Readers& readers,
                 const std::vector<FoundOperand>& found);
// Fills `out` with rows of one head of an operand, by the request's rule or from its seed.
void fill_made(const Request& request, const Signature& operand, const Problem& problem, Index head,
               Index first_row, Index rows, std::span<float> out);
void check_outputs(const Request& request, const KernelName& kernel, const Wanted& wanted);
Writers open_outputs(const Request& request, const Kernel& kernel, const RequestedProblem& asked);

}  // namespace redblue
