#pragma once
// What a request asks for, before anything runs: which operands come from where, the sizes, the
// plans, and where results go. Throws (all): RequestError, InputError for what files hold,
// std::system_error for the files themselves.

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/run/run.hpp"
#include "runtime/system/npy.hpp"

namespace redblue {

using Readers = std::map<std::string, NpyReader, std::less<>>;
using Writers = std::map<std::string, NpyWriter, std::less<>>;

// The problem of a request, and how often it is to be solved.
struct RequestedProblem {
  Problem problem;
  std::optional<Index> heads;  // nothing: one, and files without a dimension of heads
};

// An operand that a store has.
struct FoundOperand {
  std::string name, file;
  Index rows, cols;
};

// The kernel that is asked for.
KernelName requested_kernel(const Request& request);
RequestedProblem requested_problem(const Request& request, const KernelName& kernel,
                                   const Readers& readers,
                                   const std::vector<FoundOperand>& found = {});
// The plans of the kernel and of what makes O and L for it. `has_forward`: O and L come with the
// request.
Report resolve(const Request& request, const RequestedProblem& asked, bool has_forward);
// The least M in which a forward pass of this problem fits.
Index least_M_of_forward(const Problem& problem);

Readers open_inputs(const Request& request, const KernelName& kernel);
// Refuses to make what is not among these operands of `who`, is not square, or comes from a file.
void check_made(const Request& request, const std::vector<Signature>& operands,
                const std::string& who);
// Puts down where the operands come from. Throws: RequestError where some come from files or a
// store, and others from a seed that nobody gave.
void set_origins(Report& report, const Request& request, const Readers& readers,
                 const std::vector<FoundOperand>& found);
// Rows of an operand that is made, by a rule or from the seed, of some head.
void fill_made(const Request& request, const Signature& operand, const Shape& shape, Index head,
               Index first_row, Index rows, std::span<float> out);
void check_outputs(const Request& request, const Kernel& kernel);
Writers open_outputs(const Request& request, const Kernel& kernel, const RequestedProblem& asked);

}  // namespace redblue
