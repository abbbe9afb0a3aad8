#pragma once
// Declares the functions that make the kernels. To add a kernel, add a line here and one to the
// list in registry.cpp. backward/rows-q is in kernels/backward/rows_q.cpp. A variant without its
// own file is in the file of the name it extends: rows-w in rows.cpp, stationary-a in
// stationary.cpp. Only the list names the variants of a family, and the kernels made from other
// kernels: attention/NAME, gradients/flash and layer/NAME.

#include <cstdint>
#include <string_view>

#include "kernels/kernel.hpp"

namespace redblue {

// The axes of the family of row kernels. Start: whether O and L are given. Sink: whether A1_I^T W_I
// is added to g while row blocks pass, or W is stored.
enum class Start : std::uint8_t { given, nothing };
// Rows without L and v need no preparation, so every start counts as `given`.
inline Start start_of(const Problem& problem, Start start) {
  return problem.normalised() ? start : Start::given;
}
enum class Sink : std::uint8_t { gradient, stored };
// The rows of gradients/resident that stay while blocks of the others pass.
enum class ResidentRows : std::uint8_t { keys, queries };
// The result of linear attention: O, or g.
enum class LinearResult : std::uint8_t { output, gradient };

Kernel matmul_blocked();
Kernel matmul_stationary_a();
Kernel matmul_stationary_b();
Kernel matmul_stationary_c();
Kernel forward_naive();
Kernel forward_small();
Kernel forward_flash();
Kernel forward_rows();
Kernel forward_rows_resident();
Kernel forward_columns();
Kernel forward_tiles();
Kernel backward_naive();
Kernel backward_small();
Kernel backward_large();
Kernel backward_flash();
Kernel backward_rows(std::string_view name, std::string_view summary, Start start, Sink sink);
Kernel backward_score_rows();
Kernel backward_rows_xg();
Kernel backward_rows_resident();
Kernel backward_columns();
Kernel backward_rows_q(Start start);
Kernel backward_tiles();
Kernel backward_tiles_sqp();
Kernel backward_tiles_sq();
Kernel gradients_rows_keys(std::string_view name, std::string_view summary, Start start);
Kernel gradients_score_rows();
Kernel gradients_tiles();
Kernel gradients_resident(std::string_view name, std::string_view summary, ResidentRows stays);
Kernel gradients_sources();
Kernel matmul_sparse_stay();
Kernel matmul_sparse_pass();
// For passes logsumexp, forward and backward.
Kernel sparse_rows(Pass pass);
Kernel sparse_x(Pass pass);
Kernel logsumexp_sparse_tiles();
Kernel forward_sparse_tiles();
Kernel backward_sparse_tiles();
Kernel linear_rows(LinearResult of);
Kernel linear_products(LinearResult of);
// Returns a kernel with the same schedule that also computes A1 X and A3 Y, and the gradients of
// A1, X, A3 and Y. Requires: a kernel of gradients before with_masks().
Kernel layer_of(const Kernel& gradients, std::string_view name, std::string_view summary);

// Returns the nest that was loaded with this name (kernels/nests), or null.
const Kernel* find_loaded(std::string_view name);

}  // namespace redblue
