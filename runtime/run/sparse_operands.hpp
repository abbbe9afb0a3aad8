#pragma once
// The sparse operands of a request: the places and the values of their stored entries.

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

// is_sparse(): the kernel works on the stored entries of this operand or result (such as C of a
// product). whole_matrix(): the full matrix that the entries belong to, for its extents.
bool is_sparse(const Signature& operand);
Signature whole_matrix(const Signature& operand, Pass pass);
// Returns the entries of a sparse operand.
const BlockPattern& pattern_of(const Sparsity& sparsity, const Signature& operand);

// The row and column of word number `at` of an operand or result. For a sparse operand, that is the
// place of stored entry `at`. Requires: the word exists.
struct Place {
  Index row, col;
};
Place place_in(const Signature& operand, const Problem& problem, Index at);

// Returns true if the request needs kernels of sparse operands. That is so if an operand that may
// be sparse comes from a sparse file, or from a rule other than identity.
bool asks_for_sparse(const Request& request);

// A cache of the most recent sparsities, shared by equal requests. Safe for several threads.
class Sparsities {
 public:
  // Returns the sparsity for this key. Calls `make` if the cache does not have it.
  Sparsity get(const std::string& key, const std::function<Sparsity()>& make);

 private:
  std::mutex mutex_;
  std::deque<std::pair<std::string, Sparsity>> kept_;
};

// Returns the entries of the operands: by their rules or from their files, otherwise all entries.
// Throws: UsageError for a rule that does not take the extents.
Sparsity requested_sparsity(const Request& request, const Kernel& kernel, const Readers& readers,
                            const Shape& shape);
// Throws: UsageError for a rule that does not take the extents of its operand.
void check_rules(const Request& request, const std::vector<Signature>& operands, Pass pass,
                 const Shape& shape);

// Returns 16 digits. Patterns with the same entries and extents have the same fingerprint.
std::string fingerprint_of(const BlockPattern& pattern);

// Returns false if the query is dead: it meets no key.
bool meets_a_key(const Problem& problem, Index query);
// Returns the words of a dense matrix with these entries, and 0 elsewhere.
std::vector<float> densified(const BlockPattern& pattern, std::span<const float> values);

// If the run's kernel takes sparse operands as dense matrices: returns the operand that a kernel of
// sparse operands takes by this name, if it has stored entries. Otherwise returns null.
const Signature* densified_operand(const Report& report, std::string_view name);

// Returns the source of each sparse operand by name, such as "random:32" or "x.npz". The map is
// empty if all operands are dense.
std::map<std::string, std::string> sparse_sources(const Request& request, const Kernel& kernel);

}  // namespace redblue
