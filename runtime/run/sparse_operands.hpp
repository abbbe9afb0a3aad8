#pragma once
// The sparse operands of a request: where they have entries, and which values those have.

#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "kernels/kernel.hpp"
#include "runtime/run/resolve.hpp"

namespace redblue {

// Whether a kernel works on the stored entries of this operand; and the matrix that these are of,
// for the extents. A result, too: C of a product.
bool is_sparse(const Signature& operand);
Signature whole_matrix(const Signature& operand, Pass pass);
// The entries of such an operand.
const BlockPattern& pattern_of(const Sparsity& sparsity, const Signature& operand);

// The row and the column of a word that a kernel has of an operand, or result: of sparse ones of
// the entry that is stored there. Requires: there is one.
struct Place {
  Index row, col;
};
Place place_in(const Signature& operand, const Problem& problem, Index at);

// Whether kernels of sparse operands are meant: some that a kernel has entries of come from a file
// with entries, or are made by a rule other than identity.
bool asks_for_sparse(const Request& request);

// The last that several requests have asked for, which equal ones share. For several threads.
class Sparsities {
 public:
  // What `make` has made of this key.
  Sparsity get(const std::string& key, const std::function<Sparsity()>& make);

 private:
  std::mutex mutex_;
  std::deque<std::pair<std::string, Sparsity>> kept_;
};

// Of the operands of this shape: by their rules, from their files, and else all entries. Throws:
// UsageError for a rule that does not take the extents.
Sparsity requested_sparsity(const Request& request, const Kernel& kernel, const Readers& readers,
                            const Shape& shape);
// Throws: UsageError for a rule that does not take the extents of its operand.
void check_rules(const Request& request, const std::vector<Signature>& operands, Pass pass,
                 const Shape& shape);

// Equal for equal entries of as many rows and columns: 16 digits.
std::string fingerprint_of(const BlockPattern& pattern);

// What dead means, of any problem: a query that meets no key.
bool meets_a_key(const Problem& problem, Index query);
// The words of a dense matrix with these entries.
std::vector<float> densified(const BlockPattern& pattern, std::span<const float> values);

// Where the kernel of a run takes sparse operands as dense ones: what a kernel of sparse operands
// takes by this name, if these are entries; else null.
const Signature* densified_operand(const Report& report, std::string_view name);

// A line about each sparse operand: "A1 random:32", "X from x.npz"; empty of dense operands.
std::map<std::string, std::string> sparse_sources(const Request& request, const Kernel& kernel);

}  // namespace redblue
