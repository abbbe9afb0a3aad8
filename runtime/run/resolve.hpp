#pragma once
// The decisions of a run before anything runs: the sources of operands, the sizes, the plans, and
// the targets of results. Throws (all): UsageError, InputError for what files hold,
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
  Problem problem;             // of one head of keys
  std::optional<Index> heads;  // without a value: one, and files without a dimension of heads

  [[nodiscard]] Index kv_heads() const { return heads.value_or(1) / problem.stacked; }
};

// An operand that a store has already.
struct FoundOperand {
  std::string name, file;
  Index rows, cols;
};

// The kernel that the request names. For a name such as backward/auto, until the sizes are known, a
// kernel with all operands that the planner's choices may have.
KernelName requested_kernel(const Request& request);
RequestedProblem requested_problem(const Request& request, const KernelName& kernel,
                                   const Readers& readers,
                                   const std::vector<FoundOperand>& found = {});
// The heads of queries for each head of keys that the options ask for; one where they do not say.
// `who` is the kernel, or the problem. Throws: UsageError.
Index stacked_heads(const Request& request, Pass pass, std::string_view who);
// The width of values, where keys have width d. `who` is what is asked for, in messages. Throws:
// UsageError where there is no other width than d.
Index requested_dv(const Request& request, Pass pass, Sharing sharing, Index d,
                   std::string_view who);
// The words of a part of a cache, of its own for each of the request's threads, and where they come
// from: `text` is what was typed, as `said`; `file` the calibration that chose the part. Throws:
// UsageError for a cache that is not known.
struct CacheWords {
  Index words;
  FastMemoryOrigin from;
};
CacheWords cache_words_of(const Request& request, const Topology& topology, const CachePart& part,
                          const std::string& text, const std::string& said,
                          std::optional<std::string> file = std::nullopt);
// So many float32 as words of this width; without one they are words.
Index words_of_width(Index floats, const std::optional<Index>& word_bytes);
// Throws: UsageError where sums are wider than words, and several levels, ranks or a store would
// count them.
void check_sum_width(const Request& request);
// How wide words, sums and indices of the mask are. Throws: likewise; UsageError where words have
// another width than float32, and operands are sparse.
void set_widths(const Request& request, Problem& problem);
// The results that are asked for. Throws: UsageError for a name of no result, and where the
// kernel returns all that it has.
Wanted requested_results(const Request& request, const KernelName& kernel);
// Throws: UsageError where the kernel, or its pass, takes softmax alone.
Activation requested_activation(const Request& request, const Kernel& kernel);
// Throws: UsageError where the problem is linear attention and the mask not causal.
void check_linear_mask(Pass pass, const Mask& mask, const std::string& said);
// The mask of the request, of one head. Throws: UsageError for a text that is no mask, and where
// the kernel takes none.
Mask requested_mask(const Request& request, const Kernel& kernel, const Shape& shape);
// Plans the kernel and, where it needs O and L and they do not come with the request
// (`has_forward`), the forward kernel that makes them.
Report resolve(const Request& request, const RequestedProblem& asked, bool has_forward);
// Throws: UsageError for what inner levels do not do, and for a kernel that has none.
void check_levels(const Request& request, const Kernel& kernel);
// Throws: UsageError for several levels of fast memory where no kernel of this pass has them.
void check_pass_has_levels(const Request& request, Pass pass);
// The least M in which a forward pass for this kernel fits.
Index least_M_of_forward(const Request& request, const Kernel& kernel, const Problem& problem);

Readers open_inputs(const Request& request, const KernelName& kernel);
// Throws: UsageError where the request makes an operand by a rule that is not among these
// operands of `who`, or comes from a file, too, and for an identity that is not square.
void check_made(const Request& request, const std::vector<Signature>& operands,
                const std::string& who);
// Sets `operands` and `seed` of the report. Throws: UsageError where some operands come from
// files or a store, and others from a seed that the request does not give.
void set_origins(Report& report, const Request& request, const Readers& readers,
                 const std::vector<FoundOperand>& found);
// Fills `out` with rows of one head of an operand, by the request's rule for it or from its seed.
void fill_made(const Request& request, const Signature& operand, const Problem& problem, Index head,
               Index first_row, Index rows, std::span<float> out);
void check_outputs(const Request& request, const KernelName& kernel, const Wanted& wanted);
Writers open_outputs(const Request& request, const Kernel& kernel, const RequestedProblem& asked);

}  // namespace redblue
